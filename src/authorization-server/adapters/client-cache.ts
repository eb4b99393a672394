import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { decodeProtectedHeader, type JWK } from 'jose';
import { Provider, type AdapterPayload, type ClientMetadata } from 'oidc-provider';
import { RevocationChannel } from '../../auth/revocation-channel.js';
import { allowedOriginsOf } from '../../clients/client-rules.js';
import { authMethodOf, rulesOf } from '../../clients/profiles.js';
import { sha256 } from '../../crypto/digests.js';
import { Unavailable } from '../../database/postgres/unavailable.js';
import { isStorable } from '../../values/string-rules.js';
import { OauthDatabase } from '../requests/oauth-database.js';
import { ClientDocuments, type StoredClient } from './client-documents.js';

const FIND_CLIENT = {
  name: 'find-client',
  text: `SELECT id, name, type, redirect_uris, post_logout_redirect_uris, allowed_origins, scopes, jwks, jwks_uri, assertion_optional,
  profile, pkce,
  secret_auth_method, CASE WHEN secret_auth_method IS NOT NULL THEN (
    SELECT jsonb_agg(jsonb_build_object('id', s.id, 'hash', encode(s.hash, 'hex'), 'pepper_id', encode(s.pepper_id, 'hex'),
      'expired', COALESCE(s.expires_at <= now(), false)) ORDER BY s.id DESC)
    FROM oauth_client_secrets s WHERE s.client_id = oauth_clients.id) END AS secrets,
  client_uri, policy_uri, id_token_signed_response_alg, backchannel_logout_uri,
  logo IS NOT NULL AS has_logo, document_read_at IS NOT NULL AS has_document,
  owner_id IS NOT NULL AS by_member, approved_at IS NOT NULL AS is_approved, longest_access,
  disabled_at IS NOT NULL AS is_disabled, document_read_at < now() - interval '1 hour' AS is_stale,
  document_read_at < now() - interval '1 day' AS is_gone
FROM oauth_clients WHERE id = $1`,
};

interface FoundClient extends StoredClient, Record<string, unknown> {
  readonly is_disabled: boolean;
  /** Whether the client's document was last read more than an hour ago; null for a client without a document. */
  readonly is_stale: boolean | null;
  /** Whether the client's document was last read more than a day ago: then it must be read before the client is used. */
  readonly is_gone: boolean | null;
}

const MAX_CLIENTS = 1_000;
/** Maximum age of an entry in ms: some manual changes in the database send no notice. */
const REMEMBERED_MS = 900;

/**
 * Remembers clients for at most 0.9 s, to save queries, and uses them only while the revocation channel is trusted.
 * Statements that read codes and tokens reject disabled clients at once.
 */
@Injectable()
export class ClientCache {
  readonly #known = new LRUCache<string, AdapterPayload>({ max: MAX_CLIENTS, ttl: REMEMBERED_MS });

  constructor(
    private readonly channel: RevocationChannel,
    private readonly database: OauthDatabase,
    private readonly documents: ClientDocuments,
  ) {
    channel.onRevocation((revocation) => {
      if (revocation === 'all') this.#known.clear();
      else if (revocation.kind === 'client') this.#known.delete(revocation.id);
    });
  }

  /** Finds an enabled client. @param algorithms of the loaded keys @throws Unavailable if they cannot sign its ID tokens */
  async find(id: string, algorithms: ReadonlySet<string>): Promise<AdapterPayload | undefined> {
    let found = (this.channel.trusted && this.#known.get(id)) || (await this.#lookUp(id));
    if (found?.has_document === true && isSignedWithUnknownKey(found))
      found = (await this.#lookUp(id, this.documents.forget(id))) ?? found;
    if (found && !algorithms.has(found.id_token_signed_response_alg as string)) {
      this.database.current!.unavailable = true;
      throw new Unavailable('the keys for the ID tokens of the client are not loaded yet');
    }
    return found;
  }

  async #lookUp(id: string, isForgotten = false): Promise<AdapterPayload | undefined> {
    // The id may be an assertion's claim, which can be any JSON value.
    if (typeof id !== 'string' || id.length > 100 || !isStorable(id)) return undefined;
    const { epoch } = this.channel;
    const [row] = await this.database.read<FoundClient>(FIND_CLIENT, [id]);
    const client = row ? await this.#current(row, isForgotten) : await this.documents.find(id);
    const found = client && (clientMetadata(client) as AdapterPayload);
    if (found && epoch === this.channel.epoch && this.channel.trusted) this.#known.set(id, found);
    return found;
  }

  async #current(client: FoundClient, isForgotten: boolean): Promise<StoredClient | undefined> {
    if (client.is_disabled || (client.has_document && !this.documents.areRead)) return undefined;
    // A stored client keeps working for a day while its document cannot be read.
    if (client.is_gone || isForgotten) return this.documents.keep(client.id);
    if (client.is_stale) this.documents.renew(client.id);
    return client;
  }
}

function isSignedWithUnknownKey({ jwks }: AdapterPayload): boolean {
  const { client_assertion: assertion } = Provider.ctx?.oidc?.params ?? {};
  if (typeof assertion !== 'string' || jwks === undefined) return false;
  try {
    const { kid } = decodeProtectedHeader(assertion);
    return kid !== undefined && !(jwks as { keys: JWK[] }).keys.some((key) => key.kid === kid);
  } catch {
    return false; // the library reports the fault
  }
}

function clientMetadata(client: StoredClient): ClientMetadata {
  const rules = rulesOf(client);
  return {
    client_id: client.id,
    client_name: client.name,
    application_type: client.type,
    redirect_uris: client.redirect_uris,
    post_logout_redirect_uris: client.post_logout_redirect_uris,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    response_modes: [...rules.responseModes],
    token_endpoint_auth_method: authMethodOf(client),
    jwks: client.jwks ?? undefined,
    assertion_optional: client.assertion_optional,
    require_pushed_authorization_requests: rules.requiresPar,
    dpop_bound_access_tokens: rules.requiresDpop,
    profile: client.profile,
    pkce: client.pkce,
    secrets: client.secrets ?? [],
    id_token_signed_response_alg: client.id_token_signed_response_alg,
    client_uri: client.client_uri ?? undefined,
    policy_uri: client.policy_uri ?? undefined,
    backchannel_logout_uri: client.backchannel_logout_uri ?? undefined,
    // Always required of a client with this URI: ID tokens and logout tokens name the session.
    backchannel_logout_session_required: client.backchannel_logout_uri !== null,
    has_logo: client.has_logo,
    has_document: client.has_document,
    by_member: client.by_member,
    is_approved: client.is_approved,
    longest_access: client.longest_access,
    seen_as: client.has_document || client.by_member ? hash(client) : undefined,
    allowed_origins: allowedOriginsOf(client, authMethodOf(client)),
    api_scopes: client.scopes.join(' '),
  };
}

/** Makes a digest of the details on which a consent depends. Ignores the order of properties, and keys at a `jwks_uri`. */
function hash(client: StoredClient): string {
  const inOrder = (_: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
      : value;
  const { name, type, redirect_uris, jwks, jwks_uri, profile, secret_auth_method, assertion_optional } =
    client;
  const keys = jwks_uri ?? jwks;
  const seen = [name, type, redirect_uris, keys, profile, secret_auth_method, assertion_optional];
  return sha256(JSON.stringify(seen, inOrder), 'base64url');
}
