import type { Request } from 'express';
import { Problem } from '../http/output/problems.js';
import type { Credential } from './principal.js';

export const SUPPORTED_DPOP_ALGORITHMS = ['ES256', 'Ed25519', 'EdDSA'];

/** Makes this API's `WWW-Authenticate` (RFC 6750 §3), with the address of its metadata (RFC 9728 §5.1). */
export function challenge(
  publicUrl: string,
  attributes: Readonly<Record<string, string>> = {},
  scheme: 'Bearer' | 'DPoP' = 'Bearer',
): string {
  const all = {
    realm: 'public-user-api',
    ...attributes,
    resource_metadata: `${publicUrl}/.well-known/oauth-protected-resource/api/public`,
  };
  return `${scheme} ${Object.entries(all)
    .map(([name, value]) => `${name}="${value}"`)
    .join(', ')}`;
}

/** Makes the 401 for a request without a credential: its challenge names no error (RFC 6750 §3.1). */
export function missingCredentials(publicUrl: string): Problem {
  return new Problem('missing_credentials', { headers: { 'WWW-Authenticate': challenge(publicUrl) } });
}

/** Makes the one refusal for any invalid credential; only the log learns the reason. */
export function refusal(
  publicUrl: string,
  { kind, scheme }: Credential,
  { context }: Request,
  reason: string,
  error: 'invalid_token' | 'invalid_dpop_proof' = 'invalid_token',
): Problem {
  context.refusal = reason;
  const header =
    scheme === 'DPoP' // RFC 9449 §7.1
      ? challenge(publicUrl, { error, algs: SUPPORTED_DPOP_ALGORITHMS.join(' ') }, 'DPoP')
      : challenge(publicUrl, kind === 'oauth_token' ? { error } : {});
  return new Problem('invalid_credentials', { headers: { 'WWW-Authenticate': header } });
}

/** Makes the 403 for a credential that lacks a scope, which the challenge names (RFC 6750 §3.1). */
export function insufficientScope(publicUrl: string, required: string, granted: readonly string[]): Problem {
  return new Problem('insufficient_scope', {
    detail: `This endpoint needs the scope ${required}.`,
    extensions: { required_scope: required, granted_scopes: granted },
    headers: { 'WWW-Authenticate': challenge(publicUrl, { error: 'insufficient_scope', scope: required }) },
  });
}
