import pg from 'pg';
import type { ClientConfig } from 'pg';
import { Unavailable } from './unavailable.js';

export interface PrimaryConfig extends ClientConfig {
  /** Whether it may connect to the primary alone. Not behind a pooler, which says what was so when it connected itself. */
  readonly primary: boolean;
}

/**
 * A client that connects to no standby. What a standby knows may be old: a credential that was revoked is still good there. And
 * whoever was led to one for a moment, while another machine became the primary, would stay there.
 *
 * PostgreSQL says by itself, to everybody who connects, whether it is one (`in_hot_standby`, since 14): nothing is asked.
 */
export class PrimaryClient extends pg.Client {
  #standby = false;

  constructor({ primary, ...config }: PrimaryConfig) {
    super(config);
    if (!primary) return;
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }: ParameterStatus) => {
      if (parameterName === 'in_hot_standby') this.#standby = parameterValue === 'on';
    });
  }

  /** @throws Unavailable where it is a standby */
  override connect(): Promise<pg.Client>;
  override connect(callback: Connected): void;
  override connect(callback?: Connected): Promise<pg.Client> | void {
    if (!callback) return this.#connect();
    void this.#tell(callback as (error: Error | null, client: pg.Client) => void);
  }

  async #tell(callback: (error: Error | null, client: pg.Client) => void): Promise<void> {
    let fault: Error | null = null;
    try {
      await this.#connect();
    } catch (error) {
      fault = error as Error;
    }
    callback(fault, this);
  }

  async #connect(): Promise<pg.Client> {
    await super.connect();
    if (!this.#standby) return this;
    this.end().catch(() => undefined);
    throw new Unavailable('this PostgreSQL is a standby');
  }
}

type Connected = ((error: Error) => void) | ((error: null, client: pg.Client) => void);

/** As pg reads it (PostgreSQL, §55.7). */
interface ParameterStatus {
  readonly parameterName: string;
  readonly parameterValue: string;
}
