import type { DataSource, EntityManager } from 'typeorm';
import { exposedDevelopment, type Config } from '../../config/config.js';
import type { EncryptionCounts } from '../../crypto/encryption.js';
import { mismatchOf, readSchema, summarizeNames, type Schema } from '../../database/schema/schema.js';
import { allOf, fail, ok, warn, warnIf, type Check } from './check.js';
import {
  checkErasures,
  checkNames,
  checkSequences,
  checkTimeZones,
  checkWebhooks,
  repairErasures,
  repairSequences,
} from './rows.js';
import { findDamage, findMissingPrivileges, MISSING } from './schema.js';
import { checkKeys, checkEncryption, checkSignIns, type EncryptionState } from './secrets.js';
import { checkTotals, repairCopiesAndTotals } from './totals.js';

/** Reports a check that ended with an error. The text after the last colon of the error's message is the remedy. */
export function failed(name: string, error: Error): Check {
  const [message, mend] = error.message.split(/: (?=[^:]*$)/);
  return fail(name, message!, mend ?? 'correct the cause in the message, then run `pua doctor` again');
}

/** Checks the settings, without the database. */
export function checkSettings(config: Config): Check[] {
  const database = config.databaseUrl ? 'PostgreSQL' : `the embedded database in ${config.dataDir}`;
  const exposed = exposedDevelopment(config);
  return [
    exposed === undefined
      ? ok('settings', `complete, for ${config.production ? 'production' : 'development'}, with ${database}`)
      : warn('settings', exposed, 'set NODE_ENV=production'),
    checkProxy(config),
  ];
}

function checkProxy({ publicUrl, trustProxy }: Config): Check {
  const { protocol, hostname } = new URL(publicUrl);
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
  // The server itself supports only plain HTTP, so https requires a proxy.
  if (protocol === 'https:' && trustProxy === 0)
    return warn(
      'proxy',
      'PUBLIC_URL is https, so the server is behind a proxy, but TRUST_PROXY is 0: all callers seem to have the proxy’s address',
      'set TRUST_PROXY to the number of proxies; otherwise keys’ allowed networks and limits per address do not work',
    );
  if (local && trustProxy > 0)
    return warn(
      'proxy',
      `TRUST_PROXY is ${trustProxy}, but PUBLIC_URL is on this host: callers can claim any address`,
      'set TRUST_PROXY=0, unless the server is behind a proxy',
    );
  return ok('proxy', trustProxy === 0 ? 'no proxy is trusted' : `trusted proxies: ${trustProxy}`);
}

export interface Examination {
  /** Whether to first repair problems that `pua doctor --mend` can repair. */
  readonly mend?: boolean;
  /** Whether to recount all members; otherwise, only a tenth if there are many. */
  readonly full?: boolean;
  /** Whether to skip checks that may read many rows. */
  readonly quick?: boolean;
}

interface Seals {
  readonly sealState: () => Promise<EncryptionState>;
  readonly webhookSeals: () => Promise<EncryptionCounts>;
}

/** Results; `isWhole` is false if a failed check prevented further checks. */
export interface Findings {
  readonly isWhole: boolean;
  readonly checks: readonly Check[];
}

/** Checks the database; with `mend`, first repairs it. */
export async function checkDatabase(
  dataSource: DataSource,
  config: Config,
  { mend = false, full = mend, quick = false, sealState, webhookSeals }: Examination & Seals,
): Promise<Findings> {
  const basis = await checkBasis(dataSource, config);
  if (!basis.isWhole) return basis;
  const mended = mend
    ? Object.entries({
        ...(await repairSequences(dataSource.manager)),
        ...(await repairErasures(dataSource)),
        ...(await repairCopiesAndTotals(dataSource)),
      }).map(([name, rows]) => ok(`mended ${name}`, `${rows} rows were corrected`))
    : [];
  const data = quick
    ? await checkWebhooks(dataSource.manager)
    : await dataSource.transaction('REPEATABLE READ', async (manager) => [
        ...(await checkKeys(manager, config)),
        ...(await checkTotals(manager, full)),
        ...(await checkSequences(manager)),
        ...(await checkTimeZones(manager)),
        ...(await checkWebhooks(manager)),
        await checkNames(manager),
        ...(await checkErasures(manager)),
      ]);
  const state = await sealState();
  const secrets = [
    checkEncryption('signing keys', state, 'no server starts'),
    ...(quick ? [] : await checkSignIns(dataSource, config, state)),
    checkEncryption('webhook secrets', await webhookSeals(), 'their endpoints get no messages'),
  ];
  return { isWhole: true, checks: [...basis.checks, ...mended, ...secrets, ...data] };
}

