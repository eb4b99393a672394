import type { Adapter } from 'oidc-provider';
import { TokenAdapter } from './token.adapter.js';
import { ClientAdapter } from './client.adapter.js';
import { GrantAdapter } from './grant.adapter.js';
import { ReplayAdapter } from './replay.adapter.js';
import { SessionAdapter } from './session.adapter.js';
import { StateAdapter } from './state.adapter.js';
import type { AdapterParts } from './stored-model.js';

/**
 * Makes the adapters that store oidc-provider's models. The ids of all models but clients and grants are secrets: rows are found by
 * an HMAC of the id, and data that would be of use to a reader of the database is encrypted. Only the database's clock decides
 * whether something has expired. An adapter has the methods that the library calls for its model: the others belong to features that are
 * switched off.
 */
export function adapterFactory(parts: AdapterParts): (model: string) => Adapter {
  const adapters: Readonly<Record<string, Partial<Adapter>>> = {
    Client: new ClientAdapter(parts),
    Grant: new GrantAdapter(parts),
    Session: new SessionAdapter(parts),
    AuthorizationCode: new TokenAdapter(parts, 'AuthorizationCode'),
    AccessToken: new TokenAdapter(parts, 'AccessToken'),
    RefreshToken: new TokenAdapter(parts, 'RefreshToken'),
    Interaction: new StateAdapter(parts, 'Interaction'),
    PushedAuthorizationRequest: new StateAdapter(parts, 'PushedAuthorizationRequest'),
    ReplayDetection: new ReplayAdapter(parts),
  };
  return (model) => adapters[model] as Adapter;
}
