import { pino, type LogFn } from 'pino';
import type { Config } from '../config/config.js';

/** Injection token of the process’s log, which pino writes. */
export abstract class Logger {
  abstract readonly error: LogFn;
  abstract readonly warn: LogFn;
  abstract readonly info: LogFn;
  abstract readonly debug: LogFn;
}

/**
 * Everything that could be one of our secrets, anywhere in a text: API keys, opaque tokens, webhook secrets, calendar links. What is before
 * a token is looked at only where ten of its characters follow: looking back from each of thousands of spaces would take seconds.
 */
const SECRET_PATTERNS =
  /pua_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{10,}|whsec_[A-Za-z0-9+/=]{10,}|(?=[A-Za-z0-9._~+/=-]{10})(?<=\b(?:Bearer|DPoP)\s+)[A-Za-z0-9._~+/=-]+|(?<=\/calendar\/)[\w%-]{10,}/gi;

/** Removes everything from a text that could be one of our secrets. */
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

/** Creates the log: JSON lines on stdout (pretty ones on a terminal), with secrets removed by path and by pattern. */
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

/** Leaves out an error’s other properties: a database error carries the values of the statement. */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  return { type: name, message, code, stack, cause: cause === undefined ? undefined : describeError(cause) };
}
