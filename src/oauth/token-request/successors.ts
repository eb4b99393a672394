import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { Database } from '../../database/database.js';
import { LOGGER } from '../../http/logger.js';
import { REPEAT_SECONDS } from './token-request.js';

/** An answer is gone this long after it could be asked for last, at the latest; 15 s after the use, should one run fail. */
const INTERVAL_MS = 2_000;
const BATCH = 1_000;

/** By oauth_tokens_successor_idx. What a request or another instance holds is left to it, or to the next time. */
const FORGET = `UPDATE oauth_tokens SET successor = NULL WHERE key = ANY (ARRAY(
  SELECT key FROM oauth_tokens
  WHERE successor IS NOT NULL AND consumed_at < clock_timestamp() - interval '${REPEAT_SECONDS} s'
  ORDER BY consumed_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)) RETURNING 1`;

/**
 * Forgets the answers of used refresh tokens when they cannot be asked for again: with a copy of the database, a used token
 * would lead to the live ones. Every instance does, from its start on, so that what a killed one left goes as well.
 */
@Injectable()
export class Successors implements OnApplicationBootstrap, OnApplicationShutdown {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #failing = false;
  #ended = false;

  constructor(
    private readonly database: Database,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.#run();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** @returns how many answers were forgotten */
  async forget(): Promise<number> {
    for (let forgotten = 0; ;) {
      const batch = await this.database.prepared(FORGET, []);
      forgotten += batch.length;
      if (batch.length < BATCH || this.#ended) return forgotten;
    }
  }

  #run(): void {
    this.#running = this.#forgetOrTell().then(() => {
      if (!this.#ended) this.#timer = setTimeout(() => this.#run(), INTERVAL_MS).unref();
    });
  }

  /** Tells of the first failure in a row: the next run comes soon. */
  async #forgetOrTell(): Promise<void> {
    try {
      await this.forget();
      this.#failing = false;
    } catch (error) {
      if (!this.#failing)
        this.logger.warn(
          { reason: (error as Error).message },
          'answers of used refresh tokens could not be forgotten',
        );
      this.#failing = true;
    }
  }
}
