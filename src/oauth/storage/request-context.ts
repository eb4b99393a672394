import type { TokenRequest } from '../token-request/token-request.js';
import type { AuthorizationRequest } from './authorization-request.js';
import type { SignedInMember } from './signed-in.js';
import type { UpstreamSession } from './upstream-session.js';

/** No member's id. */
const NOBODY = 0;

/** What is known of a request when the authorization server begins to answer it. */
export interface IncomingOauthRequest {
  /** The request's id, by which errors lead to the log and the audit trail. */
  readonly id: string;
  readonly ip: string | undefined;
  readonly userAgent: string | undefined;
  /** What was wrong with the parameters of an authorization request; the library did not see them. */
  readonly parameterFault?: string | undefined;
}

/** A request that the authorization server is answering: found from anywhere by {@link OauthDatabase.current}. */
export class OauthRequest implements IncomingOauthRequest {
  readonly id: string;
  readonly ip: string | undefined;
  readonly userAgent: string | undefined;
  readonly parameterFault: string | undefined;
  /** The library hides what was thrown behind its own answer: why this request failed, the first error counts. */
  failure?: Error | undefined;
  /** The database was away or slow: whatever the library made of it, the answer is 503, and nothing more is tried. */
  unavailable = false;
  /** At the token and revocation endpoints. */
  token?: TokenRequest;
  /** At the authorization endpoint, before anything was asked of the member. */
  authorization?: AuthorizationRequest;
  /**
   * The members on whose sign-in this request relies, by id, each with the {@link SIGN_INS_VALID_SINCE} under which it was
   * found good: what is written for a member is stored only where that is still so.
   */
  readonly signIns = new Map<number, number | null>();
  /** The browser session that was found, and whether this request has deleted it since. */
  session?: { readonly uid: string; deleted: boolean };
  /** The member has come from there by this sign-in: the provider may have ended it meanwhile. */
  cameUpstream = false;
  /** The session at the platform's own login of which the browser's came: where it is stored anew, this stays with it. */
  upstream?: UpstreamSession | undefined;

  constructor({ id, ip, userAgent, parameterFault }: IncomingOauthRequest) {
    this.id = id;
    this.ip = ip;
    this.userAgent = userAgent;
    this.parameterFault = parameterFault;
  }

  /** What was read first counts: it is the oldest. */
  relyOn(userId: number, validSince: number | null): void {
    if (!this.signIns.has(userId)) this.signIns.set(userId, validSince);
  }

  /** The parameters of {@link SIGNED_IN}. A member who was not signed in by anything that this request read is nobody. */
  signedIn(userId: number | null): SignedInMember {
    if (userId === null) return [null, null];
    const validSince = this.signIns.get(userId);
    return validSince === undefined ? [NOBODY, null] : [userId, validSince];
  }
}
