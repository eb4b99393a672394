import pg from 'pg';
import { SessionClient, type SessionConfig } from './session.js';
import { Unavailable } from './unavailable.js';

export interface PrimaryConfig extends SessionConfig {
  /** Whether to accept only the primary. Not behind a pooler, which repeats what was true when it connected itself. */
  readonly primary: boolean;
}

/**
 * A client that refuses standbys. Data on a standby may be stale: a revoked credential is still valid there. And a client led to
 * one for a moment, while another machine became the primary, would stay there.
 *
 * PostgreSQL reports to every new connection whether it is a standby (`in_hot_standby`, since 14): no query is needed.
 */
export class PrimaryClient extends SessionClient {
  #standby = false;
  /** Why its configuration is invalid: then it does not connect. */
  readonly #fault: Error | undefined;

  constructor({ primary, ...config }: PrimaryConfig) {
    // A pool makes clients where nothing catches errors: throwing would end the process.
    const fault = faultOf(config);
    super(fault ? {} : config);
    this.#fault = fault;
    if (!primary) return;
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }: Record<string, string>) => {
      if (parameterName === 'in_hot_standby') this.#standby = parameterValue === 'on';
    });
  }

  /** @throws Unavailable also if it is a standby, or a certificate file that the URL names cannot be read */
  protected override async establish(): Promise<pg.Client> {
    if (this.#fault) throw new Unavailable(this.#fault.message);
    await super.establish();
    if (!this.#standby) return this;
    this.end().catch(() => undefined);
    throw new Unavailable('this PostgreSQL is a standby');
  }
}

/** pg reads the certificate files that a URL names whenever it makes a client; they may be missing by then. */
function faultOf(config: SessionConfig): Error | undefined {
  try {
    void new pg.Client(config);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}
