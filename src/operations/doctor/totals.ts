import type { EntityManager } from 'typeorm';

/** A number that triggers maintain, and how it is counted from what it sums up. */
export interface Total {
  /** `table.column`. */
  readonly name: string;
  /** Query for (id, kept, counted) of every row. */
  readonly recount: string;
  /** Statement that puts the counted in place. */
  readonly mend: string;
}

const total = (table: string, key: string, column: string, counted: string): Total => ({
  name: `${table}.${column}`,
  recount: `SELECT t.${key} AS id, t.${column} AS kept, COALESCE(c.n, 0) AS counted
  FROM ${table} t LEFT JOIN (${counted}) c ON c.id = t.${key}`,
  mend: `UPDATE ${table} t SET ${column} = COALESCE(c.n, 0) FROM ${table} o LEFT JOIN (${counted}) c ON c.id = o.${key} WHERE o.${key} = t.${key}`,
});

export const TOTALS: readonly Total[] = [
  total(
    'user_totals',
    'user_id',
    'events_count',
    `SELECT p.user_id AS id, count(*) AS n FROM participants p JOIN events e ON e.id = p.event_id WHERE event_visible(p.role, e.status, e.deleted_at) GROUP BY p.user_id`,
  ),
  total(
    'user_totals',
    'user_id',
    'connections_count',
    `SELECT c.user_id AS id, count(*) AS n FROM connections c JOIN users u ON u.id = c.peer_id WHERE c.status = 'accepted' AND u.disabled_at IS NULL GROUP BY c.user_id`,
  ),
  total(
    'user_totals',
    'user_id',
    'achievements_count',
    `SELECT user_id AS id, count(*) AS n FROM user_achievements WHERE earned_at IS NOT NULL GROUP BY user_id`,
  ),
  total(
    'events',
    'id',
    'attendees_count',
    `SELECT event_id AS id, count(*) AS n FROM participants WHERE rsvp_status = 'going' GROUP BY event_id`,
  ),
  total(
    'achievements',
    'id',
    'earners_count',
    `SELECT a.achievement_id AS id, count(*) AS n FROM user_achievements a JOIN users u ON u.id = a.user_id WHERE a.earned_at IS NOT NULL AND u.disabled_at IS NULL GROUP BY a.achievement_id`,
  ),
  total(
    'platform_totals',
    'id',
    'active_users_count',
    `SELECT true AS id, count(*) AS n FROM users WHERE disabled_at IS NULL`,
  ),
];

export interface Drift {
  readonly total: Total;
  /** Rows whose number is wrong. */
  readonly wrong: number;
  /** One of them. */
  readonly example: { readonly id: string; readonly kept: number; readonly counted: number };
}

/** Counts every maintained total anew; all in one snapshot where the manager's transaction is REPEATABLE READ. */
export async function findDrift(manager: EntityManager): Promise<Drift[]> {
  const drifts: Drift[] = [];
  for (const total of TOTALS) {
    const [row] = await manager.query<{ wrong: number; example: Drift['example'] }[]>(
      `SELECT count(*) AS wrong, (array_agg(json_build_object('id', id::text, 'kept', kept, 'counted', counted)))[1] AS example
FROM (${total.recount}) r WHERE kept <> counted`,
    );
    if (row!.wrong > 0) drifts.push({ total, ...row! });
  }
  return drifts;
}

/** Members without a row of totals, and sides of connections without the other: which no statement can leave behind. */
export async function findMissingRows(manager: EntityManager): Promise<{ totals: number; sides: number }> {
  const [row] = await manager.query<{ totals: number; sides: number }[]>(
    `SELECT (SELECT count(*) FROM users u WHERE NOT EXISTS (SELECT FROM user_totals t WHERE t.user_id = u.id)) AS totals,
  (SELECT count(*) FROM connections c WHERE NOT EXISTS (SELECT FROM connections o
    WHERE o.user_id = c.peer_id AND o.id = c.id AND o.peer_id = c.user_id
      AND o.status = CASE c.status WHEN 'pending_sent' THEN 'pending_received' WHEN 'pending_received' THEN 'pending_sent' ELSE c.status END
      AND (o.source, o.met_at_event_id, o.requested_at, o.connected_at)
        IS NOT DISTINCT FROM (c.source, c.met_at_event_id, c.requested_at, c.connected_at))) AS sides`,
  );
  return row!;
}
