import { errors } from 'oidc-provider';
import { LIFETIMES } from '../provider/lifetimes.js';
import type { NewToken } from './token-request.js';
import type { OauthDatabase } from './oauth-database.js';
import {
  consented,
  refusingOrphans,
  sessionEnds,
  SIGNED_IN,
  type Consent,
  type NewGrant,
  type SignInParameters,
} from './statement-parts.js';

/** The member of the browser's session, read together with the session. */
interface KnownMember {
  readonly userId: number;
  readonly active: boolean;
  readonly consent: Consent | undefined;
}

/** A session to be stored again: the parameters of {@link AUTHORIZED} from $10 on. */
export type StoredSession = readonly [
  uidKey: Buffer,
  key: Buffer,
  payload: Buffer,
  signedInAt: number | null,
  seconds: number,
  userAgent: string | null,
  ip: string | null,
  eitherUidKey: Buffer | null,
  orUidKey: Buffer | null,
];

/**
 * Stores everything that authorizing a signed-in member writes, or nothing: grant, code and session, provided that the sign-in is
 * still valid, and the consent still allows it. A session that was ended since it was read is not restored.
 */
const AUTHORIZED = `WITH ${SIGNED_IN}, ${consented('$19')}, granted AS (
  INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
  SELECT $3, $1, $4, $5::jsonb, now() + make_interval(secs => ${LIFETIMES.grant})
  WHERE EXISTS (SELECT FROM signed_in) AND EXISTS (SELECT FROM consented) RETURNING id
), code AS (
  INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
  SELECT $6, $7, id, $8::jsonb, now() + make_interval(secs => $9) FROM granted
), session AS (
  UPDATE oauth_sessions SET user_id = $1, uid_key = $10, key = $11, payload = $12, signed_in_at = to_timestamp($13),
    expires_at = ${sessionEnds('$13', '$14')}, last_seen_at = now(), user_agent = COALESCE($15, user_agent), ip = COALESCE($16::inet, ip)
  WHERE uid_key IN ($17, $18) AND EXISTS (SELECT FROM granted)
) SELECT FROM granted`;

/**
 * A request to the authorization endpoint from the browser of a member who may be signed in. One statement reads session, member
 * and consent; if the member is not prompted, another one writes grant, code and session.
 *
 * The library reads and writes them one by one: what was read is held here until the library asks for it, and what it stores until
 * it stores the last of them, the session.
 */
export class AuthorizationRequest {
  #member: KnownMember | undefined;
  #grant: NewGrant | undefined;
  #code: NewToken | undefined;

  constructor(readonly clientId: string) {}

  found(member: KnownMember): void {
    this.#member = member;
  }

  /** What is known of this member; undefined if the session belongs to another member. */
  memberOf(userId: number): KnownMember | undefined {
    return this.#member?.userId === userId ? this.#member : undefined;
  }

  /** Not stored without a code: if the member is prompted first, another grant is made after their answer. */
  grant(grant: NewGrant): void {
    this.#grant = grant;
  }

  /** @returns false if the code belongs to a grant that is already stored: it has to be stored separately */
  issue(code: NewToken): boolean {
    if (code.grantId !== this.#grant?.id) return false;
    this.#code = code;
    return true;
  }

  /** Whether an issued code is not stored yet. */
  get isPending(): boolean {
    return this.#code !== undefined;
  }

  /**
   * Stores grant, code and session for the session's member.
   *
   * @throws SessionNotFound if the sign-in is no longer valid or the consent was narrowed, and InvalidGrant if member or client is gone
   */
  async store(database: OauthDatabase, signedIn: SignInParameters, session: StoredSession): Promise<void> {
    const { id, clientId, payload, scopes } = this.#grant!;
    const { key, model, payload: codePayload, seconds } = this.#code!;
    this.#code = undefined;
    const written = await refusingOrphans(
      database.rows(AUTHORIZED, [
        ...signedIn,
        id,
        clientId,
        payload,
        key,
        model,
        codePayload,
        seconds,
        ...session,
        scopes,
      ]),
    );
    if (written.length === 0) throw new errors.SessionNotFound('the sign-in was ended');
  }
}
