import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { Upkeep } from '../../src/operations/upkeep.js';
import { TestApi } from '../support/api.js';
import { embedded, hold, postgres } from '../support/database.js';
import { event, importFiles, type ImportedFiles } from '../support/import-files.js';

type Item = Record<string, unknown> & { id: number };

/** The guarantee of `updated_since`: a client that polls with the time of its last response misses nothing. */
describe('the filter updated_since', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  const read = async (key: string, query = '', list = '/events') => {
    const items: Item[] = [];
    for (let path = `${list}?limit=100${query}`; ;) {
      const { body } = await api.get(path, key);
      const { data, pagination } = body as { data: Item[]; pagination: { next_cursor: string | null } };
      items.push(...data);
      if (pagination.next_cursor === null) return items;
      path = `${list}?limit=100${query}&cursor=${pagination.next_cursor}`;
    }
  };
  const since = async (key: string, moment: string, list?: string) =>
    (await read(key, `&updated_since=${encodeURIComponent(moment)}`, list))
      .map(({ id }) => id)
      .toSorted((a, b) => a - b);
  const inBoth = async (key: string, moment: string) => [
    await since(key, moment),
    await since(key, moment, '/connections'),
  ];
  /** Makes the change marks older by this many seconds. */
  const age = (seconds: number) =>
    api.query(`UPDATE change_marks SET taken_at = taken_at - make_interval(secs => $1)`, [seconds]);
  /** The time of a new change mark. */
  const now = async () => {
    await age(10); // otherwise a mark of this second would be reused
    await api.app.get(Upkeep).takeChangeMark();
    await age(10);
    const [row] = await api.query<{ now: string }>(
      `SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS now`,
    );
    return row!.now;
  };
  const load = (files: ImportedFiles) => importFiles(api.dataSource, files);
  const record = (id: number, organizer_id: number, more: object = {}) =>
    event(id, { organizer_id, updated_at: '2024-04-01 10:00:00', ...more });

  it('lists a connection if the connection, the other person, or the event where they met changed', async () => {
    const { id, key } = await api.member();
    const peers: number[] = [];
    for (let n = 0; n < 4; n++) peers.push(await api.platform.user());
    const event = await api.platform.event();
    await api.platform.participant(event, id);
    const [renamed, met, asked] = [
      await api.platform.connection(id, peers[0]!),
      await api.platform.connection(id, peers[1]!, { met_at_event_id: event }),
      await api.platform.connection(id, peers[2]!, { status: 'pending' }),
      await api.platform.connection(id, peers[3]!),
    ];
    const list = '/connections';
    const before = await now();
    expect(await since(key, before, list)).toEqual([]);
    await api.query(`UPDATE users SET first_name = 'New' WHERE id = $1`, [peers[0]]);
    await api.query(`UPDATE events SET location_city = 'Rome' WHERE id = $1`, [event]);
    await api.query(`UPDATE connections SET status = 'accepted', connected_at = '2020-01-01' WHERE id = $1`, [
      asked,
    ]);
    expect(await since(key, before, list)).toEqual([renamed, met, asked].toSorted((a, b) => a! - b!));
    expect(await since((await api.member()).key, before, list)).toEqual([]);
    // Changes since that time are no longer stored: all records may have changed.
    await api.query(`INSERT INTO change_places (name, changed_in) SELECT 'swept', max(changed_in) FROM changes
      ON CONFLICT (name) DO UPDATE SET changed_in = EXCLUDED.changed_in`);
    expect(await since(key, before, list)).toHaveLength(4);
    await api.query(`UPDATE change_places SET changed_in = 0 WHERE name = 'swept'`);
    expect(await since(key, await now(), list)).toEqual([]);
  });

  it('lists achievements that were earned or whose description changed, but none with only new progress', async () => {
    const { id, key } = await api.member();
    const [earned, begun, described] = [
      await api.platform.achievement({ target: 5 }),
      await api.platform.achievement({ target: 5 }),
      await api.platform.achievement({}),
    ];
    await api.platform.progress(id, earned, { progress: 4 });
    await api.platform.progress(id, begun, { progress: 1 });
    const before = await now();
    expect(await since(key, before, '/achievements/all')).toEqual([]);
    await api.query(
      `UPDATE user_achievements SET progress = 5, earned_at = '2020-01-01' WHERE achievement_id = $1`,
      [earned],
    );
    await api.query('UPDATE user_achievements SET progress = 2 WHERE achievement_id = $1', [begun]);
    expect(await since(key, before, '/achievements/earned')).toEqual([earned]);
    expect(await since(key, before, '/achievements/all')).toEqual([earned]);
    await api.query(`UPDATE achievements SET description = 'new' WHERE id = $1`, [described]);
    expect(await since(key, before, '/achievements/all')).toContain(described);
  });

  it('uses updated_at for records that have not changed since the member was imported', async () => {
    const [first, second] = [800_001, 800_002];
    const answer = { user_id: first, role: 'attendee', rsvp_status: 'going' };
    await load({
      users: [{ id: first, username: 'comes' }],
      events: [record(first, first), record(second, first, { updated_at: '2024-06-01 10:00:00' })],
      participants: [
        { ...answer, event_id: first },
        { ...answer, event_id: second },
      ],
    });
    const key = await api.key(first);
    expect(await since(key, '2024-05-01')).toEqual([second]);
    expect(await since(key, await now())).toEqual([]);
  });

  it('lists an imported event of an existing member, even if its updated_at is old', async () => {
    const { id, key } = await api.member();
    const other = await api.platform.event({ updated_at: '2020-01-01T00:00:00Z' });
    await api.platform.participant(other, id);
    const asked = await now();
    expect(await since(key, asked)).toEqual([]);
    await load({
      events: [record(810_001, id)],
      participants: [{ event_id: 810_001, user_id: id, role: 'organizer' }],
    });
    expect(await since(key, asked)).toEqual([810_001]);
  });

  it.each<[what: string, sql: string | undefined]>([
    ['a new title with an unchanged updated_at', `UPDATE events SET title = 'new' WHERE id = $1`],
    ['another RSVP', `UPDATE participants SET rsvp_status = 'maybe' WHERE event_id = $1`],
    ['a published draft', `UPDATE events SET status = 'scheduled' WHERE id = $1`],
    ['an import with the old updated_at', undefined],
  ])('lists %s', async (what, sql) => {
    const { id, key } = await api.member();
    const status = what === 'a published draft' ? 'draft' : 'scheduled';
    const event = await api.platform.event({ status, updated_at: '2020-01-01T00:00:00Z' });
    await api.platform.participant(event, id);
    const quiet = await api.platform.event({ updated_at: '2020-01-01T00:00:00Z' });
    await api.platform.participant(quiet, id);
    const asked = await now();
    if (sql === undefined) await load({ events: [record(event, id, { title: 'imported' })] });
    else await api.query(sql, [event]);
    expect(await since(key, asked)).toEqual([event]);
  });

  it('has all change marks of the last hour, and marks of each minute’s first seconds for 40 days', async () => {
    const put = async (ago: string, second: number) => {
      const [row] = await api.query<{ at: string }>(
        `INSERT INTO change_marks SELECT date_trunc('minute', now() - $1::interval) + make_interval(secs => $2), pg_current_snapshot()::text
RETURNING taken_at::text AS at`,
        [ago, second],
      );
      return row!.at;
    };
    const kept = [await put('30 minutes', 30), await put('62 minutes', 2), await put('39 days', 2)];
    const gone = [await put('62 minutes', 30), await put('41 days', 2)];
    await age(0); // a change, without which no mark is recorded
    await api.query("DELETE FROM change_marks WHERE taken_at > now() - interval '2 s'");
    await api.app.get(Upkeep).takeChangeMark();
    const found = await api.query<{ at: string }>(
      'SELECT taken_at::text AS at FROM change_marks WHERE taken_at::text = ANY ($1)',
      [[...kept, ...gone]],
    );
    expect(found.map(({ at }) => at).toSorted()).toEqual(kept.toSorted());
  });

  it('lists everything once after a restore, which may have undone changes', async () => {
    const { id, key } = await api.member();
    const event = await api.platform.event({ updated_at: '2020-01-01T00:00:00Z' });
    await api.platform.participant(event, id);
    const connection = await api.platform.connection(id, await api.platform.user());
    const before = await now();
    expect(await inBoth(key, before)).toEqual([[], []]);
    await api.platform.restore();
    expect(await inBoth(key, before)).toEqual([[event], [connection]]);
    expect(await inBoth(key, await now())).toEqual([[], []]);
    await api.query(`DELETE FROM change_places WHERE name = 'restored'`); // otherwise moments before all marks list everything
  });

  it('misses no change after a restore of a dump whose transaction numbers are above the server’s', async () => {
    const { id, key } = await api.member();
    const event = await api.platform.event({ updated_at: '2020-01-01T00:00:00Z' });
    await api.platform.participant(event, id);
    await api.query(`UPDATE events SET title = 'dumped' WHERE id = $1`, [event]);
    const connection = await api.platform.connection(id, await api.platform.user());
    await api.platform.settleChanges();
    await api.query('DELETE FROM changes WHERE user_id = $1', [id]);
    await api.query(
      `INSERT INTO changes (changed_in, user_id, resource, id, kind) VALUES (9000000000001, $1, 'connections', $2, 'updated')`,
      [id, connection],
    );
    await api.query(`DELETE FROM change_marks;
INSERT INTO change_marks VALUES (now() - interval '1 hour', '9000000000000:9000000000000:')`);
    const beforeRestore = new Date(Date.now() - 1_800_000).toISOString();
    expect(await inBoth(key, beforeRestore)).toEqual([[event], [connection]]);

    const asked = await now();
    expect(await inBoth(key, beforeRestore)).toEqual([[event], [connection]]);
    expect(await inBoth(key, asked)).toEqual([[], []]);
    await api.query(`UPDATE events SET title = 'restored' WHERE id = $1`, [event]);
    expect(await inBoth(key, asked)).toEqual([[event], []]);
    await api.query('DELETE FROM changes WHERE changed_in = 9000000000001');
  });

  // On PostgreSQL, other tests' transactions run meanwhile.
  embedded.it('gets no new change mark if nothing changed since the last mark', async () => {
    const taken = await api.dataSource.transaction(async (manager) => {
      await manager.query('DELETE FROM change_marks');
      const counts: number[] = [];
      for (let i = 0; i < 3; i++) {
        await manager.query('SELECT take_change_mark()');
        await manager.query("UPDATE change_marks SET taken_at = taken_at - interval '10 s'");
        const [row] = await manager.query<{ n: number }[]>('SELECT count(*) AS n FROM change_marks');
        counts.push(row!.n);
      }
      return counts;
    });
    expect(taken).toEqual([1, 1, 1]);
  });

  postgres.describe('with concurrent transactions', () => {
    let other: DataSource;
    beforeAll(async () => void (other = await createDataSource(api.config, 'maintenance').initialize()));
    afterAll(() => other.destroy());

    it('lists rows that a long transaction wrote before the request and committed afterwards', async () => {
      const { id, key } = await api.member();
      const event = await api.platform.event({ updated_at: '2020-01-01T00:00:00Z' });
      await api.platform.participant(event, id);
      const runner = await hold(
        other,
        `UPDATE events SET title = 'long', updated_at = now() - interval '1 day' WHERE id = $1`,
        [event],
      );
      const asked = await now();
      expect(await since(key, asked)).toEqual([]);
      await runner.commit();
      expect(await since(key, asked)).toEqual([event]);
    });

    it('keeps a polling client’s copy equal to a full read, despite a concurrent writer', async () => {
      const { id, key } = await api.member();
      const events: number[] = [];
      for (let i = 0; i < 12; i++) {
        events.push(await api.platform.event({ updated_at: '2020-01-01T00:00:00Z' }));
        if (i < 8) await api.platform.participant(events[i]!, id);
      }
      const seed = Number(process.env.FUZZ_SEED);
      let state = seed;
      const random = (below: number) => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
      };
      const copy = new Map<number, string>();
      const take = (items: Item[]) => {
        // Other members' RSVPs do not change the event.
        for (const { attendees_count: _, ...item } of items) copy.set(item.id, JSON.stringify(item));
      };
      let asked = await now();
      take(await read(key));

      let writing = true;
      const writer = async () => {
        for (let round = 0; round < 40; round++) {
          const event = events[random(events.length)]!;
          const runner = other.createQueryRunner();
          await runner.startTransaction();
          switch (random(4)) {
            case 0:
              await runner.query(`UPDATE events SET title = $2 WHERE id = $1`, [event, `title ${round}`]);
              break;
            case 1:
              await runner.query(
                `INSERT INTO participants (event_id, user_id, role, rsvp_status) VALUES ($1, $2, 'attendee', 'going')
ON CONFLICT (user_id, event_id) DO UPDATE SET rsvp_status = 'maybe'`,
                [event, id],
              );
              break;
            case 2:
              await runner.query('DELETE FROM participants WHERE event_id = $1 AND user_id = $2', [
                event,
                id,
              ]);
              break;
            default:
              await runner.query(
                `UPDATE events SET status = CASE status WHEN 'draft' THEN 'scheduled' ELSE 'draft' END WHERE id = $1`,
                [event],
              );
          }
          // Other clients poll while the transaction is in progress.
          for (let i = random(3); i > 0; i--) await api.app.get(Upkeep).takeChangeMark();
          await runner.commitTransaction();
          await runner.release();
          if (round % 10 === 9)
            await load({ events: [record(event, id, { title: `import ${round}`, status: 'scheduled' })] });
        }
        writing = false;
      };
      const poller = async () => {
        for (let last = false; !last;) {
          last = !writing;
          const next = await now();
          // now() has made all earlier marks twenty seconds older; the time of the last request must match.
          const aged = new Date(Date.parse(asked) - 20_000).toISOString();
          take(await read(key, `&updated_since=${encodeURIComponent(aged)}`));
          asked = next;
        }
      };
      await Promise.all([writer(), poller()]);
      for (const { attendees_count: _, ...item } of await read(key))
        expect({ seed, item: copy.get(item.id) }).toEqual({ seed, item: JSON.stringify(item) });
    });
  });
});
