import fc from 'fast-check';
import { countLoneSides, findDrift, findStaleCopies } from '../../src/operations/doctor/totals.js';
import type { TestApi } from './api.js';
import { onPostgres } from './database.js';
import type { Platform } from './platform.js';

// Writes of programs that ignore denormalized columns and counters: random statements, after which tests recount all totals.

export const MEMBERS = 12;
export const EVENTS = 4;
export const ACHIEVEMENTS = 3;

const member = fc.integer({ min: 1, max: MEMBERS });
const event = fc.integer({ min: 1, max: EVENTS });
const achievement = fc.integer({ min: 1, max: ACHIEVEMENTS });
const role = fc.constantFrom(
  "'organizer', NULL",
  "'attendee', 'going'",
  "'attendee', 'maybe'",
  "'invitee', 'pending'",
);
/** The lower id first, so that statements on several rows use the same order. */
const pair = fc.uniqueArray(member, { minLength: 2, maxLength: 2 }).map((two) => two.sort((a, b) => a - b));
const between = ([one, other]: number[]) => `(user_id, peer_id) IN ((${one}, ${other}), (${other}, ${one}))`;

/** Single actions of the platform. An action may fail after a concurrent one, and then changes nothing. */
export const oneThing = fc.oneof(
  fc
    .tuple(member, event, role)
    .map(
      ([m, e, r]) =>
        `INSERT INTO participants (user_id, event_id, role, rsvp_status) VALUES (${m}, ${e}, ${r})`,
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
  member.map(
    (m) => `UPDATE users SET disabled_at = CASE WHEN disabled_at IS NULL THEN now() END WHERE id = ${m}`,
  ),
  fc
    .tuple(member, fc.constantFrom('Ada', 'Björn'))
    .map(([m, name]) => `UPDATE users SET first_name = '${name}' WHERE id = ${m}`),
  event.map((e) => `UPDATE events SET starts_at = starts_at + interval '1 hour' WHERE id = ${e}`),
  fc.tuple(member, event, role).map(
    ([
      m,
      e,
      r,
    ]) => `MERGE INTO participants p USING (VALUES (${m}, ${e})) s (m, e) ON p.user_id = s.m AND p.event_id = s.e
WHEN MATCHED AND p.rsvp_status = 'going' THEN DELETE
WHEN MATCHED THEN UPDATE SET (role, rsvp_status) = (SELECT ${r})
WHEN NOT MATCHED THEN INSERT (user_id, event_id, role, rsvp_status) VALUES (s.m, s.e, ${r})`,
  ),
  fc.tuple(member, achievement, fc.constantFrom('now()', 'NULL')).map(
    ([m, a, at]) => `INSERT INTO user_achievements (user_id, achievement_id, progress, earned_at)
VALUES (${m}, ${a}, 1, ${at}) ON CONFLICT (user_id, achievement_id) DO UPDATE SET earned_at = EXCLUDED.earned_at`,
  ),
  fc
    .tuple(member, achievement)
    .map(([m, a]) => `DELETE FROM user_achievements WHERE user_id = ${m} AND achievement_id = ${a}`),
);

/** Replaces the member or event in an existing row. */
export const takeOver = fc
  .tuple(member, event, fc.constantFrom('user_id', 'event_id'), event)
  .map(
    ([m, e, column, n]) =>
      `UPDATE participants SET ${column} = ${n} WHERE user_id = ${m} AND event_id = ${e}`,
  );

/** Many rows at once, in any order: two such statements may deadlock, and then PostgreSQL rolls one back. */
export const manyThings = fc.oneof(
  oneThing,
  ...(onPostgres
    ? [
        fc
          .tuple(member, event)
          .map(
            ([m, e]) =>
              `COPY participants (user_id, event_id, role, rsvp_status) FROM PROGRAM 'echo ${m},${e},attendee,going' (FORMAT csv)`,
          ),
      ]
    : []),
  // Two tables in one statement.
  fc.tuple(member, event, role).map(
    ([
      m,
      e,
      r,
    ]) => `WITH moved AS (UPDATE events SET starts_at = starts_at + interval '1 hour', deleted_at = NULL WHERE id = ${e} RETURNING id)
INSERT INTO participants (user_id, event_id, role, rsvp_status) SELECT ${m}, id, ${r} FROM moved`,
  ),
  fc.tuple(member, event).map(
    ([m, e]) => `WITH hidden AS (UPDATE events SET status = 'draft' WHERE id = ${e} RETURNING id)
DELETE FROM participants WHERE user_id = ${m} AND event_id IN (SELECT id FROM hidden)`,
  ),
  fc.tuple(member, achievement).map(
    ([m, a]) => `WITH disabled AS (UPDATE users SET disabled_at = now() WHERE id = ${m} RETURNING id)
UPDATE user_achievements SET earned_at = now() WHERE user_id = ${m} OR achievement_id = ${a}`,
  ),
  fc
    .tuple(event, role)
    .map(([e, r]) => `UPDATE participants SET (role, rsvp_status) = (SELECT ${r}) WHERE event_id = ${e}`),
  fc.tuple(member, event).map(([m, e]) => `DELETE FROM participants WHERE user_id = ${m} OR event_id = ${e}`),
  event.map((e) => `UPDATE events SET status = 'draft' WHERE id >= ${e}`),
  member.map((m) => `DELETE FROM connections WHERE ${m} IN (user_id, peer_id)`),
  fc
    .tuple(member, achievement)
    .map(([m, a]) => `DELETE FROM user_achievements WHERE user_id = ${m} OR achievement_id = ${a}`),
  member.map((m) => `UPDATE users SET disabled_at = NULL WHERE id >= ${m}`),
);

export const UNIQUE_VIOLATION = '23505';
export const FOREIGN_KEY_VIOLATION = '23503';
export const DEADLOCK = '40P01';
export const SERIALIZATION_FAILURE = '40001';

/** Writes the members, events and achievements that the statements use. */
export async function writeThem(platform: Platform): Promise<void> {
  for (let id = 1; id <= MEMBERS; id++) await platform.user({ id });
  for (let id = 1; id <= EVENTS; id++) await platform.event({ id, organizer_id: id });
  for (let id = 1; id <= ACHIEVEMENTS; id++) await platform.achievement({ id });
}

/** No fault of the data that triggers maintain. */
export const RIGHT = { drift: [], stale: [], sides: 0 };

/** The faults of the data that triggers maintain, after background work. */
export async function findWrong({ dataSource, platform }: TestApi) {
  await platform.settleNames();
  return {
    drift: await findDrift(dataSource.manager),
    stale: await findStaleCopies(dataSource.manager),
    sides: await countLoneSides(dataSource.manager),
  };
}
