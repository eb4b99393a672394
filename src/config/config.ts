import { chmodSync, existsSync, linkSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readClientKey } from '../crypto/client-key.js';
import { makeSecretKey, Secrets } from '../crypto/secrets.js';
import { ownFolder, UnsafeFolder } from './own-folder.js';
import { SEVERAL_HOSTS } from './setting-types.js';
import { REMOVED_SETTINGS, SETTINGS, type Environment, type SettingName } from './settings.js';
import { writeWhole } from './draft-file.js';
import { OperatorError } from '../values/operator-error.js';

type Values = Readonly<ReturnType<typeof readPlace> & ReturnType<typeof decided>>;

/** The settings of the process, frozen. A class, so that Nest can inject it by type. */
export abstract class Config extends (Object as unknown as abstract new () => Values) {}

export type UpstreamConfig = Readonly<NonNullable<ReturnType<typeof readUpstream>>>;

export type UpstreamMatch = Environment['UPSTREAM_MATCH'];

/** Returns the API's name, which contains the platform's name if there is one. */
export function apiNameOf({ platformName }: Pick<Config, 'platformName'>): string {
  return platformName === undefined ? 'Public User API' : `${platformName} API`;
}

/** Reads the settings. An empty variable counts as absent. @throws OperatorError that lists all faults */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const faults: string[] = [];
  const env = Object.fromEntries(
    Object.entries(SETTINGS).map(([name, { read }]) => {
      const { data, error } = read.safeParse(environment[name] || undefined);
      for (const { message } of error?.issues ?? []) faults.push(`${name} ${message}`);
      return [name, data];
    }),
  ) as Environment; // a faulty setting is undefined
  const given = (name: SettingName) => Boolean(environment[name]);
  for (const [name, remedy] of Object.entries(REMOVED_SETTINGS))
    if (environment[name]) faults.push(`${name} no longer exists: ${remedy}`);
  const place = readPlace(env);
  const { production, publicUrl, loopbackOnly } = place;

  if (env.LOG_FORMAT === 'pretty' && !isInstalled('pino-pretty'))
    faults.push('LOG_FORMAT must be json: pretty logs are not part of this installation');
  if (production) {
    if (!given('SECRET_KEY'))
      faults.push(
        'SECRET_KEY is required in production: generate one with `pua secrets generate` or `openssl rand -base64 32`',
      );
    if (!given('DATABASE_URL'))
      faults.push('DATABASE_URL is required in production: the embedded database is for development');
    if (!publicUrl.startsWith('https:') && !isLoopback(new URL(publicUrl).hostname))
      faults.push('PUBLIC_URL must be https in production');
    if (env.SEED_DEMO)
      faults.push('SEED_DEMO cannot be true in production: demo members have known passwords');
  } else if (env.SEED_DEMO && !loopbackOnly) {
    faults.push(
      'SEED_DEMO can be true only if PUBLIC_URL and HOST are loopback (localhost, 127.0.0.1, ::1): demo members have known passwords',
    );
  }
  if (given('DATABASE_READ_URL') && !given('DATABASE_URL'))
    faults.push('DATABASE_READ_URL needs DATABASE_URL: the embedded database has no replicas');
  if (env.SQL_REQUEST_IDS && !given('DATABASE_URL'))
    faults.push('SQL_REQUEST_IDS needs DATABASE_URL: the embedded database writes no log');
  const urls = [env.DATABASE_URL, env.DATABASE_DIRECT_URL, ...(env.DATABASE_READ_URL ?? [])];
  if (environment.PGHOST?.includes(',') && urls.some((url) => url !== undefined && !namesHost(url)))
    faults.push(`PGHOST ${SEVERAL_HOSTS}`);
  const upstream = readUpstream(env, given, production, faults);
  if (env.LOCAL_SIGN_IN === false && !env.UPSTREAM_ISSUER)
    faults.push('LOCAL_SIGN_IN can be false only with UPSTREAM_ISSUER: otherwise nobody could sign in');
  if ((env.SMTP_URL === undefined) !== (env.MAIL_FROM === undefined))
    faults.push('SMTP_URL and MAIL_FROM must be set together');
  if (faults.length > 0)
    throw new OperatorError(
      `${faults.length === 1 ? 'A setting is' : `${faults.length} settings are`} wrong: ${faults.join('; ')}`,
    );

  return Object.freeze({ ...place, ...decided(env, place, upstream) });
}

