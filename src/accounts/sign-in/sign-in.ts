import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { recordAlone, type LoneEvent } from '../../audit/audit.js';
import { Database } from '../../database/database.js';
import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';
import { Meter } from '../../runtime/meter.js';
import { isStorable } from '../../values/string-rules.js';
import { Busy, HashingQueue, hashPassword, verifyPassword } from '../passwords/passwords.js';
import { RefusalTime } from '../passwords/refusal-time.js';
import type { SignInOrigin } from './sign-in-origin.js';
import { SignInThrottle, type Subject } from './sign-in-throttle.js';
import { Config } from '../../config/config.js';
import { randomBytes } from '../../crypto/random.js';

interface SignInAttempt extends SignInOrigin {
  readonly username: string;
  readonly password: string;
  /** Finds the id of this browser if the member has signed in with it before. */
  readonly deviceOf?: (userId: number) => string | undefined;
  /** Whether the password only confirms a change. If so, success is not recorded as a sign-in. */
  readonly confirms?: boolean;
}

export interface SignedIn {
  readonly userId: number;
  /** Time of the sign-in in seconds since 1970; 0 if the external identity provider does not state it. */
  readonly at: number;
  /** The {@link SIGN_INS_VALID_SINCE} at the time of the check. */
  readonly validSince: number | null;
  /** Authentication methods (RFC 8176), if known. */
  readonly amr?: readonly string[] | undefined;
  /** Assurance level (`acr`, OpenID Connect Core §2), if known. */
  readonly acr?: string | undefined;
  /** The session at the external identity provider. */
  readonly upstream?: { readonly subject: string; readonly session: string | null } | undefined;
}

/** `unproven`: a passkey failed. `busy`: too many sign-ins in progress; the password was not checked. */
export interface SignInFault {
  readonly reason: 'invalid' | 'unproven' | 'throttled' | 'busy';
  readonly retryAfterSeconds?: number;
}

const BUSY_SECONDS = 2;

/** Cause of a rejection in the audit log. */
export type RejectionCause =
  | 'no_password'
  | 'disabled'
  | 'wrong_password'
  | 'wrong_proof'
  | 'counter_went_back'
  | `${Subject['kind']}_blocked`;

/** The account with a typed name; if there is none, `id`, `password_hash` and `valid_since` are null. */
interface Account extends QueryResultRow {
  readonly folded_username: string;
  readonly id: number | null;
  readonly password_hash: string | null;
  readonly disabled: boolean | null;
  readonly valid_since: number | null;
  /** Seconds since 1970 by the database's clock. */
  readonly now: number;
}

const FIND_ACCOUNT = {
  name: 'find-account-by-name',
  text: `SELECT typed.folded_username, u.id, CASE WHEN u.password_off_at IS NULL THEN u.password_hash END AS password_hash,
  u.disabled_at IS NOT NULL AS disabled,
  ${SIGN_INS_VALID_SINCE} AS valid_since, floor(EXTRACT(epoch FROM now()))::bigint AS now
FROM fold_case($1) AS typed (folded_username) LEFT JOIN users u ON u.folded_username = typed.folded_username`,
};

/** Replaces the hash of an unchanged password; `end_sign_ins` then keeps password reset links. */
const REPLACE_HASH = `UPDATE users SET password_hash = $3 WHERE id = $1 AND password_hash = $2
  AND set_config('public_user_api.same_password', 'yes', true) = 'yes'`;

const MAX_USERNAME_LENGTH = 100;

/** Signs members in with username and password. Failed checks have the same response and timing, regardless of the cause. */
@Injectable()
export class SignIn implements OnApplicationShutdown {
  readonly #hashing: HashingQueue;
  /** The hash to verify if there is no enabled account with a password, so that the check still takes time. */
  readonly #decoy = hashPassword(randomBytes(24).toString('base64url'));
  readonly #upgrades = new Map<number, Promise<void>>();

  constructor(
    private readonly database: Database,
    private readonly throttle: SignInThrottle,
    private readonly refusalTime: RefusalTime,
    private readonly config: Config,
    meter: Meter = new Meter(),
  ) {
    this.#hashing = new HashingQueue(meter);
  }

