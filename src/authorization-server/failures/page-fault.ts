import { errors, type Client } from 'oidc-provider';
import { TooManyChanges } from '../../auth/owner.js';
import { isUnavailable } from '../../database/postgres/unavailable.js';
import { refusalOf, type RefusalReason } from '../reasons/refusal-reasons.js';

/** Why a page cannot be shown. Its title and message are texts of the pages. */
export type FaultName =
  | 'busy'
  | 'failed'
  | 'expired'
  | 'finished'
  | 'wrongRequest'
  | 'wrongSignOut'
  | 'unknownApp'
  | 'wrongAddress'
  | 'strangeApp'
  | 'signedOut'
  | 'foreignForm'
  | 'unreadableForm'
  | 'unknownMember'
  | 'upstreamAway'
  | 'upstreamFailed'
  | 'upstreamDeclined'
  | 'malformed'
  | 'nothingHere'
  | 'unknownAddress'
  | 'tooMany'
  | 'tooManyChanges';

/** The page that explains a fault. */
export interface ErrorPage {
  readonly name: 'error';
  readonly fault: FaultName;
  /** undefined where there is nothing to find by it. */
  readonly error_id?: string;
  /** The name of the platform's own login, if the fault is about it. */
  readonly login?: string;
  /** What the member can do next. */
  readonly next?: {
    readonly text: 'tryAgain' | 'anotherAccount' | 'toApp' | 'backToApp' | 'toFront';
    readonly href: string;
    /** For `toApp`. */
    readonly host?: string;
  };
  /** For `tooMany`. */
  readonly retryAfterSeconds?: number;
  /** For developers: the RFC's error code. */
  readonly code?: string | undefined;
  /** For developers: what is wrong, in English. */
  readonly detail?: string | undefined;
  /** For developers: the parameter whose value is not registered, as sent, and the registered values. */
  readonly unregistered?:
    { readonly name: string; readonly value: string; readonly registered: readonly string[] } | undefined;
}

/** A fault that a page explains in the member's language; its reason goes to the log. */
export class PageFault extends Error {
  constructor(
    readonly status: number,
    readonly fault: FaultName,
    /** For developers: the RFC's error code, if there is one. */
    readonly code?: string,
    /** Further parts of the page. */
    readonly more: Pick<ErrorPage, 'login' | 'next'> = {},
    /** For the log and the list of refusals, if the status alone does not tell it. */
    readonly reason?: RefusalReason,
    /** For the log; contains nothing sent by a caller. */
    readonly detail?: string,
  ) {
    super(fault);
  }

  page(errorId: string, unregistered?: ErrorPage['unregistered']): ErrorPage {
    return {
      name: 'error',
      fault: this.fault,
      error_id: errorId,
      code: this.code,
      ...this.more,
      unregistered,
    };
  }
}

export const SERVER_BUSY = new PageFault(503, 'busy', 'temporarily_unavailable');
const SERVER_FAILED = new PageFault(500, 'failed', 'server_error');

/** Faults for errors that cannot be sent to the client, by the RFC's error code. */
const FAULTS: Readonly<Record<string, FaultName>> = {
  invalid_client: 'unknownApp',
  invalid_redirect_uri: 'wrongAddress',
  invalid_request_uri: 'expired',
};

/**
 * Turns any error into a fault for members. The library's own messages are for developers, and go into JSON and redirects.
 *
 * @param signingOut whether it was thrown at sign-out, where still being signed in matters more than a wrong client
 */
export function pageFaultOf(error: unknown, signingOut = false): PageFault {
  if (error instanceof PageFault) return error;
  if (isUnavailable(error)) return SERVER_BUSY;
  if (error instanceof TooManyChanges) return new PageFault(429, 'tooManyChanges');
  if (!(error instanceof errors.OIDCProviderError) || !error.expose) return SERVER_FAILED;
  if (error.error === SERVER_BUSY.code) return SERVER_BUSY;
  const fault = error instanceof errors.SessionNotFound ? 'expired' : (FAULTS[error.error] ?? 'wrongRequest');
  return new PageFault(error.statusCode, signingOut ? 'wrongSignOut' : fault, error.error);
}

/** As the library says it. */
const STEP_GONE = 'interaction session not found';

/** Another request went on from the step, or it has expired: its page says so, and the app is told nothing. */
export function stepGone(): errors.SessionNotFound {
  return Object.assign(new errors.SessionNotFound(STEP_GONE), { allow_redirect: false });
}

/** Whether the library does not find a step of which this browser has the cookie: it has expired, or ended. */
export function isStepGone(error: unknown): boolean {
  return error instanceof errors.SessionNotFound && error.error_description === STEP_GONE;
}

/** The parameters that must be registered, and the client metadata with which each is compared. */
const UNREGISTERED: {
  readonly [Reason in RefusalReason]?: [string, ('redirectUris' | 'postLogoutRedirectUris')?];
} = {
  unknown_client: ['client_id'],
  unregistered_redirect_uri: ['redirect_uri', 'redirectUris'],
  unregistered_post_logout_redirect_uri: ['post_logout_redirect_uri', 'postLogoutRedirectUris'],
};

/**
 * Gives what an app's developer has to compare: the parameter as sent, and the registered values, which are not secret, since every
 * sign-in of the app sends them through the browser.
 */
export function unregisteredOf(
  error: Error,
  parameters: Readonly<Record<string, unknown>> | undefined,
  client: Client | undefined,
): ErrorPage['unregistered'] {
  const [name, registered] = UNREGISTERED[refusalOf(error).reason] ?? [];
  const value = name === undefined ? undefined : parameters?.[name];
  if (name === undefined || typeof value !== 'string') return undefined;
  return { name, value, registered: (registered && client?.[registered]) ?? [] };
}
