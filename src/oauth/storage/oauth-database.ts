import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import type { AdapterPayload } from 'oidc-provider';
import type { QueryResultRow } from 'pg';
import { eventValues, RECORD_EVENT } from '../../audit/audit.js';
import type { NewAuthEvent } from '../../audit/audit.js';
import { Database } from '../../database/database.js';
import type { NamedStatement } from '../../database/pipelined-reads.js';
import { isUnavailable, Unavailable } from '../../database/unavailable.js';

/** What is known of the request that the authorization server is answering. */
export interface OauthRequest {
  /** The request's id, by which errors lead to the log and the audit trail. */
  readonly id: string;
  readonly ip: string | undefined;
  readonly userAgent: string | undefined;
  /** What was wrong with the parameters of an authorization request; the library did not see them. */
  readonly parameterFault?: string | undefined;
  /** The library hides what was thrown behind its own answer: why this request failed, the first error counts. */
  failure?: Error;
  /** The database was away or slow: whatever the library made of it, the answer is 503, and nothing more is tried. */
  unavailable?: boolean;
  /** At the token and revocation endpoints. */
  readonly token?: TokenRequest;
  /**
   * The members on whose sign-in this request relies, by id, each with the {@link SIGN_INS_VALID_SINCE} under which it was
   * found good: what is written for a member is stored only where that is still so.
   */
  readonly signIns: Map<number, number | null>;
  /** The browser session that was found, and whether this request has deleted it since. */
  session?: { readonly uid: string; deleted: boolean };
}

/** What a request to the token or revocation endpoint has found, and what it is going to write. */
export interface TokenRequest {
  /** What was read together with the presented token. */
  family?: TokenFamily;
  /** Key of the presented token, where the library has come as far as using it up. */
  uses?: Buffer;
  /** What the library issued. */
  readonly issued: NewToken[];
  /** The presented refresh token was used within the window: the answer it got then. */
  successor?: { sealed: Buffer; secondsAgo: number };
  /** The library came as far as using up the token of {@link TokenRequest.successor}. */
  repeated?: boolean;
  /** A grant was deleted. */
  revokedGrant?: { id: string; userId: number | null };
}

/** A token: where it is stored, the grant that it belongs to, and its member. */
export interface TokenFamily {
  readonly key: Buffer;
  readonly grant_id: string;
  /** null where it has expired */
  readonly grant: AdapterPayload | null;
  readonly user_id: number;
  readonly user_active: boolean;
}

export interface NewToken {
  readonly key: Buffer;
  readonly model: string;
  readonly grantId: string;
  readonly payload: string;
  readonly seconds: number;
}

/**
 * The database as the authorization server sees it. Each request's writes are one statement (see `finish`), so that there
 * is no transaction to hold open; once the database was away, nothing more is tried for that request.
 */
@Injectable()
export class OauthDatabase {
  readonly #requests = new AsyncLocalStorage<OauthRequest>();

  constructor(private readonly database: Database) {}

  /** Runs `work` for one request: what it needs to know of itself is found by {@link current} from anywhere. */
  serve<T>(request: Omit<OauthRequest, 'signIns'>, work: () => Promise<T>): Promise<T> {
    return this.#requests.run({ ...request, signIns: new Map() }, work);
  }

  get current(): OauthRequest | undefined {
    return this.#requests.getStore();
  }

  /** A statement whose text is a constant. */
  rows<Row extends QueryResultRow>(text: string, values: readonly unknown[]): Promise<Row[]> {
    return this.#run(() => this.database.prepared<Row>(text, values as unknown[]));
  }

  /** A read by key, of the hot path. */
  read<Row extends QueryResultRow>(statement: NamedStatement, values: readonly unknown[]): Promise<Row[]> {
    return this.#run(() => this.database.read<Row>(statement, values as unknown[]));
  }

  async row<Row extends QueryResultRow>(text: string, values: readonly unknown[]): Promise<Row | undefined> {
    return (await this.rows<Row>(text, values))[0];
  }

  async record(event: NewAuthEvent): Promise<void> {
    await this.rows(RECORD_EVENT, this.eventValues(event));
  }

  /** An event of the current request as parameters of {@link RECORD_EVENT}. */
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
