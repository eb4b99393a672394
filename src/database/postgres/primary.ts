import pg from 'pg';
import { SessionClient, type SessionConfig } from './session.js';
import { Unavailable } from './unavailable.js';

export interface PrimaryConfig extends SessionConfig {
  /** Whether to accept only the primary; false behind a pooler, whose report of the server's role may be outdated. */
  readonly primary: boolean;
}

/**
 * Rejects standbys: in their stale data, a revoked credential may be valid, and clients would keep using an old primary after a failover.
 * PostgreSQL 14 and later report `in_hot_standby` to every new connection, without a query.
 */
export class PrimaryClient extends SessionClient {
  #standby = false;
  readonly #fault: Error | undefined;

  constructor({ primary, ...config }: PrimaryConfig) {
    // Does not throw: a pool catches no errors while it makes clients, so an error would end the process.
    const fault = faultOf(config);
    super(fault ? {} : config);
    this.#fault = fault;
    if (!primary) return;
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }: Record<string, string>) => {
      if (parameterName === 'in_hot_standby') this.#standby = parameterValue === 'on';
    });
  }

  /** @throws Unavailable also for a standby, or an unreadable certificate file in the URL */
  protected override async establish(): Promise<pg.Client> {
    if (this.#fault) throw new Unavailable(this.#fault.message);
    await super.establish();
    if (!this.#standby) return this;
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
