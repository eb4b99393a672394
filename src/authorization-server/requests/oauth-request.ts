import type { Request } from 'express';
import type { NewAuthEvent } from '../../audit/audit.js';
import { leaveSlot } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import type { TokenRequest } from './token-request.js';
import type { AuthorizationRequest } from './authorization-request.js';
import type { Decision } from './decision.js';
import type { SignInParameters } from './statement-parts.js';

/** The session at the platform's own login from which a browser session came: base64url HMACs, to find that one when it ends. */
export interface UpstreamSession {
  /** HMAC of `sub`. */
  readonly subject: string;
  /** HMAC of `sid`; null if the provider sent none. */
  readonly session: string | null;
  /** When the member came from there: database clock, seconds since 1970, with their fraction. Missing in stored sessions, which predate any end. */
  readonly at?: number;
}

/** Not the id of any member. */
const NOBODY = 0;

/** A request that the authorization server is handling, available anywhere as {@link OauthDatabase.current}. */
export class OauthRequest {
  /** Why this request failed: the first error, since the library hides thrown errors behind its own response. */
  failure?: Error | undefined;
  /** The database was unavailable or slow: whatever the library responded, 503 is sent, and no further statement is run. */
  unavailable = false;
  /** Set at the token and revocation endpoints. */
  token?: TokenRequest;
  /** Set at the authorization endpoint, before the member is prompted. */
  authorization?: AuthorizationRequest;
  /** Set where the member answers what an interaction asks. */
  decision?: Decision;
  /**
   * The members on whose sign-in this request relies, by id, each with the {@link SIGN_INS_VALID_SINCE} under which the sign-in was
   * found valid: anything written for a member is stored only if that has not changed.
   */
  readonly signIns = new Map<number, number | null>();
  /** The browser session that was found, and whether this request has deleted it since. */
  session?: { readonly uid: string; deleted: boolean };
  /** Recorded with the end of the browser session, where the member signs out. */
  signOut?: NewAuthEvent;
  /** This request completes a sign-in through the platform's own login, which the provider may have ended meanwhile. */
  cameUpstream = false;
  /** The session at the platform's own login from which the browser session came: kept when that one is stored again. */
  upstream?: UpstreamSession | undefined;

  /**
   * @param id of the request, which links errors to the log and the audit trail
   * @param leaveSlot to be called where it has to wait for somebody else: its place is for those that work
   * @param parameterFault what was wrong with an authorization request's parameters; the library did not see them
   */
  constructor(
    readonly id: string,
    readonly ip: string | undefined,
    readonly userAgent: string | undefined,
    readonly leaveSlot: () => void,
    readonly parameterFault?: string,
  ) {}

  static from(request: Request, parameterFault?: string): OauthRequest {
    const { context, headers } = request;
    const leave = () => leaveSlot(context);
    return new OauthRequest(context.id, addressOf(request), headers['user-agent'], leave, parameterFault);
  }

  /** Records the sign-in on which the request relies. The first value read is kept: it is the oldest. */
  relyOn(userId: number, validSince: number | null): void {
    if (!this.signIns.has(userId)) this.signIns.set(userId, validSince);
  }

  /** Gives the parameters of {@link SIGNED_IN}. A member whose sign-in this request has not read counts as nobody. */
  signedIn(userId: number | null): SignInParameters {
    if (userId === null) return [null, null];
    const validSince = this.signIns.get(userId);
    return validSince === undefined ? [NOBODY, null] : [userId, validSince];
  }
}
