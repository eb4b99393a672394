import { chmodSync, existsSync, linkSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import type { z } from 'zod';
import { readClientKey } from '../crypto/client-key.js';
import type { KeyObject } from '../crypto/client-key.js';
import { makeSecretKey, Secrets } from '../crypto/secrets.js';
import { isInstalled } from './optional-packages.js';
import { ownFolder, UnsafeFolder } from './own-folder.js';
import { SETTINGS, SEVERAL_HOSTS } from './settings.js';
import type { SettingName } from './settings.js';
import { OperatorError } from '../values/operator-error.js';

/** The member's field that is compared with the claim of the platform's own login. */
export type UpstreamMatch = 'external_id' | 'id' | 'username';

/** The platform's own login: an OpenID provider, and how this server is registered there. */
export interface UpstreamConfig {
  readonly issuer: string;
  readonly clientId: string;
  /** Either this or {@link UpstreamConfig.clientKey}. */
  readonly clientSecret: string | undefined;
  readonly clientKey: KeyObject | undefined;
  /** Separated by spaces. */
  readonly scopes: string;
  /** The name that pages call it by. */
  readonly label: string;
  readonly claim: string;
  readonly match: UpstreamMatch;
  readonly createMembers: boolean;
  /** Whether who signs out here is signed out there. */
  readonly logout: boolean;
}

/** The settings of the process, read once and frozen. Made by {@link loadConfig}; a class, so that it can be injected by its type. */
export abstract class Config {
  abstract readonly production: boolean;
  abstract readonly host: string;
  abstract readonly port: number;
  /** The origin that callers see, without a trailing slash; the OAuth issuer. */
  abstract readonly publicUrl: string;
  /** Absolute path. */
  abstract readonly dataDir: string;
  /** `undefined`: the embedded database in {@link Config.dataDir}. */
  abstract readonly databaseUrl: string | undefined;
  abstract readonly databaseDirectUrl: string | undefined;
  /** Streaming replicas that members' lists and profiles are read from; none without DATABASE_READ_URL. */
  abstract readonly databaseReadUrls: readonly string[];
  abstract readonly databasePoolSize: number;
  /**
   * Longest time a request may wait for the database, in ms: for a connection, for a lock, for an answer.
   * A 503 is promised within a second.
   */
  abstract readonly databaseDeadlines: {
    readonly connect: number;
    readonly lock: number;
    readonly statement: number;
    /** Bounds the sum of the others. */
    readonly answer: number;
  };
  /** A client that takes longer to send its request is cut off, in ms. */
  abstract readonly requestDeadlines: {
    readonly headers: number;
    /** Headers and body. */
    readonly whole: number;
  };
  /** Longest time a sign-in waits for its turn, in ms; then it is refused as busy. */
  abstract readonly signInPatience: number;
  /** A refused sign-in takes at least this long, in ms. */
  abstract readonly shortestRefusal: number;
  abstract readonly secrets: Secrets;
  abstract readonly trustProxy: number;
  abstract readonly redisUrl: string | undefined;
  /** Per minute; 0 switches one off. */
  abstract readonly rateLimits: { readonly read: number; readonly write: number; readonly auth: number };
  /** Calls a minute of each key of the platform; 0: no limit. */
  abstract readonly platformRateLimit: number;
  /** Shortest time between two exchanges of counts with other instances. */
  abstract readonly rateLimitSyncMs: number;
  /** Server processes on this machine. */
  abstract readonly workers: number;
  abstract readonly metricsPort: number | undefined;
  /** How long an instance that is shutting down goes on serving after it has stopped being ready. */
  abstract readonly shutdownDelaySeconds: number;
  abstract readonly sweepIntervalSeconds: number;
  /** Age after which audit events are swept; 0: never. */
  abstract readonly auditRetentionSeconds: number;
  /** Age after which changes are swept that apps sync by; 0: never. */
  abstract readonly changesRetentionSeconds: number;
  /** Whether a client_id may be the address of a document about the client. */
  abstract readonly clientIdMetadataDocuments: boolean;
  abstract readonly upstream: UpstreamConfig | undefined;
  /** Whether members may sign in with a password here. */
  abstract readonly localSignIn: boolean;
  /** Whether members may register apps and make keys of their own. */
  abstract readonly developerConsole: boolean;
  /** Where members ask for help: https, http or mailto. */
  abstract readonly supportUrl: string | undefined;
  /** Whom to tell of a weakness: https or mailto. */
  abstract readonly securityContact: string | undefined;
  /** The name of the platform on pages and in documents. */
  abstract readonly platformName: string | undefined;
  /** https, http, file or data; read at start, and served from here. */
  abstract readonly platformLogoUrl: string | undefined;
  /** `#rrggbb`, readable on white. */
  abstract readonly platformColor: string | undefined;
  abstract readonly privacyUrl: string | undefined;
  abstract readonly signUpUrl: string | undefined;
  /** Where members set a new password. */
  abstract readonly passwordResetUrl: string | undefined;
  /** By which mail server mails are sent, and from whom they are. */
  abstract readonly mail: { readonly smtpUrl: string; readonly from: string } | undefined;
  /** Whether statements bear the id of their request, as a comment. */
  abstract readonly sqlRequestIds: boolean;
  abstract readonly logLevel: string;
  abstract readonly logFormat: 'json' | 'pretty';
  /** Whether PUBLIC_URL and HOST are this machine's own, so that nobody else can reach the server. */
  abstract readonly loopbackOnly: boolean;
  /** Only where {@link Config.loopbackOnly} is true. */
  abstract readonly seedDemo: boolean;
}

/** Names the API: after the platform, if that has a name. */
export function apiNameOf({ platformName }: Pick<Config, 'platformName'>): string {
  return platformName === undefined ? 'Public User API' : `${platformName} API`;
}

type Environment = {
  [Name in SettingName]: z.infer<(typeof SETTINGS)[Name]['read']>;
};

/**
 * Reads the settings. An empty variable counts as absent.
 *
 * @throws OperatorError that names every bad setting, never a value.
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const faults: string[] = [];
  const env = Object.fromEntries(
    Object.entries(SETTINGS).map(([name, { read }]) => {
      const { data, error } = read.safeParse(environment[name] || undefined);
      for (const { message } of error?.issues ?? []) faults.push(`${name} ${message}`);
      return [name, data];
    }),
  ) as Environment;
  const given = (name: SettingName) => Boolean(environment[name]);
  const production = env.NODE_ENV === 'production';
  const port = env.PORT ?? 3000;
  const publicUrl = env.PUBLIC_URL ?? `http://localhost:${port}`;
  const dataDir = resolve(env.DATA_DIR ?? '.data');

  const host = env.HOST ?? (production ? '0.0.0.0' : '127.0.0.1');
  const loopbackOnly = isLoopback(new URL(publicUrl).hostname) && isLoopback(host);

  if (env.LOG_FORMAT === 'pretty' && !isInstalled('pino-pretty'))
    faults.push('LOG_FORMAT must be json: pretty logs are not part of this installation');
  if (production) {
    if (!given('SECRET_KEY'))
      faults.push('SECRET_KEY is required in production: generate one with `npx pua secrets generate`');
    if (!given('DATABASE_URL'))
      faults.push('DATABASE_URL is required in production: the embedded database is for development');
    if (!publicUrl.startsWith('https:') && !isLoopback(new URL(publicUrl).hostname))
      faults.push('PUBLIC_URL must be https in production');
    if (env.SEED_DEMO)
      faults.push('SEED_DEMO cannot be true in production: demo members have known passwords');
  } else if (env.SEED_DEMO && !loopbackOnly) {
    faults.push(
      'SEED_DEMO can be true only where PUBLIC_URL and HOST are loopback (localhost, 127.0.0.1, ::1): demo members have known passwords',
    );
  }
  if (given('DATABASE_READ_URL') && !given('DATABASE_URL'))
    faults.push('DATABASE_READ_URL needs DATABASE_URL: the embedded database has no replicas');
  if (env.SQL_REQUEST_IDS && !given('DATABASE_URL'))
    faults.push('SQL_REQUEST_IDS needs DATABASE_URL: the embedded database writes no log');
  const urls = [env.DATABASE_URL, env.DATABASE_DIRECT_URL, ...(env.DATABASE_READ_URL ?? [])];
  if (environment.PGHOST?.includes(',') && urls.some((url) => url !== undefined && !namesHost(url)))
    faults.push(`PGHOST ${SEVERAL_HOSTS}`);
  const upstream = upstreamOf(env, production, faults);
  if (env.LOCAL_SIGN_IN === false && !env.UPSTREAM_ISSUER)
    faults.push('LOCAL_SIGN_IN can be false only with UPSTREAM_ISSUER: otherwise nobody could sign in');
  if ((env.SMTP_URL === undefined) !== (env.MAIL_FROM === undefined))
    faults.push('SMTP_URL and MAIL_FROM must be set together');
  if (faults.length > 0) throw badSettings(faults);

  return Object.freeze({
    production,
    host,
    port,
    publicUrl,
    dataDir,
    databaseUrl: env.DATABASE_URL,
    databaseDirectUrl: env.DATABASE_DIRECT_URL ?? env.DATABASE_URL,
    databaseReadUrls: env.DATABASE_READ_URL ?? [],
    databasePoolSize: env.DATABASE_POOL_SIZE ?? 10,
    // The embedded database runs on the caller's own machine and has one session: waiting is right there.
    databaseDeadlines: env.DATABASE_URL
      ? { connect: 300, lock: 300, statement: 600, answer: 900 }
      : { connect: 10_000, lock: 10_000, statement: 10_000, answer: 30_000 },
    requestDeadlines: { headers: 5_000, whole: 10_000 },
    signInPatience: 2_000,
    shortestRefusal: 500,
    secrets: new Secrets(env.SECRET_KEY ?? developmentSecret(dataDir), env.SECRET_KEY_PREVIOUS),
    trustProxy: env.TRUST_PROXY ?? 0,
    redisUrl: env.REDIS_URL,
    rateLimits: {
      read: env.RATE_LIMIT_READ ?? 300,
      write: env.RATE_LIMIT_WRITE ?? 30,
      auth: env.RATE_LIMIT_AUTH ?? 20,
    },
    platformRateLimit: env.RATE_LIMIT_PLATFORM ?? 600,
    rateLimitSyncMs: env.RATE_LIMIT_SYNC ?? 200,
    workers: env.WORKERS === 'auto' ? availableParallelism() : (env.WORKERS ?? 1),
    metricsPort: env.METRICS_PORT,
    shutdownDelaySeconds: env.SHUTDOWN_DELAY ?? (production ? 5 : 0),
    sweepIntervalSeconds: env.SWEEP_INTERVAL ?? 60,
    auditRetentionSeconds: env.AUDIT_RETENTION ?? 400 * 86_400,
    changesRetentionSeconds: env.CHANGES_RETENTION ?? 30 * 86_400,
    clientIdMetadataDocuments: env.CLIENT_ID_METADATA_DOCUMENTS ?? false,
    upstream,
    localSignIn: env.LOCAL_SIGN_IN ?? true,
    developerConsole: env.DEVELOPER_CONSOLE ?? false,
    supportUrl: env.SUPPORT_URL,
    securityContact: env.SECURITY_CONTACT,
    platformName: env.PLATFORM_NAME,
    platformLogoUrl: env.PLATFORM_LOGO_URL,
    platformColor: env.PLATFORM_COLOR,
    privacyUrl: env.PRIVACY_URL,
    signUpUrl: env.SIGN_UP_URL,
    passwordResetUrl: env.PASSWORD_RESET_URL,
    mail:
      env.SMTP_URL === undefined || env.MAIL_FROM === undefined
        ? undefined
        : { smtpUrl: env.SMTP_URL, from: env.MAIL_FROM },
    sqlRequestIds: env.SQL_REQUEST_IDS ?? false,
    logLevel: env.LOG_LEVEL ?? 'info',
    logFormat: env.LOG_FORMAT ?? (process.stdout.isTTY && isInstalled('pino-pretty') ? 'pretty' : 'json'),
    loopbackOnly,
    seedDemo: env.SEED_DEMO ?? (loopbackOnly && (env.NODE_ENV ?? 'development') === 'development'),
  });
}

const OF_UPSTREAM = (Object.keys(SETTINGS) as SettingName[]).filter((name) => name.startsWith('UPSTREAM_'));

/** Reads the settings of the platform's own login: all of them, or none. @param faults collects what is wrong */
function upstreamOf(env: Environment, production: boolean, faults: string[]): UpstreamConfig | undefined {
  const [issuer, clientId, clientSecret] = [
    env.UPSTREAM_ISSUER,
    env.UPSTREAM_CLIENT_ID,
    env.UPSTREAM_CLIENT_SECRET,
  ];
  const keyFile = env.UPSTREAM_CLIENT_KEY_FILE;
  if (issuer === undefined || clientId === undefined) {
    const given = OF_UPSTREAM.filter((name) => env[name] !== undefined);
    if (given.length > 0)
      faults.push(`UPSTREAM_ISSUER and UPSTREAM_CLIENT_ID are required for ${given.join(', ')}`);
    return undefined;
  }
  if ((clientSecret === undefined) === (keyFile === undefined))
    faults.push(
      'UPSTREAM_CLIENT_SECRET or UPSTREAM_CLIENT_KEY_FILE is required with UPSTREAM_ISSUER: exactly one of them',
    );
  const { protocol, hostname, host } = new URL(issuer);
  if (protocol === 'http:' && (production || !isLoopback(hostname)))
    faults.push('UPSTREAM_ISSUER must be https (http on a loopback address outside production)');
  const match = env.UPSTREAM_MATCH ?? 'external_id';
  const createMembers = env.UPSTREAM_CREATE_MEMBERS ?? false;
  if (createMembers && match === 'id')
    faults.push(
      'UPSTREAM_CREATE_MEMBERS cannot be true with UPSTREAM_MATCH=id: ids are assigned by this server',
    );
  return {
    issuer,
    clientId,
    clientSecret,
    clientKey: keyFile === undefined ? undefined : clientKeyOf(keyFile, faults),
    scopes: env.UPSTREAM_SCOPES ?? 'openid',
    label: env.UPSTREAM_LABEL ?? env.PLATFORM_NAME ?? host,
    claim: env.UPSTREAM_CLAIM ?? 'sub',
    match,
    createMembers,
    logout: env.UPSTREAM_LOGOUT ?? false,
  };
}

function clientKeyOf(file: string, faults: string[]): KeyObject | undefined {
  try {
    return readClientKey(readFileSync(file, 'utf8'));
  } catch {
    faults.push('UPSTREAM_CLIENT_KEY_FILE must be a readable file with a private key (PKCS #8, PEM)');
    return undefined;
  }
}

/** Reads `.env` in the working folder, where there is one; what the environment already holds wins. */
export function loadDotEnv(): void {
  if (existsSync('.env')) process.loadEnvFile('.env');
}

function badSettings(faults: readonly string[]): OperatorError {
  return new OperatorError(
    `${faults.length === 1 ? 'A setting is' : `${faults.length} settings are`} wrong: ${faults.join('; ')}`,
  );
}

/** Whether the URL of a database says where it is: pg takes that from PGHOST otherwise. */
function namesHost(url: string): boolean {
  const { hostname, searchParams } = new URL(url);
  return Boolean(hostname || searchParams.get('host'));
}

/** Says what is wrong where a server that others reach runs as on a developer's machine; undefined where all is well. */
export function exposedDevelopment({ production, publicUrl }: Config): string | undefined {
  const { protocol, hostname } = new URL(publicUrl);
  if (production || protocol !== 'https:' || isLoopback(hostname)) return undefined;
  return (
    'PUBLIC_URL is public, but NODE_ENV is not production: the secrets and the database of a developer’s machine, ' +
    'test keys and redirect URIs with http are accepted'
  );
}

/** @param host a name or an address, IPv6 with or without brackets */
function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1)$/i.test(host);
}

/** The secret of a development machine: made once, kept in the data folder, readable by its owner only. */
function developmentSecret(dataDir: string): Buffer {
  const file = join(dataDir, 'secret-key');
  try {
    ownFolder(dataDir);
    if (!existsSync(file)) {
      const draft = `${file}.${process.pid}`;
      writeFileSync(draft, makeSecretKey(), { mode: 0o600 });
      chmodSync(draft, 0o600);
      try {
        linkSync(draft, file); // fails if another process was first, whose secret is then used
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      } finally {
        rmSync(draft);
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
