import { errors, type Client } from 'oidc-provider';
import { TooManyChanges } from '../../auth/owner.js';
import { isUnavailable } from '../../database/postgres/unavailable.js';
import { classify, type RejectionReason } from '../reasons/rejection-reasons.js';

/** Reason for an error page; title and message are in the page texts. */
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

export interface ErrorPage {
  readonly name: 'error';
  readonly fault: FaultName;
  /** undefined if there is no record of the fault. */
  readonly error_id?: string;
  /** Name of the external identity provider, if the fault is about it. */
  readonly login?: string;
  readonly next?: {
    readonly text: 'tryAgain' | 'anotherAccount' | 'toApp' | 'backToApp' | 'toFront';
    readonly href: string;
    readonly host?: string;
  };
  readonly retryAfterSeconds?: number;
  /** For developers: the OAuth error code. */
  readonly code?: string | undefined;
  /** For developers: what is wrong, in English. */
  readonly detail?: string | undefined;
  /** For developers: the unregistered parameter as sent, and the registered values. */
  readonly unregistered?:
    { readonly name: string; readonly value: string; readonly registered: readonly string[] } | undefined;
}

/** A fault that a page explains in the member's language. */
export class PageFault extends Error {
  constructor(
    readonly status: number,
    readonly fault: FaultName,
    readonly code?: string,
    readonly more: Pick<ErrorPage, 'login' | 'next'> = {},
    /** Reason for the log and the list of rejections. */
    readonly reason?: RejectionReason,
    /** Detail for the log, without the caller's input. */
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

const FAULTS: Readonly<Record<string, FaultName>> = {
  invalid_client: 'unknownApp',
  invalid_redirect_uri: 'wrongAddress',
  invalid_request_uri: 'expired',
};

/** Turns any error into a fault for members. @param signingOut whether the member was signing out */
export function pageFaultOf(error: unknown, signingOut = false): PageFault {
  if (error instanceof PageFault) return error;
  if (isUnavailable(error)) return SERVER_BUSY;
  if (error instanceof TooManyChanges) return new PageFault(429, 'tooManyChanges');
  if (!(error instanceof errors.OIDCProviderError) || !error.expose) return SERVER_FAILED;
  if (error.error === SERVER_BUSY.code) return SERVER_BUSY;
  const fault = error instanceof errors.SessionNotFound ? 'expired' : (FAULTS[error.error] ?? 'wrongRequest');
  return new PageFault(error.statusCode, signingOut ? 'wrongSignOut' : fault, error.error);
}

/** By reason: a parameter that must be registered, and the client metadata with the registered values, if any. */
const UNREGISTERED: {
  readonly [Reason in RejectionReason]?: [string, ('redirectUris' | 'postLogoutRedirectUris')?];
} = {
  unknown_client: ['client_id'],
  unregistered_redirect_uri: ['redirect_uri', 'redirectUris'],
  unregistered_post_logout_redirect_uri: ['post_logout_redirect_uri', 'postLogoutRedirectUris'],
};

/** Returns the unregistered parameter as sent, and the registered values, which are not secret. */
export function unregisteredOf(
  error: Error,
  parameters: Readonly<Record<string, unknown>> | undefined,
  client: Client | undefined,
): ErrorPage['unregistered'] {
  const [name, registered] = UNREGISTERED[classify(error).reason] ?? [];
  const value = name === undefined ? undefined : parameters?.[name];
  if (name === undefined || typeof value !== 'string') return undefined;
  return { name, value, registered: (registered && client?.[registered]) ?? [] };
}
