import type { DataSource, EntityManager } from 'typeorm';
import { eraseRows } from '../../accounts/erasure.js';
import { ERASED, ERASURES } from '../../database/schema/member-tables.js';
import { asShown, isName, isUsername } from '../../values/string-rules.js';
import { MAX_ID } from '../../values/vocabulary.js';
import { FIRST_ID, LAST_ID } from '../demo/demo.js';
import { allOf, fail, MEND, ok, warn, warnIf, type Check } from './check.js';

/** Tables whose ids come from a sequence, `<table>_id_seq`. */
const NUMBERED = ['users', 'events', 'connections', 'achievements'];

interface BadSequence {
  readonly sequence: string;
  /** Next number of the sequence, as a text, since it may exceed JavaScript's safe integers. */
  readonly next: string;
  /** The sequence's maximum, at most JavaScript's greatest safe integer. */
  readonly greatest: string;
  /** The table's highest id up to {@link MAX_ID}, except the demo's ids. */
  readonly highest: string;
}

/** SQL: the table's sequence if it is exhausted or not above the table's ids. */
const badSequence = (table: string) =>
  // Ignores the demo's ids, which are deliberately above every sequence.
  `SELECT '${table}_id_seq' AS sequence, next::text, greatest::text, highest::text
FROM (SELECT last_value::numeric + is_called::int AS next FROM ${table}_id_seq) s,
  (SELECT LEAST(seqmax, ${Number.MAX_SAFE_INTEGER}) AS greatest FROM pg_sequence WHERE seqrelid = '${table}_id_seq'::regclass) m,
  (SELECT COALESCE(max(id), 0) AS highest FROM ${table} WHERE id <= ${MAX_ID} AND id NOT BETWEEN ${FIRST_ID} AND ${LAST_ID}) t
WHERE highest >= next OR next > greatest`;

/** Checks that each sequence is above the ids in its table, and not exhausted. */
export async function checkSequences(manager: EntityManager): Promise<readonly Check[]> {
  const bad = await manager.query<BadSequence[]>(NUMBERED.map(badSequence).join(' UNION ALL '));
  const wrong = bad.map(({ sequence, next, greatest, highest }) =>
    fail(
      sequence,
      BigInt(next) > BigInt(greatest)
        ? `has reached its end, ${greatest}: the database will reject new rows`
        : `continues with ${next}, but its table has the id ${highest}: the database will reject new rows`,
      BigInt(highest) < BigInt(greatest)
        ? MEND
        : `run in psql: ALTER SEQUENCE ${sequence} NO MAXVALUE; then \`pua doctor --mend\``,
    ),
  );
  return allOf(wrong, 'sequences', 'each sequence is above the ids in its table, and below its maximum');
}

/** Moves each bad sequence to its table's highest id, if possible. @returns 1 for each moved sequence */
export async function repairSequences(manager: EntityManager): Promise<Record<string, number>> {
  const mended: Record<string, number> = {};
  for (const table of NUMBERED) {
    // Checks and moves the sequence in one statement, since other sessions may draw numbers between two.
    const moved = await manager.query<BadSequence[]>(
      `SELECT sequence, setval(sequence::regclass, GREATEST(highest::bigint, 1), highest <> '0')
FROM (${badSequence(table)}) bad WHERE highest::bigint < greatest::bigint`,
    );
    for (const { sequence } of moved) mended[sequence] = 1;
  }
  return mended;
}

/** Checks that the database has the time zones of all events. */
export async function checkTimeZones(manager: EntityManager): Promise<readonly Check[]> {
  const unknown = await manager.query<{ timezone: string; events: number }[]>(
    `SELECT timezone, count(*) AS events FROM events
WHERE timezone NOT IN (SELECT name FROM pg_timezone_names) GROUP BY timezone ORDER BY timezone`,
  );
  const wrong = unknown.map(({ timezone, events }) =>
    warn(
      'time zones',
      `${events} events are in ${timezone}, which the database lacks: their local times are shown in UTC`,
      'install the time zone on PostgreSQL’s host, or import these events with a current time zone',
    ),
  );
  return allOf(wrong, 'time zones', 'the database has the time zones of all events');
}

