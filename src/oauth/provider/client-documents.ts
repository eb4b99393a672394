import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { ALL_SCOPES, isScope } from '../../auth/scopes.js';
import { Config } from '../../config/config.js';
import { Unavailable } from '../../database/unavailable.js';
import { Logger } from '../../http/logger.js';
import { checkClient, redirectUriFault } from '../admin/client-rules.js';
import type { StoredClient } from '../storage/stored-client.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { PublicHttps } from '../../http/public-https.js';
import { withoutSecrets } from './refusals.js';

const HOUR_MS = 3_600_000;
/** Not for long: somebody may just be correcting their document. */
const FAILURE_REMEMBERED_MS = 30_000;
/** By this process, whoever asks: strangers choose which hosts it connects to. */
const MOST_READS_A_MINUTE = 60;
const MOST_REDIRECT_URIS = 20;

const KEEP = `INSERT INTO oauth_clients AS c (id, name, type, redirect_uris, allowed_origins, scopes, jwks, client_uri, policy_uri,
  document_read_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now())
ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, type = EXCLUDED.type, redirect_uris = EXCLUDED.redirect_uris,
  allowed_origins = EXCLUDED.allowed_origins, scopes = EXCLUDED.scopes, jwks = EXCLUDED.jwks, client_uri = EXCLUDED.client_uri,
  policy_uri = EXCLUDED.policy_uri, document_read_at = now()
WHERE c.document_read_at IS NOT NULL AND c.disabled_at IS NULL
RETURNING c.xmax = 0 AS is_new`;

/**
 * Clients that nobody registered: their id is the https URL of a document that describes them (OAuth Client ID Metadata Document), as
 * with clients of the Model Context Protocol. Only with CLIENT_ID_METADATA_DOCUMENTS. A document is read when its URL first comes as a
 * client id, and again after an hour; it gets a row only once a member has allowed the client something.
 */
@Injectable()
export class ClientDocuments {
  /** What the documents describe; null where one could not be read. */
  readonly #read = new LRUCache<string, { client: StoredClient | null }>({ max: 500, ttl: HOUR_MS });
  readonly #reading = new Map<string, Promise<StoredClient | undefined>>();
  #minute = 0;
  #reads = 0;

  constructor(
    private readonly config: Config,
    private readonly database: OauthDatabase,
    private readonly https: PublicHttps,
    private readonly logger: Logger,
  ) {}

  /** @returns undefined where the id is no such URL, or there is no such document */
  async find(clientId: string): Promise<StoredClient | undefined> {
    if (!this.areRead || !isDocumentUrl(clientId)) return undefined;
    const known = this.#read.get(clientId);
    if (known) return known.client ?? undefined;
    const reading =
      this.#reading.get(clientId) ?? this.#readNow(clientId).finally(() => this.#reading.delete(clientId));
    this.#reading.set(clientId, reading);
    return reading;
  }

  async #readNow(clientId: string): Promise<StoredClient | undefined> {
    if (!this.#hasRoom()) {
      this.database.current!.unavailable = true;
      throw new Unavailable('too many documents of clients were read in this minute');
    }
    try {
      const client = clientOf(clientId, await this.https.readJson(new URL(clientId)), this.config.production);
      this.#read.set(clientId, { client });
      return client;
    } catch (error) {
      const { message } = error as Error;
      this.logger.info(
        { client_id: withoutSecrets(clientId, 100), reason: message.slice(0, 200) },
        'a client document could not be read',
      );
      this.#read.set(clientId, { client: null }, { ttl: FAILURE_REMEMBERED_MS });
      return undefined;
    }
  }

  /** Whether clients may be described by documents at all. */
  get areRead(): boolean {
    return this.config.clientIdMetadataDocuments;
  }

  /** Reads the document of a client that members have allowed something again, and stores what it says. */
  async renew(clientId: string): Promise<StoredClient | undefined> {
    const client = await this.find(clientId);
    if (client) await this.keep(clientId);
    return client;
  }

  /** Makes or renews the row of such a client, to which consents and grants refer. */
  async keep(clientId: string): Promise<void> {
    const client = await this.find(clientId);
    if (!client) return;
    const { id, name, type, redirect_uris, allowed_origins, scopes, jwks, client_uri, policy_uri } = client;
    const [row] = await this.database.rows<{ is_new: boolean }>(KEEP, [
      id,
      name,
      type,
      redirect_uris,
      allowed_origins,
      scopes,
      jwks && JSON.stringify(jwks),
      client_uri,
      policy_uri,
    ]);
    if (row?.is_new === true)
      await this.database.record({
        type: 'client.created',
        actor: 'client',
        clientId: id,
        details: { name, scopes, redirect_uris: redirect_uris.slice(0, 5) },
      });
  }

  #hasRoom(): boolean {
    const minute = Math.floor(performance.now() / 60_000);
    if (minute !== this.#minute) [this.#minute, this.#reads] = [minute, 0];
    return ++this.#reads <= MOST_READS_A_MINUTE;
  }
}

