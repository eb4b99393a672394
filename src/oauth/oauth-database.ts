import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import type { AdapterPayload } from 'oidc-provider';
import type { QueryResultRow } from 'pg';
import { eventValues, RECORD_EVENT } from '../auth/audit.js';
import type { NewAuthEvent } from '../auth/audit.js';
import { Database } from '../database/database.js';
import type { NamedStatement } from '../database/pipelined-reads.js';
import type { Transaction } from '../database/transaction.js';
import { isUnavailable, Unavailable } from '../database/unavailable.js';

/** What is known of the request that the authorization server is answering. */
export interface OauthRequest {
  /** The request's id, by which errors lead to the log and the audit trail. */
  readonly id: string;
  readonly ip: string | undefined;
  readonly userAgent: string | undefined;
  /** The library hides what was thrown behind its own answer: why this request failed, the first error counts. */
  failure?: Error;
  /** The database was away or slow: whatever the library made of it, the answer is 503, and nothing more is tried. */
  unavailable?: boolean;
  transaction?: TokenTransaction;
}

/** The one transaction in which a request to the token or revocation endpoint runs: it begins when it has to. */
export interface TokenTransaction {
  begun?: Promise<Transaction>;
  /** What was read together with the presented token, its grant being locked. */
  family?: TokenFamily;
  /** Key of the presented token, which this transaction has locked and uses up when it ends. */
  uses?: Buffer;
  /** What the library issued: stored when the transaction ends, before the answer. */
  readonly issued: NewToken[];
  /** A grant was deleted: commit, though the answer may be an error. */
  revokedGrant?: { id: string; userId: number | null };
  /** The presented refresh token was used within the window: the answer it got then. */
  successor?: { sealed: Buffer; secondsAgo: number };
  /** The library came as far as using up the token of {@link TokenTransaction.successor}. */
  repeated?: boolean;
  /** Proofs used in this request stay used when it is rolled back. */
  readonly proofs: { key: Buffer; seconds: number }[];
}

/** A locked token: where it is stored, the grant that it belongs to, and its member. */
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
 * The database as the authorization server sees it: within a token request every statement goes through its one
 * transaction (the embedded database has one session, where any other way would wait for ever), else through the pool.
 */
@Injectable()
export class OauthDatabase {
  readonly #requests = new AsyncLocalStorage<OauthRequest>();

  constructor(private readonly database: Database) {}

  /** Runs `work` for one request: what it needs to know of itself is found by {@link current} from anywhere. */
  serve<T>(request: OauthRequest, work: () => Promise<T>): Promise<T> {
    return this.#requests.run(request, work);
  }

  get current(): OauthRequest | undefined {
    return this.#requests.getStore();
  }

  /** A statement whose text is a constant; within a token request in its transaction. */
  rows<Row extends QueryResultRow>(text: string, values: readonly unknown[]): Promise<Row[]> {
    return this.#run(async (transaction) => {
      if (!transaction) return this.database.prepared<Row>(text, values as unknown[]);
      transaction.begun ??= this.database.begin(); // the library runs some statements side by side
      return (await transaction.begun).rows<Row>(text, values);
    });
  }

  /** A read by key that needs no lock: ahead of the transaction where that has not begun. */
  read<Row extends QueryResultRow>(statement: NamedStatement, values: readonly unknown[]): Promise<Row[]> {
    return this.#run(async (transaction) =>
      transaction?.begun
        ? (await transaction.begun).rows<Row>(statement.text, values)
        : this.database.read<Row>(statement, values as unknown[]),
    );
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

  /** Runs `work` in a transaction, for the current request; commits where it answers true, else rolls back. */
  async transaction(work: (transaction: TokenTransaction) => Promise<boolean>): Promise<TokenTransaction> {
    const request = this.current!;
    const transaction: TokenTransaction = (request.transaction = { issued: [], proofs: [] });
    let commits = false;
    try {
      commits = (await work(transaction)) && !request.unavailable;
    } finally {
      request.transaction = undefined;
      await this.#end(request, transaction, commits);
    }
    return transaction;
  }

  async #end(request: OauthRequest, { begun }: TokenTransaction, commits: boolean): Promise<void> {
    try {
      const transaction = await begun;
      await (commits ? transaction?.commit() : transaction?.rollback());
    } catch (error) {
      if (isUnavailable(error)) request.unavailable = true;
      if (commits) throw error; // else there is nothing to end, and whoever began it has the error
    }
  }

  async #run<T>(statement: (transaction: TokenTransaction | undefined) => Promise<T>): Promise<T> {
    const request = this.current;
    if (request?.unavailable) throw new Unavailable('the database was away for this request already');
    try {
      return await statement(request?.transaction);
    } catch (error) {
      if (request && isUnavailable(error)) request.unavailable = true;
      throw error;
    }
  }
}
