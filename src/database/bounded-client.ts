import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { QueryConfig, QueryResult } from 'pg';
import { PrimaryClient } from './primary.js';
import type { PrimaryConfig } from './primary.js';
import { commented } from './request-comments.js';
import { Unavailable } from './unavailable.js';

/** Where PostgreSQL says that it has ended the wait for a standby: the text of that warning depends on the language. */
const CANCELLED_WAIT = 'SyncRepWaitForLSN';

/** So many commits in a row that no standby confirmed, and writes are refused for a while. */
const MOST_UNCONFIRMED = 3;
const REFUSED_MS = 1_000;

// Functions of ours that write, too.
const WRITE =
  /\b(INSERT|UPDATE|DELETE|MERGE|COMMIT|START TRANSACTION|fold_totals|copy_names|take_change_mark|coalesce_changes)\b/i;

/**
 * Whether writes are worth trying. With a synchronous standby that is lost each of them waits until it is cancelled, and would
 * hold a connection all the while: after some of them one a second is let through, to see whether the standby is back.
 */
export class WriteGate {
  #unconfirmed = 0;
  #closedUntil = 0;

  /** @throws Unavailable for a write in a second in which none is tried */
  pass(text: string): void {
    if (this.#unconfirmed < MOST_UNCONFIRMED || !WRITE.test(text)) return;
    const now = performance.now();
    if (now < this.#closedUntil) throw new Unavailable('writes are not confirmed by the standby');
    this.#closedUntil = now + REFUSED_MS;
  }

  confirmed(text: string): void {
    if (this.#unconfirmed > 0 && WRITE.test(text)) this.#unconfirmed = 0;
  }

  unconfirmed(): void {
    if (++this.#unconfirmed === MOST_UNCONFIRMED) this.#closedUntil = performance.now() + REFUSED_MS;
  }
}

/** What a client of a pool may cost; the pool passes on its own options. */
export interface Bounds extends PrimaryConfig {
  /** A statement that takes longer is given up, in ms; undefined: it may take its time. */
  readonly answerMs: number | undefined;
  readonly writes: WriteGate;
}

const CANCEL_TIMEOUT_MS = 1_000;
/** A server that hears CancelRequests ends a statement at once; one whose answer is lost on the way is given up after this. */
const GIVE_UP_MS = 60_000;

type Callback = (error: Error | undefined, result?: QueryResult) => void;

/**
 * A client of a pool whose statements end in time, and whose commits count only where they are confirmed:
 *
 * - What takes too long is cancelled at the server (CancelRequest), and the connection keeps its place in the pool until the
 *   statement really ended. A COMMIT that waits for a lost synchronous standby knows no timeout, and does not notice that its
 *   client left: a pool that connects anew instead uses up all connections of the database in seconds.
 * - A cancelled wait is answered with success and a warning: the transaction stands on the primary, and may be lost with it.
 *   That is no success, but Unavailable: the outcome is unknown, and the same write may be sent again.
 */
export class BoundedClient extends PrimaryClient {
  readonly #bounds: Bounds;
  readonly #send: (query: string | QueryConfig, values?: unknown[]) => Promise<QueryResult>;
  /** The statement that was given up, until it ended. */
  #givenUp: Promise<void> | undefined;
  #cancelledWaits = 0;
  #release: ((error?: Error | boolean) => void) | undefined;

  constructor(bounds: Bounds) {
    super(bounds);
    this.#bounds = bounds;
    this.#send = this.query.bind(this) as never;
    this.query = this.#bounded.bind(this) as never;
    // Between the end of a statement that was given up and the pool's taking the client back nobody else listens, and an error
    // that nobody hears ends the process. Whoever waits for a statement is told by that.
    this.on('error', () => undefined);
    this.on('notice', ({ routine }) => {
      if (routine !== CANCELLED_WAIT) return;
      this.#cancelledWaits++;
      bounds.writes.unconfirmed();
    });
  }

  /** Set by the pool whenever it lends this client out: gives it back, which closes it where an error is named. */
  get release(): (error?: Error | boolean) => void {
    return (error) => {
      if (!this.#givenUp) this.#release!(error);
      else void this.#givenUp.then(() => this.#release!(true));
    };
  }
  set release(release: (error?: Error | boolean) => void) {
    this.#release = release;
  }

  #bounded(query: string | QueryConfig, values?: unknown[] | Callback, callback?: Callback): unknown {
    if (typeof query === 'object' && 'submit' in query) return this.#send(query, values as unknown[]);
    if (typeof values === 'function') return this.#bounded(query, undefined, values);
    const result = this.#run(query, values);
    if (!callback) return result;
    void tell(callback, result);
    return undefined;
  }

  async #run(query: string | QueryConfig, values?: unknown[]): Promise<QueryResult> {
    const text = typeof query === 'string' ? query : query.text;
    if (this.#givenUp) throw new Unavailable('the statement before was given up');
    this.#bounds.writes.pass(text);
    const cancelledBefore = this.#cancelledWaits;
    const result = await this.#inTime(this.#send(commented(query), values));
    if (this.#cancelledWaits > cancelledBefore)
      throw new Unavailable('the outcome is unknown: no standby has confirmed it');
    this.#bounds.writes.confirmed(text);
    return result;
  }

  #inTime(statement: Promise<QueryResult>): Promise<QueryResult> {
    const { answerMs } = this.#bounds;
    if (answerMs === undefined) return statement;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#givenUp = this.#cancel(statement);
        reject(new Unavailable('the database does not answer in time'));
      }, answerMs);
      statement.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }

  /** Resolves when the statement has ended, or can be heard of no more. */
  async #cancel(statement: Promise<unknown>): Promise<void> {
    let ended = false;
    const end = statement.then(
      () => void (ended = true),
      () => void (ended = true),
    );
    const latest = performance.now() + GIVE_UP_MS;
    while (!ended && performance.now() < latest) {
      if (!(await this.#sendCancelRequest())) break; // nobody is there: what it does there ends with its server
      await Promise.race([end, pause(CANCEL_TIMEOUT_MS)]);
    }
    if (!ended) this.connection.stream.destroy();
  }

  /** @returns whether the server has taken it: it closes the connection then */
  #sendCancelRequest(): Promise<boolean> {
    const { host, port, processID, secretKey } = this as unknown as Record<'host', string> &
      Record<'port' | 'processID' | 'secretKey', number>;
    const request = Buffer.alloc(16);
    [request.length, 80_877_102, processID, secretKey].forEach((value, i) =>
      request.writeInt32BE(value, i * 4),
    );
    return new Promise((resolve) => {
      const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
      socket.setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy(new Error('it does not answer')));
      socket.on('error', () => resolve(false));
      socket.on('close', () => resolve(true)); // after an error this says nothing new
      socket.resume().end(request);
    });
  }
}

async function tell(callback: Callback, result: Promise<QueryResult>): Promise<void> {
  let done: QueryResult;
  try {
    done = await result;
  } catch (error) {
    callback(error as Error);
    return;
  }
  callback(undefined, done);
}