/** Checks the server, the role and the schema, which all other checks need. */
async function checkBasis(dataSource: DataSource, config: Config): Promise<Findings> {
  const { manager } = dataSource;
  const server = await checkServer(manager, config);
  const privileges = await findMissingPrivileges(manager);
  if (privileges.length > 0) return { isWhole: false, checks: [...server, ...privileges] };
  const schema = await readSchema(dataSource);
  const migrations = checkMigrations(schema);
  if (migrations.status === 'fail') return { isWhole: false, checks: [...server, migrations] };
  // This version cannot check a newer schema.
  if (schema.unknown.length > 0) return { isWhole: true, checks: [...server, migrations] };
  const damage = await findDamage(manager);
  const checks = allOf(damage, 'schema', 'matches the migrations');
  const isWhole = !damage.some(
    ({ name, message }) => message === MISSING && /^(table|sequence|function) /.test(name),
  );
  return { isWhole, checks: [...server, migrations, ...checks] };
}

const OLDEST_VERSION = 150_000;
const MAX_SKEW_SECONDS = 5;

async function checkServer(manager: EntityManager, config: Config): Promise<Check[]> {
  const before = Date.now();
  const [server] = await manager.query<
    { number: number; version: string; encoding: string; read_only: boolean; now_ms: number; free: number }[]
  >(`SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
  current_setting('server_encoding') AS encoding, current_setting('transaction_read_only')::bool AS read_only,
  extract(epoch FROM clock_timestamp()) * 1000.0::float8 AS now_ms,
  current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS free`);
  const { number, version, encoding, read_only, now_ms, free } = server!;
  const skew = Math.round((Number(now_ms) - (before + Date.now()) / 2) / 1000);
  const connections = config.workers * config.databasePoolSize;
  return [
    number < OLDEST_VERSION
      ? fail('database', `is PostgreSQL ${version}`, 'use PostgreSQL 15 or newer')
      : encoding !== 'UTF8'
        ? fail('database', `has the encoding ${encoding}`, 'create it with ENCODING UTF8')
        : read_only
          ? fail('database', 'is read only: probably a standby', 'point DATABASE_URL to the primary')
          : ok('database', `PostgreSQL ${version}`),
    Math.abs(skew) > MAX_SKEW_SECONDS
      ? warn('clock', `differs from the database's by ${skew} s`, 'synchronize both hosts with NTP')
      : ok('clock', "agrees with the database's"),
    ...warnIf(
      config.databaseUrl !== undefined && connections > free,
      'pool',
      `WORKERS × DATABASE_POOL_SIZE is ${connections}, but the database accepts only ${free} connections`,
      'lower one of them, or raise max_connections',
    ),
  ];
}

function checkMigrations(schema: Schema): Check {
  const mismatch = mismatchOf(schema);
  if (mismatch) {
    const { predicate, migrations, remedy } = mismatch;
    return fail('migrations', `the database ${predicate}: ${summarizeNames(migrations)}`, remedy);
  }
  const { applied, unknown } = schema;
  if (unknown.length > 0)
    return warn(
      'migrations',
      `the database is newer than this version of the server, but compatible: ${summarizeNames(unknown)}`,
      'upgrade the server soon',
    );
  return ok('migrations', `${applied.length} applied, none pending`);
}
