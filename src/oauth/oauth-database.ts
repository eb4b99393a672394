import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import type { EntityManager } from 'typeorm';
import { eventValues, RECORD_EVENT } from '../auth/audit.js';
import type { NewAuthEvent } from '../auth/audit.js';
import { Database } from '../database/database.js';
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

/** The one transaction in which a request to the token or revocation endpoint runs. */
export interface TokenTransaction {
  readonly manager: EntityManager;
  /** A grant was deleted: commit, though the answer may be an error. */
  revokedGrant?: { id: string; userId: number | null };
  /** The presented refresh token was used within the window: the answer it got then. */
  successor?: { sealed: Buffer; secondsAgo: number };
  /** The library came as far as using up the token of {@link TokenTransaction.successor}. */
  repeated?: boolean;
  /** Proofs used in this request stay used when it is rolled back. */
  readonly proofs: { key: Buffer; seconds: number }[];
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

  async rows<Row extends QueryResultRow>(text: string, values: readonly unknown[]): Promise<Row[]> {
    const request = this.current;
    if (request?.unavailable) throw new Unavailable('the database was away for this request already');
    try {
      const runner = request?.transaction?.manager.queryRunner;
      if (!runner) return await this.database.rows<Row>(text, values as unknown[]);
      const result = await runner.query(text, values as unknown[], true);
      return result.records as Row[];
    } catch (error) {
      if (request && isUnavailable(error)) request.unavailable = true;
      throw error;
    }
  }

  async row<Row extends QueryResultRow>(text: string, values: readonly unknown[]): Promise<Row | undefined> {
    return (await this.rows<Row>(text, values))[0];
  }

  async record(event: NewAuthEvent): Promise<void> {
    await this.rows(RECORD_EVENT, eventValues({ ip: this.current?.ip ?? null, ...event }));
  }

  /** Runs `work` in a transaction, for the current request; commits where it answers true, else rolls back. */
  async transaction(work: (transaction: TokenTransaction) => Promise<boolean>): Promise<TokenTransaction> {
    const request = this.current!;
    let transaction: TokenTransaction | undefined;
    try {
      await this.database.dataSource.transaction(async (manager) => {
        transaction = request.transaction = { manager, proofs: [] };
        if (!(await work(transaction)) || request.unavailable) throw new RolledBack();
      });
    } catch (error) {
      if (isUnavailable(error)) request.unavailable = true;
      if (!(error instanceof RolledBack)) throw error;
    } finally {
      request.transaction = undefined;
    }
    return transaction!;
  }
}

class RolledBack extends Error {}
