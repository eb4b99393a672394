import type { DataSource, EntityManager } from 'typeorm';
import { ADVISORY_LOCKS } from '../../database/schema/advisory-locks.js';
import { isLostRace } from '../../import/record-type.js';
import type { Derived, Total } from '../../model/derived.js';
import { derivedOfUserAchievements } from '../../resources/achievements/derived.js';
import { derivedOfConnections } from '../../resources/connections/derived.js';
import { derivedOfParticipants } from '../../resources/events/derived.js';
import { allOf, fail, MEND, type Check } from './check.js';

/** A table's denormalized columns, or a counter. */
interface Kept {
  readonly name: string;
  /** The table whose ids the batches use. */
  readonly owners: 'users' | 'events' | 'achievements' | 'platform_totals';
  /** SQL: finds wrong values of owners with ids above $1, up to $2. */
  readonly wrong: string;
  /** SQL: corrects them; adds the difference to a counter, since writers may change it concurrently. */
  readonly mend: string;
}

const DERIVED: readonly Derived[] = [derivedOfParticipants, derivedOfConnections, derivedOfUserAchievements];

/** Also counts deltas that are not yet added to the achievement's row. */
const EARNERS = {
  name: 'achievements.earners_count',
  parts: `SELECT id, earners_count AS n FROM achievements
    UNION ALL SELECT achievement_id, earners_count FROM achievement_total_deltas`,
  deltas: 'achievement_total_deltas',
};

const totalOf = (table: string, { of, column, counts }: Total): Kept => {
  const id = `${of}_id`;
  const totals = `${of}_totals`;
  const kept =
    of === 'achievement'
      ? EARNERS
      : {
          name: `${totals}.${column}`,
          parts: `SELECT ${id} AS id, ${column} AS n FROM ${totals}`,
          deltas: totals,
        };
  const wrong = `SELECT id, COALESCE(k.n, 0) AS kept, COALESCE(c.n, 0) AS counted
  FROM (SELECT id, sum(n) AS n FROM (${kept.parts}) parts WHERE id > $1 AND id <= $2 GROUP BY id) k
  FULL JOIN (SELECT ${id} AS id, count(*) AS n FROM ${table} t
    WHERE ${counts} AND ${id} > $1 AND ${id} <= $2 GROUP BY ${id}) c USING (id)
  WHERE COALESCE(k.n, 0) <> COALESCE(c.n, 0)`;
  return {
    name: kept.name,
    owners: `${of}s`,
    wrong,
    mend: `INSERT INTO ${kept.deltas} (${id}, ${column}) SELECT id, counted - kept FROM (${wrong}) r`,
  };
};

/** SQL: finds a wrong number of active members; the platform's single row has the id 1 here. */
const WRONG_ACTIVE_USERS = `SELECT * FROM (SELECT 1::bigint AS id, count(*) AS counted,
    (SELECT active_users_count FROM platform_totals)
      + COALESCE((SELECT sum(active_users_count) FROM platform_total_deltas), 0) AS kept
  FROM users WHERE NOT is_disabled HAVING 1 > $1::bigint AND 1 <= $2::bigint) r WHERE kept <> counted`;

const TOTALS: readonly Kept[] = [
  ...DERIVED.flatMap(({ table, totals }) => totals.map((total) => totalOf(table, total))),
  {
    name: 'platform_totals.active_users_count',
    owners: 'platform_totals',
    wrong: WRONG_ACTIVE_USERS,
    mend: `INSERT INTO platform_total_deltas SELECT counted - kept FROM (${WRONG_ACTIVE_USERS}) r`,
  },
];

/** Compares denormalized columns with the row that they come from. */
const copyOf = ({ table, copies: { from, by, columns } }: Derived): Kept => {
  const copies = Object.keys(columns);
  const originals = Object.values(columns);
  const differs = `o.id = t.${by} AND t.user_id > $1 AND t.user_id <= $2
    AND (${copies.map((column) => `t.${column}`).join(', ')}) IS DISTINCT FROM (${originals.join(', ')})`;
  return {
    name: `${table} (${copies.join(', ')})`,
    owners: 'users',
    wrong: `SELECT t.user_id AS id FROM ${table} t JOIN ${from} o ON ${differs}`,
    mend: `UPDATE ${table} t SET ${copies.map((column, i) => `${column} = ${originals[i]!}`).join(', ')}
  FROM ${from} o WHERE ${differs}`,
  };
};

const COPIES: readonly Kept[] = DERIVED.map(copyOf);

const NOTHING = '0';
const EVERYTHING = '9223372036854775807';

interface Wrong {
  readonly name: string;
  readonly wrong: number;
  /** One wrong row; only its id if a denormalized column is wrong. */
  readonly example: { readonly id: number; readonly kept: number; readonly counted: number };
}

/** A range of owners' ids: above `low`, up to `high`. */
type Stretch = readonly [low: string, high: string];
type Extent = (owners: Kept['owners']) => Promise<Stretch>;
const ALL: Stretch = [NOTHING, EVERYTHING];
const everything: Extent = () => Promise.resolve(ALL);

/** If there are fewer members, or events, all of them are checked. */
const FEW = 50_000;
const PARTS = 10;

