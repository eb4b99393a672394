import pg from 'pg';
import { currentCaller } from './callers.js';

/** Maximum connections for the server's own work. */
const OWN = 2;
/** Minimum connection timeout in ms for the server's own work. */
const PATIENCE_MS = 5_000;

type Callback = (fault: Error | undefined, client: pg.PoolClient | undefined, done: () => void) => void;

/** The pool of requests. Other work has separate connections, so it continues while requests wait for a connection. */
export class RequestPool extends pg.Pool {
  readonly #own: pg.Pool;

  constructor(options: pg.PoolConfig) {
    super(options);
    const connectionTimeoutMillis = Math.max(PATIENCE_MS, options.connectionTimeoutMillis ?? 0);
    this.#own = new pg.Pool({ ...options, max: OWN, connectionTimeoutMillis });
    this.#own.on('error', () => undefined); // an idle connection broke, and the pool has dropped it
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: Callback): void;
  override connect(callback?: Callback): Promise<pg.PoolClient> | void {
    return currentCaller() ? super.connect(callback as Callback) : this.#own.connect(callback as Callback);
  }

  override end(): Promise<void>;
  override end(callback: () => void): void;
  override end(callback?: () => void): Promise<void> | void {
    if (callback) super.end(() => this.#own.end(callback));
    else return super.end().then(() => this.#own.end());
  }
}
