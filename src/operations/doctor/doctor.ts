import type { DataSource, EntityManager } from 'typeorm';
import { pepperIdsOf } from '../../crypto/peppers.js';
import { exposedDevelopment, type Config } from '../../config/config.js';
import type { SealCounts } from '../../crypto/encryption.js';
import { mismatchOf, readSchema, type Schema } from '../../database/schema/schema.js';
import { fail, MEND, ok, warn, type Check } from './check.js';
import { checkErasures, mendErasures } from './erasures.js';
import { checkNames } from './names.js';
import { findDamage, findMissingPrivileges, findUnknownTimeZones, MISSING } from './schema.js';
import { checkSequences, mendSequences } from './sequences.js';
import { countLoneSides, findDrift, findStaleCopies, mendCopiesAndTotals } from './totals.js';

/** Reports a check that could not be run. */
export function failed(name: string, error: Error): Check {
  const [message, mend] = error.message.split(/: (?=[^:]*$)/);
  return fail(name, message!, mend ?? 'fix what the message says, then run the doctor again');
}

/** Checks the settings alone. */
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
  // The server itself speaks plain HTTP: https callers come through a proxy.
  if (protocol === 'https:' && trustProxy === 0)
    return warn(
      'proxy',
      'PUBLIC_URL is https, so there is a proxy in front, but TRUST_PROXY is 0: all callers seem to have its address',
      'set TRUST_PROXY to the number of proxies; otherwise the networks of keys, and limits per address, do not work',
    );
  if (local && trustProxy > 0)
    return warn(
      'proxy',
      `TRUST_PROXY is ${trustProxy}, but PUBLIC_URL is on this machine: callers may claim any address`,
      'set TRUST_PROXY=0, unless there is a proxy in front',
    );
  return ok('proxy', trustProxy === 0 ? 'none is trusted' : `${trustProxy} trusted`);
}

/** The numbers of published signing keys by the SECRET_KEY that encrypts them. */
interface SealState extends SealCounts {
  /** When SECRET_KEY changed, as far as is known. */
  readonly movedAt: Date | undefined;
}

interface DoctorOptions {
  /** Whether to correct first what needs no decision. */
  readonly mend?: boolean;
  readonly sealState: () => Promise<SealState>;
  /** The same for webhook secrets. */
  readonly webhookSeals: () => Promise<SealCounts>;
}

/** Checks the database; keys, copies and totals in one snapshot. */
export async function checkDatabase(
  dataSource: DataSource,
  config: Config,
  { mend = false, sealState, webhookSeals }: DoctorOptions,
): Promise<readonly Check[]> {
  const basis = await checkBasis(dataSource, config);
  if (!basis.isWhole) return basis.checks;
  const mended = mend
    ? Object.entries({
        ...(await mendSequences(dataSource.manager)),
        ...(await mendErasures(dataSource)),
        ...(await mendCopiesAndTotals(dataSource)),
      }).map(([name, rows]) => ok(`mended ${name}`, `${rows} rows were corrected`))
    : [];
  const data = await dataSource.transaction('REPEATABLE READ', async (manager) => [
    ...(await checkKeys(manager, config)),
    ...(await checkTotals(manager)),
    ...(await checkSequences(manager)),
    ...(await checkTimeZones(manager)),
    await checkWebhooks(manager),
    await checkNames(manager),
    await checkErasures(manager),
  ]);
  const secret = [
    ...(await checkSecret(dataSource, config, await sealState())),
    checkWebhookSecrets(await webhookSeals()),
  ];
  return [...basis.checks, ...mended, ...secret, ...data];
}

/** What {@link checkVitals} found. `isWhole`: whether it ran all its checks. */
export interface Vitals {
  readonly isWhole: boolean;
  readonly checks: readonly Check[];
}

/** Runs those checks of {@link checkDatabase} that are cheap at any size of database, and whose results may change overnight. */
export async function checkVitals(
  dataSource: DataSource,
  config: Config,
  { sealState, webhookSeals }: Pick<DoctorOptions, 'sealState' | 'webhookSeals'>,
): Promise<Vitals> {
  const basis = await checkBasis(dataSource, config);
  if (!basis.isWhole) return basis;
  const checks = [
    ...basis.checks,
    checkSigningKeys(await sealState()),
    checkWebhookSecrets(await webhookSeals()),
    await checkWebhooks(dataSource.manager),
  ];
  return { isWhole: true, checks };
}

