import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { DataSource } from 'typeorm';
import { createDataSource } from '../src/database/data-source.js';
import { findDrift, findMissingRows } from '../src/operations/doctor/totals.js';
import { TestApi } from './support/api.js';
import { onPostgres } from './support/database.js';

const MEMBERS = 12;
const EVENTS = 4;
const ACHIEVEMENTS = 3;
const WRITERS = 8;

const member = fc.integer({ min: 1, max: MEMBERS });
const event = fc.integer({ min: 1, max: EVENTS });
const achievement = fc.integer({ min: 1, max: ACHIEVEMENTS });
const role = fc.constantFrom(
  "'organizer', NULL",
  "'attendee', 'going'",
  "'attendee', 'maybe'",
  "'invitee', 'pending'",
);
/** The lower id first: who writes several rows does it in one order. */
const pair = fc.uniqueArray(member, { minLength: 2, maxLength: 2 }).map((two) => two.sort((a, b) => a - b));
const between = ([one, other]: number[]) => `(user_id, peer_id) IN ((${one}, ${other}), (${other}, ${one}))`;

/** What the platform does one thing at a time. Where another was first it may fail, and then changes nothing. */
const oneThing = fc.oneof(
  fc.tuple(member, event, role).map(
    ([m, e, r]) => `INSERT INTO participants (user_id, event_id, role, rsvp_status, starts_at)
SELECT ${m}, id, ${r}, starts_at FROM events WHERE id = ${e}`,
  ),
  fc.tuple(member, event, role).map(
    ([m, e, r]) => `UPDATE participants SET (role, rsvp_status) = (SELECT ${r})
WHERE user_id = ${m} AND event_id = ${e}`,
  ),
  fc
    .tuple(member, event)
    .map(([m, e]) => `DELETE FROM participants WHERE user_id = ${m} AND event_id = ${e}`),
  fc
    .tuple(event, fc.constantFrom('draft', 'scheduled', 'completed'))
    .map(([e, status]) => `UPDATE events SET status = '${status}' WHERE id = ${e}`),
  event.map(
    (e) => `UPDATE events SET deleted_at = CASE WHEN deleted_at IS NULL THEN now() END WHERE id = ${e}`,
  ),
  fc
    .tuple(
      pair,
      fc.constantFrom(
        ['accepted', 'accepted', 'now()'],
        ['pending_sent', 'pending_received', 'NULL::timestamptz'],
      ),
    )
    .map(
      ([[one, other], [sent, received, at]]) => `WITH c AS (SELECT nextval('connections_id_seq') AS id)
INSERT INTO connections (id, user_id, peer_id, status, connected_at)
SELECT id, ${one}, ${other}, '${sent}', ${at} FROM c UNION ALL SELECT id, ${other}, ${one}, '${received}', ${at} FROM c`,
    ),
  pair.map(
    (two) =>
      `UPDATE connections SET status = 'accepted', connected_at = now() WHERE status <> 'accepted' AND ${between(two)}`,
  ),
  pair.map((two) => `DELETE FROM connections WHERE ${between(two)}`),
  fc.tuple(member, achievement, fc.constantFrom('now()', 'NULL')).map(
    ([m, a, at]) => `INSERT INTO user_achievements (user_id, achievement_id, progress, earned_at)
VALUES (${m}, ${a}, 1, ${at}) ON CONFLICT (user_id, achievement_id) DO UPDATE SET earned_at = EXCLUDED.earned_at`,
  ),
  fc
    .tuple(member, achievement)
    .map(([m, a]) => `DELETE FROM user_achievements WHERE user_id = ${m} AND achievement_id = ${a}`),
);

