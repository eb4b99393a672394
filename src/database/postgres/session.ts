import pg, { type ClientConfig, type PoolConfig } from 'pg';
import { isUnavailable, Unavailable } from './unavailable.js';

export interface SessionConfig extends ClientConfig {
  /** Whether a pooler is in between, which accepts only some settings when a connection starts. */
  readonly pooled?: boolean;
}

/** Formats of values as text. A server, database or role may have other formats. */
const FORMATS = { DateStyle: 'ISO, MDY', TimeZone: 'UTC', standard_conforming_strings: 'on' };

/** PgBouncer rejects these: docs/operators/scaling.md sets them for the role. */
const UNPOOLED_FORMATS = {
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
  quote_all_identifiers: 'off',
};

/** The client of every connection: uses the same value formats in all sessions, and reports failures to connect as Unavailable. */
export class SessionClient extends pg.Client {
  protected readonly pooled: boolean;

  constructor({ pooled = false, ...config }: SessionConfig) {
    super(config);
    this.pooled = pooled;
  }

  /** Called by pg for the startup message. */
  getStartupConf(): object {
    const { getStartupConf } = pg.Client.prototype as unknown as Pick<SessionClient, 'getStartupConf'>;
    return { ...getStartupConf.call(this), ...FORMATS, ...(this.pooled ? {} : UNPOOLED_FORMATS) };
  }

  /** @throws Unavailable */
  override connect(): Promise<pg.Client>;
  override connect(tell: Connected): void;
  override connect(tell?: Connected): Promise<pg.Client> | void {
    const connected = this.establish();
    if (!tell) return connected;
    void connected.then((client) => tell(null, client), tell as (error: Error) => void);
  }

  protected async establish(): Promise<pg.Client> {
    try {
      await super.connect();
      return this;
    } catch (error) {
      // TLS errors have other codes than the network's, or none.
      throw isUnavailable(error) ? error : new Unavailable((error as Error).message, { cause: error });
    }
  }
}

type Connected = ((error: Error) => void) & ((error: null, client: pg.Client) => void);

/** Opens a pool of such clients. Statements report their own errors, and the pool drops a broken idle client. */
export function openPool(options: PoolConfig & SessionConfig): pg.Pool {
  const Client = SessionClient as unknown as typeof pg.Client;
  const pool = new pg.Pool({ ...options, Client } as PoolConfig);
  return pool.on('error', () => undefined);
}
