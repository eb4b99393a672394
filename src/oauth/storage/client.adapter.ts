import type { AdapterPayload, ClientMetadata } from 'oidc-provider';
import type { OauthClient } from '../../database/entities/oauth.entity.js';
import { isStorable } from '../../values/string-rules.js';
import { StoredModel } from './stored-model.js';

const FIND_CLIENT = {
  name: 'find-client',
  text: `SELECT id, name, type, redirect_uris, post_logout_redirect_uris, allowed_origins, scopes, jwks
FROM oauth_clients WHERE id = $1 AND disabled_at IS NULL`,
};

/** Clients, as an admin registered them. */
export class ClientAdapter extends StoredModel {
  /** A disabled client is unknown. */
  override async find(id: string): Promise<AdapterPayload | undefined> {
    // It may come from a claim of an assertion, which is whatever its sender wrote.
    if (typeof id !== 'string' || id.length > 100 || !isStorable(id)) return undefined;
    const { clients, database } = this.parts;
    return clients.find(id, async () => {
      const [client] = await database.read<OauthClient & Record<string, unknown>>(FIND_CLIENT, [id]);
      return client && (clientMetadata(client) as AdapterPayload);
    });
  }
}

/** A client's row as oidc-provider wants it (RFC 7591 names, and two of ours). */
export function clientMetadata(
  client: Omit<OauthClient, 'created_at' | 'disabled_at'>,
): ClientMetadata & { allowed_origins: string[]; api_scopes: string } {
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
    allowed_origins: client.allowed_origins,
    api_scopes: client.scopes.join(' '),
  };
}
