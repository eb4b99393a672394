import { pino, type LogFn } from 'pino';
import type { Config } from '../config/config.js';
import { withoutSecrets } from '../values/secret-forms.js';

/** The process's pino log; a class, so that Nest can inject it. */
export abstract class Logger {
  abstract readonly error: LogFn;
  abstract readonly warn: LogFn;
  abstract readonly info: LogFn;
  abstract readonly debug: LogFn;
}

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

/** Creates the log: JSON lines on stdout (formatted lines if LOG_FORMAT is pretty). Redacts secrets by path and by pattern. */
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

/** Omits other properties: those of a database error can contain the statement's values. */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  return { type: name, message, code, stack, cause: cause === undefined ? undefined : describeError(cause) };
}
