import { errors } from 'oidc-provider';

interface Reason {
  readonly meaning: string;
  /** Error codes with this reason, unless the error's text has another one. */
  readonly codes?: readonly string[];
}

/** Reasons of rejections: word → meaning. The library's messages contain the caller's input, so logs get only these words. */
export const REFUSAL_REASONS = {
  unknown_client: { meaning: 'There is no such client, or it is disabled' },
  unregistered_redirect_uri: {
    meaning: 'The redirect URI is not registered for the client',
    codes: ['invalid_redirect_uri'],
  },
  unregistered_post_logout_redirect_uri: {
    meaning: 'The post-logout redirect URI is not registered for the client',
  },
  origin_not_allowed: {
    meaning: 'The request came from a page whose origin is not registered for the client',
  },
  code_not_found: { meaning: 'There is no such code, or it has expired' },
  code_used: { meaning: 'The code was used before' },
  refresh_token_not_found: { meaning: 'There is no such refresh token, or it has expired or was revoked' },
  refresh_token_used: { meaning: 'The refresh token was used before' },
  token_used_meanwhile: { meaning: 'Another request used the code or token at the same moment' },
  other_redirect_uri: { meaning: 'The redirect URI differs from the one in the authorization request' },
  other_client: { meaning: 'The code, token or hint belongs to another client' },
  access_ended: { meaning: 'The grant was revoked or has ended' },
  wrong_code_verifier: { meaning: 'PKCE: the code verifier does not match the challenge' },
  no_pkce: { meaning: 'PKCE with S256 is missing or malformed' },
  proof_used: { meaning: 'The DPoP proof or client assertion was used before' },
  profile_rule: { meaning: 'The profile of the client does not allow it' },
  bad_dpop_proof: {
    meaning: 'The DPoP proof is missing, malformed, or made for another request or key',
    codes: ['invalid_dpop_proof', 'use_dpop_nonce'],
  },
  request_uri: {
    meaning: 'The pushed authorization request is unknown, used or expired',
    codes: ['invalid_request_uri', 'request_uri_not_supported'],
  },
  bad_id_token_hint: { meaning: 'The id_token_hint is not an ID token of this server' },
  sign_in_expired: { meaning: 'The sign-in has expired, is finished, or belongs to another browser' },
  foreign_form: { meaning: 'The form did not come from this server’s page' },
  member_declined: { meaning: 'The member denied access', codes: ['access_denied'] },
  interaction_needed: {
    meaning: 'prompt=none, but the member must sign in or consent',
    codes: ['login_required', 'consent_required', 'interaction_required'],
  },
  class_not_reached: {
    meaning: 'The member could not sign in as the app requires (acr)',
    codes: ['unmet_authentication_requirements'],
  },
  secret_in_url: { meaning: 'A client sent its secret in a URL, where others may see it: replace it' },
  wrong_client_secret: { meaning: 'The client secret is wrong' },
  client_secret_expired: { meaning: 'The client secret has expired' },
  too_many_wrong_secrets: { meaning: 'One address sent too many wrong secrets of a client' },
  missing_parameter: { meaning: 'A parameter is missing' },
  repeated_parameter: { meaning: 'A parameter was sent twice' },
  bad_client_authentication: {
    meaning: 'The client failed to authenticate',
    codes: ['invalid_client'],
  },
  scope: { meaning: 'A scope is missing, unknown, or not allowed for the client', codes: ['invalid_scope'] },
  resource: { meaning: 'The resource is not this API', codes: ['invalid_target'] },
  unsupported: {
    meaning: 'The response type, response mode, grant type or kind of request is not supported',
    codes: [
      'unsupported_response_type',
      'unsupported_response_mode',
      'unsupported_grant_type',
      'unsupported_token_type',
      'request_not_supported',
      'registration_not_supported',
    ],
  },
  unknown_member: { meaning: 'The external identity provider identified no active member' },
  upstream_away: { meaning: 'The external identity provider did not respond in time' },
  upstream_refused: { meaning: 'The external identity provider responded with an error' },
  upstream_wrong: {
    meaning: 'The external identity provider’s response is invalid: see the log',
  },
  too_many_requests: { meaning: 'Too many requests came from one address (RATE_LIMIT_AUTH)' },
  malformed_request: {
    meaning: 'The request is malformed in another way, which the response names',
    codes: ['invalid_request', 'invalid_grant', 'invalid_token'],
  },
  server_error: { meaning: 'The server failed: the log has the error', codes: ['server_error'] },
  other: { meaning: 'None of these' },
} as const satisfies Readonly<Record<string, Reason>>;

export type RefusalReason = keyof typeof REFUSAL_REASONS;

const REASON_OF_CODE: ReadonlyMap<string, RefusalReason> = new Map(
  Object.entries<Reason>(REFUSAL_REASONS).flatMap(([reason, { codes = [] }]) =>
    codes.map((code) => [code, reason as RefusalReason] as const),
  ),
);

/** Codes of OAuth and OpenID specifications, as labels of a metric. */
export const KNOWN_ERRORS: ReadonlySet<string> = new Set([
  ...REASON_OF_CODE.keys(),
  'invalid_request_object',
  'temporarily_unavailable',
  'unauthorized_client',
]);