/** Checks what all other checks need: the server, the role, and the schema. */
async function checkBasis(dataSource: DataSource, config: Config): Promise<Vitals> {
  const { manager } = dataSource;
  const server = await checkServer(manager, config);
  const privileges = await findMissingPrivileges(manager);
  if (privileges.length > 0) return { isWhole: false, checks: [...server, ...privileges] };
  const schema = await readSchema(dataSource);
  const migrations = checkMigrations(schema);
  if (migrations.status === 'fail') return { isWhole: false, checks: [...server, migrations] };
  // What is newer than this version, it cannot compare.
  if (schema.unknown.length > 0) return { isWhole: true, checks: [...server, migrations] };
  const damage = await findDamage(manager);
  const checks = damage.length > 0 ? damage : [ok('schema', 'is as the migrations made it')];
  const isWhole = !damage.some(
    ({ name, message }) => message === MISSING && /^(table|sequence|function) /.test(name),
  );
  return { isWhole, checks: [...server, migrations, ...checks] };
}

const OLDEST_VERSION = 150_000;
const MOST_SKEW_SECONDS = 5;

async function checkServer(manager: EntityManager, config: Config): Promise<Check[]> {
  const before = Date.now();
  const [server] = await manager.query<
    { number: number; version: string; encoding: string; read_only: boolean; now_ms: number; free: number }[]
  >(`SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
  current_setting('server_encoding') AS encoding, current_setting('transaction_read_only')::bool AS read_only,
  extract(epoch FROM clock_timestamp()) * 1000.0::float8 AS now_ms,
  current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS free`);
  const { number, version, encoding, read_only, now_ms, free } = server!;
  const checks: Check[] = [];
  if (number < OLDEST_VERSION)
    checks.push(fail('database', `is PostgreSQL ${version}`, 'use PostgreSQL 15 or newer'));
  else if (encoding !== 'UTF8')
    checks.push(fail('database', `has the encoding ${encoding}`, 'create it with ENCODING UTF8'));
  else if (read_only)
    checks.push(fail('database', 'is read only: probably a standby', 'point DATABASE_URL to the primary'));
  else checks.push(ok('database', `PostgreSQL ${version}`));

  const skew = Math.round((Number(now_ms) - (before + Date.now()) / 2) / 1000);
  if (Math.abs(skew) > MOST_SKEW_SECONDS)
    checks.push(
      warn('clock', `differs from the database's by ${skew} s`, 'synchronise both machines with NTP'),
    );
  else checks.push(ok('clock', "agrees with the database's"));

  if (config.databaseUrl && config.databasePoolSize > free)
    checks.push(
      warn(
        'pool',
        `DATABASE_POOL_SIZE is ${config.databasePoolSize}, but the database accepts only ${free} connections`,
        'lower DATABASE_POOL_SIZE, or raise max_connections',
      ),
    );
  return checks;
}

function checkMigrations(schema: Schema): Check {
  const mismatch = mismatchOf(schema);
  if (mismatch) {
    const { predicate, migrations, remedy } = mismatch;
    return fail('migrations', `the database ${predicate}: ${migrations.join(', ')}`, remedy);
  }
  const { applied, unknown } = schema;
  if (unknown.length > 0)
    return warn(
      'migrations',
      `the database is newer than this version of the server, which can use it: ${unknown.join(', ')}`,
      'upgrade the server soon',
    );
  return ok('migrations', `${applied.length} applied, none pending`);
}

async function checkKeys(manager: EntityManager, config: Config): Promise<Check[]> {
  const [current, previous] = pepperIdsOf(config.secrets);
  const [live] = await manager.query<{ all: number; previous: number; unknown: number; exposed: number }[]>(
    `SELECT count(*) AS all, count(*) FILTER (WHERE pepper_id = $2) AS previous,
  count(*) FILTER (WHERE pepper_id <> $1 AND pepper_id IS DISTINCT FROM $2) AS unknown,
  count(u.exposed_at) AS exposed
FROM api_keys k LEFT JOIN api_key_usage u ON u.key_id = k.id
WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`,
    [current, previous ?? null],
  );
  const checks: Check[] = [];
  if (live!.unknown > 0)
    checks.push(
      fail(
        'keys',
        `${live!.unknown} live keys were created under another SECRET_KEY, and are refused`,
        'set SECRET_KEY_PREVIOUS to the SECRET_KEY of that time, or create new keys',
      ),
    );
  else if (live!.previous > 0)
    checks.push(
      warn(
        'keys',
        `${live!.previous} of ${live!.all} live keys still need SECRET_KEY_PREVIOUS`,
        'keep it until none are left: each moves to SECRET_KEY when it is used',
      ),
    );
  else checks.push(ok('keys', `${live!.all} live, all under the current SECRET_KEY`));
  if (live!.exposed > 0)
    checks.push(
      warn(
        'exposed keys',
        `${live!.exposed} live keys were sent by a browser`,
        '`pua keys list` shows them under EXPOSED: rotate them with --overlap 0s',
      ),
    );
  return checks;
}

