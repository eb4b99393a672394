import type { errors } from 'oidc-provider';

interface Reason {
  readonly meaning: string;
  /** Matches the message of the error, the library's or ours: then this is the reason. */
  readonly said?: RegExp;
  /** Error codes that have this reason where no message above matches. */
  readonly codes?: readonly string[];
}

/**
 * Why the authorization server and its pages refuse a request: word → meaning. The library's own messages contain what the caller sent
 * (an origin, a piece of a body), so only these words go into the audit trail and the log. Ordered from the
 * specific to the general.
 */
export const REFUSAL_REASONS = {
  unknown_client: {
    meaning: 'There is no such client, or it is disabled',
    said: /^client not found$|^the client is gone$/,
  },
  unregistered_redirect_uri: {
    meaning: 'The redirect URI is not registered for the client',
    said: /^redirect_uri did not match/,
    codes: ['invalid_redirect_uri'],
  },
  unregistered_post_logout_redirect_uri: {
    meaning: 'The post-logout redirect URI is not registered for the client',
    said: /^post_logout_redirect_uri not registered$/,
  },
  origin_not_allowed: {
    meaning: 'The request came from a page whose origin is not registered for the client',
    said: /^origin [^]* not allowed for client/,
  },
  code_not_found: { meaning: 'There is no such code', said: /^authorization code not found$/ },
  code_expired: { meaning: 'The code has expired', said: /^authorization code is expired$/ },
  code_used: { meaning: 'The code was used before', said: /^authorization code already consumed$/ },
  refresh_token_not_found: { meaning: 'There is no such refresh token', said: /^refresh token not found$/ },
  refresh_token_expired: { meaning: 'The refresh token has expired', said: /^refresh token is expired$/ },
  refresh_token_used: { meaning: 'The refresh token was used before', said: /^refresh token already used$/ },
  token_used_meanwhile: {
    meaning: 'Another request used the code or token at the same moment',
    said: /^the token was used (by another request|a moment ago)$/,
  },
  other_redirect_uri: {
    meaning: 'The redirect URI differs from the one in the authorization request',
    said: /^authorization code redirect_uri mismatch$/,
  },
  other_client: {
    meaning: 'The code, token or hint belongs to another client',
    said: /client(_id)? mismatch|^client_id does not match|not authorized to revoke/,
  },
  access_ended: {
    meaning: 'The grant was revoked or has ended',
    said: /^grant (not found|is expired)$|^the grant was revoked$/,
  },
  member_gone: {
    meaning: 'The member is disabled or gone',
    said: /account not found\)?$|^accountId mismatch$|^nobody is signed in$/,
  },
  wrong_code_verifier: {
    meaning: 'PKCE: the code verifier does not match the challenge',
    said: /code_verifier/,
  },
  no_pkce: { meaning: 'PKCE with S256 is missing or malformed', said: /code_challenge|PKCE/ },
  proof_used: {
    meaning: 'The DPoP proof or client assertion was used before',
    said: /used before$|Replay detected$|only be used once$/,
  },
  profile_rule: {
    meaning: 'The profile of the client does not allow it',
    said: /^the profile |^DPoP proof JWT not provided$|^Pushed Authorization Request must be used/,
  },
  bad_dpop_proof: {
    meaning: 'The DPoP proof is missing, malformed, or made for another request or key',
    said: /DPoP|jkt/,
    codes: ['invalid_dpop_proof', 'use_dpop_nonce'],
  },
  request_uri: {
    meaning: 'The pushed authorization request is unknown, used or expired',
    said: /request_uri|^the request_uri/,
    codes: ['invalid_request_uri', 'request_uri_not_supported'],
  },
  bad_id_token_hint: {
    meaning: 'The id_token_hint is not an ID token of this server',
    said: /id_token_hint/,
  },
  sign_in_expired: {
    meaning: 'The sign-in has expired, is finished, or belongs to another browser',
    said: /session|^another (step|interaction)$|^authorization request has expired$/i,
  },
  foreign_form: {
    meaning: 'The form was not sent from our page',
    said: /xsrf/,
  },
  member_declined: { meaning: 'The member denied access', codes: ['access_denied'] },
  interaction_needed: {
    meaning: 'prompt=none, but the member has to sign in or consent',
    codes: ['login_required', 'consent_required', 'interaction_required'],
  },
  class_not_reached: {
    meaning: 'The member could not sign in as the app requires (acr)',
    codes: ['unmet_authentication_requirements'],
  },
  secret_in_url: {
    meaning: 'A client secret was sent in a URL, where others may have seen it: replace it',
  },
  wrong_client_secret: {
    meaning: 'The client secret is not one of the client’s',
    said: /^invalid secret provided$/,
  },
  client_secret_expired: {
    meaning: 'The client secret has expired',
    said: /^the client secret has expired$/,
  },
  too_many_wrong_secrets: {
    meaning: 'One address sent too many wrong secrets of a client',
    said: /^too many wrong client secrets/,
  },
  missing_parameter: { meaning: 'A parameter is missing', said: /^missing required parameter/ },
  repeated_parameter: { meaning: 'A parameter was sent twice', said: /must not be provided twice$/ },
  bad_client_authentication: {
    meaning: 'The client failed to authenticate',
    said: /client_assertion|authentication mechanism|client authentication/,
    codes: ['invalid_client'],
  },
  scope: { meaning: 'A scope is missing, unknown, or not allowed for the client', codes: ['invalid_scope'] },
  resource: { meaning: 'The resource is not this API', codes: ['invalid_target'] },
  unsupported: {
    meaning: 'The response type, response mode, grant type or kind of request is not supported',
    said: /not allowed for this client|^not supported/,
    codes: [
      'unsupported_response_type',
      'unsupported_response_mode',
      'unsupported_grant_type',
      'unsupported_token_type',
      'request_not_supported',
      'registration_not_supported',
    ],
  },
  unknown_member: { meaning: 'The platform’s own login identified nobody who can sign in here' },
  upstream_away: { meaning: 'The platform’s own login did not respond in time' },
  upstream_refused: { meaning: 'The platform’s own login responded with an error' },
  upstream_wrong: {
    meaning: 'The response of the platform’s own login could not be verified: the log says why',
  },
  too_many_requests: { meaning: 'Too many requests came from one address (RATE_LIMIT_AUTH)' },
  malformed_request: {
    meaning: 'The request is malformed in another way, which the response names',
    codes: ['invalid_request', 'invalid_grant', 'invalid_token'],
  },
  server_error: { meaning: 'The server failed: the log has the error', codes: ['server_error'] },
  other: { meaning: 'None of these' },
} as const satisfies Readonly<Record<string, Reason>>;

