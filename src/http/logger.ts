import { pino } from 'pino';
import type { LogFn } from 'pino';
import type { Config } from '../config/config.js';

/** The log of the process, which pino writes: what it is injected by. */
export abstract class Logger {
  abstract readonly error: LogFn;
  abstract readonly warn: LogFn;
  abstract readonly info: LogFn;
  abstract readonly debug: LogFn;
}

/** Everything that could be a secret of ours, wherever it stands in a text: API keys, opaque tokens, secrets of webhooks, calendar links. */
const SECRET_PATTERNS =
  /pua_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{10,}|whsec_[A-Za-z0-9+/=]{10,}|(?<=\b(?:Bearer|DPoP)\s+)[A-Za-z0-9._~+/=-]{10,}|(?<=\/calendar\/)[\w%-]{10,}/gi;

/** A text in which nothing is left that could be a secret of ours. */
export const withoutSecrets = (text: string) => text.replace(SECRET_PATTERNS, '[redacted]');

const SECRET_PATHS = [
  'authorization',
  'cookie',
  'x-api-key',
  'password',
  'token',
  'access_token',
  'refresh_token',
  'code_verifier',
  'client_assertion',
  'client_secret',
].flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]);

/** Makes the log: JSON lines on stdout (pretty ones on a terminal), secrets taken out by path and by pattern. */
export function createLogger(config: Config): Logger {
  const options = {
    level: config.logLevel,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
    redact: { paths: SECRET_PATHS, censor: '[redacted]' },
    hooks: { streamWrite: withoutSecrets },
  };
  return config.logFormat === 'pretty'
    ? pino({ ...options, transport: { target: 'pino-pretty', options: { ignore: 'pid,hostname' } } })
    : pino(options);
}

/** Not what else hangs on an error: one of the database's carries the statement's values. */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  return { type: name, message, code, stack, cause: cause === undefined ? undefined : describeError(cause) };
}
