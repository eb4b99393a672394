import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import type { Logger } from '../../http/logger.js';
import { eventValues, recordAlone, type LoneEvent, type NewAuthEvent } from '../../audit/audit.js';
import { Database } from '../../database/database.js';
import type { NamedStatement } from '../../database/postgres/read-connection.js';
import { isUnavailable, Unavailable } from '../../database/postgres/unavailable.js';
import type { OauthRequest } from './oauth-request.js';

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
