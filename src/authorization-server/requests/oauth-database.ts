import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { errors } from 'oidc-provider';
import { eventValues, type NewAuthEvent } from '../../audit/audit.js';
import { RevocationChannel } from '../../auth/revocation-channel.js';
import { Config } from '../../config/config.js';
import { Encryption } from '../../crypto/encryption.js';
import { TokenKeys } from '../../crypto/hmac.js';
import { Database } from '../../database/database.js';
import type { NamedStatement } from '../../database/postgres/read-connection.js';
import { isUnavailable, Unavailable } from '../../database/postgres/unavailable.js';
import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';
import { leaveSlot } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import { because } from '../reasons/refusal-reasons.js';
import type { Duration } from '../../clients/access-durations.js';
import type { NewToken, TokenRequest } from './token-request.js';

/** The session at the platform's own login from which a browser session came: base64url HMACs, to find that one when it ends. */
export interface UpstreamSession {
  /** HMAC of `sub`. */
  readonly subject: string;
  /** HMAC of `sid`; null if the provider sent none. */
  readonly session: string | null;
  /** When the member came from there: database clock, seconds since 1970, with their fraction. Missing in stored sessions, which predate any end. */
  readonly at?: number;
}

/** A member's latest answer to a client's consent prompt. */
export interface Consent {
  readonly granted: readonly string[];
  readonly rejected: readonly string[];
  /** Origins to which codes may be sent because of it; null: those of all redirect URIs of the client. */
  readonly redirect_origins: readonly string[] | null;
  /** What the member saw of the app: see `seen_as` of the client. */
  readonly seen_as: string | null;
  /** null if the member could not choose. */
  readonly duration: Duration | null;
  /** Whether the member is asked again. */
  readonly has_ended: boolean;
}

/** What a member answered where an interaction asked: stored with it in one statement, so that nothing comes of a second answer. */
export interface Decision {
  /** Recorded in the audit trail. */
  readonly event?: NewAuthEvent | undefined;
  readonly consent?: Omit<Consent, 'has_ended'> & { readonly clientId: string };
}

/** A member as a session or an interaction is read with them: columns {@link MEMBER}. */
export interface MemberRow {
  readonly valid_since: number | null;
  readonly active: boolean;
  readonly username: string;
  readonly display_name: string;
  /** null where they allowed the client nothing, or the client is not known. */
  readonly granted: readonly string[] | null;
  readonly rejected: readonly string[];
  readonly redirect_origins: readonly string[] | null;
  readonly seen_as: string | null;
  readonly duration: Duration | null;
  readonly has_ended: boolean;
}

/** A consent (`c`) as it is read: {@link Consent}. */
export const CONSENT = `c.granted, c.rejected, c.redirect_origins, c.seen_as, c.duration,
  COALESCE(c.access_ends_at <= now(), false) AS has_ended`;

/** What a request asks of a member (`u`) and of their consent (`c`): read with what names them, in one statement. */
export const MEMBER = `${SIGN_INS_VALID_SINCE} AS valid_since, u.disabled_at IS NULL AS active, u.username, u.display_name,
  ${CONSENT}`;

/** A browser session as it is stored, with its member. */
export interface SessionRow extends MemberRow {
  readonly payload: Buffer;
  readonly uid_key: Buffer;
  readonly key: Buffer;
  readonly user_id: number | null;
  readonly upstream_subject_key: Buffer | null;
  readonly upstream_session_key: Buffer | null;
}

/** How long a new grant lasts. */
interface NewAccess {
  /** null for no end. */
  readonly seconds: number | null;
  /** Not longer than the earlier consent either, on which it is based. */
  readonly isRemembered: boolean;
}

/** A grant as it is stored. */
interface NewGrant extends NewAccess {
  readonly id: string;
  readonly clientId: string;
  /** JSON */
  readonly payload: string;
  /** All that it grants. */
  readonly scopes: readonly string[];
}

/**
 * Finds the member of a sign-in ($1) if the sign-in is still valid ($2, see {@link SIGN_INS_VALID_SINCE}), for a statement that
 * stores something based on it: ending the member's sign-ins waits until that is stored, and then finds it.
 */
export const SIGNED_IN = `signed_in AS (
  SELECT FROM users u WHERE u.id = $1::bigint AND u.disabled_at IS NULL AND ${SIGN_INS_VALID_SINCE} IS NOT DISTINCT FROM $2::bigint
  FOR KEY SHARE
)`;

/** Not the id of any member. */
const NOBODY = 0;

