import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { recordEventIf } from '../../audit/audit.js';
import { ALL_SCOPES, isScope } from '../../auth/scopes.js';
import { Config } from '../../config/config.js';
import { Unavailable } from '../../database/postgres/unavailable.js';
import type { OauthClient } from '../../database/schema/entities/credentials/oauth.entity.js';
import { Logger } from '../../runtime/logger.js';
import { nameFrom } from '../../values/string-rules.js';
import { checkClient, ClientFault, isPageUrl, redirectUriFault } from '../../clients/client-rules.js';
import { profileOfDocument } from '../../clients/profiles.js';
import { OauthDatabase, OauthRequest } from '../requests/oauth-database.js';
import { NOT_PUBLIC, PublicHttps } from '../../runtime/public-https.js';
import { networkOf } from '../../values/network.js';
import { maskedInput, MinuteBudgets } from '../failures/rejections.js';

export interface ClientSecret {
  readonly id: number;
  /** Hexadecimal, like `pepper_id`. */
  readonly hash: string;
  readonly pepper_id: string;
  readonly expired: boolean;
}

/** A client as the authorization server uses it, from its row or its metadata document. */
export interface StoredClient extends Pick<
  OauthClient,
  | (typeof DESCRIBED)[number]
  | 'id'
  | 'post_logout_redirect_uris'
  | 'pkce'
  | 'secret_auth_method'
  | 'id_token_signed_response_alg'
  | 'longest_access'
> {
  /** null for a client without a secret. */
  readonly secrets: readonly ClientSecret[] | null;
  readonly has_logo: boolean;
  /** Whether the client's id is the URL of its metadata document. */
  readonly has_document: boolean;
  readonly by_member: boolean;
  readonly is_approved: boolean;
}

const HOUR_MS = 3_600_000;
/** Lifetime of a remembered fault: short, since developers correct their documents and try again. */
const FAILURE_REMEMBERED_MS = 30_000;
const MAX_UNKNOWN_KEYS_PER_MINUTE = 1;
/** Maximum documents read per minute for the callers of one network. */
const MAX_READS_PER_MINUTE = 30;
/** Maximum documents and key sets read per minute from one host, for all callers together, to protect that host. */
const MAX_READS_PER_MINUTE_AND_HOST = 60;
const MAX_CONCURRENT_PER_ADDRESS = 4;
const MAX_CONCURRENT = 100;
const MAX_WAITING_PER_ADDRESS = 20;
const MAX_REDIRECT_URIS = 20;

const DESCRIBED = [
  'name',
  'type',
  'redirect_uris',
  'allowed_origins',
  'scopes',
  'jwks',
  'jwks_uri',
  'assertion_optional',
  'profile',
  'client_uri',
  'policy_uri',
  'backchannel_logout_uri',
] as const satisfies (keyof OauthClient)[];

const KEEP = `WITH kept AS (
  INSERT INTO oauth_clients AS c (id, document_read_at, ${DESCRIBED.join(', ')})
  SELECT id, now(), ${DESCRIBED.join(', ')} FROM jsonb_populate_record(NULL::oauth_clients, $1)
  ON CONFLICT (id) DO UPDATE SET document_read_at = now(), ${DESCRIBED.map((column) => `${column} = EXCLUDED.${column}`).join(', ')}
  WHERE c.document_read_at IS NOT NULL AND c.disabled_at IS NULL
  RETURNING c.xmax = 0 AS is_new
), recorded AS (${recordEventIf('kept WHERE is_new', 2)}) SELECT FROM kept`;

/** Reads clients from their metadata documents, whose URLs are the clients' ids (CLIENT_ID_METADATA_DOCUMENTS). */
@Injectable()
export class ClientDocuments {
  readonly #read = new LRUCache<string, StoredClient>({ max: 500, ttl: HOUR_MS });
  /** Faults of documents, in a separate cache so that they cannot evict known clients. */
  readonly #failed = new LRUCache<string, string>({ max: 5_000, ttl: FAILURE_REMEMBERED_MS });
  readonly #reading = new Map<string, { network: string; client: Promise<StoredClient | undefined> }>();
  readonly #waiting = new Map<string, number>();
  readonly #spent = new MinuteBudgets();
  readonly #faults = new WeakMap<OauthRequest, string | undefined>();

  constructor(
    private readonly config: Config,
    private readonly database: OauthDatabase,
    private readonly https: PublicHttps,
    private readonly logger: Logger,
  ) {}

