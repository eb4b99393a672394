import { Injectable } from '@nestjs/common';
import { audited, recordAlone, recordEvent } from '../../audit/audit.js';
import { Config, type UpstreamMatch } from '../../config/config.js';
import { randomText } from '../../crypto/random.js';
import { Database } from '../../database/database.js';
import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';
import { Logger } from '../../runtime/logger.js';
import { isHttpUrl, isStorable, isUsername } from '../../values/string-rules.js';
import { LENGTHS, type Length } from '../../values/vocabulary.js';
import type { SignInOrigin } from './sign-in-origin.js';
import { signInEvent } from './sign-in.js';

/** Claims of the external identity provider (OpenID Connect Core §5.1). */
export type UpstreamClaims = Readonly<Record<string, unknown>>;

export interface UpstreamMember {
  readonly id: number;
  readonly disabled: boolean;
  /** The {@link SIGN_INS_VALID_SINCE} at the time of the query. */
  readonly valid_since: number | null;
  /** Seconds since 1970 by the database's clock, with fraction. */
  readonly now: number;
}

const MEMBER = `u.id, u.disabled_at IS NOT NULL AS disabled, ${SIGN_INS_VALID_SINCE} AS valid_since,
  EXTRACT(epoch FROM now())::float8 AS now`;

const FIND: Readonly<Record<UpstreamMatch, string>> = {
  external_id: `SELECT ${MEMBER} FROM users u WHERE u.external_id = $1`,
  id: `SELECT ${MEMBER} FROM users u WHERE u.id = $1`,
  // Compares the exact case, since the provider may have given `Ann` and `ann` to two people.
  username: `SELECT ${MEMBER} FROM users u WHERE u.folded_username = fold_case($1) AND u.username = $1`,
};

const CREATE = `INSERT INTO users AS u (username, external_id, first_name, last_name, stored_display_name, profile_picture)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING ${MEMBER}`;

const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789';

/** Maps sign-ins at the external identity provider to members: see UPSTREAM_CLAIM, UPSTREAM_MATCH and UPSTREAM_CREATE_MEMBERS. */
@Injectable()
export class UpstreamMembers {
  constructor(
    private readonly database: Database,
    private readonly config: Config,
    private readonly logger: Logger,
  ) {}

  /** Finds or creates the member, and records the sign-in. @returns undefined if the member is missing or disabled */
  async signIn(claims: UpstreamClaims, from: SignInOrigin): Promise<UpstreamMember | undefined> {
    const member = await this.find(claims);
    const found = member ?? (await this.#create(claims));
    if (!found) return undefined;
    const event = signInEvent('upstream', found.id, from, found.disabled ? 'disabled' : undefined);
    await recordAlone((text, values) => this.database.prepared(text, values), event);
    return found.disabled ? undefined : found;
  }

  /** Finds the member of these claims, even if disabled. */
  async find(claims: UpstreamClaims): Promise<UpstreamMember | undefined> {
    const { match } = this.config.upstream!;
    const name = this.#nameIn(claims);
    if (name === undefined) return undefined;
    const [member] = await this.database.prepared<UpstreamMember>(FIND[match], [name]);
    return member;
  }

  /** Returns the claim to match; undefined if it is unusable, such as an unverified email address. */
  #nameIn(claims: UpstreamClaims): string | undefined {
    const { claim, match } = this.config.upstream!;
    const value = claims[claim];
    const name = Number.isSafeInteger(value) ? String(value) : value;
    if (typeof name !== 'string' || name === '' || name.length > 1000 || !isStorable(name)) return undefined;
    if (claim === 'email' && claims.email_verified !== true) return undefined;
    if (match === 'id' && !/^[1-9]\d{0,15}$/.test(name)) return undefined;
    return name;
  }

  /** Creates the member if settings permit it, or finds the member that a concurrent request created. */
  async #create(claims: UpstreamClaims): Promise<UpstreamMember | undefined> {
    const { match, createMembers } = this.config.upstream!;
    const name = this.#nameIn(claims);
    if (!createMembers || name === undefined || match === 'id') return undefined;
    if (match === 'external_id' && [...name].length > LENGTHS.users.external_id[1]) return undefined;
    for (const username of usernamesOf(match === 'username' ? name : claims.preferred_username, match)) {
      const member = await audited(this.database.dataSource, async (manager) => {
        const [created] = await manager.query<UpstreamMember[]>(CREATE, [
          username,
          match === 'external_id' ? name : null,
          this.#taken(claims, 'given_name', (value) => textOf(value, LENGTHS.users.first_name)),
          this.#taken(claims, 'family_name', (value) => textOf(value, LENGTHS.users.last_name)),
          this.#taken(claims, 'name', (value) => textOf(value, LENGTHS.users.stored_display_name)),
          this.#taken(claims, 'picture', pictureOf),
        ]);
        if (created)
          await recordEvent(manager, { type: 'user.created', actor: 'system', userId: created.id });
        return created;
      });
      if (member) return member;
      const other = await this.find(claims);
      if (other) return other;
    }
    return undefined;
  }

  /** Returns a claim in its stored form; null if it is missing or unusable. Logs unusable claims. */
  #taken(claims: UpstreamClaims, claim: string, read: (value: unknown) => string | null): string | null {
    const value = claims[claim] ?? '';
    const text = read(value);
    if (text === null && value !== '')
      this.logger.info({ claim }, 'a new member’s claim was omitted: it cannot be stored');
    return text;
  }
}

function usernamesOf(wanted: unknown, match: UpstreamMatch): string[] {
  const name = textOf(wanted, LENGTHS.users.username);
  const usable = name !== null && name === wanted && isUsername(name);
  if (match === 'username') return usable ? [name] : [];
  const madeUp = Array.from({ length: 3 }, () => `member-${randomText(10, ALPHABET)}`);
  return usable ? [name, ...madeUp] : madeUp;
}

/** Returns a claim cut to the maximum length; null if it is missing, not storable or too short. */
function textOf(value: unknown, [least, most]: Length): string | null {
  if (typeof value !== 'string' || !isStorable(value)) return null;
  const text = [...value].slice(0, most).join('');
  return text.length < Math.max(1, least) ? null : text;
}

/** Returns an http or https URL; null for other values and for longer URLs, since a cut URL would point elsewhere. */
function pictureOf(value: unknown): string | null {
  const text = textOf(value, LENGTHS.users.profile_picture);
  return text !== null && text === value && isHttpUrl(text) ? text : null;
}
