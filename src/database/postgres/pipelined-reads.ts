import { tracingChannel } from 'node:diagnostics_channel';
import type { Config } from '../../config/config.js';
import { isDirect, REQUEST_PLANS } from './data-source.js';
import type { SessionConfig } from './session.js';
import { ReadConnection, type NamedStatement } from './read-connection.js';

const CONNECTIONS = 2;
/** Maximum statements in progress per connection; more go to the pool. */
const MAX_IN_FLIGHT = 64;
/** Maximum time in ms of a read: a hot read takes well under a millisecond, and a stalled read blocks all later reads. */
const STALLED_MS = 250;
/** Interval of checks in ms; a connection that finishes no read during three checks closes. */
const LOOK_MS = 100;
const MAX_ATTEMPTS = 3;
const RECONNECT_MS = 500;
/** SQLSTATEs of data exceptions, and of reads that a replica canceled because of a conflict (PostgreSQL, appendix A). */
const OF_THE_STATEMENT = /^(22|40001$)/;

/** Publishes reads, without their parameters' values, in the caller's context: otherwise tracing (deploy/opentelemetry) would miss them. */
const READS = tracingChannel('public-user-api:pipelined-read');

/** Sends short prepared reads in pipeline mode. A stalled read blocks the others: its connection closes, and reads move to the pool. */
export class PipelinedReads {
  readonly connections: ReadConnection[] = [];
  #next = 0;
  #ended = false;
  readonly #watch = setInterval(() => {
    for (const connection of this.connections) connection.look(MAX_ATTEMPTS);
  }, LOOK_MS).unref();

  /** @param replica the server to read from instead of the primary, with session options */
  constructor(config: Config, replica?: { readonly connectionString: string; readonly options: string }) {
    const pooled = !replica && !isDirect(config);
    const settings = {
      ...(replica ?? {
        connectionString: config.databaseUrl,
        ...(pooled ? {} : { options: REQUEST_PLANS }),
      }),
      primary: !replica && !pooled,
      pooled,
      application_name: 'public-user-api reads',
      connectionTimeoutMillis: config.databaseDeadlines.connect,
      statement_timeout: STALLED_MS,
      keepAlive: true,
    };
    for (let count = 0; count < CONNECTIONS; count++) void this.#keepOpen(settings);
  }

  /** Returns the next connection (round-robin); undefined if this connection is down or fully used. */
  next(): ReadConnection | undefined {
    const connection = this.connections[(this.#next = (this.#next + 1) % CONNECTIONS)];
    return connection && connection.inProgress < MAX_IN_FLIGHT ? connection : undefined;
  }

  /** Reads rows, or calls `otherwise` if no connection is free or the read fails. @param connection from {@link next} */
  rows<Row>(
    statement: NamedStatement,
    values: readonly unknown[],
    otherwise: () => Promise<Row[]>,
    connection = this.next(),
  ): Promise<Row[]> {
    if (!connection) return otherwise();
    const read = () =>
      connection.read<Row>(statement, values).catch((fault: { readonly code?: string }) => {
        // Errors of OF_THE_STATEMENT leave the connection open; any other error closes it.
        if (!OF_THE_STATEMENT.test(fault.code ?? '')) connection.destroy();
        return otherwise();
      });
    const { name, text } = statement;
    return READS.tracePromise(read, { name, text, database: connection.database });
  }

  async end(): Promise<void> {
    this.#ended = true;
    clearInterval(this.#watch);
    await Promise.allSettled(this.connections.map((connection) => connection.end()));
  }

  async #keepOpen(config: SessionConfig): Promise<void> {
    while (!this.#ended) {
      const connection = await ReadConnection.open(config).catch(() => undefined);
      if (connection) {
        if (this.#ended) connection.destroy();
        this.connections.push(connection);
        await connection.loss;
        this.connections.splice(this.connections.indexOf(connection), 1);
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS).unref());
    }
  }
}
