import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { TestApi } from '../support/api.js';
import { hold, postgres, thorough } from '../support/database.js';
import { findWrong, RIGHT, writeThem } from '../support/writers.js';

thorough.describe('maintained totals', () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await TestApi.start();
    await writeThem(api.platform);
  });
  afterAll(() => api.close());

  const wrong = () => findWrong(api);

  postgres.it('of an achievement wait for a transaction that changes it; other totals do not', async () => {
    const program = await hold(api.dataSource, 'UPDATE achievements SET points = 6 WHERE id = 1');
    await api.query(
      `INSERT INTO user_achievements (user_id, achievement_id, earned_at) VALUES (5, 1, now()), (5, 2, now())`,
    );
    await api.platform.fold();
    const pending = () =>
      api.query(
        `SELECT achievement_id::int FROM achievement_total_deltas UNION SELECT user_id FROM user_totals WHERE is_delta`,
      );
    expect(await pending()).toEqual([{ achievement_id: 1 }]);
    await program.commit();
    await api.platform.fold();
    expect(await pending()).toEqual([]);
    expect(await wrong()).toEqual(RIGHT);
  });

  it.each([
    [
      'a participant of a missing event',
      `INSERT INTO participants (user_id, event_id, role) VALUES (1, 999, 'organizer')`,
      /There is no event 999/,
    ],
    [
      'a denormalized column that differs from its source',
      `INSERT INTO participants (user_id, event_id, role, starts_at, event_is_draft, event_is_deleted) VALUES (12, 3, 'organizer', '2001-01-01', false, false)`,
      /participants_event_fkey/,
    ],
    [
      'a manual change of a denormalized column',
      `UPDATE user_achievements SET user_is_disabled = NOT user_is_disabled`,
      /user_achievements_user_fkey/,
    ],
    [
      'a change of a member’s id',
      'UPDATE users SET id = 999 WHERE id = 12',
      /id of a row of users never changes/,
    ],
    [
      'a change of an event’s id',
      'UPDATE events SET id = 999 WHERE id = 1',
      /id of a row of events never changes/,
    ],
    ['TRUNCATE', 'TRUNCATE participants', /TRUNCATE of participants would leave totals wrong: use DELETE/],
    ['TRUNCATE of a referenced table', 'TRUNCATE users CASCADE', /TRUNCATE of \w+ would leave totals wrong/],
    ['TRUNCATE of totals', 'TRUNCATE user_totals', /TRUNCATE of user_totals/],
    ['an infinite time', `UPDATE events SET ends_at = 'infinity'`, /events_ends_at_range_check/],
    [
      'an infinite time in a denormalized column',
      `UPDATE events SET starts_at = 'infinity', ends_at = NULL WHERE id = 2`,
      /starts_at of event 2 has no end/,
    ],
    [
      'an infinite time of a new event',
      `INSERT INTO events (id, title, status, visibility, starts_at, timezone, organizer_id, created_at)
SELECT 999, title, status, visibility, starts_at, timezone, organizer_id, '-infinity' FROM events WHERE id = 2`,
      /created_at of event 999 has no end/,
    ],
    [
      'two achievements pinned at one position',
      `UPDATE user_achievements SET earned_at = now(), pin_position = 1 WHERE user_id = 1`,
      /user_achievements_pin_key/,
    ],
    ['a year of five digits', `UPDATE events SET ends_at = '10000-01-01'`, /events_ends_at_range_check/],
    ['a year before year 1', `UPDATE users SET created_at = '0001-01-01 BC'`, /users_created_at_range_check/],
  ])('stay correct because the database rejects %s', async (_, sql, message) => {
    await api.query(
      `INSERT INTO user_achievements (user_id, achievement_id) VALUES (1, 1), (1, 2) ON CONFLICT DO NOTHING`,
    );
    await api.query('DELETE FROM participants WHERE user_id = 12');
    await expect(api.query(sql)).rejects.toThrow(message);
    expect(await wrong()).toEqual(RIGHT);
  });

  postgres.it('block no statement that refers to a member or an event that is being changed', async () => {
    const writer = await hold(api.dataSource, `UPDATE users SET bio = 'imported' WHERE id = 1`);
    await writer.query(`UPDATE events SET description = 'imported' WHERE id = (SELECT min(id) FROM events)`);
    // The statements would wait if the key had changed.
    await api.dataSource.transaction(async (manager) => {
      await manager.query(`SET LOCAL lock_timeout = '1s'`);
      expect(await manager.query('SELECT FROM users WHERE id = 1 FOR KEY SHARE')).toHaveLength(1);
      expect(
        await manager.query('SELECT FROM events WHERE id = (SELECT min(id) FROM events) FOR KEY SHARE'),
      ).toHaveLength(1);
    });
    await writer.rollback();
  });

  it('are maintained even if the writer’s search_path leads to other tables', async () => {
    // A function without its own search_path must qualify this schema's tables and functions.
    const functions = await api.query<{ name: string; body: string; sets: boolean }>(
      `SELECT proname AS name, prosrc AS body, COALESCE(proconfig::text LIKE '%search_path=%', false) AS sets FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND prosqlbody IS NULL AND prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c')`,
    );
    const ours = new Set(functions.map(({ name }) => name));
    const unnamed = functions
      .filter(({ sets }) => !sets)
      .flatMap(({ name, body }) => {
        const code = body.replaceAll(/--.*|'[^']*'/g, '');
        const tables = [
          ...code.matchAll(/(?<!DISTINCT )\b(?:FROM|INTO|JOIN|UPDATE|TABLE)\s+([a-z_.]+)/gi),
        ].map(([, table]) => table!);
        const calls = [...code.matchAll(/(?<![\w.])([a-z_]+)\(/g)].map(([, called]) => called!);
        return [
          ...tables.filter((table) => !/^(public|NEW)\./.test(table) && table !== 'new_rows'),
          ...calls.filter((called) => ours.has(called)),
        ].map((found) => `${name}: ${found}`);
      });
    expect(unnamed).toEqual([]);
    const newest = () => api.query('SELECT max(sequence) AS newest FROM changes');
    const before = await newest();
    await api.dataSource.transaction(async (manager) => {
      for (const table of ['user_totals', 'event_totals', 'changes'])
        await manager.query(`CREATE TEMP TABLE ${table} (LIKE public.${table}) ON COMMIT DROP`);
      await manager.query('SET LOCAL search_path = pg_temp');
      await manager.query('DELETE FROM public.participants WHERE user_id = 1');
      await manager.query(
        `INSERT INTO public.participants (user_id, event_id, role) VALUES (1, 1, 'organizer')`,
      );
      await manager.query(
        `UPDATE public.participants SET role = 'attendee', rsvp_status = 'going' WHERE user_id = 1`,
      );
    });
    expect(await wrong()).toEqual(RIGHT);
    expect(await newest()).not.toEqual(before);
  });
});
