import { Problem } from '../http/problems.js';

/** `WWW-Authenticate` of this API (RFC 6750 §3), with the way to its metadata (RFC 9728 §5.1). */
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

export function missingCredentials(publicUrl: string): Problem {
  return new Problem('missing_credentials', { headers: { 'WWW-Authenticate': challenge(publicUrl) } });
}

/** One answer for whatever is wrong with a credential: the reason is for the log alone. */
export function invalidCredentials(publicUrl: string, kind: 'api_key' | 'token'): Problem {
  return new Problem('invalid_credentials', {
    headers: { 'WWW-Authenticate': challenge(publicUrl, kind === 'token' ? { error: 'invalid_token' } : {}) },
  });
}

/** To a caller who uses DPoP (RFC 9449 §7.1). */
export function invalidProof(
  publicUrl: string,
  error: 'invalid_token' | 'invalid_dpop_proof',
  algorithms: readonly string[],
): Problem {
  const header = challenge(publicUrl, { error, algs: algorithms.join(' ') }, 'DPoP');
  return new Problem('invalid_credentials', { headers: { 'WWW-Authenticate': header } });
}

export function insufficientScope(publicUrl: string, required: string, granted: readonly string[]): Problem {
  return new Problem('insufficient_scope', {
    detail: `This endpoint needs the scope ${required}.`,
    extensions: { required_scope: required, granted_scopes: granted },
    headers: { 'WWW-Authenticate': challenge(publicUrl, { error: 'insufficient_scope', scope: required }) },
  });
}
