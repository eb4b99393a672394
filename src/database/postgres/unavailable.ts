import { isNativeError } from 'node:util/types';
import { OperatorError } from '../../values/operator-error.js';

/** The database (or another store) cannot respond now; the same request may succeed later. */
export class Unavailable extends Error {
  override name = 'Unavailable';
}

/** No connection to the database was possible. */
export class UnreachableDatabase extends OperatorError {}

/** Node's network errors; ENOENT if the embedded database's socket is missing. */
const NETWORK_ERRORS =
  /^(ECONNREFUSED|ECONNRESET|ENOENT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EPIPE)$/;

/**
 * Transient classes and codes (PostgreSQL, appendix A): connection, resources, operator intervention (57014: statement_timeout), system
 * errors, rejected logins, a missing database, a standby (25006), transaction timeouts, lost races, locks. Also missing tables, columns
 * and functions: the schema may be another version's (`/readyz` reports this).
 */
const TRANSIENT_STATES = /^(08|53|57|58|28|3D|25006|40001|40P01|55P03|25P03|25P04|42P01|42703|42883)/;

/** Errors without a code, from pg, or from TypeORM if the connection broke within a transaction. */
const TRANSIENT_MESSAGES =
  /^(timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client was closed|Client has encountered a connection error|Cannot use a pool after|Connection ended|Query runner already released|Database connection provided by a query runner was already released)/;

/** Tells whether `error` (or its cause) means that the database is unreachable, overloaded or busy. */
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