/** An https URL with a path, in the one spelling in which it is compared (draft-ietf-oauth-client-id-metadata-document §3). */
export function isDocumentUrl(clientId: string): boolean {
  if (clientId.length > 100 || !/^https:\/\/[\x21-\x7e]+$/.test(clientId)) return false;
  const url = URL.parse(clientId);
  if (!url || url.href !== clientId) return false;
  return url.pathname !== '/' && url.username === '' && url.password === '' && !clientId.includes('#');
}

/** Reads the client from its document. @throws Error where that describes no client that could be registered here */
export function clientOf(clientId: string, document: unknown, production: boolean): StoredClient {
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw new Error('the document is no object');
  const said = document as Readonly<Record<string, unknown>>;
  if (said.client_id !== clientId) throw new Error('the document is about another client_id');
  const method = said.token_endpoint_auth_method ?? 'none';
  if (method !== 'none' && method !== 'private_key_jwt')
    throw new Error('the document asks for a shared secret');
  if ('client_secret' in said) throw new Error('the document holds a secret');
  const { origin, host } = new URL(clientId);
  const uris = [said.redirect_uris].flat().filter((uri): uri is string => typeof uri === 'string');
  const isApp = said.application_type === 'native' || uris.some((uri) => !isHttps(uri));
  const type = isApp ? 'native' : 'web';
  const name =
    typeof said.client_name === 'string' && said.client_name.trim() !== '' ? said.client_name : host;
  const jwks = method === 'private_key_jwt' ? (said.jwks as { keys: Record<string, unknown>[] }) : undefined;
  if (method === 'private_key_jwt' && jwks === undefined) throw new Error('the document has no jwks');
  const scope = typeof said.scope === 'string' ? said.scope.split(' ').filter(isScope) : ALL_SCOPES;
  const client = {
    name: [...name].slice(0, 100).join(''),
    type,
    jwks,
    scopes: scope,
    actor: 'client',
  } as const;
  // Its own pages, or an app on the member's device: nobody else's.
  const redirectUris = uris
    .filter((uri) => !isHttps(uri) || new URL(uri).origin === origin)
    .filter((uri) => redirectUriFault(uri, type, production) === undefined)
    .slice(0, MOST_REDIRECT_URIS);
  checkClient({ ...client, redirectUris }, production);
  const pageOf = (uri: unknown) =>
    typeof uri === 'string' &&
    isAccepted(() => checkClient({ ...client, redirectUris, clientUri: uri }, production))
      ? uri
      : null;
  return {
    id: clientId,
    name: client.name,
    type,
    redirect_uris: redirectUris,
    post_logout_redirect_uris: [],
    allowed_origins: [origin],
    scopes: [...scope],
    jwks: jwks ?? null,
    client_uri: pageOf(said.client_uri),
    policy_uri: pageOf(said.policy_uri),
    id_token_signed_response_alg: 'ES256',
    has_logo: false,
    has_document: true,
    by_member: false,
  };
}

/** By the parsed URL: a scheme may be written in capitals. */
function isHttps(uri: string): boolean {
  return URL.parse(uri)?.protocol === 'https:';
}

function isAccepted(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}
