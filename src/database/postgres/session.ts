import pg, { type ClientConfig, type PoolConfig } from 'pg';
import { isUnavailable, Unavailable } from './unavailable.js';

export interface SessionConfig extends ClientConfig {
  /** Whether the connection is to a pooler, which accepts only some settings at the start of a connection. */
  readonly pooled?: boolean;
}

/** Formats of values as text: a server, database or role may set other formats. */
const FORMATS = { DateStyle: 'ISO, MDY', TimeZone: 'UTC', standard_conforming_strings: 'on' };

/** Formats that PgBouncer rejects: docs/operators/scaling.md sets them for the role. */
const UNPOOLED_FORMATS = {
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
  quote_all_identifiers: 'off',
};

/** Sets the formats of values (only some behind a pooler), and reports a failure to connect as Unavailable. */
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
      // isUnavailable does not recognize TLS errors: they have other codes, or none.
      throw isUnavailable(error) ? error : new Unavailable((error as Error).message, { cause: error });
    }
  }
}

type Connected = ((error: Error) => void) & ((error: null, client: pg.Client) => void);

/** Opens a pool of {@link SessionClient}s. Ignores errors of idle clients, which the pool removes. */
export function openPool(options: PoolConfig & SessionConfig): pg.Pool {
  const Client = SessionClient as unknown as typeof pg.Client;
  const pool = new pg.Pool({ ...options, Client } as PoolConfig);
  return pool.on('error', () => undefined);
}
