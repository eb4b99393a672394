import { errors } from 'oidc-provider';
import { LIFETIMES } from '../provider/lifetimes.js';
import type { NewToken } from '../token-request/token-request.js';
import type { Consent } from './consent.js';
import { sessionEnds } from './session-ends.js';
import { SIGNED_IN } from './signed-in.js';
import type { SignedInMember } from './signed-in.js';
import { refusingOrphans } from './orphans.js';
import type { Statements } from './statements.js';

/** The member of the browser's session, read together with it. */
interface KnownMember {
  readonly userId: number;
  readonly active: boolean;
  readonly consent: Consent | undefined;
}

interface NewGrant {
  readonly id: string;
  readonly clientId: string;
  /** JSON */
  readonly payload: string;
}

/** A session as it is stored again: the parameters of {@link AUTHORIZED} from $10 on. */
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
 * All that an authorization of a member who is signed in writes, or nothing: grant, code and session, where the sign-in still
 * counts. A session that was ended since it was read is not brought back.
 */
const AUTHORIZED = `WITH ${SIGNED_IN}, granted AS (
  INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
  SELECT $3, $1, $4, $5::jsonb, now() + make_interval(secs => ${LIFETIMES.grant}) WHERE EXISTS (SELECT FROM signed_in) RETURNING id
), code AS (
  INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
  SELECT $6, $7, id, $8::jsonb, now() + make_interval(secs => $9) FROM granted
), session AS (
  UPDATE oauth_sessions SET user_id = $1, uid_key = $10, key = $11, payload = $12, signed_in_at = to_timestamp($13),
    expires_at = ${sessionEnds('$13', '$14')}, last_seen_at = now(), user_agent = COALESCE($15, user_agent), ip = COALESCE($16::inet, ip)
  WHERE uid_key IN ($17, $18) AND EXISTS (SELECT FROM granted)
) SELECT FROM granted`;

/**
 * A request to the authorization endpoint, from the browser of a member who may be signed in: what is read of session, member and
 * consent is one statement, and where the member is not asked anything, what is written of grant, code and session is another.
 *
 * The library goes through them one by one: what it asks for is kept here until it is asked for, and what it stores until it
 * stores the last of it, the session.
 */
export class AuthorizationRequest {
  #member: KnownMember | undefined;
  #grant: NewGrant | undefined;
  #code: NewToken | undefined;

  constructor(readonly clientId: string) {}

  /** The browser's session was found. */
  found(member: KnownMember): void {
    this.#member = member;
  }

  /** What is known of this member; undefined where it is somebody else. */
  memberOf(userId: number): KnownMember | undefined {
    return this.#member?.userId === userId ? this.#member : undefined;
  }

  /** A grant of which nothing comes is not stored: where the member is asked first, their answer makes another one. */
  grant(grant: NewGrant): void {
    this.#grant = grant;
  }

  /** @returns false where the code belongs to a grant that is stored already: it has to be stored by itself */
  issue(code: NewToken): boolean {
    if (code.grantId !== this.#grant?.id) return false;
    this.#code = code;
    return true;
  }

  /** Whether a code was issued that is not stored yet. */
  get isPending(): boolean {
    return this.#code !== undefined;
  }

  /**
   * Stores it all, for the member whose session it is.
   *
   * @throws SessionNotFound where the sign-in counts no longer, and InvalidGrant where member or client is gone
   */
  async store(database: Statements, signedIn: SignedInMember, session: StoredSession): Promise<void> {
    const { id, clientId, payload } = this.#grant!;
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
      ]),
    );
    if (written.length === 0) throw new errors.SessionNotFound('the sign-in was ended');
  }
}
