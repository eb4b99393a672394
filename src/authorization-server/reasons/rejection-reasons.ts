import { errors } from 'oidc-provider';

/** Reasons of rejections: word → meaning. Logs get these words, since the library's messages can contain the caller's input. */
export const REJECTION_REASONS = {
  unknown_client: 'The client does not exist or is disabled',
  unregistered_redirect_uri: 'The redirect URI is not registered for the client',
  unregistered_post_logout_redirect_uri: 'The post-logout redirect URI is not registered for the client',
  origin_not_allowed: 'The request came from a page whose origin is not registered for the client',
  code_not_found: 'The code does not exist or has expired',
  code_used: 'The code was used before',
  refresh_token_not_found: 'The refresh token does not exist, has expired, or was revoked',
  refresh_token_used: 'The refresh token was used before',
  token_used_meanwhile: 'Another request used the code or token at the same moment',
  other_redirect_uri: 'The redirect URI differs from the one in the authorization request',
  other_client: 'The code, token or hint belongs to another client',
  access_ended: 'The grant was revoked or has expired',
  wrong_code_verifier: 'PKCE: the code verifier does not match the challenge',
  no_pkce: 'PKCE with S256 is missing or malformed',
  proof_used: 'The DPoP proof or client assertion was used before',
  profile_rule: 'The client’s profile does not allow the request',
  bad_dpop_proof: 'The DPoP proof is missing, malformed, or made for another request or key',
  request_uri: 'The pushed authorization request is unknown, used or expired',
  bad_id_token_hint: 'The id_token_hint is not an ID token of this server',
  sign_in_expired: 'The sign-in has expired, is finished, or belongs to another browser',
  foreign_form: 'The form did not come from this server’s page',
  member_declined: 'The member denied access',
  interaction_needed: 'The app sent prompt=none, but the member must sign in or consent',
  class_not_reached: 'The member could not sign in with a method that the app requires (acr)',
  secret_in_url: 'A client sent its secret in a URL, where others may see it: replace the secret',
  wrong_client_secret: 'The client secret is wrong',
  client_secret_expired: 'The client secret has expired',
  too_many_wrong_secrets: 'One address sent too many wrong secrets for a client',
  missing_parameter: 'A parameter is missing',
  repeated_parameter: 'A parameter was sent twice',
  bad_client_authentication: 'The client failed to authenticate',
  scope: 'A scope is missing, unknown, or not allowed for the client',
  resource: 'The resource parameter does not name this API',
  unsupported: 'The response type, response mode, grant type or kind of request is not supported',
  unknown_member: 'The external identity provider identified no active member',
  upstream_away: 'The external identity provider did not respond, or responded with a server error',
  upstream_refused: 'The external identity provider responded with an error',
  upstream_wrong: 'The external identity provider’s response is invalid: see the log',
  too_many_requests: 'Too many requests came from one address (RATE_LIMIT_AUTH)',
  malformed_request: 'The request is malformed: see the error description in the response',
  server_error: 'The server failed: see the error in the log',
  other: 'Another reason',
} as const;

export type RejectionReason = keyof typeof REJECTION_REASONS;

/** The reasons of error codes, unless the error's text has another reason. */
const REASON_OF_CODE: ReadonlyMap<string, RejectionReason> = new Map(
  Object.entries({
    invalid_redirect_uri: 'unregistered_redirect_uri',
    invalid_dpop_proof: 'bad_dpop_proof',
    use_dpop_nonce: 'bad_dpop_proof',
    invalid_request_uri: 'request_uri',
    request_uri_not_supported: 'request_uri',
    access_denied: 'member_declined',
    login_required: 'interaction_needed',
    consent_required: 'interaction_needed',
    interaction_required: 'interaction_needed',
    unmet_authentication_requirements: 'class_not_reached',
    invalid_client: 'bad_client_authentication',
    invalid_scope: 'scope',
    invalid_target: 'resource',
    unsupported_response_type: 'unsupported',
    unsupported_response_mode: 'unsupported',
    unsupported_grant_type: 'unsupported',
    unsupported_token_type: 'unsupported',
    request_not_supported: 'unsupported',
    registration_not_supported: 'unsupported',
    invalid_request: 'malformed_request',
    invalid_grant: 'malformed_request',
    invalid_token: 'malformed_request',
    server_error: 'server_error',
  } as const satisfies Readonly<Record<string, RejectionReason>>),
);

/** Codes of OAuth and OpenID specifications, as labels of a metric. */
export const KNOWN_ERRORS: ReadonlySet<string> = new Set([
  ...REASON_OF_CODE.keys(),
  'invalid_request_object',
  'temporarily_unavailable',
  'unauthorized_client',
]);

export interface RejectionWords {
  /** The `error` code of the response (RFC 6749 and other specifications). */
  readonly error: string;
  readonly reason: RejectionReason;
}

/** Complete error texts of the library; a test finds each text in the library's source. */
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
} as const satisfies Readonly<Record<string, RejectionReason>>;

/** Error texts that the library composes; a test provokes each text. */
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
} as const satisfies Readonly<Record<string, RejectionReason>>;

/** Matches the library's text about missing parameters; group 1 is the name of the first one. */
export const MISSING_PARAMETER = /^missing required parameters? '([a-z_]{1,40})'/;
const PATTERNS: readonly (readonly [RegExp, RejectionReason])[] = [
  [MISSING_PARAMETER, 'missing_parameter'],
  [/^('[a-z_]+'(, | and |, and )?)+ parameters? must not be provided twice$/, 'repeated_parameter'],
  [/^origin [^]* not allowed for client: /, 'origin_not_allowed'],
];

const OF_TEXTS: ReadonlyMap<string, RejectionReason> = new Map(
  Object.entries({ ...WHOLE_TEXTS, ...COMPOSED_TEXTS }),
);

const GIVEN = new WeakMap<Error, RejectionReason>();

/** Sets the reason of an error that this server throws; necessary if neither its code nor its text determines the reason. */
export function because<Thrown extends Error>(reason: RejectionReason, error: Thrown): Thrown {
  GIVEN.set(error, reason);
  return error;
}

/** Returns the code and reason of an error, for metrics, logs and the audit log. */
export function classify(error: Error): RejectionWords {
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