const REASONS = Object.entries<Reason>(REFUSAL_REASONS);

/** The codes of OAuth and OpenID specifications, as labels of a metric: those above, and those of which the message alone says more. */
export const KNOWN_ERRORS: ReadonlySet<string> = new Set([
  ...REASONS.flatMap(([, { codes = [] }]) => codes),
  'invalid_request_object',
  'temporarily_unavailable',
  'unauthorized_client',
]);

export type RefusalReason = keyof typeof REFUSAL_REASONS;

/** Why a request ended with `error`, in words of ours. */
export interface RefusalWords {
  /** The `error` code of the response, as RFC 6749 and its successors define them. */
  readonly error: string;
  readonly reason: RefusalReason;
}

/** Finds the words under which an error is counted and recorded. @param error from the library, or thrown by a page */
export function refusalOf(error: Error): RefusalWords {
  const { error: code, error_detail, error_description } = error as errors.OIDCProviderError;
  const said = error_detail ?? error_description ?? error.message;
  const known = codeOf(code);
  const found =
    REASONS.find(([, { said: pattern }]) => pattern?.test(said)) ??
    REASONS.find(([, { codes }]) => codes?.includes(known));
  return { error: known, reason: (found?.[0] ?? 'other') as RefusalReason };
}

function codeOf(code: string | undefined): string {
  if (code === undefined) return 'server_error';
  return /^[a-z_]{1,64}$/.test(code) ? code : 'other';
}
