import type { Request } from 'express';
import { Problem } from '../http/output/problems.js';
import { API_PREFIX, ASSISTANTS_PATH } from '../http/pipeline/api-headers.js';
import { READ_SCOPES } from '../resources/resources.js';
import type { Credential } from './principal.js';

export const SUPPORTED_DPOP_ALGORITHMS = ['ES256', 'Ed25519', 'EdDSA'];

type ToPath = Pick<Request, 'context'>;

/** Scopes that the server suggests to assistants first: all read scopes. */
export const FIRST_SCOPES = Object.keys(READ_SCOPES);

/** Makes the `WWW-Authenticate` header (RFC 6750 §3) with the URL of the resource metadata (RFC 9728 §5.1). */
function challenge(
  publicUrl: string,
  { context }: ToPath,
  attributes: Readonly<Record<string, string>> = {},
  scheme: 'Bearer' | 'DPoP' = 'Bearer',
): string {
  const ofAssistants = context.path === ASSISTANTS_PATH;
  const all = {
    realm: 'public-user-api',
    ...(ofAssistants ? { scope: FIRST_SCOPES.join(' ') } : {}),
    ...attributes,
    resource_metadata: `${publicUrl}/.well-known/oauth-protected-resource${ofAssistants ? ASSISTANTS_PATH : API_PREFIX}`,
  };
  return `${scheme} ${Object.entries(all)
    .map(([name, value]) => `${name}="${value}"`)
    .join(', ')}`;
}

/** Makes the 401 for a request without a credential; its challenge has no `error` attribute (RFC 6750 §3.1). */
export function missingCredentials(publicUrl: string, request: ToPath): Problem {
  return new Problem('missing_credentials', {
    headers: { 'WWW-Authenticate': challenge(publicUrl, request) },
  });
}

/** Makes the 401 for an invalid credential. The response does not contain `reason`. */
export function rejection(
  publicUrl: string,
  { kind, scheme }: Credential,
  request: ToPath,
  reason: string,
  error: 'invalid_token' | 'invalid_dpop_proof' = 'invalid_token',
): Problem {
  request.context.refusal = reason;
  // Assistants interpret a challenge without `error` as a missing credential.
  const namesError = kind === 'oauth_token' || request.context.path === ASSISTANTS_PATH;
  const header =
    scheme === 'DPoP' // RFC 9449 §7.1
      ? challenge(publicUrl, request, { error, algs: SUPPORTED_DPOP_ALGORITHMS.join(' ') }, 'DPoP')
      : challenge(publicUrl, request, namesError ? { error } : {});
  return new Problem('invalid_credentials', { headers: { 'WWW-Authenticate': header } });
}

/** Checks that the caller has the scope; null requires no scope. @throws Problem insufficient_scope */
export function requireScope(publicUrl: string, request: Request, scope: string | null): void {
  const granted: readonly string[] = request.principal!.scopes;
  if (scope !== null && !granted.includes(scope)) throw insufficientScope(publicUrl, request, scope, granted);
}

/** Makes the 403 for a missing scope, which the challenge names (RFC 6750 §3.1). */
export function insufficientScope(
  publicUrl: string,
  request: ToPath,
  required: string,
  granted: readonly string[],
): Problem {
  // Assistants request exactly these scopes, so the list must include the current token's scopes.
  const scope = request.context.path === ASSISTANTS_PATH ? [...granted, required].join(' ') : required;
  return new Problem('insufficient_scope', {
    detail: `This endpoint needs the scope ${required}.`,
    extensions: { required_scope: required, granted_scopes: granted },
    headers: { 'WWW-Authenticate': challenge(publicUrl, request, { error: 'insufficient_scope', scope }) },
  });
}
