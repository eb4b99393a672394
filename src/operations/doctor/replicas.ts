import type { DataSource } from 'typeorm';
import { SessionClient } from '../../database/postgres/session.js';
import { MAX_LAG_SECONDS, SERVER } from '../../database/replicas/primary-wal.js';
import { ok, warn, type Check } from './check.js';

const PATIENCE_MS = 2_000;

/** SQL: identifies the cluster and the database; equal on the primary and its streaming replicas. */
const IDENTITY = `(SELECT system_identifier::text FROM pg_control_system())
  || ' ' || (SELECT oid FROM pg_database WHERE datname = current_database())`;

interface ReplicaState {
  identity: string;
  server: string;
  is_standby: boolean;
  has_all: boolean;
  /** Age of the last replayed transaction, in seconds. */
  age: number;
}

interface Primary {
  identity: string;
  server: string;
  position: string;
}

/** Checks whether each server in DATABASE_READ_URL is the primary, or its streaming replica without too much lag. */
export async function checkReplicas(dataSource: DataSource, urls: readonly string[]): Promise<Check[]> {
  if (urls.length === 0) return [];
  const [primary] = await dataSource.query<Primary[]>(
    `SELECT ${IDENTITY} AS identity, ${SERVER} AS server,
  (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END)::text AS position`,
  );
  return Promise.all(urls.map((url, index) => checkReplica(url, index + 1, primary!)));
}

async function checkReplica(url: string, number: number, primary: Primary): Promise<Check> {
  const name = `replica ${number}`;
  let state: ReplicaState;
  try {
    state = await lookAt(url, primary.position);
  } catch (error) {
    return warn(
      name,
      `cannot be reached (${(error as Error).message || (error as { code?: string }).code}): reads use other servers, and each write waits up to 0.25 s for the replica`,
      'start the replica, or remove it from DATABASE_READ_URL',
    );
  }
  if (state.server === primary.server) return ok(name, 'is the primary now');
  if (state.identity !== primary.identity || !state.is_standby)
    return warn(
      name,
      'is not a streaming replica of this database, and is not used',
      'correct DATABASE_READ_URL, or set the replica up again',
    );
  if (!state.has_all && state.age > MAX_LAG_SECONDS)
    return warn(
      name,
      `is ${Math.round(state.age)} s behind, and is not used`,
      'check its load, its network and pg_stat_replication; or remove it from DATABASE_READ_URL',
    );
  return ok(name, 'follows the primary');
}

async function lookAt(url: string, position: string): Promise<ReplicaState> {
  const client = new SessionClient({
    connectionString: url,
    connectionTimeoutMillis: PATIENCE_MS,
    query_timeout: PATIENCE_MS,
  });
  client.on('error', () => undefined); // the pending query reports the error
  try {
    await client.connect();
    const { rows } = await client.query<ReplicaState>(
      `SELECT ${IDENTITY} AS identity, ${SERVER} AS server, pg_is_in_recovery() AS is_standby,
  COALESCE(pg_last_wal_replay_lsn() >= $1::pg_lsn, false) AS has_all,
  COALESCE(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 'Infinity')::float8 AS age`,
      [position],
    );
    return rows[0]!;
  } finally {
    client.end().catch(() => undefined);
  }
}