/** Many rows at once, in whatever order: two of these may wait for each other's rows, and one of them is undone. */
const manyThings = fc.oneof(
  oneThing,
  member.map(
    (m) => `UPDATE users SET disabled_at = CASE WHEN disabled_at IS NULL THEN now() END WHERE id = ${m}`,
  ),
  fc
    .tuple(event, role)
    .map(([e, r]) => `UPDATE participants SET (role, rsvp_status) = (SELECT ${r}) WHERE event_id = ${e}`),
  fc.tuple(member, event).map(([m, e]) => `DELETE FROM participants WHERE user_id = ${m} OR event_id = ${e}`),
  event.map((e) => `UPDATE events SET starts_at = starts_at + interval '1 hour' WHERE id = ${e}`),
  event.map((e) => `UPDATE events SET status = 'draft' WHERE id >= ${e}`),
  member.map((m) => `DELETE FROM connections WHERE ${m} IN (user_id, peer_id)`),
  fc
    .tuple(member, achievement)
    .map(([m, a]) => `DELETE FROM user_achievements WHERE user_id = ${m} OR achievement_id = ${a}`),
  member.map((m) => `UPDATE users SET disabled_at = NULL WHERE id >= ${m}`),
);

const UNIQUE_VIOLATION = '23505';
const FOREIGN_KEY_VIOLATION = '23503';
const DEADLOCK = '40P01';

describe('maintained totals', () => {
  let api: TestApi;
  let writers: DataSource[];
  beforeAll(async () => {
    api = await TestApi.start();
    writers = await Promise.all(
      Array.from({ length: WRITERS }, () => createDataSource(api.config, 'maintenance').initialize()),
    );
    for (let id = 1; id <= MEMBERS; id++) await api.platform.user({ id });
    for (let id = 1; id <= EVENTS; id++) await api.platform.event({ id, organizer_id: id });
    for (let id = 1; id <= ACHIEVEMENTS; id++) await api.platform.achievement({ id });
  });
  afterAll(async () => {
    await Promise.all(writers.map((writer) => writer.destroy()));
    await api.close();
  });

  it.each([
    ['one thing at a time was done by many, who never block each other for good', oneThing, []],
    ['many things were done at once', manyThings, [DEADLOCK]],
  ])(
    'are right after %s',
    async (_, statement, mayHappen) => {
      const expected = new Set<string>([UNIQUE_VIOLATION, FOREIGN_KEY_VIOLATION, ...mayHappen]);
      let done = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(statement, { minLength: 40, maxLength: 160 }), async (statements) => {
          const write = async (writer: DataSource, i: number) => {
            for (const sql of statements.filter((_, n) => n % WRITERS === i)) {
              try {
                await writer.query(sql);
                done++;
              } catch (error) {
                if (!expected.has((error as { code: string }).code)) throw error;
              }
            }
          };
          await Promise.all(writers.map(write));
          expect(await findDrift(api.dataSource.manager)).toEqual([]);
          expect(await findMissingRows(api.dataSource.manager)).toEqual({ totals: 0, sides: 0 });
        }),
        { numRuns: onPostgres ? 40 : 5, endOnFailure: true },
      );
      expect(done).toBeGreaterThan(100);
    },
    120_000,
  );

  it('of the API are those', async () => {
    for (let id = 1; id <= MEMBERS; id++) {
      await api.dataSource.query('UPDATE users SET disabled_at = NULL WHERE id = $1', [id]);
    }
    for (let id = 1; id <= MEMBERS; id++) {
      const key = await api.key(id);
      const { body: profile } = await api.get('/profile', key);
      const lists = await Promise.all(
        ['/events', '/connections', '/achievements'].map(
          async (path) => (await api.get(`${path}?limit=100`, key)).body,
        ),
      );
      const [events, connections, achievements] = lists as {
        data: unknown[];
        pagination: { total: number };
      }[];
      for (const list of [events, connections, achievements])
        expect(list!.data).toHaveLength(list!.pagination.total);
      expect(profile.connections_count).toBe(connections!.pagination.total);
      expect(profile.achievements_count).toBe(achievements!.pagination.total);
    }
  });
});
