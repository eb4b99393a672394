import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { CONFIG } from '../../config/config.js';
import type { Config } from '../../config/config.js';
import { Database } from '../../database/database.js';
import { LOGGER } from '../../http/logger.js';

const BATCH = 1_000;

interface Swept {
  readonly table: string;
  /** Rows that nothing asks for any more. */
  readonly expired: string;
}

const SWEPT: readonly Swept[] = [
  {
    table: 'oauth_tokens',
    // A code that comes a second time within ten minutes betrays a theft: that it was used must still be known.
    expired: `expires_at < now() - CASE model WHEN 'AuthorizationCode' THEN interval '10 minutes' ELSE interval '0' END`,
  },
  { table: 'oauth_sessions', expired: 'expires_at < now()' },
  { table: 'oauth_state', expired: 'expires_at < now()' },
  // Until then a next block is longer than the one before.
  { table: 'login_throttle', expired: `window_ends_at < now() - interval '1 hour'` },
  // Expired, or left over from a sign-in that came to nothing, or with every token gone.
  {
    table: 'oauth_grants',
    expired: `(expires_at < now() OR created_at < now() - interval '1 hour')
    AND NOT EXISTS (SELECT FROM oauth_tokens t WHERE t.grant_id = oauth_grants.id)`,
  },
];

/**
 * Deletes expired rows every {@link Config.sweepIntervalSeconds}, in batches that wait for nobody. Every instance
 * sweeps; rows that another one is at are left to it.
 */
@Injectable()
export class Sweeper implements OnApplicationBootstrap, OnApplicationShutdown {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<unknown> | undefined;
  #ended = false;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly database: Database,
  ) {}

  onApplicationBootstrap(): void {
    this.#wait();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** @returns how many rows were deleted, by table */
  async sweep(): Promise<Record<string, number>> {
    const deleted: Record<string, number> = {};
    for (const swept of SWEPT) deleted[swept.table] = await this.#sweep(swept);
    return deleted;
  }

  async #sweep({ table, expired }: Swept): Promise<number> {
    for (let deleted = 0; ;) {
      const rows = await this.database.rows(
        `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM ${table} WHERE ${expired} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)) RETURNING 1`,
        [],
      );
      deleted += rows.length;
      if (rows.length < BATCH || this.#ended) return deleted;
    }
  }

  #wait(): void {
    // Not all instances at the same moment.
    const milliseconds = this.config.sweepIntervalSeconds * 1000 * (0.9 + Math.random() * 0.2);
    this.#timer = setTimeout(() => {
      this.#running = this.sweep()
        .catch((error: unknown) =>
          this.logger.warn({ reason: (error as Error).message }, 'expired rows could not be swept'),
        )
        .finally(() => this.#ended || this.#wait());
    }, milliseconds).unref();
  }
}