export interface RefusalWords {
  /** The `error` code of the response (RFC 6749 and its successors). */
  readonly error: string;
  readonly reason: RefusalReason;
}

/** Whole texts of the library: a test finds each in its source. */
export const WHOLE_TEXTS = {
  'client not found': 'unknown_client',
  'post_logout_redirect_uri not registered': 'unregistered_post_logout_redirect_uri',
  'refresh token not found': 'refresh_token_not_found',
  'refresh token already used': 'refresh_token_used',
  'authorization code redirect_uri mismatch': 'other_redirect_uri',
  'client mismatch': 'other_client',
  'client_id mismatch': 'other_client',
  'client_id does not match the provided id_token_hint': 'other_client',
  'grant not found': 'access_ended',
  'code_verifier must be provided': 'wrong_code_verifier',
  'code_verifier does not match code_challenge': 'wrong_code_verifier',
  'code_challenge_method must be provided': 'no_pkce',
  'not supported value of code_challenge_method': 'no_pkce',
  'code_challenge must be provided with code_challenge_method': 'no_pkce',
  'Authorization Server policy requires PKCE to be used for this request': 'no_pkce',
  'DPoP proof JWT Replay detected': 'proof_used',
  'client assertion tokens must only be used once': 'proof_used',
  'DPoP proof JWT not provided': 'profile_rule',
  'Pushed Authorization Request must be used': 'profile_rule',
  'missing DPoP proof JWT': 'bad_dpop_proof',
  'DPoP proof key thumbprint does not match dpop_jkt': 'bad_dpop_proof',
  'failed jkt verification': 'bad_dpop_proof',
  'could not decode id_token_hint': 'bad_id_token_hint',
  'could not validate id_token_hint': 'bad_id_token_hint',
  'could not find logout details': 'sign_in_expired',
  'xsrf token invalid': 'foreign_form',
  'invalid secret provided': 'wrong_client_secret',
  'client authentication must only be provided using one mechanism': 'bad_client_authentication',
  'no client authentication mechanism provided': 'bad_client_authentication',
  'invalid authorization header value format': 'bad_client_authentication',
  'client_id and client_secret in the authorization header are not properly encoded':
    'bad_client_authentication',
  'client_secret must be provided in the Authorization header': 'bad_client_authentication',
  'invalid client_assertion format': 'bad_client_authentication',
  'client_assertion_type must be provided': 'bad_client_authentication',
  'requested response_mode is not allowed for this client or request': 'unsupported',
} as const satisfies Readonly<Record<string, RefusalReason>>;

/** Texts that the library composes: a test provokes each. */
export const COMPOSED_TEXTS = {
  'authorization code not found': 'code_not_found',
  'authorization code already consumed': 'code_used',
  'code_verifier must be a string with a minimum length of 43 characters': 'wrong_code_verifier',
  'code_verifier must be a string with a maximum length of 128 characters': 'wrong_code_verifier',
  'code_verifier contains invalid characters': 'wrong_code_verifier',
  'code_challenge must be a string with a minimum length of 43 characters': 'no_pkce',
  'code_challenge contains invalid characters': 'no_pkce',
  'client_assertion_type must have value urn:ietf:params:oauth:client-assertion-type:jwt-bearer':
    'bad_client_authentication',
} as const satisfies Readonly<Record<string, RefusalReason>>;

/** The library's texts about parameters. */
export const MISSING_PARAMETER = /^missing required parameters? '([a-z_]{1,40})'/;
const PATTERNS: readonly (readonly [RegExp, RefusalReason])[] = [
  [MISSING_PARAMETER, 'missing_parameter'],
  [/^('[a-z_]+'(, | and |, and )?)+ parameters? must not be provided twice$/, 'repeated_parameter'],
  [/^origin [^]* not allowed for client: /, 'origin_not_allowed'],
];

const OF_TEXTS: ReadonlyMap<string, RefusalReason> = new Map(
  Object.entries({ ...WHOLE_TEXTS, ...COMPOSED_TEXTS }),
);

const GIVEN = new WeakMap<Error, RefusalReason>();

/** Gives our own error its reason, unless its code is enough. */
export function because<Thrown extends Error>(reason: RefusalReason, error: Thrown): Thrown {
  GIVEN.set(error, reason);
  return error;
}

/** Finds the words for counting and recording an error. @param error from the library or a page */
export function refusalOf(error: Error): RefusalWords {
  const {
    error: code,
    error_detail: detail,
    error_description: text = '',
  } = error as errors.OIDCProviderError;
  const known = codeOf(code);
  const reason =
    GIVEN.get(error) ??
    OF_TEXTS.get(text) ??
    OF_TEXTS.get(detail ?? '') ??
    PATTERNS.find(([pattern]) => pattern.test(text))?.[1] ??
    (error instanceof errors.SessionNotFound ? 'sign_in_expired' : REASON_OF_CODE.get(known)) ??
    'other';
  return { error: known, reason };
}

function codeOf(code: string | undefined): string {
  if (code === undefined) return 'server_error';
  return /^[a-z_]{1,64}$/.test(code) ? code : 'other';
}
