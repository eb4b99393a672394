import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import type { Logger } from '../../http/logger.js';
import { eventValues, recordAlone, type LoneEvent, type NewAuthEvent } from '../../audit/audit.js';
import type { Encryption } from '../../crypto/encryption.js';
import type { TokenKeys } from '../../crypto/token-keys.js';
import { Database } from '../../database/database.js';
import type { NamedStatement } from '../../database/postgres/read-connection.js';
import { isUnavailable, Unavailable } from '../../database/postgres/unavailable.js';
import { leaveSlot } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import type { AuthorizationRequest } from './authorization-request.js';
import type { Decision } from './decision.js';
import type { SignInParameters } from './statement-parts.js';
import type { TokenRequest } from './token-request.js';

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

/** Where the library's models are stored: under keys that are made of their ids, and encrypted where they could be of use to a reader. */
export interface ModelStore {
  readonly database: OauthDatabase;
  readonly keys: TokenKeys;
  readonly encryption: Encryption;
}

/**
 * The database as the authorization server uses it. A token request writes in one statement (see {@link TokenRequest.finish}), and
 * so does an authorization (see {@link AuthorizationRequest}), so no transaction is held open. Once the database was unavailable to
 * a request, that request runs no further statements.
 */
@Injectable()
export class OauthDatabase {
  readonly #requests = new AsyncLocalStorage<OauthRequest>();

  constructor(private readonly database: Database) {}

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

  /** Records a refusal; if that fails, the failure is logged, and the response does not fail because of it. */
  async recordOrLog(event: LoneEvent, logger: Logger): Promise<void> {
    try {
      await recordAlone((text, values) => this.rows(text, values), this.#fromHere(event));
    } catch (error) {
      logger.error({ err: error, type: event.type }, 'an audit event could not be written');
    }
  }

  /** Gives an event of the current request as parameters of {@link recordEventIf}. */
  eventValues(event: NewAuthEvent): unknown[] {
    return eventValues(this.#fromHere(event));
  }

  #fromHere<Event extends NewAuthEvent>(event: Event): Event {
    return { ip: this.current?.ip ?? null, ...event };
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
