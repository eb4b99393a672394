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
import { because } from '../reasons/rejection-reasons.js';
import type { Duration } from '../../clients/access-durations.js';

/** HMACs (base64url) that identify a session at the external identity provider, to find browser sessions that end with it. */
export interface UpstreamSession {
  /** HMAC of `sub`. */
  readonly subject: string;
  /** HMAC of `sid`; null if the provider sent none. */
  readonly session: string | null;
  /** Time when the member returned from the provider: database clock, seconds since 1970; undefined in sessions of older versions. */
  readonly at?: number;
}

/** A member's consent to a client: their latest decision on each scope. */
export interface Consent {
  readonly granted: readonly string[];
  readonly rejected: readonly string[];
  /** Origins of redirect URIs that get codes without a prompt; null for all redirect URIs of the client. */
  readonly redirect_origins: readonly string[] | null;
  /** Digest of the app's details when the member consented: see `seenAs`. */
  readonly seen_as: string | null;
  /** null if the member could not choose a duration. */
  readonly duration: Duration | null;
  readonly has_ended: boolean;
}

/** A member's decision. One statement stores it with its effects, so that a second decision has no effect. */
export interface Decision {
  readonly event?: NewAuthEvent | undefined;
  readonly consent?: Omit<Consent, 'has_ended'> & { readonly clientId: string };
}

/** A member from the statement that reads a session or an interaction: columns {@link MEMBER}. */
interface MemberRow extends Omit<Consent, 'granted'> {
  readonly valid_since: number | null;
  readonly active: boolean;
  readonly username: string;
  readonly display_name: string;
  /** null if there is no consent, or the client is unknown. */
  readonly granted: Consent['granted'] | null;
}

export const CONSENT = `c.granted, c.rejected, c.redirect_origins, c.seen_as, c.duration,
  COALESCE(c.access_ends_at <= now(), false) AS has_ended`;

/** Columns of a member (`u`) and their consent (`c`) that a request needs. */
export const MEMBER = `${SIGN_INS_VALID_SINCE} AS valid_since, u.disabled_at IS NULL AS active, u.username, u.display_name,
  ${CONSENT}`;

export interface SessionRow extends MemberRow {
  readonly payload: Buffer;
  readonly uid_key: Buffer;
  readonly key: Buffer;
  readonly user_id: number | null;
  readonly upstream_subject_key: Buffer | null;
  readonly upstream_session_key: Buffer | null;
}

export interface NewToken {
  readonly key: Buffer;
  readonly model: string;
  readonly grantId: string;
  readonly payload: string;
  readonly seconds: number;
}

interface NewAccess {
  /** Seconds until access ends; null for no end. */
  readonly seconds: number | null;
  /** The duration that the member chose; null if an earlier consent applies. */
  readonly chosen: Duration | null;
  /** Seconds without use after which the access ends. */
  readonly idleSeconds: number;
}

export interface NewGrant extends NewAccess {
  readonly id: string;
  readonly clientId: string;
  readonly payload: string;
  readonly scopes: readonly string[];
}

/** Finds and locks the member $1 if their sign-in ($2) is still valid. A statement that ends sign-ins waits for the lock. */
export const SIGNED_IN = `signed_in AS (
  SELECT FROM users u WHERE u.id = $1::bigint AND u.disabled_at IS NULL AND ${SIGN_INS_VALID_SINCE} IS NOT DISTINCT FROM $2::bigint
  FOR KEY SHARE
)`;

/** An id that no member has. */
const NOBODY = 0;

/** The sign-ins on which a request relies, and the browser session that it reads or stores. */
class RequestSignIn {
  /** The {@link SIGN_INS_VALID_SINCE} of each member on whose sign-in this request relies: writes require the same value. */
  readonly validSince = new Map<number, number | null>();
  /** The member that was read last, with their consent to the client. */
  member?: MemberRow & { readonly userId: number; readonly clientId: string | null | undefined };
  /** The row of the session, read with the interaction. */
  sessionRow?: SessionRow;
  sessionUid?: string;
  /** The session at the external identity provider, kept when the browser session is stored again. */
  upstream?: UpstreamSession | undefined;
  /** Whether the interaction's sign-in came through the external identity provider, which may have ended its session by now. */
  cameUpstream = false;

