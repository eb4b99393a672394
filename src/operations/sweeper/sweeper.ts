import { setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { EXPIRIES, tableNameOf } from '../../model/declarations.js';
import { Database } from '../../database/database.js';
import { Logger } from '../../runtime/logger.js';
import { Meter } from '../../runtime/meter.js';
import type { MetricName } from '../../runtime/metrics.js';
import { Periodic } from '../../runtime/periodic-work.js';
import { Config } from '../../config/config.js';

/** Rows per statement, so that it releases its locks soon. */
const BATCH = 1_000;
const MAX_PAUSE_MS = 1_000;

/** Expired rows of one table: those whose `moment` is before `before`. */
type ExpiredRows = ReturnType<typeof expiredRows>[number];

/** Lists the kinds of expiring rows in sweeping order, except kinds whose retention setting is 0. */
export function expiredRows(retention: Pick<Config, 'auditRetentionSeconds' | 'changesRetentionSeconds'>) {
  return EXPIRIES.flatMap(({ entity, at, kept = '0', only = 'true', name, also }) => {
    const table = tableNameOf(entity);
    const age = typeof kept === 'string' ? kept : `${retention[kept.setting]} seconds`;
    if (age === '0 seconds') return [];
    return [{ name: name ?? table, table, moment: at, before: `now() - interval '${age}'`, only, also }];
  });
}

/** Writes SQL that deletes one batch from time $1 on, oldest first, skipping locked rows. */
export function batchStatement({ table, moment, before, only, also }: ExpiredRows): string {
  return `WITH expired AS MATERIALIZED (
  SELECT ctid, ${moment} AS moment FROM ${table} WHERE ${only} AND ${moment} < ${before} AND ${moment} >= $1
  ORDER BY ${moment} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM expired)) RETURNING ${also?.columns ?? '1'}
)${also ? `, afterwards AS (\n  ${also.statement}\n)` : ''}
SELECT count(*)::integer AS deleted, max(moment)::text AS last FROM expired`;
}

/**
 * Deletes expired rows in batches, with pauses as long as the batches (at most 1 s). The next batch starts at the previous one's last
 * time, since index entries of deleted rows may remain. @param more tells whether to continue @returns number of deleted rows
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
    await setTimeout(Math.min(performance.now() - startedAt, MAX_PAUSE_MS));
  }
}

/** Time limit per kind of rows; the remaining rows wait for the next sweep. */
const MAX_SWEEP_MS = 10_000;

interface Sweeping {
  deleted: number;
  failures: number;
  lastSuccessAt?: Date;
  /** Expiry of the oldest expired row that the last check found; undefined if it found none. */
  overdueSince?: Date | undefined;
}

/** Deletes expired rows periodically, in every instance; a failure for one kind of rows does not stop the others. */
@Injectable()
export class Sweeper {
  readonly #rows: readonly ExpiredRows[];
  readonly sweeping: ReadonlyMap<string, Sweeping>;

  constructor(
    config: Config,
    private readonly database: Database,
    private readonly logger: Logger,
    meter: Meter,
  ) {
    const report = (name: Extract<MetricName, `sweeper_${string}`>, read: (of: Sweeping) => number) =>
      meter.read(name, () => [...this.sweeping].map(([rows, of]) => [{ rows }, read(of)] as const));
    report('sweeper_last_success_timestamp_seconds', (of) => (of.lastSuccessAt?.getTime() ?? 0) / 1000);
    report('sweeper_overdue_seconds', ({ overdueSince }) =>
      overdueSince ? (Date.now() - overdueSince.getTime()) / 1000 : 0,
    );
    report('sweeper_deleted_rows_total', ({ deleted }) => deleted);
    report('sweeper_failures_total', ({ failures }) => failures);
    this.#rows = expiredRows(config);
    this.sweeping = new Map(this.#rows.map(({ name }) => [name, { deleted: 0, failures: 0 }]));
  }

  @Periodic({
    work: 'sweeper',
    // Randomized, so that instances do not all sweep at the same time.
    everyMs: ({ sweepIntervalSeconds }) => sweepIntervalSeconds * 1000 * (0.9 + Math.random() * 0.2),
    failure: 'expired rows could not be deleted',
    waits: true,
  })
  async sweep(end?: AbortSignal): Promise<Record<string, number>> {
    const deleted: Record<string, number> = {};
    for (const rows of this.#rows) {
      if (end?.aborted) break;
      deleted[rows.name] = await this.#sweep(rows, end);
    }
    return deleted;
  }

  async #sweep(rows: ExpiredRows, end: AbortSignal | undefined): Promise<number> {
    const sweeping = this.sweeping.get(rows.name)!;
    const latest = performance.now() + MAX_SWEEP_MS;
    let deleted = 0;
    try {
      const dataSource = await this.database.background('sweeping');
      deleted = await deleteExpired(dataSource, rows, () => !end?.aborted && performance.now() < latest);
      sweeping.deleted += deleted;
      sweeping.lastSuccessAt = new Date();
    } catch (error) {
      sweeping.failures++;
      this.logger.warn(
        { rows: rows.name, reason: (error as Error).message },
        'expired rows could not be deleted',
      );
    }
    // If this query fails, the last known time remains, so the reported age grows.
    await this.#lookForOldest(rows, sweeping).catch(() => undefined);
    return deleted;
  }

  async #lookForOldest({ table, moment, before, only }: ExpiredRows, sweeping: Sweeping): Promise<void> {
    const dataSource = await this.database.background('sweeping');
    const [oldest] = await dataSource.query<{ since: Date }[]>(
      `SELECT now() - (${before} - ${moment}) AS since FROM ${table} WHERE ${only} AND ${moment} < ${before} ORDER BY ${moment} LIMIT 1`,
    );
    sweeping.overdueSince = oldest?.since;
  }
}
