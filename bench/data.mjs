// The benchmark's database: made once per schema and size, then kept in bench/.data.
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from '../bin/postgres.mjs';

const folder = import.meta.dirname;
const root = join(folder, '..');

/** As in production: fsync and synchronous_commit keep their default, on; the cache fits this host's memory. */
export const POSTGRES = { shared_buffers: '2GB', max_connections: 100, max_wal_size: '4GB' };
/** Without durability: the data can be generated again. */
const WHILE_LOADING = { ...POSTGRES, fsync: 'off', maintenance_work_mem: '512MB', work_mem: '256MB' };

/** Number of members whose data is requested. */
export const ASKED = 1000;

/**
 * @typedef {object} Dataset
 * @property {string} url of the database
 * @property {number} postgresPid
 * @property {string} secretKey SECRET_KEY that the keys were made with
 * @property {number[]} members whose data is requested
 * @property {string[]} keys one of each member
 * @property {Record<string, number>} counts rows
 * @property {() => Promise<void>} stop
 */

/**
 * Opens the database with this many members; `dist` must be built.
 *
 * @param {number} users
 * @returns {Promise<Dataset>}
 */
export async function openDataset(users) {
  const cluster = join(folder, '.data', `${users}-${schemaHash()}`);
  if (!existsSync(cluster)) await makeDataset(cluster, users);
  const postgres = await startPostgres(cluster, POSTGRES);
  const kept = JSON.parse(readFileSync(join(cluster, 'keys.json'), 'utf8'));
  await prepare(postgres.url);
  const members = kept.keys.map((_, i) => (i + 1) * stepOf(users));
  return { url: postgres.url, postgresPid: postgres.pid, stop: postgres.stop, members, ...kept };
}

/** A hash of everything that determines the database's contents. */
function schemaHash() {
  const hash = createHash('sha256');
  for (const file of [...filesOf('migrations'), ...filesOf('schema'), 'bench/members.sql'])
    hash.update(readFileSync(join(root, file)));
  return hash.digest('hex').slice(0, 12);
}

const filesOf = (name) =>
  readdirSync(join(root, name))
    .sort()
    .map((file) => `${name}/${file}`);

async function makeDataset(cluster, users) {
  const draft = `${cluster}.draft`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  const started = performance.now();
  const postgres = await startPostgres(draft, WHILE_LOADING);
  const secretKey = randomBytes(32).toString('base64');
  Object.assign(process.env, {
    NODE_ENV: 'production',
    DATABASE_URL: postgres.url,
    SECRET_KEY: secretKey,
    PUBLIC_URL: 'http://localhost',
  });
  const { loadConfig } = await import('../dist/src/config/config.js');
  const { createDataSource } = await import('../dist/src/database/postgres/data-source.js');
  const { migrate } = await import('../dist/src/database/schema/migrate.js');
  const config = loadConfig();
  const dataSource = await createDataSource(config, 'maintenance').initialize();
  await migrate(dataSource);
  await dataSource.query(`ALTER ROLE postgres SET session_replication_role = replica`);
  await dataSource.destroy();

  await dataSource.initialize();
  console.error(`Loading ${users} members into ${cluster} …`);
  const sql = readFileSync(join(folder, 'members.sql'), 'utf8')
    .replaceAll(/(?<!:):users/g, String(users))
    .replaceAll(/(?<!:):step/g, String(stepOf(users)));
  await dataSource.query(sql);
  await dataSource.query('ALTER ROLE postgres RESET session_replication_role');
  await recount(dataSource);
  while ((await dataSource.query('SELECT fold_totals(1000000) AS folded'))[0].folded > 0);
  const keys = await makeKeys(dataSource, config, users);
  await dataSource.query('VACUUM (FULL) events, user_totals, achievements');
  // Skips empty tables: PostgreSQL would otherwise plan for empty tables during the first minute of use.
  await dataSource.query(`VACUUM (ANALYZE) ${FILLED.join(', ')}, user_totals, event_totals`);
  const counts = await countRows(dataSource);
  await dataSource.destroy();
  writeFileSync(join(draft, 'keys.json'), JSON.stringify({ secretKey, ...keys, counts }));
  await postgres.stop();
  renameSync(draft, cluster);
  console.error(`Loaded in ${Math.round((performance.now() - started) / 1000)} s: ${JSON.stringify(counts)}`);
}

const stepOf = (users) => Math.floor(users / ASKED);

/** Sets the denormalized columns and counters that triggers maintain, as `pua doctor --mend` does; a later check must find no fault. */
async function recount(dataSource) {
  const { countLoneSides, findDrift, findStaleCopies, repairCopiesAndTotals } =
    await import('../dist/src/operations/doctor/totals.js');
  await repairCopiesAndTotals(dataSource);
  const { manager } = dataSource;
  const [drift, stale] = [await findDrift(manager), await findStaleCopies(manager)];
  const loneSides = await countLoneSides(manager);
  if (drift.length + stale.length + loneSides > 0) {
    throw new Error(`The generated data is wrong: ${JSON.stringify({ drift, stale, loneSides })}`);
  }
}

/** Returns a function that creates a member's key, with the server's own format and hash. */
export async function keyMaker(dataSource, config) {
  const { ApiKeysService } = await import('../dist/src/auth/api-keys/api-keys.service.js');
  const { ALL_SCOPES } = await import('../dist/src/auth/scopes.js');
  const service = new ApiKeysService(dataSource, config);
  return async (userId) => {
    const wanted = {
      userId,
      name: 'bench',
      scopes: ALL_SCOPES,
      environment: 'live',
      cidrs: [],
      actor: 'admin',
    };
    return (await service.create({ ...wanted, noExpiryReason: 'benchmark' })).key;
  };
}

async function makeKeys(dataSource, config, users) {
  const create = await keyMaker(dataSource, config);
  const keys = [];
  for (let i = 1; i <= ASKED; i++) keys.push(await create(i * stepOf(users)));
  return { keys };
}

const FILLED = 'users events participants connections achievements user_achievements api_keys'.split(' ');

async function countRows(dataSource) {
  const counts = FILLED.map((table) => `(SELECT count(*)::int FROM ${table}) AS ${table}`);
  return (await dataSource.query(`SELECT ${counts.join(', ')}`))[0];
}

/** Rows that sequential scans read while `work` ran, of tables with more than a thousand rows. */
export async function rowsReadWhole({ url }, work) {
  const client = new pg.Client(url);
  await client.connect();
  const reads = async () => {
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // sessions report their statistics within a second
    const { rows } = await client.query(
      'SELECT relname, seq_tup_read::float8 AS read, n_live_tup > 1000 AS is_large FROM pg_stat_user_tables',
    );
    return new Map(rows.map(({ relname, ...row }) => [relname, row]));
  };
  const before = await reads();
  await work();
  const after = [...(await reads())].filter(([, { is_large }]) => is_large);
  await client.end();
  return after.reduce((sum, [table, { read }]) => sum + read - before.get(table).read, 0);
}

/** Deletes the sign-ins of earlier runs, and reads everything once, to measure a server with warm caches. */
async function prepare(url) {
  const client = new pg.Client(url);
  await client.connect();
  await client.query('TRUNCATE oauth_consents, oauth_grants, oauth_sessions, oauth_state CASCADE');
  await client.query('CREATE EXTENSION IF NOT EXISTS pg_prewarm');
  await client.query(
    `SELECT sum(pg_prewarm(oid)) FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace`,
  );
  await client.end();
}
