import pg, { type ClientBase, type Pool } from 'pg';
import { DataSource, type DataSourceOptions, type EntityManager } from 'typeorm';
import type { Config } from '../../config/config.js';
import { BoundedClient, WriteGate } from './bounded-client.js';
import { RequestPool } from './request-pool.js';
import { embeddedAddress } from '../embedded/address.js';
import { ENTITIES, MIGRATIONS } from '../schema/tables.js';

/** Feeds that a process writes at once; others wait. */
export const FEEDS_AT_ONCE = 2;

/** Direct connections for background work: how many, and in milliseconds how long they stay, and a statement and a lock may take. */
const BACKGROUND = {
  sweeping: { max: 1, stay: 1_000, statement: 5_000, lock: 300 },
  // A lock may take longer than the database takes to detect a deadlock.
  feeding: { max: FEEDS_AT_ONCE, stay: 10_000, statement: 10_000, lock: 3_000 },
  settling: { max: 1, stay: 10_000, statement: 10_000, lock: 3_000 },
  telling: { max: 2, stay: 10_000, statement: 30_000, lock: 3_000 },
} as const;

export type BackgroundUse = keyof typeof BACKGROUND;
type DataSourceUse = 'requests' | 'maintenance' | BackgroundUse;

type Work<T> = (manager: EntityManager) => Promise<T>;
type IsolationLevel = Parameters<DataSource['transaction']>[0];

/** PostgreSQL, appendix A. */
const DEADLOCK = '40P01';
const ATTEMPTS = 5;

/**
 * Tries a transaction again that PostgreSQL ended because it and another one waited for each other: nothing of it has happened, and the
 * other one goes on. No caller needs to know.
 */
class RetryingDataSource extends DataSource {
  constructor(
    options: DataSourceOptions,
    /** Whether each connection has a session to itself, which keeps what is prepared. */
    readonly ownSessions: boolean,
  ) {
    super(options);
  }

  override async transaction<T>(...given: [Work<T>] | [IsolationLevel, Work<T>]): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await super.transaction(...(given as [Work<T>]));
      } catch (error) {
        if (attempt === ATTEMPTS || (error as { code?: unknown }).code !== DEADLOCK) throw error;
      }
    }
  }
}

/**
 * Makes a DataSource for one of these uses:
 *
 * - `requests`: a pool whose every wait is bounded by {@link Config.databaseDeadlines} (see {@link RequestPool});
 * - `maintenance`: two direct connections without deadlines, for migrations, imports and the command line;
 * - `sweeping`: one direct connection, open only while there is work, whose statements may take longer than a request but hardly
 *   wait for locks;
 * - `feeding`: direct connections for what the platform's backend sends, so that it never takes those of members;
 * - `settling`: one like those, for members whom an import left pending;
 * - `telling`: direct connections for webhooks, open only while there are messages.
 */
export function createDataSource(config: Config, use: DataSourceUse): DataSource {
  const options: DataSourceOptions = {
    type: 'postgres',
    ...databaseAddress(config, use),
    entities: ENTITIES,
    migrations: MIGRATIONS,
    synchronize: false,
    logging: false,
    parseInt8: true, // ids end at 2^53 − 1, as the schema checks
    applicationName: 'public-user-api',
    invalidWhereValuesBehavior: { null: 'throw', undefined: 'throw' },
    poolErrorHandler: () => undefined, // an idle connection broke: the pool has dropped it already
    extra: poolOptions(config, use),
    ...(use === 'requests' ? { driver: { ...pg, Pool: RequestPool } } : {}),
  };
  return new RetryingDataSource(options, hasOwnSessions(config, use));
}

const names = new Map<string, string>();

/** Names a statement of constant text, for all sessions of the process: never one with values in its text. */
export function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) names.set(text, (name = `statement-${names.size}`));
  return name;
}

/** Tells whether what a connection has in its session is there the next time. */
export const keepsSessions = ({ connection }: EntityManager): boolean =>
  (connection as RetryingDataSource).ownSessions;

/** Runs a statement of constant text, prepared where its session keeps it: in the manager's transaction, if it has one. */
export async function prepared<Row>(manager: EntityManager, text: string, values: unknown[]): Promise<Row[]> {
  const { connection, queryRunner } = manager;
  const client = queryRunner
    ? ((await queryRunner.connect()) as ClientBase)
    : (connection.driver as unknown as { master: Pool }).master;
  const name = keepsSessions(manager) ? { name: nameOf(text) } : {};
  return (await client.query({ ...name, text, values })).rows as Row[];
}

