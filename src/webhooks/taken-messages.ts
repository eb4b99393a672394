import type { DataSource } from 'typeorm';
import type { Attempt } from '../runtime/outbox.js';
import { prepared } from '../database/postgres/data-source.js';

/** SQL condition on a message `d` that is found by key. In this form, PostgreSQL does not use a partial index of pending messages. */
export const IS_PENDING = `(d.status = 'pending') IS TRUE`;

/** SQL: records the messages $1 as delivered, with statuses $2 and durations $3 in ms. @param ifLocked skips locked rows, or waits */
const recordTaken = (ifLocked: 'SKIP LOCKED' | '') => `WITH locked AS MATERIALIZED (
  SELECT d.sequence, t.status, t.duration_ms FROM unnest($1::bigint[], $2::integer[], $3::integer[]) t (sequence, status, duration_ms)
  CROSS JOIN LATERAL (
    SELECT d.sequence FROM webhook_deliveries d WHERE d.sequence = t.sequence AND ${IS_PENDING} FOR UPDATE ${ifLocked}
  ) d
)
UPDATE webhook_deliveries d SET status = 'delivered', attempts = attempts + 1, attempted_at = now(), response_status = l.status,
  duration_ms = l.duration_ms, error = NULL, leased_until = NULL, ended_at = now()
FROM locked l WHERE d.sequence = l.sequence AND d.sequence = ANY (ARRAY(SELECT sequence FROM locked))
RETURNING d.sequence, EXTRACT(epoch FROM now() - d.changed_at)::float8 AS delay`;

interface Taken {
  readonly sequence: number;
  readonly attempt: Attempt;
  readonly resolve: (delaySeconds: number | undefined) => void;
  readonly reject: (error: Error) => void;
}

/** Records delivered messages in batches: the messages that were delivered during the previous commit form the next batch. */
export class TakenMessages {
  readonly #taken: Taken[] = [];
  #isRecording = false;

  constructor(private readonly dataSource: DataSource) {}

  /** @returns the seconds since the change; undefined if the message is no longer pending */
  record(sequence: number, attempt: Attempt): Promise<number | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    this.#taken.push({ sequence, attempt, resolve, reject });
    if (!this.#isRecording) void this.#recordAll();
    return promise;
  }

  async #recordAll(): Promise<void> {
    this.#isRecording = true;
    while (this.#taken.length > 0) {
      // Sorted, so that all instances lock messages in the same order: otherwise, they could deadlock.
      const taken = this.#taken.splice(0).sort((one, other) => one.sequence - other.sequence);
      try {
        const delays = await this.#recordTaken('SKIP LOCKED', taken);
        for (const one of taken) {
          const delay = delays.get(one.sequence);
          if (delay !== undefined) one.resolve(delay);
          // The message is locked or no longer pending: records it separately, so that the other messages do not wait for it.
          else this.#recordTaken('', [one]).then((late) => one.resolve(late.get(one.sequence)), one.reject);
        }
      } catch (error) {
        for (const { reject } of taken) reject(error as Error);
      }
    }
    this.#isRecording = false;
  }

  async #recordTaken(
    ifLocked: Parameters<typeof recordTaken>[0],
    taken: readonly Taken[],
  ): Promise<Map<number, number>> {
    const values = [
      taken.map(({ sequence }) => sequence),
      taken.map(({ attempt }) => attempt.status),
      taken.map(({ attempt }) => Math.round(attempt.seconds * 1_000)),
    ];
    const rows = await prepared<{ sequence: number; delay: number }>(
      this.dataSource.manager,
      recordTaken(ifLocked),
      values,
    );
    return new Map(rows.map(({ sequence, delay }) => [sequence, delay]));
  }
}
