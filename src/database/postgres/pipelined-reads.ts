import { AsyncResource } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import type { Config } from '../../config/config.js';
import { isDirect } from './data-source.js';
import { ReadConnection, type NamedStatement } from './read-connection.js';

export type { NamedStatement };

/** Number of connections besides the pool. */
const CONNECTIONS = 2;
/** Maximum number of statements in progress on one connection; more go to the pool. */
const MOST_IN_FLIGHT = 64;
/** A hot read takes well under a millisecond: one that takes this long blocks those behind it. */
const STALLED_MS = 250;
const WATCH_MS = 100;
const RECONNECT_MS = 500;
/** PostgreSQL, appendix A: a data exception, and a read that a replica cancelled because the primary removed its rows. */
const OF_THE_STATEMENT = /^(22|40001$)/;

/** A read as subscribers of {@link READS} see it, without its values. */
interface TracedRead {
  readonly name: string;
  readonly text: string;
  readonly database: string | undefined;
}

/**
 * Publishes each read for tracing of requests (deploy/opentelemetry): pg's own statements can be instrumented from outside, these
 * cannot. Published in the caller's context.
 */
const READS = tracingChannel<unknown, TracedRead>('public-user-api:pipelined-read');

interface ReadAddress {
  readonly url: string | undefined;
  /** A standby is refused, see src/database/postgres/primary.ts. */
  readonly primary: boolean;
  /** Whether a pooler gives each transaction another session. */
  readonly sharedSessions: boolean;
  /** Session options, as on PostgreSQL's command line. */
  readonly options?: string;
}

interface PipelinedConnection {
  connection: ReadConnection | undefined;
}

/**
 * Sends short reads to PostgreSQL without waiting for the previous response (pipeline mode of the wire protocol). Only for prepared
 * reads of sub-millisecond length: a slow one would hold up all that follow. One that stalls costs the connection; reads waiting on
 * it go to the pool instead.
 *
 * A timer for each statement would also expire when this process is too busy to read responses that have arrived, and would
 * break both connections just then. So connections are watched instead, and not while the event loop is late.
 *
 * Gain: see docs/performance.md.
 */
export class PipelinedReads {
  readonly #connections: readonly PipelinedConnection[];
  readonly #config: Config;
  readonly #address: ReadAddress;
  #next = 0;
  #ended = false;
  #watchedAt = performance.now();
  #lateAt = -Infinity;
  readonly #watch = setInterval(() => this.#dropStalled(), WATCH_MS).unref();

  constructor(
    config: Config,
    address: ReadAddress = {
      url: config.databaseUrl,
      primary: isDirect(config),
      sharedSessions: !isDirect(config),
    },
  ) {
    this.#config = config;
    this.#address = address;
    this.#connections = Array.from({ length: CONNECTIONS }, () => ({ connection: undefined }));
    for (const pipelined of this.#connections) void this.#connect(pipelined);
  }

  /** @param otherwise reads elsewhere if it could not be read here, for whatever reason */
  rows<Row>(
    statement: NamedStatement,
    values: readonly unknown[],
    otherwise: () => Promise<Row[]>,
  ): Promise<Row[]> {
    const connection = this.next();
    return connection ? this.rowsOf(connection, statement, values, otherwise) : otherwise();
  }

  /** The connection whose turn it is; undefined if it is down or fully used. */
  next(): ReadConnection | undefined {
    const { connection } = this.#connections[(this.#next = (this.#next + 1) % CONNECTIONS)]!;
    return connection && connection.underWay < MOST_IN_FLIGHT ? connection : undefined;
  }

  /** Reads on a connection returned by {@link next}. */
  rowsOf<Row>(
    connection: ReadConnection,
    statement: NamedStatement,
    values: readonly unknown[],
    otherwise: () => Promise<Row[]>,
  ): Promise<Row[]> {
    if (!READS.hasSubscribers) return this.#ask(connection, statement, values, otherwise);
    const { name, text } = statement;
    // A connection's events arrive in the context in which it was opened.
    const inContext = AsyncResource.bind(otherwise);
    return READS.tracePromise(() => this.#ask(connection, statement, values, inContext), {
      name,
      text,
      database: connection.database,
    });
  }

  #ask<Row>(
    connection: ReadConnection,
    statement: NamedStatement,
    values: readonly unknown[],
    otherwise: () => Promise<Row[]>,
  ): Promise<Row[]> {
    return new Promise((resolve) => {
      connection.read<Row>(statement, values, (fault, rows) => {
        if (!fault) {
          resolve(rows);
          return;
        }
        // Either the statement is at fault, which the other way of reading will report, and the connection is fine; or it is
        // broken, stalled or refused, which the pool reports to a caller who still has time.
        if (!OF_THE_STATEMENT.test(fault.code ?? '')) connection.destroy();
        resolve(otherwise());
      });
    });
  }

  get connections(): ReadConnection[] {
    return this.#connections.flatMap(({ connection }) => connection ?? []);
  }

  /** Open connections, and statements in progress on them. */
  state(): { up: number; underWay: number } {
    return {
      up: this.connections.length,
      underWay: this.connections.reduce((sum, { underWay }) => sum + underWay, 0),
    };
  }

  async end(): Promise<void> {
    this.#ended = true;
    clearInterval(this.#watch);
    await Promise.allSettled(this.connections.map((connection) => connection.end()));
  }

  async #connect(pipelined: PipelinedConnection): Promise<void> {
    let lost = false;
    try {
      const connection = await ReadConnection.open(
        {
          connectionString: this.#address.url,
          primary: this.#address.primary,
          options: this.#address.options,
          application_name: 'public-user-api reads',
          connectionTimeoutMillis: this.#config.databaseDeadlines.connect,
          statement_timeout: STALLED_MS,
          keepAlive: true,
        },
        () => {
          lost = true;
          if (pipelined.connection === undefined) return; // it was never up: `open` rejects
          pipelined.connection = undefined;
          this.#reconnect(pipelined);
        },
        this.#address.sharedSessions,
      );
      if (this.#ended) await connection.end();
      else if (lost) this.#reconnect(pipelined);
      else pipelined.connection = connection;
    } catch {
      this.#reconnect(pipelined);
    }
  }

  #dropStalled(): void {
    const now = performance.now();
    const late = now - this.#watchedAt > 2 * WATCH_MS;
    this.#watchedAt = now;
    if (late) this.#lateAt = now; // responses that have arrived are still to be read
    for (const { connection } of this.#connections) {
      if (!connection || connection.underWay === 0) continue;
      if (now - Math.max(connection.progressAt, this.#lateAt) > STALLED_MS) connection.destroy();
    }
  }

  #reconnect(pipelined: PipelinedConnection): void {
    setTimeout(() => {
      if (!this.#ended) void this.#connect(pipelined);
    }, RECONNECT_MS).unref();
  }
}
