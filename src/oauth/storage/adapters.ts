import type { Adapter } from 'oidc-provider';
import { TokenAdapter } from '../token-request/token.adapter.js';
import { ClientAdapter } from './client.adapter.js';
import { GrantAdapter } from './grant.adapter.js';
import { ReplayAdapter } from './replay.adapter.js';
import { SessionAdapter } from './session.adapter.js';
import { StateAdapter } from './state.adapter.js';
import { StoredModel } from './stored-model.js';
import type { AdapterParts } from './stored-model.js';

/**
 * Makes the adapters that store oidc-provider's models. The ids of all models but clients and grants are secrets: rows are found by
 * an HMAC of the id, and data that would be of use to a reader of the database is encrypted. Only the database's clock decides
 * whether something has expired.
 */
export function adapterFactory(parts: AdapterParts): (model: string) => Adapter {
  return (model) => {
    switch (model) {
      case 'Client':
        return new ClientAdapter(parts);
      case 'Grant':
        return new GrantAdapter(parts);
      case 'Session':
        return new SessionAdapter(parts);
      case 'AuthorizationCode':
      case 'AccessToken':
      case 'RefreshToken':
        return new TokenAdapter(parts, model);
      case 'Interaction':
      case 'PushedAuthorizationRequest':
        return new StateAdapter(parts, model);
      case 'ReplayDetection':
        return new ReplayAdapter(parts);
      default:
        return new StoredModel(parts);
    }
  };
}
