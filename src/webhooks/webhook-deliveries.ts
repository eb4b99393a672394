import type { DataSource, EntityManager } from 'typeorm';
import { audited, recordEvent, type AuditedTransaction } from '../audit/audit.js';
import { TEST_TYPE, type Attempt, type Message } from './webhook-sender.js';
import { BEGIN_HERE, CLAIM, fanOutSql, LOCK_PLACE, LOCK_READY } from './webhook-sql.js';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
/** Waits after each failed attempt, in seconds; if one more fails, the message is dead. */
export const RETRY_AFTER = [5, 5 * MINUTE, HOUR / 2, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const;
/** How long an endpoint may fail before it is switched off. */
const MOST_DAYS_FAILING = 5;

/** How many changes are processed in one transaction, and in how many statements. */
interface Batch {
  readonly changes: number;
  readonly parts: number;
}
/** A change may concern an event with a million participants: what one statement cannot do by its deadline is done in smaller pieces. */
const BATCHES: readonly Batch[] = [
  { changes: 200, parts: 1 },
  { changes: 20, parts: 1 },
  { changes: 1, parts: 1 },
  { changes: 1, parts: 16 },
  { changes: 1, parts: 256 },
];
/** The database cancelled a statement that took too long (PostgreSQL, appendix A). */
const STATEMENT_TIMEOUT = '57014';
/** After this many batches in time, the next bigger size is tried again. */
const ENOUGH_IN_TIME = 20;
/** How many messages to one endpoint may be in progress at once, over all instances. */
const MOST_OF_AN_ENDPOINT = 8;
/** How long an instance has to record the outcome of an attempt, in seconds: twice the maximum duration of one. */
const LEASE_SECONDS = 20;

/** The outcome of an attempt to deliver a message. */
export interface Outcome {
  readonly status: 'delivered' | 'pending' | 'dead';
  /** Since the change. */
  readonly delaySeconds: number;
  /** Whether its endpoint was switched off. */
  readonly switchedOff: boolean;
}

interface Claimed extends Message {
  readonly withheld: boolean;
  /** Its place among the messages of its endpoint that are in progress. */
  readonly turn: number;
}

/** The messages to endpoints in the database: created from changes, claimed by an instance that sends them, and finished. */
export class WebhookDeliveries {
  /** Index into {@link BATCHES}, and how many batches in a row were in time. */
  #size = 0;
  #inTime = 0;
  /** The member of each endpoint whose turn was last. */
  readonly #last = new Map<string, number>();

  constructor(readonly dataSource: DataSource) {}

  /**
   * Creates messages for the changes since the last call, in commit order, each once: messages and the new position are one
   * transaction.
   *
   * @param more asked before each further batch whether to go on
   * @returns how many were created; 0 also if another instance is doing it
   */
  async fanOut(more: () => boolean): Promise<number> {
    let made = 0;
    for (let behind = true; behind && more();) {
      const batch = BATCHES[this.#size]!;
      try {
        const told = await this.#tell(batch);
        made += told.made;
        behind = told.seen === batch.changes;
      } catch (error) {
        if ((error as { code?: unknown }).code !== STATEMENT_TIMEOUT || this.#size === BATCHES.length - 1)
          throw error;
        this.#size++;
        this.#inTime = 0;
        continue;
      }
      if (this.#size > 0 && ++this.#inTime === ENOUGH_IN_TIME) {
        this.#size--;
        this.#inTime = 0;
      }
    }
    return made;
  }

  #tell({ changes, parts }: Batch): Promise<{ seen: number; made: number }> {
    // All parts see the same changes.
    const isolation = parts > 1 ? 'REPEATABLE READ' : 'READ COMMITTED';
    return this.dataSource.transaction(isolation, async (manager) => {
      const told = { seen: 0, made: 0 };
      const [place] =
        await manager.query<{ changed_in: number; sequence: number; ahead: boolean }[]>(LOCK_PLACE);
      if (!place) return told;
      if (place.ahead) {
        await manager.query(BEGIN_HERE);
        return told;
      }
      for (let part = 0; part < parts; part++) {
        const values = [place.changed_in, place.sequence, changes, part];
        const [row] = await manager.query<{ seen: number; made: number }[]>(fanOutSql(parts), values);
        told.seen = row!.seen;
        told.made += row!.made;
      }
      return told;
    });
  }

  /**
   * Claims messages that are due for this process.
   *
   * @param most in all
   * @returns `withheld`: how many will never be sent, because the credential may no longer see the member
   */
  async claim(most: number): Promise<{ messages: Message[]; withheld: number }> {
    const rows = await this.dataSource.transaction(async (manager) => {
      // Claims for one endpoint are serialized: each sees what the previous one has taken.
      const ready = await manager.query<{ id: string }[]>(LOCK_READY);
      if (ready.length === 0) return [];
      const ids = ready.map(({ id }) => id);
      const last = ids.map((id) => this.#last.get(id) ?? -1);
      const values = [ids, MOST_OF_AN_ENDPOINT, most, LEASE_SECONDS, last];
      const [claimed] = await manager.query<[Claimed[], number]>(CLAIM, values);
      return claimed;
    });
    rows.sort((one, other) => one.turn - other.turn);
    for (const { endpoint_id: id, user_id: member } of rows) this.#last.set(id, member);
    const messages = rows.filter(({ withheld }) => !withheld);
    return { messages, withheld: rows.length - messages.length };
  }

  /** Records the outcome of an attempt. @returns undefined if it is already recorded, or another instance has claimed the message */
  async finish(message: Message, { taken, status, error }: Attempt): Promise<Outcome | undefined> {
    if (!taken) return this.#failed(message, status, error);
    // Locked first, as in a claim: an endpoint before its messages.
    if (message.failing)
      await this.dataSource.query('UPDATE webhook_endpoints SET failing_since = NULL WHERE id = $1', [
        message.endpoint_id,
      ]);
    const [rows] = await this.dataSource.query<[{ delay: number }[], number]>(
      `UPDATE webhook_deliveries SET status = 'delivered', attempts = attempts + 1, attempted_at = now(), response_status = $2,
  error = NULL, leased_until = NULL, ended_at = now()
WHERE sequence = $1 AND status = 'pending' RETURNING EXTRACT(epoch FROM now() - changed_at)::float8 AS delay`,
      [message.sequence, status],
    );
    return rows[0] && { status: 'delivered', delaySeconds: rows[0].delay, switchedOff: false };
  }

  /** Releases a message whose attempt was aborted: any instance may send it at once. */
  async release({ sequence, lease }: Message): Promise<void> {
    await this.dataSource.query(
      `UPDATE webhook_deliveries SET leased_until = NULL WHERE sequence = $1 AND leased_until = $2::timestamptz`,
      [sequence, lease],
    );
  }

  async #failed(message: Message, status: number | null, error: string | null): Promise<Outcome | undefined> {
    const wait = message.type === TEST_TYPE ? undefined : RETRY_AFTER[message.attempts];
    return audited(this.dataSource, async (manager) => {
      const switchedOff = message.type !== TEST_TYPE && (await noteFailure(manager, message.endpoint_id));
      const [rows] = await manager.query<[{ status: 'pending' | 'dead'; delay: number }[], number]>(
        `UPDATE webhook_deliveries SET attempts = attempts + 1, attempted_at = now(), response_status = $3, error = $4,
  leased_until = NULL, due_at = now() + make_interval(secs => $5), status = CASE WHEN $6 THEN 'dead' ELSE 'pending' END,
  ended_at = CASE WHEN $6 THEN now() END
WHERE sequence = $1 AND status = 'pending' AND leased_until = $2::timestamptz
RETURNING status, EXTRACT(epoch FROM now() - changed_at)::float8 AS delay`,
        [message.sequence, message.lease, status, error, wait ?? 0, wait === undefined || switchedOff],
      );
      if (switchedOff) await endMessages(manager, message.endpoint_id);
      return rows[0] && { status: rows[0].status, delaySeconds: rows[0].delay, switchedOff };
    });
  }
}

/** @returns whether this switches the endpoint off */
async function noteFailure(manager: AuditedTransaction, endpointId: string): Promise<boolean> {
  const [rows] = await manager.query<
    [{ off: boolean; client_id: string | null; key_id: string | null }[], number]
  >(
    `UPDATE webhook_endpoints SET failing_since = COALESCE(failing_since, now()),
  disabled_at = CASE WHEN failing_since <= now() - make_interval(days => $2) THEN now() END,
  disabled_because = CASE WHEN failing_since <= now() - make_interval(days => $2) THEN 'failing' END
WHERE id = $1 AND disabled_at IS NULL RETURNING disabled_at IS NOT NULL AS off, client_id, key_id`,
    [endpointId, MOST_DAYS_FAILING],
  );
  const [row] = rows;
  if (!row?.off) return false;
  await recordEvent(manager, {
    type: 'webhook.disabled',
    actor: 'system',
    clientId: row.client_id,
    keyId: row.key_id,
    details: { webhook: endpointId, reason: 'failing' },
  });
  return true;
}

/** Nothing more is sent to an endpoint that is switched off. */
export async function endMessages(manager: EntityManager, endpointId: string): Promise<void> {
  await manager.query(
    `UPDATE webhook_deliveries SET status = 'dead', ended_at = now(), leased_until = NULL WHERE endpoint_id = $1 AND status = 'pending'`,
    [endpointId],
  );
}
