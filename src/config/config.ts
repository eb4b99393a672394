import { chmodSync, existsSync, linkSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import type { z } from 'zod';
import { makeSecretKey, Secrets } from '../crypto/secrets.js';
import { ownFolder, UnsafeFolder } from './own-folder.js';
import { SETTINGS } from './settings.js';
import type { SettingName } from './settings.js';
import { OperatorError } from '../values/operator-error.js';

/** Everything the process was told, read once and frozen. Made by {@link loadConfig}; a class, so that it is injected by its type. */
export abstract class Config {
  abstract readonly production: boolean;
  abstract readonly host: string;
  abstract readonly port: number;
  /** Origin that callers see, without a slash at the end; the OAuth issuer. */
  abstract readonly publicUrl: string;
  /** Absolute path. */
  abstract readonly dataDir: string;
  /** `undefined`: the embedded database in {@link Config.dataDir}. */
  abstract readonly databaseUrl: string | undefined;
  abstract readonly databaseDirectUrl: string | undefined;
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
  /** Longest time a sign-in waits for its turn, in ms; then it is refused as busy. */
  abstract readonly signInPatience: number;
  abstract readonly secrets: Secrets;
  abstract readonly trustProxy: number;
  abstract readonly redisUrl: string | undefined;
  /** Per minute; 0 switches one off. */
  abstract readonly rateLimits: { readonly read: number; readonly write: number; readonly auth: number };
  /** Server processes on this machine. */
  abstract readonly workers: number;
  abstract readonly metricsPort: number | undefined;
  /** For so long an ending instance serves on, not ready any more. */
  abstract readonly shutdownDelaySeconds: number;
  abstract readonly sweepIntervalSeconds: number;
  /** Age after which audit events are swept; 0: never. */
  abstract readonly auditRetentionSeconds: number;
  /** Age after which changes are swept that apps sync by; 0: never. */
  abstract readonly changesRetentionSeconds: number;
  /** Whether a client_id may be the address of a document about the client. */
  abstract readonly clientIdMetadataDocuments: boolean;
  /** Where members ask for help: https, http or mailto. */
  abstract readonly supportUrl: string | undefined;
  /** Whom to tell of a weakness: https or mailto. */
  abstract readonly securityContact: string | undefined;
  /** What pages and documents call the platform. */
  abstract readonly platformName: string | undefined;
  /** https, http, file or data; read at start, and served from here. */
  abstract readonly platformLogoUrl: string | undefined;
  /** `#rrggbb`, readable on white. */
  abstract readonly platformColor: string | undefined;
  abstract readonly privacyUrl: string | undefined;
  abstract readonly signUpUrl: string | undefined;
  /** Where members set a new password. */
  abstract readonly passwordResetUrl: string | undefined;
  abstract readonly logLevel: string;
  abstract readonly logFormat: 'json' | 'pretty';
  /** Whether PUBLIC_URL and HOST are this machine's own: nobody else is let in. */
  abstract readonly loopbackOnly: boolean;
  /** Only where {@link Config.loopbackOnly} is true. */
  abstract readonly seedDemo: boolean;
}

/** What the API is called: by the platform's name, where it has one. */
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

  if (production) {
    if (!given('SECRET_KEY'))
      faults.push('SECRET_KEY is required in production: make one with `npx pua secrets generate`');
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
  if (faults.length > 0) throw badSettings(faults);

  return Object.freeze({
    production,
    host,
    port,
    publicUrl,
    dataDir,
    databaseUrl: env.DATABASE_URL,
    databaseDirectUrl: env.DATABASE_DIRECT_URL ?? env.DATABASE_URL,
    databasePoolSize: env.DATABASE_POOL_SIZE ?? 10,
    // The embedded database runs on the caller's own machine and has one session: waiting is right there.
    databaseDeadlines: env.DATABASE_URL
      ? { connect: 300, lock: 300, statement: 600, answer: 900 }
      : { connect: 10_000, lock: 10_000, statement: 10_000, answer: 30_000 },
    signInPatience: 2_000,
    secrets: new Secrets(env.SECRET_KEY ?? developmentSecret(dataDir), env.SECRET_KEY_PREVIOUS),
    trustProxy: env.TRUST_PROXY ?? 0,
    redisUrl: env.REDIS_URL,
    rateLimits: {
      read: env.RATE_LIMIT_READ ?? 300,
      write: env.RATE_LIMIT_WRITE ?? 30,
      auth: env.RATE_LIMIT_AUTH ?? 20,
    },
    workers: env.WORKERS === 'auto' ? availableParallelism() : (env.WORKERS ?? 1),
    metricsPort: env.METRICS_PORT,
    shutdownDelaySeconds: env.SHUTDOWN_DELAY ?? (production ? 5 : 0),
    sweepIntervalSeconds: env.SWEEP_INTERVAL ?? 60,
    auditRetentionSeconds: env.AUDIT_RETENTION ?? 400 * 86_400,
    changesRetentionSeconds: env.CHANGES_RETENTION ?? 30 * 86_400,
    clientIdMetadataDocuments: env.CLIENT_ID_METADATA_DOCUMENTS ?? false,
    supportUrl: env.SUPPORT_URL,
    securityContact: env.SECURITY_CONTACT,
    platformName: env.PLATFORM_NAME,
    platformLogoUrl: env.PLATFORM_LOGO_URL,
    platformColor: env.PLATFORM_COLOR,
    privacyUrl: env.PRIVACY_URL,
    signUpUrl: env.SIGN_UP_URL,
    passwordResetUrl: env.PASSWORD_RESET_URL,
    logLevel: env.LOG_LEVEL ?? 'info',
    logFormat: env.LOG_FORMAT ?? (process.stdout.isTTY ? 'pretty' : 'json'),
    loopbackOnly,
    seedDemo: env.SEED_DEMO ?? (loopbackOnly && (env.NODE_ENV ?? 'development') === 'development'),
  });
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
        linkSync(draft, file); // fails where another process was first: then its secret counts
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