  /** Records the member on whose sign-in the request relies, and keeps the first `valid_since`. @param clientId client of the consent */
  relyOn(userId: number, row: MemberRow, clientId: string | null | undefined): void {
    if (!this.validSince.has(userId)) this.validSince.set(userId, row.valid_since);
    this.member = { ...row, userId, clientId };
  }

  /** Returns the parameters of {@link SIGNED_IN}. A member whose sign-in was not read counts as signed out. */
  signedIn(userId: number | null): readonly [userId: number | null, validSince: number | null] {
    if (userId === null) return [null, null];
    const validSince = this.validSince.get(userId);
    return validSince === undefined ? [NOBODY, null] : [userId, validSince];
  }
}

/** The writes of an authorization request, which wait until the request stores its session. */
export interface Authorization {
  /** The client whose consent is read with the session. */
  clientId?: string;
  access?: NewAccess;
  grant?: NewGrant;
  code?: NewToken | undefined;
  /** Parameters of the statements that end the continued interaction (`ended`) and store the next one (`begun`). */
  ended?: readonly unknown[] | undefined;
  begun?: readonly unknown[] | undefined;
}

/** A request in progress: {@link OauthDatabase.current} while it is served. */
export class OauthRequest {
  /** The first error, since the library hides errors behind its own response. */
  failure?: Error | undefined;
  /** Whether the request gets 503, and runs no further statements. */
  unavailable = false;
  readonly signIn = new RequestSignIn();
  readonly authorization: Authorization = {};

  /** @param leaveSlot releases the slot while another host responds @param isOfAssistants whether the resource is the assistants' URL */
  constructor(
    readonly id: string,
    readonly ip?: string,
    readonly userAgent?: string,
    readonly leaveSlot: () => void = () => undefined,
    readonly parameterFault?: string,
    readonly isOfAssistants = false,
  ) {}

  static from(request: Request, fault?: string, isOfAssistants?: boolean): OauthRequest {
    const { context, headers } = request;
    const [ip, leave] = [addressOf(request), () => leaveSlot(context)];
    return new OauthRequest(context.id, ip, headers['user-agent'], leave, fault, isOfAssistants);
  }
}

/**
 * Runs the authorization server's statements, and provides the keys and the encryption for stored data. Keeps no transaction open between
 * statements. Runs no further statements of a request that gets 503.
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

  serve<T>(request: OauthRequest, work: () => Promise<T>): Promise<T> {
    return this.#requests.run(request, work);
  }

  get current(): OauthRequest | undefined {
    return this.#requests.getStore();
  }

  rows<Row>(text: string, values: readonly unknown[]): Promise<Row[]> {
    return this.#run(() => this.database.prepared<Row>(text, values as unknown[]));
  }

  read<Row>(statement: NamedStatement, values: readonly unknown[]): Promise<Row[]> {
    return this.#run(() => this.database.read<Row>(statement, values as unknown[]));
  }

  /** Returns an event of the current request as parameters of {@link recordEventIf}. */
  eventValues(event: NewAuthEvent): unknown[] {
    return eventValues({ ip: this.current?.ip ?? null, ...event });
  }

  async #run<T>(statement: () => Promise<T>): Promise<T> {
    const request = this.current;
    if (request?.unavailable) throw new Unavailable('the database was already unavailable for this request');
    try {
      return await statement();
    } catch (error) {
      if (request && isUnavailable(error)) request.unavailable = true;
      throw error;
    }
  }
}

/** Rejects a write whose grant, client or member was deleted meanwhile (foreign key, 23503). @throws InvalidGrant, or error of `write` */
export async function rejectOrphans<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const { code, driverError } = error as { code?: string; driverError?: { code?: string } };
    if ((code ?? driverError?.code) !== '23503') throw error;
    throw because('access_ended', new errors.InvalidGrant('the grant was revoked'));
  }
}
