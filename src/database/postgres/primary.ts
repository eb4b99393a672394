import pg, { type ClientConfig } from 'pg';
import { Unavailable } from './unavailable.js';

export interface PrimaryConfig extends ClientConfig {
  /** Whether to accept only the primary. Not behind a pooler, which repeats what was true when it connected itself. */
  readonly primary: boolean;
}

/**
 * A client that refuses standbys. Data on a standby may be stale: a revoked credential is still valid there. And a client led to
 * one for a moment, while another machine became the primary, would stay there.
 *
 * PostgreSQL reports to every new connection whether it is a standby (`in_hot_standby`, since 14): no query is needed.
 */
export class PrimaryClient extends pg.Client {
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

  /** @throws Unavailable if it is a standby, or a certificate file that the URL names cannot be read */
  override connect(): Promise<pg.Client>;
  override connect(tell: Connected): void;
  override connect(tell?: Connected): Promise<pg.Client> | void {
    const connected = this.#connect();
    if (!tell) return connected;
    void connected.then((client) => tell(null, client), tell as (error: Error) => void);
  }

  async #connect(): Promise<pg.Client> {
    if (this.#fault) throw new Unavailable(this.#fault.message);
    await super.connect();
    if (!this.#standby) return this;
    this.end().catch(() => undefined);
    throw new Unavailable('this PostgreSQL is a standby');
  }
}

/** pg reads the certificate files that a URL names whenever it makes a client; they may be missing by then. */
function faultOf(config: ClientConfig): Error | undefined {
  try {
    void new pg.Client(config);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

type Connected = ((error: Error) => void) & ((error: null, client: pg.Client) => void);
