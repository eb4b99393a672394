import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { QueryConfig, QueryResult } from 'pg';
import { WRITING_FUNCTIONS } from '../schema/schema.js';
import { commented, currentCaller, type Requester } from './callers.js';
import { SessionClient, type SessionConfig } from './session.js';
import { Unavailable } from './unavailable.js';

/** `routine` of PostgreSQL's warning about a canceled wait for a standby; the warning's text depends on the language. */
const CANCELLED_WAIT = 'SyncRepWaitForLSN';

/** After this many consecutive commits without a standby's confirmation, all writes except one per {@link REFUSED_MS} are rejected. */
const MAX_UNCONFIRMED = 3;
const REFUSED_MS = 1_000;

const WORDS = ['INSERT', 'UPDATE', 'DELETE', 'MERGE', 'COMMIT', 'START TRANSACTION', ...WRITING_FUNCTIONS];
const WRITE = new RegExp(`\\b(?:${WORDS.join('|')})\\b`, 'i');

/** Rejects writes while a synchronous standby is lost: each would occupy a connection. One write per second tests for the standby. */
export class WriteGate {
  #unconfirmed = 0;
  #closedUntil = 0;

  pass(text: string): void {
    if (this.#unconfirmed < MAX_UNCONFIRMED || !WRITE.test(text)) return;
    const now = performance.now();
    if (now < this.#closedUntil) throw new Unavailable('writes are not confirmed by the standby');
    this.#closedUntil = now + REFUSED_MS;
  }

  confirmed(text: string): void {
    if (this.#unconfirmed > 0 && WRITE.test(text)) this.#unconfirmed = 0;
  }

  unconfirmed(): void {
    if (++this.#unconfirmed === MAX_UNCONFIRMED) this.#closedUntil = performance.now() + REFUSED_MS;
  }
}

export interface Bounds extends SessionConfig {
  /** Maximum duration of a statement in ms; undefined for no limit. */
  readonly answerMs: number | undefined;
  readonly writes: WriteGate;
}

/** How TypeORM begins and ends transactions. */
const BEGIN = 'START TRANSACTION';
const ENDS: ReadonlySet<string> = new Set(['COMMIT', 'ROLLBACK']);
const LEFT = 'the caller has left';

const CANCEL_TIMEOUT_MS = 1_000;
/** Maximum wait in ms for the end of a canceled statement; then its connection closes. */
const GIVE_UP_MS = 60_000;

type Callback = (error: Error | undefined, result?: QueryResult) => void;

/**
 * Cancels late statements at the server and keeps their connection until they end. A COMMIT that waits for a standby outlives its client,
 * so reconnecting would use up all connections. Reports a commit without the standby's confirmation as Unavailable: its outcome is
 * unknown. When a request's caller disconnects, ends the request's transaction, except during COMMIT and ROLLBACK.
 */
export class BoundedClient extends SessionClient {
  readonly #send: (query: string | QueryConfig, values?: unknown[]) => Promise<QueryResult>;
  #givenUp: Promise<void> | undefined;
  #cancelledWaits = 0;
  #caller: Requester | undefined;
  #release: ((error?: Error | boolean) => void) | undefined;

  constructor(private readonly bounds: Bounds) {
    super(bounds);
    this.#send = this.query.bind(this) as never;
    this.query = this.#bounded.bind(this) as never;
    // The pool handles no errors of lent clients, and an unhandled 'error' event would end the process.
    this.on('error', () => undefined);
    this.on('notice', ({ routine }) => {
      if (routine !== CANCELLED_WAIT) return;
      this.#cancelledWaits++;
      bounds.writes.unconfirmed();
    });
  }

  /** The pool sets this function when it lends out the client; an error or true as argument closes the client. */
  get release(): (error?: Error | boolean) => void {
    return (error) => {
      if (!this.#givenUp) this.#release!(error);
      else void this.#givenUp.then(() => this.#release!(true));
    };
  }
  set release(release: (error?: Error | boolean) => void) {
    this.#release = release;
  }

  #bounded(query: string | QueryConfig, values?: unknown[] | Callback, tell?: Callback): unknown {
    if (typeof query === 'object' && 'submit' in query) return this.#send(query, values as unknown[]);
    if (typeof values === 'function') return this.#bounded(query, undefined, values);
    const result = this.#run(query, values);
    if (!tell) return result;
    void result.then((done) => tell(undefined, done), tell);
    return undefined;
  }

  async #run(query: string | QueryConfig, values?: unknown[]): Promise<QueryResult> {
    const text = typeof query === 'string' ? query : query.text;
    if (this.#givenUp) throw new Unavailable('the previous statement was aborted');
    if (text.startsWith(BEGIN)) this.#caller = currentCaller();
    const caller = this.#caller;
    if (ENDS.has(text)) this.#caller = undefined;
    if (caller?.gone && text !== 'ROLLBACK') throw new Unavailable(LEFT);
    this.bounds.writes.pass(text);
    const cancelledBefore = this.#cancelledWaits;
    const result = await this.#inTime(
      this.#send(commented(query), values),
      ENDS.has(text) ? undefined : caller,
    );
    if (this.#cancelledWaits > cancelledBefore)
      throw new Unavailable('the outcome is unknown: no standby has confirmed it');
    this.bounds.writes.confirmed(text);
    return result;
  }

  #inTime(statement: Promise<QueryResult>, caller: Requester | undefined): Promise<QueryResult> {
    const { answerMs } = this.bounds;
    if (answerMs === undefined) return statement;
    return new Promise((resolve, reject) => {
      const giveUp = (reason: string) => {
        this.#givenUp ??= this.#cancel(statement);
        reject(new Unavailable(reason));
      };
      const timer = setTimeout(() => giveUp('the database does not respond in time'), answerMs);
      const leave = () => giveUp(LEFT);
      if (caller) (caller.whenGone ??= new Set()).add(leave);
      statement.then(resolve, reject).finally(() => {
        clearTimeout(timer);
        caller?.whenGone?.delete(leave);
      });
    });
  }

  /** Resolves when the statement has ended, or its connection has been destroyed. */
  async #cancel(statement: Promise<unknown>): Promise<void> {
    let ended = false;
    const end = statement.catch(() => undefined).then(() => (ended = true));
    const latest = performance.now() + GIVE_UP_MS;
    while (!ended && performance.now() < latest) {
      if (!(await this.#sendCancelRequest())) break; // the server is unreachable, so it cannot report the end
      await Promise.race([end, pause(CANCEL_TIMEOUT_MS)]);
    }
    if (!ended) this.connection.stream.destroy();
  }

  /** @returns whether the request was sent: the server responds only by closing the connection */
  #sendCancelRequest(): Promise<boolean> {
    const { host, port, processID, secretKey } = this as unknown as Record<'host', string> &
      Record<'port' | 'processID' | 'secretKey', number>;
    const request = Buffer.alloc(16);
    [request.length, 80_877_102, processID, secretKey].forEach((value, i) =>
      request.writeInt32BE(value, i * 4),
    );
    return new Promise((resolve) => {
      const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
      socket.setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy(new Error('the database does not respond')));
      socket.on('error', () => resolve(false));
      socket.on('close', () => resolve(true)); // has no effect after an error
      socket.resume().end(request);
    });
  }
}
