import { errors } from 'oidc-provider';
import { isUnavailable } from '../../database/unavailable.js';
import { refusalOf } from '../provider/refusal-reasons.js';
import type { RefusalReason } from '../provider/refusal-reasons.js';
import type { Page } from './pages.js';

type ErrorPage = Extract<Page, { name: 'error' }>;

/** What a page cannot do, in words for the member; the log has the reason. */
export class PageFault extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    message: string,
    /** What a developer looks for: the code of the RFC, where there is one. */
    readonly code?: string,
  ) {
    super(message);
  }

  page(errorId: string, unregistered?: ErrorPage['unregistered']): ErrorPage {
    return {
      name: 'error',
      title: this.title,
      message: this.message,
      error_id: errorId,
      ...(this.code === undefined ? {} : { code: this.code }),
      ...(unregistered === undefined ? {} : { unregistered }),
    };
  }
}

export const SERVER_BUSY = new PageFault(
  503,
  'Please try again',
  'The server is busy. Try again in a moment.',
  'temporarily_unavailable',
);
export const SERVER_FAILED = new PageFault(
  500,
  'This did not work',
  'The server failed in a way that is not your fault. Try again later.',
  'server_error',
);

type Words = readonly [title: string, message: string];

const EXPIRED: Words = ['This sign-in has expired', 'Go back to the app and sign in from there again.'];
const WRONG_REQUEST: Words = [
  'The app made a mistake',
  'What it asked for is not possible, and nothing was shared with it. Go back to the app and try again. If it happens again, tell the people who make the app.',
];
const WRONG_SIGN_OUT: Words = [
  'You were not signed out',
  'The link or form that brought you here is wrong or too old. Go back and try again, or sign out in your account.',
];

/** Where nobody can be sent back to the client, by the code of the RFC. */
const WORDS: Readonly<Record<string, Words>> = {
  invalid_client: [
    'This app is not known here',
    'It is not registered, or it was switched off, and nothing was shared with it. If you trust the app, tell the people who make it.',
  ],
  invalid_redirect_uri: [
    'The app cannot be sent your answer',
    'It asks for an answer at an address that is not registered for it. So that nobody else gets it, you are not sent there. Tell the people who make the app.',
  ],
  invalid_request_uri: EXPIRED,
};

/**
 * Words of ours for whatever was thrown: the library's are for developers, and go into JSON and into redirects.
 *
 * @param signingOut whether it was thrown at sign-out, where an app that is named wrong matters less than being signed in still
 */
export function faultOf(error: unknown, signingOut = false): PageFault {
  if (error instanceof PageFault) return error;
  if (isUnavailable(error)) return SERVER_BUSY;
  if (!(error instanceof errors.OIDCProviderError) || !error.expose) return SERVER_FAILED;
  if (error.error === SERVER_BUSY.code) return SERVER_BUSY;
  return new PageFault(error.statusCode, ...wordsFor(error, signingOut), error.error);
}

/** Which parameter says what, where it is not registered. */
const UNREGISTERED: { readonly [Reason in RefusalReason]?: string } = {
  unknown_client: 'client_id',
  unregistered_redirect_uri: 'redirect_uri',
  unregistered_post_logout_redirect_uri: 'post_logout_redirect_uri',
};

/** What the developer of an app compares with what was registered: that part of the request, as it was sent. */
export function unregisteredOf(
  error: Error,
  parameters: Readonly<Record<string, unknown>> | undefined,
): ErrorPage['unregistered'] {
  const name = UNREGISTERED[refusalOf(error).reason];
  const value = name === undefined ? undefined : parameters?.[name];
  return name === undefined || typeof value !== 'string' ? undefined : { name, value };
}

function wordsFor(error: errors.OIDCProviderError, signingOut: boolean): Words {
  if (signingOut) return WRONG_SIGN_OUT;
  if (error instanceof errors.SessionNotFound) return EXPIRED;
  return WORDS[error.error] ?? WRONG_REQUEST;
}