function readPlace(env: Environment) {
  const production = env.NODE_ENV === 'production';
  const host = env.HOST ?? (production ? '0.0.0.0' : '127.0.0.1');
  /** The origin that callers see, without a trailing slash; the OAuth issuer. */
  const publicUrl = env.PUBLIC_URL ?? `http://localhost:${env.PORT ?? SETTINGS.PORT.default}`;
  /** Whether PUBLIC_URL and HOST are loopback, so that only this host can reach the server. */
  const loopbackOnly = isLoopback(new URL(publicUrl).hostname) && isLoopback(host);
  return { production, host, publicUrl, loopbackOnly };
}

/** Returns deadlines in ms: longer for the embedded database and tests; otherwise, the API can respond 503 within a second. */
function databaseDeadlines({ DATABASE_URL, NODE_ENV }: Environment) {
  if (!DATABASE_URL) return { connect: 10_000, lock: 10_000, statement: 10_000, answer: 30_000 };
  if (NODE_ENV === 'test') return { connect: 5_000, lock: 5_000, statement: 5_000, answer: 10_000 };
  return { connect: 300, lock: 300, statement: 600, answer: 900 };
}

function decided(
  env: Environment,
  { production, loopbackOnly }: ReturnType<typeof readPlace>,
  upstream: ReturnType<typeof readUpstream>,
) {
  const assistants = env.ASSISTANTS ?? env.NODE_ENV === 'development';
  return {
    /** By default, true only in development, on a server that other hosts cannot reach. */
    seedDemo: env.SEED_DEMO ?? (loopbackOnly && env.NODE_ENV === 'development'),
    databaseDirectUrl: env.DATABASE_DIRECT_URL ?? env.DATABASE_URL,
    databaseReadUrls: (env.DATABASE_READ_URL ?? []) as readonly string[],
    databaseDeadlines: databaseDeadlines(env),
    /** In ms; the server disconnects slower clients. */
    requestDeadlines: { headers: 5_000, whole: 10_000 },
    /** Maximum wait of a sign-in in the queue, in ms. */
    signInPatience: 2_000,
    /** Minimum duration of a rejected sign-in, in ms. */
    shortestRefusal: 500,
    secrets: new Secrets(env.SECRET_KEY ?? developmentSecret(env.DATA_DIR), env.SECRET_KEY_PREVIOUS),
    /** Limits per minute; 0 disables a limit. */
    rateLimits: { read: env.RATE_LIMIT_READ, write: env.RATE_LIMIT_WRITE, auth: env.RATE_LIMIT_AUTH },
    shutdownDelaySeconds: env.SHUTDOWN_DELAY ?? (production ? 5 : 0),
    upstream,
    mail: env.SMTP_URL && env.MAIL_FROM ? { smtpUrl: env.SMTP_URL, from: env.MAIL_FROM } : undefined,
    port: env.PORT,
    dataDir: env.DATA_DIR,
    databaseUrl: env.DATABASE_URL,
    databasePoolSize: env.DATABASE_POOL_SIZE,
    trustProxy: env.TRUST_PROXY,
    platformRateLimit: env.RATE_LIMIT_PLATFORM,
    rateLimitSyncMs: env.RATE_LIMIT_SYNC,
    workers: env.WORKERS,
    metricsPort: env.METRICS_PORT,
    sweepIntervalSeconds: env.SWEEP_INTERVAL,
    auditRetentionSeconds: env.AUDIT_RETENTION,
    changesRetentionSeconds: env.CHANGES_RETENTION,
    assistants,
    clientIdMetadataDocuments: env.CLIENT_ID_METADATA_DOCUMENTS ?? assistants,
    localSignIn: env.LOCAL_SIGN_IN,
    developerConsole: env.DEVELOPER_CONSOLE !== 'off',
    /** Whether members' apps work only for their owners and testers until the platform approves them. */
    reviewsApps: env.DEVELOPER_CONSOLE === 'reviewed',
    accessLongest: env.ACCESS_LONGEST,
    accessPreselected: env.ACCESS_PRESELECTED,
    developerOidc: env.DEVELOPER_OIDC,
    supportUrl: env.SUPPORT_URL,
    securityContact: env.SECURITY_CONTACT,
    platformName: env.PLATFORM_NAME,
    platformLogoUrl: env.PLATFORM_LOGO_URL,
    platformColor: env.PLATFORM_COLOR,
    privacyUrl: env.PRIVACY_URL,
    signUpUrl: env.SIGN_UP_URL,
    passwordResetUrl: env.PASSWORD_RESET_URL,
    sqlRequestIds: env.SQL_REQUEST_IDS,
    logLevel: env.LOG_LEVEL,
    logFormat: env.LOG_FORMAT ?? (process.stdout.isTTY && isInstalled('pino-pretty') ? 'pretty' : 'json'),
  };
}

