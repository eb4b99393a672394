import { createHmac } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { CONFIG } from '../config/config.js';
import type { Config } from '../config/config.js';
import { Database } from '../database/database.js';
import { networkOf } from '../http/network.js';

interface Allowance {
  /** Failures in a window, before one more begins a block. */
  readonly failures: number;
  /** Whether the window begins anew with each attempt, so that it ends only after a minute without one. */
  readonly slides: boolean;
  /** Each block is twice as long as the one before, up to this. */
  readonly longestBlockSeconds: number;
}

/** Length of a window, and of the first block. */
const WINDOW_SECONDS = 60;

/** From any address; cannot be switched off. In no 60 seconds are there more failures than this. */
const PER_ACCOUNT: Allowance = { failures: 10, slides: true, longestBlockSeconds: 900 };

/**
 * Takes an attempt before the password is looked at: of any number of guesses in parallel, on any number of instances,
 * only the allowed ones get through. Goes by the database's clock. Trying on does not lengthen a block.
 */
const TAKE = `INSERT INTO login_throttle AS t (key, attempts, window_ends_at)
VALUES ($1, 1, now() + make_interval(secs => ${WINDOW_SECONDS}))
ON CONFLICT (key) DO UPDATE SET
  attempts = CASE WHEN t.window_ends_at <= now() THEN 1 ELSE t.attempts + 1 END,
  window_ends_at = CASE
    WHEN t.window_ends_at <= now() OR (t.attempts < $2 AND $3) THEN EXCLUDED.window_ends_at
    WHEN t.attempts = $2 THEN now() + make_interval(secs => LEAST($4, ${WINDOW_SECONDS} * 2.0 ^ LEAST(t.blocks, 20)))
    ELSE t.window_ends_at
  END,
  blocks = CASE
    WHEN t.window_ends_at <= now() - interval '1 hour' THEN 0
    WHEN t.window_ends_at > now() AND t.attempts = $2 THEN t.blocks + 1
    ELSE t.blocks
  END
RETURNING attempts, GREATEST(1, ceil(extract(epoch FROM window_ends_at - now())))::integer AS seconds_left`;

/** Not during a block: taking an attempt off would begin the next one. */
const GIVE_BACK = `UPDATE login_throttle SET attempts = attempts - 1, blocks = CASE WHEN $3 THEN 0 ELSE blocks END
WHERE key = $1 AND attempts BETWEEN 1 AND $2`;

export interface Blocked {
  readonly retryAfterSeconds: number;
  /** This attempt began the block. */
  readonly first: boolean;
}

export interface Taken {
  /** The attempt was no failure after all. @param signedIn it succeeded: earlier blocks are forgotten */
  giveBack(signedIn: boolean): Promise<void>;
}

/**
 * Bounds guessing, for all instances together: per account, whatever the address, and per address (RATE_LIMIT_AUTH a
 * minute), whatever the account. A name that nobody has is an account like any other here, so that being blocked tells
 * nothing.
 *
 * Not rate-limiter-flexible, whose PostgreSQL store goes by each instance's own clock, has fixed windows only (twice
 * the allowance around their edge), and names its statements, which the embedded database cannot take.
 */
@Injectable()
export class SignInThrottle {
  readonly #key: KeyObject;
  readonly #perAddress: Allowance;

  constructor(
    private readonly database: Database,
    @Inject(CONFIG) config: Config,
  ) {
    this.#key = config.secrets.derive('sign-in-throttle')[0]!;
    this.#perAddress = {
      failures: config.rateLimits.auth,
      slides: false, // many members may share an address: there is hardly a quiet minute
      longestBlockSeconds: WINDOW_SECONDS,
    };
  }

  async takeForAddress(address: string | undefined): Promise<Taken | Blocked> {
    if (this.#perAddress.failures === 0) return { giveBack: async () => undefined };
    return this.#take(`address:${networkOf(address ?? '')}`, this.#perAddress);
  }

  /** @param foldedName the name that was typed, in the form in which names are compared */
  takeForAccount(foldedName: string): Promise<Taken | Blocked> {
    return this.#take(`account:${foldedName}`, PER_ACCOUNT);
  }

  async #take(subject: string, allowance: Allowance): Promise<Taken | Blocked> {
    const key = createHmac('sha256', this.#key).update(subject).digest();
    const { failures, slides, longestBlockSeconds } = allowance;
    const [row] = await this.database.rows<{ attempts: number; seconds_left: number }>(TAKE, [
      key,
      failures,
      slides,
      longestBlockSeconds,
    ]);
    const { attempts, seconds_left } = row!;
    if (attempts > failures) return { retryAfterSeconds: seconds_left, first: attempts === failures + 1 };
    return {
      giveBack: async (signedIn) => void (await this.database.rows(GIVE_BACK, [key, failures, signedIn])),
    };
  }
}
