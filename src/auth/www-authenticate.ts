import type { Request } from 'express';
import { Problem } from '../http/output/problems.js';
import { API_PREFIX, ASSISTANTS_PATH } from '../http/pipeline/api-headers.js';
import { READ_SCOPES } from '../resources/resources.js';
import type { Credential } from './principal.js';

export const SUPPORTED_DPOP_ALGORITHMS = ['ES256', 'Ed25519', 'EdDSA'];

type ToPath = Pick<Request, 'context'>;

/** What assistants are to ask for first: reading. Writing is asked for when it is wanted for the first time. */
export const FIRST_SCOPES = Object.keys(READ_SCOPES);

/**
 * Makes this API's `WWW-Authenticate` (RFC 6750 §3), with the address of the metadata of what was requested (RFC 9728 §5.1): its
 * `resource` is what clients compare with the address that they call (§3.3).
 */
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

/** Makes the 401 for a request without a credential: its challenge names no error (RFC 6750 §3.1). */
export function missingCredentials(publicUrl: string, request: ToPath): Problem {
  return new Problem('missing_credentials', {
    headers: { 'WWW-Authenticate': challenge(publicUrl, request) },
  });
}

/** Makes the one refusal for any invalid credential; only the log learns the reason. */
export function refusal(
  publicUrl: string,
  { kind, scheme }: Credential,
  request: ToPath,
  reason: string,
  error: 'invalid_token' | 'invalid_dpop_proof' = 'invalid_token',
): Problem {
  request.context.refusal = reason;
  // Assistants take a challenge without an error for one without a credential.
  const namesError = kind === 'oauth_token' || request.context.path === ASSISTANTS_PATH;
  const header =
    scheme === 'DPoP' // RFC 9449 §7.1
      ? challenge(publicUrl, request, { error, algs: SUPPORTED_DPOP_ALGORITHMS.join(' ') }, 'DPoP')
      : challenge(publicUrl, request, namesError ? { error } : {});
  return new Problem('invalid_credentials', { headers: { 'WWW-Authenticate': header } });
}

/** Requires a scope of the request's caller; null for none. @throws Problem insufficient_scope */
export function requireScope(publicUrl: string, request: Request, scope: string | null): void {
  const granted: readonly string[] = request.principal!.scopes;
  if (scope !== null && !granted.includes(scope)) throw insufficientScope(publicUrl, request, scope, granted);
}

/** Makes the 403 for a credential that lacks a scope, which the challenge names (RFC 6750 §3.1). */
export function insufficientScope(
  publicUrl: string,
  request: ToPath,
  required: string,
  granted: readonly string[],
): Problem {
  // An assistant asks for what is named here and nothing else: its next token is to allow what this one does.
  const scope = request.context.path === ASSISTANTS_PATH ? [...granted, required].join(' ') : required;
  return new Problem('insufficient_scope', {
    detail: `This endpoint needs the scope ${required}.`,
    extensions: { required_scope: required, granted_scopes: granted },
    headers: {
      'WWW-Authenticate': challenge(publicUrl, request, { error: 'insufficient_scope', scope }),
    },
  });
}