/** A request that the authorization server is handling, available anywhere as {@link OauthDatabase.current}. */
export class OauthRequest {
  /** Why this request failed: the first error, since the library hides thrown errors behind its own response. */
  failure?: Error | undefined;
  /** The database was unavailable or slow: whatever the library responded, 503 is sent, and no further statement is run. */
  unavailable = false;
  /** Why the document of the client cannot be used. */
  documentFault?: string | undefined;
  /** Set at the token and revocation endpoints. */
  token?: TokenRequest;
  /** The client, at the authorization endpoint: the session is then read with what its member allowed this client. */
  clientId?: string;
  /** The member of the session or interaction that was read last, and what they allowed this client. */
  member?: MemberRow & { readonly userId: number; readonly clientId: string | null | undefined };
  /** The row of the session to which the interaction belongs, read with it. */
  sessionRow?: SessionRow;
  /** Set where the member answers what an interaction asks. */
  decision?: Decision;
  /** Of the grant that is made. */
  access?: NewAccess;
  /** Held until its code is stored; if the member is prompted, another grant is made. */
  grant?: NewGrant;
  /** The code of this grant, held until the session is stored, and with it all of these. */
  code?: NewToken | undefined;
  /** The interaction from which this request goes on, and the one that it begins, if the member is prompted again: parameters of their statements. */
  ended?: readonly unknown[] | undefined;
  begun?: readonly unknown[] | undefined;
  /**
   * The members on whose sign-in this request relies, by id, each with the {@link SIGN_INS_VALID_SINCE} under which the sign-in was
   * found valid: anything written for a member is stored only if that has not changed.
   */
  readonly signIns = new Map<number, number | null>();
  /** `uid` of the browser session that is stored. */
  sessionUid?: string;
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
   * @param isOfAssistants whether it names their address as the resource
   */
  constructor(
    readonly id: string,
    readonly ip: string | undefined,
    readonly userAgent: string | undefined,
    readonly leaveSlot: () => void,
    readonly parameterFault?: string,
    readonly isOfAssistants = false,
  ) {}

  static from(request: Request, parameterFault?: string, isOfAssistants?: boolean): OauthRequest {
    const { context, headers } = request;
    const leave = () => leaveSlot(context);
    return new OauthRequest(
      context.id,
      addressOf(request),
      headers['user-agent'],
      leave,
      parameterFault,
      isOfAssistants,
    );
  }

  /**
   * Keeps the member on whose sign-in the request relies. Of several {@link SIGN_INS_VALID_SINCE} the first one counts: it is the oldest.
   *
   * @param clientId whose consent was read with them
   */
  relyOn(userId: number, row: MemberRow, clientId: string | null | undefined): void {
    if (!this.signIns.has(userId)) this.signIns.set(userId, row.valid_since);
    this.member = { ...row, userId, clientId };
  }

  /** Gives the parameters of {@link SIGNED_IN}. A member whose sign-in this request has not read counts as nobody. */
  signedIn(userId: number | null): readonly [userId: number | null, validSince: number | null] {
    if (userId === null) return [null, null];
    const validSince = this.signIns.get(userId);
    return validSince === undefined ? [NOBODY, null] : [userId, validSince];
  }
}

/**
 * The database as the authorization server uses it: what is secret is stored under keys that are made of it, and encrypted where it could
 * be of use to a reader. A token request writes in one statement (see {@link TokenRequest.finish}), and so does an authorization (see
 * {@link sessionAdapter}), so no transaction is held open. Once the database was unavailable to a request, that request runs no further
 * statements.
 */
@Injectable()
export class OauthDatabase {
  readonly #requests = new AsyncLocalStorage<OauthRequest>();

  readonly encryption: Encryption;

  constructor(
    private readonly database: Database,
    readonly keys: TokenKeys,
    readonly revocations: RevocationChannel,
    { secrets }: Config,
  ) {
    this.encryption = new Encryption(secrets, 'oauth-state');
  }

  /** Runs `work` for one request, whose context {@link current} then returns from anywhere within. */
  serve<T>(request: OauthRequest, work: () => Promise<T>): Promise<T> {
    return this.#requests.run(request, work);
  }

  get current(): OauthRequest | undefined {
    return this.#requests.getStore();
  }

  /** Runs a statement whose text is a constant. */
  rows<Row>(text: string, values: readonly unknown[]): Promise<Row[]> {
    return this.#run(() => this.database.prepared<Row>(text, values as unknown[]));
  }

  /** Reads by key, on the hot path. */
  read<Row>(statement: NamedStatement, values: readonly unknown[]): Promise<Row[]> {
    return this.#run(() => this.database.read<Row>(statement, values as unknown[]));
  }

  /** Gives an event of the current request as parameters of {@link recordEventIf}. */
  eventValues(event: NewAuthEvent): unknown[] {
    return eventValues({ ip: this.current?.ip ?? null, ...event });
  }

  async #run<T>(statement: () => Promise<T>): Promise<T> {
    const request = this.current;
    if (request?.unavailable) throw new Unavailable('the database was away for this request already');
    try {
      return await statement();
    } catch (error) {
      if (request && isUnavailable(error)) request.unavailable = true;
      throw error;
    }
  }
}

/**
 * Refuses to store a row whose grant, client or member is gone (23503): it was revoked in the meantime.
 *
 * @throws InvalidGrant in that case, and otherwise what `write` throws
 */
export async function refusingOrphans<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const { code, driverError } = error as { code?: string; driverError?: { code?: string } };
    if ((code ?? driverError?.code) !== '23503') throw error;
    throw because('access_ended', new errors.InvalidGrant('the grant was revoked'));
  }
}
