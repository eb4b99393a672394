import type { DataSource, EntityManager } from 'typeorm';
import { ADVISORY_LOCKS } from '../../database/schema/advisory-locks.js';

/** A number that triggers maintain, and how to recount it from its rows. */
export interface Total {
  /** `table.column` that it is read from. */
  readonly name: string;
  /** Query for (id, kept, counted) of the ids after $1 up to $2. */
  readonly recount: string;
  /**
   * Statement that appends what is missing, for the ids after $1 up to $2. Kept and counted come from one snapshot, and concurrent
   * writers change both alike: so what is appended is right whatever else happens.
   */
  readonly mend: string;
}

const total = (
  name: 'user' | 'event' | 'achievement',
  column: string,
  counted: string,
  kept: { readonly from: string; readonly parts: string; readonly deltas: string } = {
    from: `${name}_totals.${column}`,
    parts: `SELECT ${name}_id AS id, ${column} AS n FROM ${name}_totals`,
    deltas: `${name}_totals`,
  },
): Total => {
  const id = `${name}_id`;
  const recount = `SELECT id, COALESCE(k.n, 0) AS kept, COALESCE(c.n, 0) AS counted
  FROM (SELECT id, sum(n) AS n FROM (${kept.parts}) parts WHERE id > $1 AND id <= $2 GROUP BY id) k
  FULL JOIN (SELECT ${id} AS id, count(*) AS n FROM ${counted} AND ${id} > $1 AND ${id} <= $2 GROUP BY ${id}) c USING (id)`;
  return {
    name: kept.from,
    recount,
    mend: `INSERT INTO ${kept.deltas} (${id}, ${column}) SELECT id, counted - kept FROM (${recount}) r WHERE kept <> counted`,
  };
};

/** The platform's single row, with id 1. */
const ACTIVE_USERS = `SELECT 1::bigint AS id, count(*) AS counted,
    (SELECT active_users_count FROM platform_totals)
      + COALESCE((SELECT sum(active_users_count) FROM platform_total_deltas), 0) AS kept
  FROM users WHERE NOT is_disabled HAVING 1 > $1::bigint AND 1 <= $2::bigint`;

const TOTALS: readonly Total[] = [
  total('user', 'events_count', 'participants WHERE is_visible'),
  total('user', 'connections_count', `connections WHERE status = 'accepted' AND NOT peer_is_disabled`),
  total('user', 'achievements_count', 'user_achievements WHERE earned_at IS NOT NULL'),
  total('event', 'attendees_count', `participants WHERE rsvp_status = 'going'`),
  total(
    'achievement',
    'earners_count',
    'user_achievements WHERE earned_at IS NOT NULL AND NOT user_is_disabled',
    {
      from: 'achievements.earners_count',
      parts: `SELECT id, earners_count AS n FROM achievements
    UNION ALL SELECT achievement_id, earners_count FROM achievement_total_deltas`,
      deltas: 'achievement_total_deltas',
    },
  ),
  {
    name: 'platform_totals.active_users_count',
    recount: ACTIVE_USERS,
    mend: `INSERT INTO platform_total_deltas SELECT counted - kept FROM (${ACTIVE_USERS}) r WHERE kept <> counted`,
  },
];

/** Columns that a row copies from the row that it refers to; foreign keys keep them true. */
export interface Copy {
  /** Readable name: `table (columns)`. */
  readonly name: string;
  /** Query for (id, other) of the rows whose copy differs from the original, for members after $1 up to $2. */
  readonly wrong: string;
  /** Statement that copies again, for members after $1 up to $2. */
  readonly mend: string;
}

const copy = (
  table: string,
  other: string,
  reference: string,
  columns: Readonly<Record<string, string>>,
): Copy => {
  const copies = Object.keys(columns);
  const copied = copies.map((column) => `t.${column}`).join(', ');
  const original = copies.map((column) => `o.${columns[column]!}`).join(', ');
  const differ = `${table} t JOIN ${other} o ON o.id = t.${reference}
  WHERE t.user_id > $1 AND t.user_id <= $2
    AND (${copied}) IS DISTINCT FROM (${original})`;
  return {
    name: `${table} (${copies.join(', ')})`,
    wrong: `SELECT t.user_id AS id, t.${reference} AS other FROM ${differ}`,
    mend: `UPDATE ${table} t SET ${copies.map((column) => `${column} = o.${columns[column]!}`).join(', ')}
  FROM ${other} o WHERE o.id = t.${reference} AND t.user_id > $1 AND t.user_id <= $2
    AND (${copied}) IS DISTINCT FROM (${original})`,
  };
};