/** Draws a random tenth of the members or events, as one range of ids; all if there are fewer than {@link FEW}. */
function drawSample(manager: EntityManager): Extent {
  const part = 1 + Math.floor(Math.random() * PARTS);
  return async (owners) => {
    if (owners !== 'users' && owners !== 'events') return ALL; // the other tables have few rows on any platform
    const [drawn] = await manager.query<{ low: string; high: string; owners: number }[]>(
      `SELECT (min(id) - 1)::text AS low, max(id)::text AS high, max(owners) AS owners FROM (
  SELECT id, ntile(${PARTS}) OVER (ORDER BY id) AS part, count(*) OVER () AS owners FROM ${owners}) o WHERE part = $1`,
      [part],
    );
    return (drawn!.owners ?? 0) < FEW ? ALL : [drawn!.low, drawn!.high];
  };
}

async function findWrong(
  manager: EntityManager,
  all: readonly Kept[],
  extent: Extent = everything,
): Promise<Wrong[]> {
  const found: Wrong[] = [];
  for (const { name, wrong, owners } of all) {
    const [row] = await manager.query<Omit<Wrong, 'name'>[]>(
      `SELECT count(*) AS wrong, (array_agg(to_json(w)))[1] AS example FROM (${wrong}) w`,
      [...(await extent(owners))],
    );
    if (row!.wrong > 0) found.push({ name, ...row! });
  }
  return found;
}

/** Finds counters that differ from a recount. */
export const findDrift = (manager: EntityManager, extent?: Extent) => findWrong(manager, TOTALS, extent);

/** Finds denormalized columns that differ from their originals. */
export const findStaleCopies = (manager: EntityManager, extent?: Extent) =>
  findWrong(manager, COPIES, extent);

/** Counts rows of connections that have no matching row of the other member. */
export async function countLoneSides(manager: EntityManager, extent = everything): Promise<number> {
  const [row] = await manager.query<{ sides: number }[]>(
    `SELECT count(*) AS sides FROM connections c WHERE c.user_id > $1 AND c.user_id <= $2 AND NOT EXISTS (SELECT FROM connections o
    WHERE o.user_id = c.peer_id AND o.id = c.id AND o.peer_id = c.user_id
      AND o.status = CASE c.status WHEN 'pending_sent' THEN 'pending_received' WHEN 'pending_received' THEN 'pending_sent' ELSE c.status END
      AND (o.source, o.met_at_event_id, o.requested_at, o.connected_at)
        IS NOT DISTINCT FROM (c.source, c.met_at_event_id, c.requested_at, c.connected_at))`,
    [...(await extent('users'))],
  );
  return row!.sides;
}

/** Checks denormalized columns, counters and connections. @param isFull whether to check all members, not a tenth if there are many */
export async function checkTotals(manager: EntityManager, isFull: boolean): Promise<Check[]> {
  const extent = isFull ? everything : drawSample(manager);
  const isSample = (await extent('users')) !== ALL;
  const whose = isSample ? ' (for a random 10 % of members; --full checks all)' : '';
  const copies = (await findStaleCopies(manager, extent)).map(({ name, wrong }) =>
    fail(name, `differs from its source in ${wrong} rows`, MEND),
  );
  const totals = (await findDrift(manager, extent)).map(({ name, wrong, example }) =>
    fail(
      name,
      `is wrong in ${wrong} rows: the row with id ${example.id} has ${example.kept}, but the recount is ${example.counted}`,
      MEND,
    ),
  );
  const sides = await countLoneSides(manager, extent);
  const connections = fail(
    'connections',
    `${sides} rows have no matching row in the other direction`,
    'import these connections again, or delete both sides: every connection has two rows with one id',
  );
  return [
    ...allOf(copies, 'copies', `every denormalized column equals its source${whose}`),
    ...allOf(totals, 'totals', `every counter equals its recount${whose}`),
    ...(sides > 0 ? [connections] : []),
  ];
}

const BATCH = 10_000;
const ATTEMPTS = 5;

/** Repairs denormalized columns and counters, in batches. @returns corrected rows by name, without zeros */
export async function repairCopiesAndTotals(dataSource: DataSource): Promise<Record<string, number>> {
  const lock = dataSource.createQueryRunner();
  try {
    await lock.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.mend]);
    const mended: Record<string, number> = {};
    for (const kept of [...COPIES, ...TOTALS]) {
      const rows = await mendInBatches(dataSource, kept);
      if (rows > 0) mended[kept.name] = rows;
    }
    return mended;
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCKS.mend]).catch(() => undefined);
    await lock.release();
  }
}

async function mendInBatches(dataSource: DataSource, { owners, mend }: Kept): Promise<number> {
  let mended = 0;
  for (let low = NOTHING; low !== EVERYTHING;) {
    const [last] = await dataSource.query<{ id: string }[]>(
      `SELECT id::text FROM ${owners} WHERE id > $1 ORDER BY id OFFSET ${BATCH - 1} LIMIT 1`,
      [low],
    );
    const high = last?.id ?? EVERYTHING;
    const statement = `WITH mended AS (${mend} RETURNING 1) SELECT count(*) AS rows FROM mended`;
    for (let attempt = 1; low !== high; attempt++) {
      try {
        const [row] = await dataSource.query<{ rows: number }[]>(statement, [low, high]);
        mended += row!.rows;
        low = high;
      } catch (error) {
        // After a concurrent change of the source row, or a deadlock, the next attempt at the batch usually succeeds.
        if (attempt === ATTEMPTS || !isLostRace(error)) throw error;
      }
    }
  }
  return mended;
}
