import pg from 'pg';
import type { Client, QueryResultRow } from 'pg';
import type { Config } from '../config/config.js';
import { readPrepared } from './prepared-read.js';
import type { NamedStatement } from './prepared-read.js';

export type { NamedStatement };

/** Connections beside the pool. */
const CONNECTIONS = 2;
/** Statements under way on one connection; more go to the pool. */
const MOST_IN_FLIGHT = 64;
/** A hot read takes well under a millisecond: one that takes this long blocks those behind it. */
const STALLED_MS = 250;
const WATCH_MS = 100;
const RECONNECT_MS = 500;
/** PostgreSQL, appendix A. */
const DATA_EXCEPTION = /^22/;

interface Lane {
  client: Client | undefined;
  inFlight: number;
  /** By `performance.now()`: when an answer came last, or the first of those in flight was asked. */
  progressAt: number;
  /** What is asked now is gathered, to be sent when this turn of the event loop has asked everything. */
  gathering: boolean;
}

/**
 * Short reads written to PostgreSQL one behind the other, without waiting for the answer before (pipeline mode of the
 * wire protocol). Only for prepared reads of sub-millisecond length: a slow one would hold up all that follow. One
 * that stalls costs the connection; whoever waited asks the pool instead.
 *
 * A timer of each statement would also expire where this process is too busy to read answers that are there, and would
 * break both connections just then: so it is a connection that is watched, and not while the event loop is late.
 *
 * Gain: see docs/performance.md.
 */
export class PipelinedReads {
  readonly #lanes: readonly Lane[];
  readonly #config: Config;
  #next = 0;
  #ended = false;
  #watchedAt = performance.now();
  readonly #watch = setInterval(() => this.#dropStalled(), WATCH_MS).unref();

  constructor(config: Config) {
    this.#config = config;
    this.#lanes = Array.from({ length: CONNECTIONS }, () => ({
      client: undefined,
      inFlight: 0,
      progressAt: 0,
      gathering: false,
    }));
    for (const lane of this.#lanes) void this.#connect(lane);
  }

  /** @returns undefined where it could not be read here, for whatever reason: then the pool is to be asked */
  async rows<Row extends QueryResultRow>(
    statement: NamedStatement,
    values: unknown[],
  ): Promise<Row[] | undefined> {
    const lane = this.#lanes[(this.#next = (this.#next + 1) % CONNECTIONS)]!;
    const { client } = lane;
    if (client === undefined || lane.inFlight >= MOST_IN_FLIGHT) return undefined;
    if (lane.inFlight++ === 0) lane.progressAt = performance.now();
    if (!lane.gathering) gather(lane, client);
    try {
      const rows = await readPrepared<Row>(client, statement, values);
      lane.progressAt = performance.now();
      return rows;
    } catch (error) {
      // The statement's own fault, and the pool will say so: the connection is as good as before.
      if (DATA_EXCEPTION.test((error as { code?: string }).code ?? '')) return undefined;
      // Broken, stalled or refused: the pool says which, to a caller who still has time.
      this.#drop(lane, client);
      return undefined;
    } finally {
      lane.inFlight--;
    }
  }

  /** Connections that are up, and statements under way on them. */
  state(): { up: number; underWay: number } {
    const up = this.#lanes.filter(({ client }) => client !== undefined).length;
    return { up, underWay: this.#lanes.reduce((sum, { inFlight }) => sum + inFlight, 0) };
  }

  async end(): Promise<void> {
    this.#ended = true;
    clearInterval(this.#watch);
    await Promise.allSettled(this.#lanes.flatMap(({ client }) => client?.end() ?? []));
  }

  async #connect(lane: Lane): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#config.databaseUrl,
      application_name: 'public-user-api reads',
      connectionTimeoutMillis: this.#config.databaseDeadlines.connect,
      statement_timeout: STALLED_MS,
      keepAlive: true,
      pipeline: true,
    } as pg.ClientConfig);
    client.on('error', () => this.#drop(lane, client));
    client.on('end', () => this.#drop(lane, client));
    try {
      await client.connect();
      if (this.#ended) await client.end();
      else lane.client = client;
    } catch {
      this.#reconnect(lane);
    }
  }

  #drop(lane: Lane, client: Client): void {
    if (lane.client !== client) return;
    lane.client = undefined;
    client.end().catch(() => undefined);
    client.connection.stream.destroy(); // nobody waits for what is in flight
    this.#reconnect(lane);
  }

  #dropStalled(): void {
    const now = performance.now();
    const late = now - this.#watchedAt > 2 * WATCH_MS;
    this.#watchedAt = now;
    for (const lane of this.#lanes) {
      if (lane.inFlight === 0 || lane.client === undefined) continue;
      if (late)
        lane.progressAt = now; // what was answered is still to be read
      else if (now - lane.progressAt > STALLED_MS) this.#drop(lane, lane.client);
    }
  }

  #reconnect(lane: Lane): void {
    setTimeout(() => {
      if (!this.#ended) void this.#connect(lane);
    }, RECONNECT_MS).unref();
  }
}

/**
 * Holds back what is written until the event loop has taken in what had arrived: the statements of all requests that came
 * together are one system call, and wake PostgreSQL once.
 */
function gather(lane: Lane, client: Client): void {
  const { stream } = client.connection;
  lane.gathering = true;
  stream.cork();
  setImmediate(() => {
    lane.gathering = false;
    stream.uncork();
  });
}