  /** @returns undefined if the client has no valid document @throws Unavailable if too many documents are being read */
  async find(clientId: string): Promise<StoredClient | undefined> {
    if (!clientId.startsWith('https://')) return undefined;
    const request = this.database.current!;
    const fault = this.areRead
      ? isDocumentUrl(clientId)
        ? this.#failed.get(clientId)
        : NO_DOCUMENT_URL
      : 'this server does not accept client documents: ask its operator to register the app';
    this.#faults.set(request, fault);
    if (fault !== undefined) return undefined;
    const known = this.#read.get(clientId);
    if (known) return known;
    const network = networkOf(request.ip);
    const waiting = this.#waiting.get(network) ?? 0;
    if (
      waiting >= MAX_WAITING_PER_ADDRESS ||
      !(this.#reading.has(clientId) || this.#spend(network, clientId))
    ) {
      request.unavailable = true;
      throw new Unavailable('too many client documents are being read');
    }
    const reading = this.#reading.get(clientId) ?? {
      network,
      client: this.#readNow(clientId).finally(() => this.#reading.delete(clientId)),
    };
    this.#reading.set(clientId, reading);
    this.#waiting.set(network, waiting + 1);
    request.leaveSlot(); // a waiting request needs no slot
    try {
      const client = await reading.client;
      this.#faults.set(request, this.#failed.get(clientId));
      return client;
    } finally {
      const left = this.#waiting.get(network)! - 1;
      if (left === 0) this.#waiting.delete(network);
      else this.#waiting.set(network, left);
    }
  }

  async #readNow(clientId: string): Promise<StoredClient | undefined> {
    try {
      const document = await this.https.readJson(new URL(clientId));
      const keysUri = parseKeysUri(document);
      const jwks = keysUri === undefined ? undefined : await this.#readKeys(keysUri);
      const client = parseClient(clientId, document, this.config.production, jwks);
      this.#read.set(clientId, client);
      return client;
    } catch (error) {
      const reason = reasonOf(error as Error);
      const line = { client_id: maskedInput(clientId, 100), reason };
      this.logger.info(line, 'a client document could not be read');
      this.#failed.set(clientId, reason);
      return undefined;
    }
  }

  async #readKeys(uri: string): Promise<object> {
    try {
      if (!isPageUrl(uri)) throw new Error('use a valid https URL');
      const url = new URL(uri);
      if (!this.#spent.spend(budgetOfHost(url))) throw new Error('too many requests to its host: try later');
      return (await this.https.readJson(url)) as object;
    } catch (error) {
      throw new Error(`jwks_uri: ${reasonOf(error as Error)}`, { cause: error });
    }
  }

  /** Forgets a document that lacks a key, at most once per minute. @returns whether the next use reads the document */
  forget(clientId: string): boolean {
    if (this.#reading.has(clientId)) return true;
    if (!this.#spent.spend({ [`keys of ${clientId}`]: MAX_UNKNOWN_KEYS_PER_MINUTE })) return false;
    this.#read.delete(clientId);
    this.#failed.delete(clientId);
    return true;
  }

  faultOf(request: OauthRequest): string | undefined {
    return this.#faults.get(request);
  }

  get areRead(): boolean {
    return this.config.clientIdMetadataDocuments;
  }

  /** Renews the row of a known client in the background. */
  renew(clientId: string): void {
    if (this.#reading.has(clientId)) return;
    const { id, ip, userAgent } = this.database.current!;
    // Uses a separate request context, so that a failure does not fail the current request; the next request retries.
    const request = new OauthRequest(id, ip, userAgent);
    this.database.serve(request, () => this.keep(clientId)).catch(() => undefined);
  }

  /** Reads the client's document, and creates or renews its row. @returns undefined if the document is not valid */
  async keep(clientId: string): Promise<StoredClient | undefined> {
    const client = await this.find(clientId);
    if (!client) return undefined;
    const { id, name, scopes, redirect_uris } = client;
    const event = {
      type: 'client.created',
      actor: 'client',
      clientId: id,
      details: { name, scopes, redirect_uris: redirect_uris.slice(0, 5) },
    } as const;
    await this.database.rows(KEEP, [JSON.stringify(client), ...this.database.eventValues(event)]);
    return client;
  }

  /** Tells whether a document may be read now, and if so counts the read. */
  #spend(network: string, clientId: string): boolean {
    const reading = [...this.#reading.values()];
    const ofAddress = reading.filter((other) => other.network === network);
    if (reading.length >= MAX_CONCURRENT || ofAddress.length >= MAX_CONCURRENT_PER_ADDRESS) return false;
    return this.#spent.spend({
      [`of ${network}`]: MAX_READS_PER_MINUTE,
      ...budgetOfHost(new URL(clientId)),
    });
  }
}

const budgetOfHost = ({ host }: URL) => ({ [`from ${host}`]: MAX_READS_PER_MINUTE_AND_HOST });

/** Returns the reason that callers see: the same for internal and for missing host names. */
function reasonOf({ message, syscall }: NodeJS.ErrnoException): string {
  return syscall?.startsWith('query') === true ? NOT_PUBLIC : message.slice(0, 200);
}

const NO_DOCUMENT_URL =
  'the client_id is not a valid document URL: use https, a path and at most 100 characters, but no user, fragment, dot segments or port 443';

/** Tells whether the id is a normalized document URL (draft-ietf-oauth-client-id-metadata-document §3), ≤ 100 characters. */
export function isDocumentUrl(clientId: string): boolean {
  if (clientId.length > 100 || !/^https:\/\/[\x21-\x7e]+$/.test(clientId)) return false;
  const url = URL.parse(clientId);
  if (!url || url.href !== clientId) return false;
  return url.pathname !== '/' && url.username === '' && url.password === '' && !clientId.includes('#');
}

