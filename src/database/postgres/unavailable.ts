import { isNativeError } from 'node:util/types';
import { OperatorError } from '../../values/operator-error.js';

/** The database (or another store) cannot respond now; the same request may succeed later. */
export class Unavailable extends Error {
  override name = 'Unavailable';
}

/** The database did not respond, so the command did nothing. */
export class UnreachableDatabase extends OperatorError {}

/** Node's own errors when a connection breaks or cannot be made; ENOENT where the embedded database's socket is missing. */
const NETWORK_ERRORS =
  /^(ECONNREFUSED|ECONNRESET|ENOENT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EPIPE)$/;

/**
 * Classes and codes of PostgreSQL (appendix A) for which a later retry is right: connection, resources, operator intervention
 * (57014 includes statement_timeout), system errors, a standby (25006), lost races, locks, and a login that fails because the
 * server is being set up again. Tables, columns and functions that are not there (42P01, 42703, 42883), since all statements are of this
 * version: the schema is another's, as `/readyz` says, and the request belongs to an instance of that one.
 */
const TRANSIENT_STATES = /^(08|53|57|58|28|3D|25006|40001|40P01|55P03|25P03|25P04|42P01|42703|42883)/;

/**
 * Errors without a code: pg's own, and TypeORM's if the connection broke between two statements of a transaction: the query runner
 * was released by then and refuses the next statement.
 */
const TRANSIENT_MESSAGES =
  /^(timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client was closed|Client has encountered a connection error|Cannot use a pool after|Connection ended|Query runner already released|Database connection provided by a query runner was already released)/;

/** Whether `error` (or its cause) means that the database is unreachable, overloaded or busy. */
export function isUnavailable(error: unknown): boolean {
  // Not instanceof: under a test runner, errors thrown by Node come from another realm.
  for (let cause = error; isNativeError(cause); cause = cause.cause) {
    if (cause instanceof Unavailable || TRANSIENT_MESSAGES.test(cause.message)) return true;
    const { code } = cause as { code?: unknown };
    if (typeof code === 'string' && (NETWORK_ERRORS.test(code) || TRANSIENT_STATES.test(code))) return true;
    const { errors } = cause as { errors?: unknown };
    if (Array.isArray(errors) && errors.some(isUnavailable)) return true;
    if ('driverError' in cause && isUnavailable(cause.driverError)) return true;
  }
  return false;
}
