import pg, { type ClientBase, type Pool } from 'pg';
import { DataSource, type DataSourceOptions, type EntityManager } from 'typeorm';
import type { Config } from '../../config/config.js';
import { BoundedClient, WriteGate } from './bounded-client.js';
import { RequestPool } from './request-pool.js';
import { embeddedAddress } from '../embedded/address.js';
import { ENTITIES, MIGRATIONS } from '../schema/tables.js';

/** Maximum concurrent feeds of a process. */
export const FEEDS_AT_ONCE = 2;

/** Direct connections for background work: maximum number; in ms, the idle time and the timeouts of statements and locks. */
const BACKGROUND = {
  sweeping: { max: 1, stay: 1_000, statement: 5_000, lock: 300 },
  // Waits for locks longer than deadlock_timeout (1 s), so that PostgreSQL detects deadlocks.
  feeding: { max: FEEDS_AT_ONCE, stay: 10_000, statement: 10_000, lock: 3_000 },
  settling: { max: 1, stay: 10_000, statement: 10_000, lock: 3_000 },
  telling: { max: 2, stay: 10_000, statement: 30_000, lock: 3_000 },
} as const;

export type BackgroundUse = keyof typeof BACKGROUND;
type DataSourceUse = 'requests' | 'maintenance' | BackgroundUse;

type Work<T> = (manager: EntityManager) => Promise<T>;
type IsolationLevel = Parameters<DataSource['transaction']>[0];

const DEADLOCK = '40P01';
const ATTEMPTS = 5;

/** Retries a transaction that PostgreSQL rolled back because of a deadlock, at most four times. */
class RetryingDataSource extends DataSource {
  constructor(
    options: DataSourceOptions,
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
 * Makes a DataSource. `requests` is a {@link RequestPool} with {@link Config.databaseDeadlines}; `maintenance`, for migrations, imports
 * and commands, has two direct connections and no statement timeout. The others are for background work ({@link BACKGROUND}).
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
    poolErrorHandler: () => undefined, // an idle connection broke, and the pool has dropped it
    extra: poolOptions(config, use),
    ...(use === 'requests' ? { driver: { ...pg, Pool: RequestPool } } : {}),
  };
  return new RetryingDataSource(options, hasOwnSessions(config, use));
}

const names = new Map<string, string>();

/** Returns the prepared statement's name for a text, which must be constant and contain no values. */
export function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) names.set(text, (name = `statement-${names.size}`));
  return name;
}

/** Tells whether the manager's connections have separate sessions, which keep prepared statements. */
export const keepsSessions = ({ connection }: EntityManager): boolean =>
  (connection as RetryingDataSource).ownSessions;

/** Runs a statement of constant text in the manager's transaction, if any; prepares it if possible. */
export async function prepared<Row>(manager: EntityManager, text: string, values: unknown[]): Promise<Row[]> {
  const { connection, queryRunner } = manager;
  const client = queryRunner
    ? ((await queryRunner.connect()) as ClientBase)
    : (connection.driver as unknown as { master: Pool }).master;
  const name = keepsSessions(manager) ? { name: nameOf(text) } : {};
  return (await client.query({ ...name, text, values })).rows as Row[];
}

function poolOptions(config: Config, use: DataSourceUse) {
  const hasOwn = hasOwnSessions(config, use);
  if (use === 'maintenance')
    return {
      max: 2,
      connectionTimeoutMillis: patienceOf(config),
      ...(hasOwn && { options: WHOLE_TABLES }),
      ...bounds(config, use, undefined),
    };
  const isStaging = use === 'feeding' || use === 'settling';
  const options = [
    ...(use === 'sweeping' ? ['-c synchronous_commit=off'] : []),
    // These uses may scan whole tables of staged records.
    ...(hasOwn ? [isStaging ? `${ONE_PROCESS} ${WHOLE_TABLES}` : REQUEST_PLANS] : []),
  ];
  const isForRequests = use === 'requests';
  const { max, stay, statement, lock } = isForRequests
    ? { max: config.databasePoolSize, stay: undefined, ...config.databaseDeadlines }
    : BACKGROUND[use];
  return {
    max,
    idleTimeoutMillis: stay,
    // Replaces sessions soon: old plans, including those of foreign key checks, may scan tables that have grown since.
    ...(isForRequests ? {} : { maxLifetimeSeconds: 1 }),
    connectionTimeoutMillis: isForRequests ? config.databaseDeadlines.connect : patienceOf(config),
    lock_timeout: lock,
    statement_timeout: statement,
    idle_in_transaction_session_timeout: isForRequests ? 5_000 : 10_000,
    keepAlive: true,
    // With synchronous_commit=off, a lost standby does not block the sweeper, which repeats its work after a crash.
    ...(options.length > 0 ? { options: options.join(' ') } : {}),
    ...bounds(config, use, statement),
  };
}

/** Lets imports, feeds and checks scan whole tables, regardless of the role's settings for requests. */
const WHOLE_TABLES = '-c enable_seqscan=on -c enable_mergejoin=on';

/** Connection timeout in ms if no caller waits. */
const patienceOf = ({ databaseDeadlines: { connect } }: Config) => Math.max(5_000, connect);

/** Parallel workers and JIT do not help short statements; with parallel workers, one caller's list could take all cores. */
const ONE_PROCESS = '-c max_parallel_workers_per_gather=0 -c jit=off';

/** Avoids scans of whole tables: they are cheapest while a table is small, but sessions would keep these plans while the table grows. */
export const REQUEST_PLANS = `${ONE_PROCESS} -c enable_seqscan=off -c enable_mergejoin=off`;

/** Tells whether connections have separate sessions and accept options. For poolers, docs/operators/scaling.md sets these for the role. */
function hasOwnSessions(config: Config, use: DataSourceUse): boolean {
  return config.databaseUrl !== undefined && (use !== 'requests' || isDirect(config));
}

/** Tells whether each connection for requests has a separate session: not behind a pooler, not on the embedded database. */
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

/** Returns the client's options. Its time limit for statements is 50 ms longer than PostgreSQL's, which normally applies first. */
function bounds(config: Config, use: DataSourceUse, statementMs: number | undefined) {
  const answerMs = statementMs && statementMs + 50;
  if (!config.databaseUrl) return { query_timeout: answerMs }; // the embedded database accepts no CancelRequest, and has no standby
  const pooled = use === 'requests' && !isDirect(config);
  const primary = use !== 'maintenance' && !pooled;
  return { Client: BoundedClient, answerMs, writes: new WriteGate(), primary, pooled };
}
