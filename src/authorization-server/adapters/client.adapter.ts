import type { Adapter, AdapterPayload, ClientMetadata } from 'oidc-provider';
import type { OauthClient } from '../../database/schema/entities/credentials/oauth.entity.js';
import { Unavailable } from '../../database/postgres/unavailable.js';
import { allowedOriginsOf } from '../../clients/client-rules.js';
import { isStorable } from '../../values/string-rules.js';
import type { AdapterParts } from './stored-model.js';

/** A client's row, without the columns that only pages need. */
export interface StoredClient extends Omit<
  OauthClient,
  'created_at' | 'disabled_at' | 'logo' | 'document_read_at' | 'owner_id' | 'owner' | 'disabled_by_owner'
> {
  readonly has_logo: boolean;
  /** Its id is the URL of its metadata document. */
  readonly has_document: boolean;
  /** Registered by a member for themselves. */
  readonly by_member: boolean;
}

const FIND_CLIENT = {
  name: 'find-client',
  text: `SELECT id, name, type, redirect_uris, post_logout_redirect_uris, allowed_origins, scopes, jwks,
  client_uri, policy_uri, id_token_signed_response_alg, logo IS NOT NULL AS has_logo, document_read_at IS NOT NULL AS has_document,
  owner_id IS NOT NULL AS by_member,
  disabled_at IS NOT NULL AS is_disabled, document_read_at < now() - interval '1 hour' AS is_stale,
  document_read_at < now() - interval '1 day' AS is_gone
FROM oauth_clients WHERE id = $1`,
};

/** A client's row, with the columns that decide whether it may be used. */
interface FoundClient extends StoredClient, Record<string, unknown> {
  readonly is_disabled: boolean;
  /** Its document is due to be fetched again; null for a client that an admin registered. */
  readonly is_stale: boolean | null;
  /** Its document could not be fetched for a day. */
  readonly is_gone: boolean | null;
}

/** Clients, registered or, where that is allowed, described by a client ID metadata document. */
export class ClientAdapter implements Partial<Adapter> {
  constructor(private readonly parts: AdapterParts) {}

  /**
   * Treats a disabled client as unknown.
   *
   * @throws Unavailable for the second after a client starts to use a new algorithm, until its keys are loaded
   */
  async find(id: string): Promise<AdapterPayload | undefined> {
    // The id may come from an assertion's claim, which can hold anything.
    if (typeof id !== 'string' || id.length > 100 || !isStorable(id)) return undefined;
    const { clients, database, signingAlgorithms } = this.parts;
    const found = await clients.find(id, async () => {
      const [client] = await database.read<FoundClient>(FIND_CLIENT, [id]);
      const current = await this.#current(id, client);
      return current && (clientMetadata(current) as AdapterPayload);
    });
    if (found && !signingAlgorithms.has(found.id_token_signed_response_alg as string)) {
      database.current!.unavailable = true;
      throw new Unavailable('the keys for the ID tokens of the client are not loaded yet');
    }
    return found;
  }

  async #current(id: string, client: FoundClient | undefined): Promise<StoredClient | undefined> {
    const { documents } = this.parts;
    if (!client) return documents.find(id);
    if (client.is_disabled) return undefined;
    if (!client.has_document) return client;
    if (!documents.areRead) return undefined;
    // An app whose document cannot be read keeps working for a day, since members use it.
    if (client.is_gone) return documents.keep(id);
    if (client.is_stale) documents.renew(id);
    return client;
  }
}

/** Converts a client's row into oidc-provider's metadata (RFC 7591 names, and five custom ones). */
function clientMetadata(client: StoredClient): ClientMetadata {
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
    has_document: client.has_document,
    by_member: client.by_member,
    allowed_origins: allowedOriginsOf(client),
    api_scopes: client.scopes.join(' '),
  };
}