const OF_UPSTREAM = (Object.keys(SETTINGS) as SettingName[]).filter((name) => name.startsWith('UPSTREAM_'));

/** Reads the settings of the external identity provider, which must be complete or absent. @param faults collects errors */
function readUpstream(
  env: Environment,
  given: (name: SettingName) => boolean,
  production: boolean,
  faults: string[],
) {
  const [issuer, clientId, match] = [env.UPSTREAM_ISSUER, env.UPSTREAM_CLIENT_ID, env.UPSTREAM_MATCH];
  const [clientSecret, keyFile] = [env.UPSTREAM_CLIENT_SECRET, env.UPSTREAM_CLIENT_KEY_FILE];
  if (issuer === undefined || clientId === undefined) {
    const names = OF_UPSTREAM.filter(given);
    if (names.length > 0)
      faults.push(`UPSTREAM_ISSUER and UPSTREAM_CLIENT_ID are required for ${names.join(', ')}`);
    return undefined;
  }
  if ((clientSecret === undefined) === (keyFile === undefined))
    faults.push(
      'UPSTREAM_CLIENT_SECRET or UPSTREAM_CLIENT_KEY_FILE is required with UPSTREAM_ISSUER: exactly one of them',
    );
  const { protocol, hostname, host } = new URL(issuer);
  if (protocol === 'http:' && (production || !isLoopback(hostname)))
    faults.push('UPSTREAM_ISSUER must be https (http on a loopback address outside production)');
  if (env.UPSTREAM_CREATE_MEMBERS && match === 'id')
    faults.push('UPSTREAM_CREATE_MEMBERS cannot be true with UPSTREAM_MATCH=id: this server assigns the ids');
  return {
    issuer,
    clientId,
    clientSecret,
    clientKey: keyFile === undefined ? undefined : loadClientKey(keyFile, faults),
    scopes: env.UPSTREAM_SCOPES,
    label: env.UPSTREAM_LABEL ?? env.PLATFORM_NAME ?? host,
    claim: env.UPSTREAM_CLAIM,
    match,
    createMembers: env.UPSTREAM_CREATE_MEMBERS,
    logout: env.UPSTREAM_LOGOUT,
  };
}

function loadClientKey(file: string, faults: string[]) {
  try {
    return readClientKey(readFileSync(file, 'utf8'));
  } catch {
    faults.push('UPSTREAM_CLIENT_KEY_FILE must be a readable file with a private key (PKCS #8, PEM)');
    return undefined;
  }
}

/** Tells whether this development package is installed: `npm ci --omit=dev` omits it. */
export function isInstalled(name: '@electric-sql/pglite' | 'pino-pretty'): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** Reads `.env` in the working folder, if it exists; the environment takes precedence. */
export function loadDotEnv(): void {
  if (existsSync('.env')) process.loadEnvFile('.env');
}

/** Tells whether the URL names a host; if not, pg uses PGHOST. */
function namesHost(url: string): boolean {
  const { hostname, searchParams } = new URL(url);
  return Boolean(hostname || searchParams.get('host'));
}

/** Returns a warning if a server with a public https URL does not run in production mode; otherwise undefined. */
export function exposedDevelopment({ production, publicUrl }: Config): string | undefined {
  const { protocol, hostname } = new URL(publicUrl);
  if (production || protocol !== 'https:' || isLoopback(hostname)) return undefined;
  return (
    'PUBLIC_URL is public, but NODE_ENV is not production: the server accepts development secrets, the embedded database, ' +
    'test keys and http redirect URIs'
  );
}

/** @param host a name or an address, IPv6 with or without brackets */
function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1)$/i.test(host);
}

/** Reads the secret of a development host from the data folder; creates it if it does not exist. */
function developmentSecret(dataDir: string): Buffer {
  const file = join(dataDir, 'secret-key');
  try {
    ownFolder(dataDir);
    if (!existsSync(file)) {
      try {
        writeWhole(file, makeSecretKey(), 0o600, linkSync); // fails if another process was first; then this process uses that secret
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
    if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
    return Buffer.from(readFileSync(file, 'utf8'), 'base64');
  } catch (error) {
    if (error instanceof UnsafeFolder) throw new OperatorError(`DATA_DIR ${error.message}`, { cause: error });
    throw new OperatorError(
      `DATA_DIR ${dataDir} cannot be used (${(error as NodeJS.ErrnoException).code ?? 'unknown error'}): ` +
        'name a folder that this user may write to',
      { cause: error },
    );
  }
}
