import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { Periodic } from '../../http/periodic-work.js';
import { REPEAT_SECONDS } from './token-request.js';

/** A kept response is deleted at most this long after its window closes, or 15 s after the token's use if one run fails. */
const PAUSE_MS = 2_000;
const BATCH = 1_000;

/** Uses oauth_tokens_successor_idx. Rows locked by a request or another instance are left to it, or to the next run. */
const FORGET = `UPDATE oauth_tokens SET successor = NULL WHERE key = ANY (ARRAY(
  SELECT key FROM oauth_tokens
  WHERE successor IS NOT NULL AND consumed_at < clock_timestamp() - interval '${REPEAT_SECONDS} s'
  ORDER BY consumed_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)) RETURNING 1`;

/**
 * Deletes the kept responses of used refresh tokens once they can no longer be repeated: in a copy of the database, they would let
 * a used token yield the live ones. Every instance does this, starting at once, so that those of a killed instance go as well.
 */
@Injectable()
export class RefreshGracePeriod {
  constructor(private readonly database: Database) {}

  /** @returns how many responses were deleted */
  @Periodic({
    work: 'refresh_answers',
    everyMs: PAUSE_MS,
    failure: 'answers of used refresh tokens could not be forgotten',
  })
  async forget(end?: AbortSignal): Promise<number> {
    for (let forgotten = 0; ;) {
      const batch = await this.database.prepared(FORGET, []);
      forgotten += batch.length;
      if (batch.length < BATCH || end?.aborted) return forgotten;
    }
  }
}
