import type { Adapter, AdapterPayload } from 'oidc-provider';
import type { ModelStore } from '../requests/oauth-database.js';
import type { ClientCache } from './client-cache.js';
import { sessionAdapter } from './session.adapter.js';
import { replayAdapter, stateAdapter } from './state.adapter.js';
import { grantAdapter, tokenAdapter } from './token.adapter.js';

/** What the adapters use from the rest of the application. */
interface AdapterParts extends ModelStore {
  readonly clients: ClientCache;
  /** The algorithms for which the provider has keys. */
  readonly signingAlgorithms: ReadonlySet<string>;
}

/**
 * Makes the adapters that store oidc-provider's models. The ids of all models but clients and grants are secrets: rows are found by
 * an HMAC of the id, and data that would be of use to a reader of the database is encrypted. Only the database's clock decides
 * whether something has expired. An adapter has the methods that the library calls for its model: the others belong to features that are
 * switched off.
 */
export function adapterFactory(parts: AdapterParts): (model: string) => Adapter {
  const { clients, signingAlgorithms } = parts;
  const adapters: Readonly<Record<string, Partial<Adapter>>> = {
    Client: { find: (id) => clients.find(id, signingAlgorithms) },
    Grant: alive(grantAdapter(parts)),
    Session: alive(sessionAdapter(parts)),
    AuthorizationCode: alive(tokenAdapter(parts, 'AuthorizationCode')),
    AccessToken: alive(tokenAdapter(parts, 'AccessToken')),
    RefreshToken: alive(tokenAdapter(parts, 'RefreshToken')),
    Interaction: alive(stateAdapter(parts, 'Interaction')),
    PushedAuthorizationRequest: alive(stateAdapter(parts, 'PushedAuthorizationRequest')),
    ReplayDetection: replayAdapter(parts),
  };
  return (model) => adapters[model] as Adapter;
}

/** Adjusts `exp` and `iat` of what is found, so that the library does not reject it by this process's clock: only the database's counts. */
function alive({ find, findByUid, ...others }: Partial<Adapter>): Partial<Adapter> {
  const adjusted = (payload: AdapterPayload | undefined | void) => {
    const now = Math.floor(Date.now() / 1000);
    if (payload?.exp !== undefined && payload.exp <= now) payload.exp = now + 1;
    if (payload?.iat !== undefined && payload.iat > now) payload.iat = now;
    return payload;
  };
  return {
    ...others,
    find: async (id) => adjusted(await find!(id)),
    ...(findByUid ? { findByUid: async (uid) => adjusted(await findByUid(uid)) } : {}),
  };
}
