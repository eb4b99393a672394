import { Injectable } from '@nestjs/common';
import { BackgroundWork } from '../../database/background-work.js';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';
import { REPEAT_SECONDS } from './token-request.js';

/** An answer is gone this long after it could be asked for last, at the latest; 15 s after the use, should one run fail. */
const PAUSE_MS = 2_000;
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
export class Successors extends BackgroundWork {
  constructor(
    private readonly database: Database,
    logger: Logger,
  ) {
    super(logger, PAUSE_MS, 'answers of used refresh tokens could not be forgotten');
  }

  /** @returns how many answers were forgotten */
  async forget(): Promise<number> {
    for (let forgotten = 0; ;) {
      const batch = await this.database.prepared(FORGET, []);
      forgotten += batch.length;
      if (batch.length < BATCH || this.ended) return forgotten;
    }
  }

  protected async work(): Promise<void> {
    await this.forget();
  }
}
