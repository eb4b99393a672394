import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { AuthEvent } from '../database/entities/auth-event.entity.js';
import { Database } from '../database/database.js';
import { Refusal } from '../database/refusal.js';
import { SIGN_INS_VALID_SINCE } from '../database/sql.js';
import { isStorable } from '../http/text.js';
import { HashingQueue } from './hashing-queue.js';
import { hashPassword, verifyPassword } from './passwords.js';
import { SignInThrottle } from './sign-in-throttle.js';
import type { Blocked } from './sign-in-throttle.js';

export interface SignInAttempt {
  readonly username: string;
  readonly password: string;
  readonly ip: string | undefined;
}

/** A member who proved who they are. */
export interface SignedIn {
  readonly userId: number;
  /** When, by the database's clock: seconds since 1970. */
  readonly at: number;
  /** The {@link SIGN_INS_VALID_SINCE} under which the proof was good. */
  readonly validSince: number | null;
}

export type SignInOutcome =
  | ({ readonly outcome: 'signed-in' } & SignedIn)
  | { readonly outcome: 'invalid' }
  | { readonly outcome: 'throttled'; readonly retryAfterSeconds: number };

/** Why somebody was not let in: for the audit trail alone. */
type RefusalReason =
  'unknown_user' | 'no_password' | 'disabled' | 'wrong_password' | 'account_blocked' | 'address_blocked';

/** What is known of the name that was typed; all but `folded_name` is null where nobody has it. */
interface Account {
  readonly folded_name: string;
  readonly id: number | null;
  readonly password_hash: string | null;
  readonly disabled: boolean | null;
  readonly valid_since: number | null;
  /** The database's clock: seconds since 1970. */
  readonly now: number;
}

const FIND_ACCOUNT = `SELECT folded_name, u.id, u.password_hash, u.disabled_at IS NOT NULL AS disabled,
  ${SIGN_INS_VALID_SINCE} AS valid_since, floor(EXTRACT(epoch FROM now()))::bigint AS now
FROM fold_case($1) AS folded_name LEFT JOIN users u ON fold_case(u.username) = folded_name`;

/** Nobody's name is longer. */
const LONGEST_USERNAME = 100;

/**
 * A refusal takes at least this long from when hashing began: imported hashes take longer to verify than ours, which
 * would tell that there is a member who has one.
 */
const REFUSAL_MS = 500;

/** Username and password → member. One answer, after one time, for whatever is wrong. */
@Injectable()
export class SignIn {
  readonly #hashing = new HashingQueue();
  /** Compared with where there is no hash. */
  readonly #decoy = hashPassword(randomBytes(24).toString('base64url'));

  constructor(
    private readonly database: Database,
    private readonly throttle: SignInThrottle,
  ) {}

  /** @throws Unavailable (or what the database throws) where nobody can sign in now: it is never skipped */
  async attempt({ username, password, ip }: SignInAttempt): Promise<SignInOutcome> {
    const address = await this.throttle.takeForAddress(ip);
    if ('retryAfterSeconds' in address) return this.#blocked(address, 'address_blocked', null, ip);
    const account = await this.#find(username);
    const attempt = await this.throttle.takeForAccount(account.folded_name);
    if ('retryAfterSeconds' in attempt) return this.#blocked(attempt, 'account_blocked', account.id, ip);

    const hashing = this.#hashing.run(() => this.#verify(account, password));
    const { matches, renewedHash, startedAt } = await hashing.catch(async (error: unknown) => {
      await Promise.allSettled([address.giveBack(false), attempt.giveBack(false)]);
      throw error;
    });
    if (!matches || account.id === null) {
      await this.#record('sign_in.refused', account.id, ip, { reason: reasonFor(account) });
      await setTimeout(Math.max(0, startedAt + REFUSAL_MS - performance.now()));
      return { outcome: 'invalid' };
    }
    await Promise.all([address.giveBack(true), attempt.giveBack(true)]);
    if (renewedHash !== undefined) await this.#renewHash(account, renewedHash);
    await this.#record('sign_in.succeeded', account.id, ip);
    return { outcome: 'signed-in', userId: account.id, at: account.now, validSince: account.valid_since };
  }

  async #find(username: string): Promise<Account> {
    const usable = isStorable(username) && [...username].length <= LONGEST_USERNAME;
    const [account] = await this.database.rows<Account & QueryResultRow>(FIND_ACCOUNT, [
      usable ? username : '', // which nobody is called
    ]);
    return account!;
  }

  /** Whoever it is, one hash is computed. */
  async #verify({ password_hash, disabled }: Account, password: string) {
    const startedAt = performance.now();
    const hash = disabled ? null : password_hash;
    const verified = await verifyPassword(hash ?? (await this.#decoy), password);
    const matches = hash !== null && verified.matches;
    const renewedHash = matches && verified.needsUpgrade ? await renew(password) : undefined;
    return { matches, renewedHash, startedAt };
  }

  /** Unless the password was changed meanwhile. */
  async #renewHash({ id, password_hash }: Account, renewedHash: string): Promise<void> {
    await this.database.rows('UPDATE users SET password_hash = $3 WHERE id = $1 AND password_hash = $2', [
      id,
      password_hash,
      renewedHash,
    ]);
  }

  async #blocked(
    { retryAfterSeconds, first }: Blocked,
    reason: RefusalReason,
    userId: number | null,
    ip: string | undefined,
  ): Promise<SignInOutcome> {
    // Those after the first say nothing new, and there can be any number of them.
    if (first) await this.#record('sign_in.refused', userId, ip, { reason });
    return { outcome: 'throttled', retryAfterSeconds };
  }

  async #record(
    type: 'sign_in.succeeded' | 'sign_in.refused',
    userId: number | null,
    ip: string | undefined,
    details: { reason?: RefusalReason } = {},
  ): Promise<void> {
    await this.database.dataSource.manager.insert(AuthEvent, {
      type,
      actor: 'user',
      user_id: userId,
      ip: ip ?? null,
      details,
    });
  }
}

function reasonFor({ id, disabled, password_hash }: Account): RefusalReason {
  if (id === null) return 'unknown_user';
  if (disabled) return 'disabled';
  return password_hash === null ? 'no_password' : 'wrong_password';
}

/** @returns undefined for an imported password that we would not take: it stays as it is */
async function renew(password: string): Promise<string | undefined> {
  try {
    return await hashPassword(password);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