function poolOptions(config: Config, use: DataSourceUse) {
  if (use === 'maintenance') {
    const options = hasOwnSessions(config, use) ? { options: WHOLE_TABLES } : {};
    return {
      max: 2,
      connectionTimeoutMillis: patienceOf(config),
      ...options,
      ...bounds(config, use, undefined),
    };
  }
  const options = [
    ...(use === 'sweeping' ? ['-c synchronous_commit=off'] : []),
    // What is staged has no indexes, and is planned anew each time.
    ...(hasOwnSessions(config, use)
      ? [isStaging(use) ? `${ONE_PROCESS} ${WHOLE_TABLES}` : REQUEST_PLANS]
      : []),
  ];
  const isForRequests = use === 'requests';
  const { max, stay, statement, lock } = isForRequests
    ? { max: config.databasePoolSize, stay: undefined, ...config.databaseDeadlines }
    : BACKGROUND[use];
  return {
    max,
    idleTimeoutMillis: stay,
    // What is planned in a session, foreign keys too, may read tables whole that have grown since.
    ...(isForRequests ? {} : { maxLifetimeSeconds: 1 }),
    connectionTimeoutMillis: isForRequests ? config.databaseDeadlines.connect : patienceOf(config),
    lock_timeout: lock,
    statement_timeout: statement,
    idle_in_transaction_session_timeout: isForRequests ? 5_000 : 10_000,
    keepAlive: true,
    // What a crash undoes is swept again; and a lost synchronous standby does not block sweeping.
    ...(options.length > 0 ? { options: options.join(' ') } : {}),
    ...bounds(config, use, statement),
  };
}

/** Imports, feeds and checks read tables whole, whatever is set for the role, as it is for requests behind a pooler. */
const WHOLE_TABLES = '-c enable_seqscan=on -c enable_mergejoin=on';

/** How long a connection may take that no caller waits for, in milliseconds. */
const patienceOf = ({ databaseDeadlines: { connect } }: Config) => Math.max(5_000, connect);

const isStaging = (use: DataSourceUse) => use === 'feeding' || use === 'settling';

/** A request uses one PostgreSQL process and no JIT: both gain nothing on short statements, and would let one caller's list take all cores. */
const ONE_PROCESS = '-c max_parallel_workers_per_gather=0 -c jit=off';

/**
 * And no table is read whole where an index leads to the rows, by a scan or to be merged with a few rows. While a table is small, or what
 * ANALYZE saw of it was, that is the cheapest plan; a session keeps it while the table grows, until autovacuum comes by.
 */
export const REQUEST_PLANS = `${ONE_PROCESS} -c enable_seqscan=off -c enable_mergejoin=off`;

/** Poolers and the embedded database share sessions, and accept no options; docs/operators/scaling.md sets them for the role. */
function hasOwnSessions(config: Config, use: DataSourceUse): boolean {
  return config.databaseUrl !== undefined && (use !== 'requests' || isDirect(config));
}

/**
 * Whether requests connect to PostgreSQL directly, each connection with its own session: behind a pooler each transaction gets
 * another one, and the embedded database has one for all.
 */
export function isDirect({ databaseUrl, databaseDirectUrl }: Config): boolean {
  return databaseUrl !== undefined && databaseUrl === databaseDirectUrl;
}

type DatabaseAddress = Pick<
  Extract<DataSourceOptions, { type: 'postgres' }>,
  'url' | 'host' | 'port' | 'username' | 'password' | 'database'
>;

/** The database's address as TypeORM options: a URL, or the embedded database's socket. */
export function databaseAddress(config: Config, use: DataSourceUse): DatabaseAddress {
  const url = use === 'requests' ? config.databaseUrl : config.databaseDirectUrl;
  if (url) return { url };
  return { ...embeddedAddress(config.dataDir), username: 'postgres', password: '', database: 'postgres' };
}

/** A response is awaited a little longer than the server's own limit, which expires first unless the server is gone or waits for a standby. */
function bounds(config: Config, use: DataSourceUse, statementMs: number | undefined) {
  const answerMs = statementMs && statementMs + 50;
  if (!config.databaseUrl) return { query_timeout: answerMs }; // the embedded one accepts no CancelRequest, and has no standby
  const pooled = use === 'requests' && !isDirect(config);
  const primary = use !== 'maintenance' && !pooled;
  return { Client: BoundedClient, answerMs, writes: new WriteGate(), primary, pooled };
}
