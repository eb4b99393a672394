import { isNativeError } from 'node:util/types';

/** The database (or another store) cannot answer now; the same request may succeed later. */
export class Unavailable extends Error {
  override name = 'Unavailable';
}

/** Node's own errors when a connection breaks or cannot be made. */
const NETWORK_ERRORS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT', // the embedded database's socket is not there
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EPIPE',
]);

/**
 * Classes and codes of PostgreSQL (appendix A) after which trying again later is right: connection, resources,
 * operator intervention (57014 is statement_timeout too), system errors, a standby (25006), lost races, locks,
 * and a login that fails because the server is being set up again.
 */
const TRANSIENT_STATES = /^(08|53|57|58|28|3D|25006|40001|40P01|55P03|25P03|25P04)/;

/**
 * Errors without a code: pg's own, and TypeORM's where a connection broke between two statements of a transaction: it has let go of
 * the connection by the next one, and says no more than that.
 */
const TRANSIENT_MESSAGES =
  /^(timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client was closed|Client has encountered a connection error|Cannot use a pool after|Connection ended|Query runner already released|Database connection provided by a query runner was already released)/;

/** Whether `error` (or what caused it) means that the database is away, overloaded or busy. */
export function isUnavailable(error: unknown): boolean {
  // Not instanceof: what Node itself throws is of another realm under a test runner.
  for (let cause = error; isNativeError(cause); cause = cause.cause) {
    if (cause instanceof Unavailable || TRANSIENT_MESSAGES.test(cause.message)) return true;
    const { code } = cause as { code?: unknown };
    if (typeof code === 'string' && (NETWORK_ERRORS.has(code) || TRANSIENT_STATES.test(code))) return true;
    const { errors } = cause as { errors?: unknown };
    if (Array.isArray(errors) && errors.some(isUnavailable)) return true;
    if ('driverError' in cause && isUnavailable(cause.driverError)) return true;
  }
  return false;
}
