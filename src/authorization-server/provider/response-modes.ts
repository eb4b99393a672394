import { decodeJwt } from 'jose';
import type { KoaContextWithOIDC, Provider } from 'oidc-provider';
import { ROUTES } from './provider.js';

/**
 * Refuses other response modes and types than the client’s: the library would report a refused mode in that mode, and a refused response
 * type in the mode that belongs to it. Values that it does not know it refuses correctly, by a redirect with the RFC’s code. It sends the
 * refusal of a request object by the mode that this names: here, too, nothing else of the object counts.
 */
export async function refuseOtherResponses(
  ctx: KoaContextWithOIDC,
  next: () => Promise<void>,
  { Client }: Provider,
): Promise<void> {
  if (ctx.path === ROUTES.authorization) {
    const { client_id: clientId, response_type: type, request } = ctx.query;
    const mode = responseModeOf(request) ?? ctx.query.response_mode;
    const query: typeof ctx.query = { ...ctx.query, response_mode: mode };
    // The library looks the client up again, where it is remembered.
    const allowed =
      mode === 'form_post' && typeof clientId === 'string'
        ? (await Client.find(clientId))?.responseModes
        : ['query'];
    // An empty parameter counts as omitted (RFC 6749 §3.1).
    if (mode && typeof mode === 'string' && !allowed?.includes(mode)) query.response_mode = 'unsupported';
    if (type && typeof type === 'string' && type !== 'code') query.response_type = 'unsupported';
    if (query.response_mode !== ctx.query.response_mode || query.response_type !== type) ctx.query = query;
  }
  return next();
}

/** Finds the response mode in a request object, which nobody has verified. */
function responseModeOf(request: unknown): string | undefined {
  if (typeof request !== 'string') return undefined;
  try {
    const { response_mode: mode } = decodeJwt(request);
    return typeof mode === 'string' ? mode : undefined;
  } catch {
    return undefined;
  }
}
