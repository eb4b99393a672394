import { setTimeout } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import type { Config } from '../../config/config.js';
import { EXPIRIES } from '../../database/schema/declarations.js';
import { tableNameOf } from '../../database/schema/tables.js';

/** Rows that one statement deletes: some 20 ms of work, so its locks are released soon. */
const BATCH = 1_000;
/** Longest pause between two batches. */
const LONGEST_PAUSE_MS = 1_000;

/** Rows of one table that are no longer needed: those whose `moment` is before `before`. */
export type ExpiredRows = ReturnType<typeof expiredRows>[number];

type Retention = Pick<Config, 'auditRetentionSeconds' | 'changesRetentionSeconds'>;

/** Everything that expires, in sweeping order, as the entities declare it. */
export function expiredRows(retention: Retention) {
  return EXPIRIES.flatMap(({ entity, at, kept = '0', only = 'true', name, also }) => {
    const table = tableNameOf(entity);
    const age = typeof kept === 'string' ? kept : `${retention[kept.setting]} seconds`;
    if (age === '0 seconds') return [];
    return [{ name: name ?? table, table, moment: at, before: `now() - interval '${age}'`, only, also }];
  });
}

/** Writes SQL that deletes one batch from time $1 on, oldest first, without rows that another transaction has locked. */
export function batchStatement({ table, moment, before, only, also }: ExpiredRows): string {
  return `WITH expired AS MATERIALIZED (
  SELECT ctid, ${moment} AS moment FROM ${table} WHERE ${only} AND ${moment} < ${before} AND ${moment} >= $1
  ORDER BY ${moment} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM expired)) RETURNING ${also?.columns ?? '1'}
)${also ? `, afterwards AS (\n  ${also.statement}\n)` : ''}
SELECT count(*)::integer AS deleted, max(moment)::text AS last FROM expired`;
}

/** Writes SQL for the time since when the oldest row has been deletable. */
export function oldestStatement({ table, moment, before, only }: ExpiredRows): string {
  return `SELECT now() - (${before} - ${moment}) AS since FROM ${table} WHERE ${only} AND ${moment} < ${before} ORDER BY ${moment} LIMIT 1`;
}

/**
 * Deletes expired rows in batches, each followed by a pause as long as the batch took: half of the time is left to others. Each
 * batch begins where the previous one ended, since the index still contains deleted rows while any transaction could see them.
 *
 * @param more asked after each batch whether to go on
 * @returns how many rows were deleted
 */
export async function deleteExpired(
  dataSource: DataSource,
  rows: ExpiredRows,
  more: () => boolean = () => true,
): Promise<number> {
  const statement = batchStatement(rows);
  let last = '-infinity';
  for (let sum = 0; ;) {
    const startedAt = performance.now();
    const [batch] = await dataSource.query<{ deleted: number; last: string | null }[]>(statement, [last]);
    sum += batch!.deleted;
    if (batch!.deleted < BATCH || !more()) return sum;
    last = batch!.last!;
    await setTimeout(Math.min(performance.now() - startedAt, LONGEST_PAUSE_MS));
  }
}