const COPIES: readonly Copy[] = [
  copy('participants', 'events', 'event_id', {
    starts_at: 'starts_at',
    event_is_draft: 'is_draft',
    event_is_deleted: 'is_deleted',
  }),
  copy('connections', 'users', 'peer_id', {
    peer_is_disabled: 'is_disabled',
    peer_name: 'folded_name',
    peer_username: 'folded_username',
  }),
  copy('user_achievements', 'users', 'user_id', { user_is_disabled: 'is_disabled' }),
];

const NOTHING = '0';
const EVERYTHING = '9223372036854775807';

interface Drift {
  /** Name of the total. */
  readonly name: string;
  /** Owners whose number is wrong. */
  readonly wrong: number;
  /** One of them. */
  readonly example: { readonly id: string; readonly kept: number; readonly counted: number };
}

/** Recounts every maintained total; in one snapshot if the manager's transaction is REPEATABLE READ. */
export async function findDrift(manager: EntityManager): Promise<Drift[]> {
  const drifts: Drift[] = [];
  for (const { name, recount } of TOTALS) {
    const [row] = await manager.query<{ wrong: number; example: Drift['example'] }[]>(
      `SELECT count(*) AS wrong, (array_agg(json_build_object('id', id::text, 'kept', kept, 'counted', counted)))[1] AS example
FROM (${recount}) r WHERE kept <> counted`,
      [NOTHING, EVERYTHING],
    );
    if (row!.wrong > 0) drifts.push({ name, ...row! });
  }
  return drifts;
}

/** Compares every copy with its original. */
export async function findStaleCopies(manager: EntityManager): Promise<{ name: string; wrong: number }[]> {
  const stale: { name: string; wrong: number }[] = [];
  for (const { name, wrong } of COPIES) {
    const [row] = await manager.query<{ wrong: number }[]>(`SELECT count(*) AS wrong FROM (${wrong}) w`, [
      NOTHING,
      EVERYTHING,
    ]);
    if (row!.wrong > 0) stale.push({ name, wrong: row!.wrong });
  }
  return stale;
}

/** Counts the sides of connections that have no matching other side. */
export async function countLoneSides(manager: EntityManager): Promise<number> {
  const [row] = await manager.query<{ sides: number }[]>(
    `SELECT count(*) AS sides FROM connections c WHERE NOT EXISTS (SELECT FROM connections o
    WHERE o.user_id = c.peer_id AND o.id = c.id AND o.peer_id = c.user_id
      AND o.status = CASE c.status WHEN 'pending_sent' THEN 'pending_received' WHEN 'pending_received' THEN 'pending_sent' ELSE c.status END
      AND (o.source, o.met_at_event_id, o.requested_at, o.connected_at)
        IS NOT DISTINCT FROM (c.source, c.met_at_event_id, c.requested_at, c.connected_at))`,
  );
  return row!.sides;
}

/** Owners per repair statement. */
const BATCH = 10_000;
const ATTEMPTS = 5;
/** The copied row changed meanwhile, or a deadlock with a statement of many rows: repeating the batch succeeds. */
const TRY_AGAIN = ['23503', '40P01', '40001'];

/**
 * Corrects copies and totals, in batches and without blocking writers.
 *
 * @returns numbers of corrected rows by the name of the copy or total, without zeros
 */
export async function mendCopiesAndTotals(dataSource: DataSource): Promise<Record<string, number>> {
  const lock = dataSource.createQueryRunner();
  try {
    await lock.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.mend]);
    const mended: Record<string, number> = {};
    for (const { name, mend } of [...COPIES, ...TOTALS]) {
      const rows = await mendInBatches(dataSource, mend, ownersOf(name));
      if (rows > 0) mended[name] = rows;
    }
    return mended;
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCKS.mend]).catch(() => undefined);
    await lock.release();
  }
}

/** The table whose ids divide the work. */
function ownersOf(name: string): string {
  if (name.startsWith('event_totals')) return 'events';
  return name.startsWith('achievements.') ? 'achievements' : 'users';
}

async function mendInBatches(dataSource: DataSource, mend: string, owners: string): Promise<number> {
  let mended = 0;
  for (let low = NOTHING; low !== EVERYTHING;) {
    const [last] = await dataSource.query<{ id: string }[]>(
      `SELECT id::text FROM ${owners} WHERE id > $1 ORDER BY id OFFSET ${BATCH - 1} LIMIT 1`,
      [low],
    );
    const high = last?.id ?? EVERYTHING;
    mended += await again(
      dataSource,
      `WITH mended AS (${mend} RETURNING 1) SELECT count(*) AS rows FROM mended`,
      [low, high],
    );
    low = high;
  }
  return mended;
}

async function again(dataSource: DataSource, statement: string, values: string[]): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    try {
      const [row] = await dataSource.query<{ rows: number }[]>(statement, values);
      return row!.rows;
    } catch (error) {
      if (attempt === ATTEMPTS || !TRY_AGAIN.includes((error as { code?: string }).code ?? '')) throw error;
    }
  }
}