/** Checks what still needs SECRET_KEY_PREVIOUS, besides API keys. */
async function checkSecret(dataSource: DataSource, config: Config, state: SealState): Promise<Check[]> {
  const checks = [checkSigningKeys(state)];
  if (!config.secrets.hasPrevious || !state.movedAt) return checks;
  const [older] = await dataSource.query<{ tokens: number; sessions: number; until: string | null }[]>(
    `WITH older AS (
  SELECT true AS token, expires_at FROM oauth_tokens
  WHERE model = 'RefreshToken' AND consumed_at IS NULL AND created_at < $1 AND expires_at > now()
  UNION ALL
  SELECT false, expires_at FROM oauth_sessions WHERE user_id IS NOT NULL AND last_seen_at < $1 AND expires_at > now())
SELECT count(*) FILTER (WHERE token) AS tokens, count(*) FILTER (WHERE NOT token) AS sessions,
  left(max(expires_at)::text, 10) AS until FROM older`,
    [state.movedAt],
  );
  const { tokens, sessions, until } = older!;
  checks.push(
    tokens + sessions > 0
      ? warn(
          'sign-ins',
          `${tokens} refresh tokens and ${sessions} sessions date from before the change of SECRET_KEY`,
          `keep SECRET_KEY_PREVIOUS until ${until}, or they end when it is removed: each moves to SECRET_KEY when it is used`,
        )
      : ok('sign-ins', 'none date from before the change of SECRET_KEY'),
  );
  return checks;
}

const checkSigningKeys = (state: SealCounts) => checkSeals('signing keys', state, 'no server starts');

const checkWebhookSecrets = (state: SealCounts) =>
  checkSeals('webhook secrets', state, 'nothing is sent to their receivers');

/** @param consequence if some cannot be decrypted */
function checkSeals(
  name: string,
  { current, previous, next, unknown }: SealCounts,
  consequence: string,
): Check {
  const all = current + previous + next + unknown;
  if (unknown > 0)
    return fail(
      name,
      `${unknown} of ${all} cannot be decrypted, so that ${consequence}`,
      'set SECRET_KEY_PREVIOUS to the other SECRET_KEY that is in use',
    );
  if (previous > 0)
    return warn(
      name,
      `${previous} of ${all} still need SECRET_KEY_PREVIOUS`,
      'start a server with these settings, which moves them to SECRET_KEY; keep SECRET_KEY_PREVIOUS until then',
    );
  if (next > 0)
    return warn(
      name,
      `${next} of ${all} are already under the next SECRET_KEY, which is SECRET_KEY_PREVIOUS here`,
      'continue the change: make it SECRET_KEY here, too',
    );
  return ok(name, `${all}, all under the current SECRET_KEY`);
}

async function checkWebhooks(manager: EntityManager): Promise<Check> {
  const failing = await manager.query<{ id: string; since: string }[]>(
    `SELECT id, api_time(failing_since) AS since FROM webhook_endpoints
WHERE disabled_at IS NULL AND failing_since < now() - interval '1 day' ORDER BY webhook_endpoints.failing_since LIMIT 10`,
  );
  if (failing.length === 0) return ok('webhooks', 'no receiver has been failing for a day');
  return warn(
    'webhooks',
    `receivers have accepted nothing for more than a day: ${failing.map(({ id, since }) => `${id} since ${since}`).join(', ')}`,
    '`pua webhooks show` shows their responses; after five days they are disabled',
  );
}

async function checkTotals(manager: EntityManager): Promise<Check[]> {
  const copies = (await findStaleCopies(manager)).map(({ name, wrong }) =>
    fail(name, `differs from what it copies in ${wrong} rows`, MEND),
  );
  const totals = (await findDrift(manager)).map(({ name, wrong, example }) =>
    fail(
      name,
      `is wrong in ${wrong} rows: ${example.id} has ${example.kept}, a recount gives ${example.counted}`,
      MEND,
    ),
  );
  const sides = await countLoneSides(manager);
  const connections =
    sides > 0
      ? [
          fail(
            'connections',
            `${sides} sides have no matching other side`,
            'import these connections again, or delete both sides: every connection has two rows with one id',
          ),
        ]
      : [];
  return [
    ...(copies.length > 0 ? copies : [ok('copies', 'every copied column equals what it copies')]),
    ...(totals.length > 0 ? totals : [ok('totals', 'every maintained number was recounted, and is right')]),
    ...connections,
  ];
}

async function checkTimeZones(manager: EntityManager): Promise<Check[]> {
  const unknown = await findUnknownTimeZones(manager);
  if (unknown.length === 0) return [ok('time zones', 'the database knows the time zones of all events')];
  return unknown.map(({ timezone, events }) =>
    warn(
      'time zones',
      `${events} events are in ${timezone}, which the database does not know: their local times are shown in UTC`,
      'install the time zone on the machine of PostgreSQL, or import these events with a current one',
    ),
  );
}
