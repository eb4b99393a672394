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
 * Makes what oidc-provider keeps its models in. The id of every model but clients and grants is a secret: rows are found by an
 * HMAC of it, and what could be of use to whoever reads the database is encrypted. Expiry is judged by the database's
 * clock alone.
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