  /** @throws Unavailable or database errors */
  async attempt(sent: SignInAttempt): Promise<SignedIn | SignInFault> {
    const { username, password, ip, deviceOf, confirms } = sent;
    const deadline = performance.now() + this.config.signInPatience;
    const account = await this.#find(username);
    const device = account.id === null ? undefined : deviceOf?.(account.id);
    // A known browser has its own allowance, which other people cannot use up.
    const subjects: Subject[] =
      device === undefined
        ? [
            { kind: 'address', of: ip },
            { kind: 'account', of: account.folded_username },
          ]
        : [{ kind: 'device', of: device }];
    // Records only rejections for existing accounts: anyone can try any number of other names.
    const refusal = (cause: RejectionCause) =>
      account.id === null ? undefined : signInEvent('password', account.id, sent, cause);
    try {
      const place = await this.throttle.take(subjects, deadline);
      if ('retryAfterSeconds' in place) {
        const { kind, retryAfterSeconds, first } = place;
        // Records only a block's first attempt: further attempts add no information, and their number is unbounded.
        const event = first && refusal(`${kind}_blocked`);
        if (event) await recordAlone((text, values) => this.database.prepared(text, values), event);
        return { reason: 'throttled', retryAfterSeconds };
      }
      const failures = device === undefined ? place.attempts : 0;
      const hashing = this.#hashing.run(() => this.#verify(account, password), deadline, failures);
      const { matches, needsUpgrade, startedAt } = await hashing.catch((error: unknown) => {
        place.withdraw();
        throw error;
      });
      if (!matches || account.id === null) {
        const cause = account.password_hash === null ? 'no_password' : 'wrong_password';
        await place.settle('failed', refusal(account.disabled ? 'disabled' : cause));
        await this.refusalTime.waitFrom(startedAt);
        return { reason: 'invalid' };
      }
      await place.settle('signed-in', confirms ? undefined : signInEvent('password', account.id, sent));
      if (needsUpgrade) this.#upgradeHash(account.id, account.password_hash!, password);
      return { userId: account.id, at: account.now, validSince: account.valid_since, amr: ['pwd'] };
    } catch (error) {
      if (error instanceof Busy) return { reason: 'busy', retryAfterSeconds: BUSY_SECONDS };
      throw error;
    }
  }

  /** Checks a password without the throttle: call it only within an attempt that the throttle counted. @throws Busy */
  async hasPassword(username: string, password: string): Promise<boolean> {
    const account = await this.#find(username);
    const deadline = performance.now() + this.config.signInPatience;
    return (await this.#hashing.run(() => this.#verify(account, password), deadline)).matches;
  }

  /** Hashes a new password in the queue of the password checks. @throws Busy */
  hashNew(password: string): Promise<string> {
    return this.#hashing.run(() => hashPassword(password), performance.now() + this.config.signInPatience);
  }

  /** Forgets an account's failures and block, since the member has proved who they are by another method. */
  async unblock(username: string): Promise<void> {
    const account = await this.#find(username);
    await this.throttle.forget({ kind: 'account', of: account.folded_username });
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.#upgrades.values());
  }

  async #find(username: string): Promise<Account> {
    const usable = isStorable(username) && [...username].length <= MAX_USERNAME_LENGTH;
    const [account] = await this.database.read<Account>(FIND_ACCOUNT, [
      usable ? username : '', // no member has this name
    ]);
    return account!;
  }

  async #verify({ password_hash, disabled }: Account, password: string) {
    const startedAt = performance.now();
    const hash = disabled ? null : password_hash;
    const { matches, needsUpgrade } = await verifyPassword(hash ?? (await this.#decoy), password);
    return { matches: hash !== null && matches, needsUpgrade, startedAt };
  }

  /** Rehashes with current parameters in the background, unless the password has changed. After a failure, the next sign-in retries. */
  #upgradeHash(userId: number, before: string, password: string): void {
    if (this.#upgrades.has(userId)) return;
    const patience = performance.now() + this.config.signInPatience;
    const upgrade = this.#hashing
      .run(() => hashPassword(password), patience, Number.MAX_SAFE_INTEGER)
      .then((hash) => this.database.prepared(REPLACE_HASH, [userId, before, hash]))
      .catch(() => undefined)
      .finally(() => this.#upgrades.delete(userId));
    this.#upgrades.set(userId, upgrade as Promise<void>);
  }
}

/** Builds the audit event of a sign-in. @param cause reason for a rejection; undefined for success */
export function signInEvent(
  method: 'password' | 'passkey' | 'upstream',
  userId: number,
  { ip, browser, system, language }: SignInOrigin,
  cause?: RejectionCause,
): LoneEvent {
  return {
    type: cause ? 'sign_in.refused' : 'sign_in.succeeded',
    actor: 'user',
    userId,
    ip: ip ?? null,
    details: { method, browser, system, ...(cause ? { reason: cause } : { language }) },
  };
}
