import type { AdapterPayload, ClientMetadata } from 'oidc-provider';
import type { OauthClient } from '../../database/entities/oauth.entity.js';
import { Unavailable } from '../../database/unavailable.js';
import { isStorable } from '../../values/string-rules.js';
import { StoredModel } from './stored-model.js';

const FIND_CLIENT = {
  name: 'find-client',
  text: `SELECT id, name, type, redirect_uris, post_logout_redirect_uris, allowed_origins, scopes, jwks,
  client_uri, policy_uri, id_token_signed_response_alg, logo IS NOT NULL AS has_logo
FROM oauth_clients WHERE id = $1 AND disabled_at IS NULL`,
};

/** Clients, as an admin registered them. */
export class ClientAdapter extends StoredModel {
  /**
   * A disabled client is unknown.
   *
   * @throws Unavailable for the second in which an algorithm is new, and its keys are not loaded yet
   */
  override async find(id: string): Promise<AdapterPayload | undefined> {
    // It may come from a claim of an assertion, which is whatever its sender wrote.
    if (typeof id !== 'string' || id.length > 100 || !isStorable(id)) return undefined;
    const { clients, database, signingAlgorithms } = this.parts;
    const found = await clients.find(id, async () => {
      const [client] = await database.read<StoredClient & Record<string, unknown>>(FIND_CLIENT, [id]);
      return client && (clientMetadata(client) as AdapterPayload);
    });
    if (found && !signingAlgorithms.has(found.id_token_signed_response_alg as string)) {
      database.current!.unavailable = true;
      throw new Unavailable('the keys for the ID tokens of the client are not loaded yet');
    }
    return found;
  }
}

/** A client's row, without what pages alone need of it. */
export interface StoredClient extends Omit<OauthClient, 'created_at' | 'disabled_at' | 'logo'> {
  readonly has_logo: boolean;
}

/** Gives a client's row as oidc-provider wants it (RFC 7591 names, and three of ours). */
export function clientMetadata(
  client: StoredClient,
): ClientMetadata & { allowed_origins: string[]; api_scopes: string; has_logo: boolean } {
  return {
    client_id: client.id,
    client_name: client.name,
    application_type: client.type,
    redirect_uris: client.redirect_uris,
    post_logout_redirect_uris: client.post_logout_redirect_uris,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    response_modes: ['query'],
    ...(client.jwks
      ? { token_endpoint_auth_method: 'private_key_jwt', jwks: client.jwks }
      : { token_endpoint_auth_method: 'none' }),
    id_token_signed_response_alg: client.id_token_signed_response_alg,
    ...(client.client_uri === null ? {} : { client_uri: client.client_uri }),
    ...(client.policy_uri === null ? {} : { policy_uri: client.policy_uri }),
    has_logo: client.has_logo,
    allowed_origins: client.allowed_origins,
    api_scopes: client.scopes.join(' '),
  };
}
