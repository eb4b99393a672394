import pg, { type ClientConfig, type PoolConfig } from 'pg';
import { isUnavailable, Unavailable } from './unavailable.js';

export interface SessionConfig extends ClientConfig {
  /** Whether the connection is to a pooler, which accepts only some settings at the start of a connection. */
  readonly pooled?: boolean;
  /** Whether to accept only the primary; not behind a pooler, whose report of the server's role may be outdated. */
  readonly primary?: boolean;
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

/**
 * Sets the formats of values (only some behind a pooler), and reports a failure to connect as Unavailable. With `primary`, rejects standbys:
 * in their stale data, a revoked credential may be valid, and clients would keep using an old primary after a failover. PostgreSQL 14 and
 * later report `in_hot_standby` to every new connection, without a query.
 */
export class SessionClient extends pg.Client {
  protected readonly pooled: boolean;
  readonly #fault: Error | undefined;
  #isStandby = false;

  constructor({ pooled = false, primary = false, ...config }: SessionConfig) {
    // Does not throw: a pool catches no errors while it makes clients, so an error would end the process.
    const fault = faultOf(config);
    super(fault ? {} : config);
    this.pooled = pooled;
    this.#fault = fault;
    if (!primary) return;
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }: Record<string, string>) => {
      if (parameterName === 'in_hot_standby') this.#isStandby = parameterValue === 'on';
    });
  }

  /** Called by pg for the startup message. */
  getStartupConf(): object {
    const { getStartupConf } = pg.Client.prototype as unknown as Pick<SessionClient, 'getStartupConf'>;
    return { ...getStartupConf.call(this), ...FORMATS, ...(this.pooled ? {} : UNPOOLED_FORMATS) };
  }

  /** @throws Unavailable, also for a standby, or an unreadable certificate file in the URL */
  override connect(): Promise<pg.Client>;
  override connect(tell: Connected): void;
  override connect(tell?: Connected): Promise<pg.Client> | void {
    const connected = this.#establish();
    if (!tell) return connected;
    void connected.then((client) => tell(null, client), tell as (error: Error) => void);
  }

  async #establish(): Promise<pg.Client> {
    if (this.#fault) throw new Unavailable(this.#fault.message);
    try {
      await super.connect();
    } catch (error) {
      // isUnavailable does not recognize TLS errors: they have other codes, or none.
      throw isUnavailable(error) ? error : new Unavailable((error as Error).message, { cause: error });
    }
    if (!this.#isStandby) return this;
    this.end().catch(() => undefined);
    throw new Unavailable('this PostgreSQL is a standby');
  }
}

/** Returns the error if pg cannot make a client, for example because it cannot read the URL's certificate files. */
function faultOf(config: SessionConfig): Error | undefined {
  try {
    void new pg.Client(config);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

type Connected = ((error: Error) => void) & ((error: null, client: pg.Client) => void);

/** Opens a pool of {@link SessionClient}s. Ignores errors of idle clients, which the pool removes. */
export function openPool(options: PoolConfig & SessionConfig): pg.Pool {
  const Client = SessionClient as unknown as typeof pg.Client;
  const pool = new pg.Pool({ ...options, Client } as PoolConfig);
  return pool.on('error', () => undefined);
}