/** Checks for enabled webhook endpoints that have accepted no message since a failed attempt more than a day ago. */
export async function checkWebhooks(manager: EntityManager): Promise<readonly Check[]> {
  const failing = await manager.query<{ id: string; since: string }[]>(
    `SELECT id, api_time(failing_since) AS since FROM webhook_endpoints
WHERE disabled_at IS NULL AND failing_since < now() - interval '1 day' ORDER BY webhook_endpoints.failing_since LIMIT 10`,
  );
  const wrong = warnIf(
    failing.length > 0,
    'webhooks',
    `endpoints have accepted nothing for more than a day: ${failing.map(({ id, since }) => `${id} since ${since}`).join(', ')}`,
    'see their responses with `pua webhooks show <id>`; the server disables them after five days',
  );
  return allOf(wrong, 'webhooks', 'no endpoint has been failing for a day');
}

const ROWS_AT_ONCE = 5_000;
const MAX_NAMED = 10;

/** SQL: stored names to check: those that are not plain ASCII words, and usernames of digits. */
const NAMED = (
  [
    ['member', 'users', 'username'],
    ['app', 'oauth_clients', 'name'],
    ['key', 'api_keys', 'name'],
    ['calendar link', 'calendar_links', 'name'],
    ['passkey', 'passkeys', 'name'],
  ] as const
)
  .map(
    ([what, table, name]) => `SELECT '${what}' AS what, id::text AS id, ${name} AS name FROM ${table}
WHERE ${name} COLLATE "C" !~ '^[!-~]+( [!-~]+)*$'`,
  )
  .concat(`SELECT 'member', id::text, username FROM users WHERE username ~ '^[0-9]+$'`)
  .join(' UNION ALL ');

/** Checks for stored names that the current rules for names reject. */
export async function checkNames(manager: EntityManager): Promise<Check> {
  await manager.query(`DECLARE odd_names NO SCROLL CURSOR FOR ${NAMED}`);
  const first: string[] = [];
  let count = 0;
  for (;;) {
    const rows = await manager.query<{ what: string; id: string; name: string }[]>(
      `FETCH ${ROWS_AT_ONCE} FROM odd_names`,
    );
    for (const { what, id, name } of rows) {
      if (what === 'member' ? isUsername(name) : isName(name)) continue;
      if (++count <= MAX_NAMED) first.push(`${what} ${id}, shown as “${asShown(name)}”`);
    }
    if (rows.length < ROWS_AT_ONCE) break;
  }
  await manager.query('CLOSE odd_names');
  if (count === 0) return ok('names', 'all names are shown as stored');
  return warn(
    'names',
    `${count} names have invisible characters, or look like another name or an id: ${first.join('; ')}${count > first.length ? '; …' : ''}`,
    'rename members with `pua users update <id> --username`, apps with `pua clients update <id> --name`; they keep working until then',
  );
}

const LEFTOVERS = ERASURES.map(
  ({ table, left }) => `SELECT '${table}' AS table, count(*) AS rows FROM (${left}) l`,
);

/** Counts remaining rows of erased members by table. */
const findLeftovers = (manager: EntityManager): Promise<{ table: string; rows: number }[]> =>
  manager.query(`SELECT * FROM (${LEFTOVERS.join(' UNION ALL ')}) c WHERE rows > 0`);

/** Checks for remaining rows of erased members. */
export async function checkErasures(manager: EntityManager): Promise<readonly Check[]> {
  const left = (await findLeftovers(manager)).map(({ table, rows }) => `${table} (${rows})`).join(', ');
  const wrong = `rows of erased members are left in ${left}`;
  return left === ''
    ? [ok('erasures', 'no rows of erased members are left')]
    : [fail('erasures', wrong, 'run `pua doctor --mend`, which erases them')];
}

/** Erases remaining rows of erased members. @returns row counts by table, without zeros */
export async function repairErasures(dataSource: DataSource): Promise<Record<string, number>> {
  return dataSource.transaction(async (manager) => {
    if ((await findLeftovers(manager)).length === 0) return {};
    const erased = await manager.query<{ id: number }[]>(ERASED);
    const ids = erased.map(({ id }) => id);
    const rows = await eraseRows(manager, ids);
    return Object.fromEntries(Object.entries(rows).filter(([, count]) => count > 0));
  });
}
