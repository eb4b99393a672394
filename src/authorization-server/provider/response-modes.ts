import { decodeJwt } from 'jose';
import type { KoaContextWithOIDC, Provider } from 'oidc-provider';
import { ROUTES } from './provider.js';

/** Replaces disallowed response modes and types by unknown values, since the library would send the error in the disallowed mode. */
export async function rejectOtherResponses(
  ctx: KoaContextWithOIDC,
  next: () => Promise<void>,
  { Client }: Provider,
): Promise<void> {
  if (ctx.path === ROUTES.authorization) {
    const { client_id: clientId, response_type: type, request } = ctx.query;
    const mode = responseModeOf(request) ?? ctx.query.response_mode;
    const query: typeof ctx.query = { ...ctx.query, response_mode: mode };
    const allowed =
      mode === 'form_post' && typeof clientId === 'string'
        ? (await Client.find(clientId))?.responseModes
        : ['query'];
    // An empty parameter counts as omitted (RFC 6749 §3.1).
    if (mode && typeof mode === 'string' && !allowed?.includes(mode)) query.response_mode = 'unsupported';
    if (type && typeof type === 'string' && type !== 'code') query.response_type = 'unsupported';
    // If the client sent neither type nor mode, the library would reject the mode instead of the type.
    if (!type && !mode && !request && !ctx.query.request_uri) query.response_mode = 'query';
    if (query.response_mode !== ctx.query.response_mode || query.response_type !== type) ctx.query = query;
  }
  return next();
}

/** Reads the response mode of an unverified request object. */
function responseModeOf(request: unknown): string | undefined {
  if (typeof request !== 'string') return undefined;
  try {
    const { response_mode: mode } = decodeJwt(request);
    return typeof mode === 'string' ? mode : undefined;
  } catch {
    return undefined;
  }
}