function parseAuthMethods(said: Readonly<Record<string, unknown>>): ('none' | 'private_key_jwt')[] {
  const { token_endpoint_auth_method: preferred, token_endpoint_auth_methods_supported: others } = said;
  const methods = [preferred ?? [], others ?? []].flat();
  return (['none', 'private_key_jwt'] as const).filter((method) =>
    methods.length === 0 ? method === 'none' : methods.includes(method),
  );
}

/** Returns the URL of the client's keys; undefined if the client needs no keys, or the document contains them or names no URL. */
function parseKeysUri(document: unknown): string | undefined {
  const said = (document ?? {}) as Readonly<Record<string, unknown>>;
  const isNeeded = parseAuthMethods(said).includes('private_key_jwt') && (said.jwks ?? null) === null;
  return isNeeded && typeof said.jwks_uri === 'string' ? said.jwks_uri : undefined;
}

/** Finds the fault of a redirect URI that a metadata document's client uses. */
export function findRedirectFault(
  clientId: string,
  uri: string,
  type: StoredClient['type'],
  production: boolean,
): string | undefined {
  // An https redirect URI must have the document's origin.
  if (isHttps(uri) && URL.parse(uri)!.origin !== new URL(clientId).origin)
    return `the redirect URI ${uri} has another origin than the document`;
  const fault = redirectUriFault(uri, type, production);
  return fault && new ClientFault(fault, 'redirect_uris', uri).message;
}

/** Reads the client from its document. @param readKeys the keys at its `jwks_uri` @throws Error if the document is not acceptable */
export function parseClient(
  clientId: string,
  document: unknown,
  production: boolean,
  readKeys?: object,
): StoredClient {
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw new Error('the document must be a JSON object');
  const said = document as Readonly<Record<string, unknown>>;
  if (said.client_id !== clientId) throw new Error('its client_id must be its URL');
  const methods = parseAuthMethods(said);
  if (methods.length === 0) throw new Error('its token_endpoint_auth_method must be none or private_key_jwt');
  if ('client_secret' in said) throw new Error('it must not contain a client_secret');
  const { origin, host } = new URL(clientId);
  const uris = [said.redirect_uris].flat().filter((uri): uri is string => typeof uri === 'string');
  const isApp = said.application_type === 'native' || uris.some((uri) => !isHttps(uri));
  const type = isApp ? 'native' : 'web';
  const named = typeof said.client_name === 'string' ? nameFrom(said.client_name) : '';
  const keys = (readKeys ?? said.jwks ?? null) as { keys: object[] } | null;
  const jwks = methods.includes('private_key_jwt') ? keys : null;
  if (jwks === null && !methods.includes('none')) throw new Error('private_key_jwt needs jwks or jwks_uri');
  const scope = typeof said.scope === 'string' ? said.scope.split(' ').filter(isScope) : ALL_SCOPES;
  const name = named || host.slice(0, 100);
  const faultOf = (uri: string) => findRedirectFault(clientId, uri, type, production);
  const redirect_uris = uris.filter((uri) => faultOf(uri) === undefined).slice(0, MAX_REDIRECT_URIS);
  if (redirect_uris.length === 0 && uris.length > 0) throw new Error(faultOf(uris[0]!));
  // Accepts only a URI of the document's origin, so that a document cannot direct requests at other hosts.
  const logoutUri = said.backchannel_logout_uri;
  const isOwn = typeof logoutUri === 'string' && URL.parse(logoutUri)?.origin === origin;
  const backchannel_logout_uri = isOwn ? logoutUri : null;
  const profile = profileOfDocument(said);
  checkClient(
    { name, type, jwks, profile, scopes: scope, redirect_uris, backchannel_logout_uri },
    production,
  );
  // A document must not show another site's pages as its own.
  const pageOf = (uri: unknown) =>
    typeof uri === 'string' && isPageUrl(uri) && new URL(uri).origin === origin ? uri : null;
  return {
    id: clientId,
    name,
    type,
    redirect_uris,
    post_logout_redirect_uris: [],
    allowed_origins: [origin],
    scopes: [...scope],
    jwks,
    jwks_uri: parseKeysUri(said) ?? null,
    assertion_optional: jwks !== null && methods.includes('none') && profile !== 'fapi2',
    profile,
    pkce: 'required',
    secret_auth_method: null,
    secrets: null,
    client_uri: pageOf(said.client_uri),
    policy_uri: pageOf(said.policy_uri),
    id_token_signed_response_alg: 'ES256',
    backchannel_logout_uri,
    has_logo: false,
    has_document: true,
    by_member: false,
    is_approved: false,
    longest_access: null,
  };
}

/** Checks the parsed URL, since the scheme may be in capitals. */
function isHttps(uri: string): boolean {
  return URL.parse(uri)?.protocol === 'https:';
}
