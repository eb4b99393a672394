import { IsNull, Not } from 'typeorm';
import type { DataSource, EntityManager } from 'typeorm';
import { recordEvent } from '../../audit/audit.js';
import type { NewAuthEvent } from '../../audit/audit.js';
import { ALL_SCOPES, isScope } from '../../auth/scopes.js';
import type { Config } from '../../config/config.js';
import { randomUUID } from '../../crypto/random.js';
import type { SigningAlgorithm } from '../../crypto/signing-keys.js';
import { OauthClient, OauthGrant } from '../../database/entities/oauth.entity.js';
import { pixelImageType } from '../../values/images.js';
import { OperatorError } from '../../values/operator-error.js';
import { SigningKeysService } from '../provider/signing-keys.service.js';

export interface NewClient {
  readonly name: string;
  readonly type: 'web' | 'native';
  readonly redirectUris: readonly string[];
  readonly postLogoutRedirectUris?: readonly string[] | undefined;
  /** Origins whose pages may call the token endpoint. */
  readonly allowedOrigins?: readonly string[] | undefined;
  /** What it may ask of the API; everything, unless said. */
  readonly scopes?: readonly string[] | undefined;
  /** Public keys (RFC 7517): makes the client confidential, it signs itself in with private_key_jwt. */
  readonly jwks?: { keys: Record<string, unknown>[] } | undefined;
  /** Its own page, https. */
  readonly clientUri?: string | undefined;
  /** Its page on what it does with members' data, https. */
  readonly policyUri?: string | undefined;
  /** A PNG, JPEG, WebP or GIF of 64 KB at most. */
  readonly logo?: Buffer | undefined;
  /** What its ID tokens are signed with: ES256, unless said. */
  readonly idTokenAlg?: SigningAlgorithm | undefined;
  /** Chosen by whoever needs to know it beforehand; random, unless said. */
  readonly id?: string | undefined;
  readonly actor: NewAuthEvent['actor'];
}

/** What of a client can be changed once it is there, and the column that holds it. */
const CHANGEABLE = {
  name: 'name',
  redirectUris: 'redirect_uris',
  postLogoutRedirectUris: 'post_logout_redirect_uris',
  allowedOrigins: 'allowed_origins',
  scopes: 'scopes',
  jwks: 'jwks',
  clientUri: 'client_uri',
  policyUri: 'policy_uri',
  logo: 'logo',
  idTokenAlg: 'id_token_signed_response_alg',
} as const satisfies Partial<Record<keyof NewClient, string>>;

type Changeable = keyof typeof CHANGEABLE;

/** `undefined` takes away what a client need not have. */
export type ClientChanges = Partial<Pick<NewClient, Changeable>>;

type HasAlways = 'postLogoutRedirectUris' | 'allowedOrigins' | 'scopes';

/** What can be changed of it, as it is now. */
export type ChangeableClient = Pick<NewClient, Exclude<Changeable, HasAlways>> & {
  readonly [Field in HasAlways]: readonly string[];
};

/** A client as an admin sees it. Times in the API's form. */
export interface ClientDetails {
  readonly client_id: string;
  readonly name: string;
  readonly type: 'web' | 'native';
  /** none: public, with PKCE alone. */
  readonly token_endpoint_auth_method: 'none' | 'private_key_jwt';
  readonly redirect_uris: string[];
  readonly post_logout_redirect_uris: string[];
  readonly allowed_origins: string[];
  readonly scopes: string[];
  readonly client_uri: string | null;
  readonly policy_uri: string | null;
  readonly has_logo: boolean;
  readonly id_token_signed_response_alg: SigningAlgorithm;
  readonly created_at: string;
  readonly disabled_at: string | null;
  /** Sign-ins of members that are alive. */
  readonly live_grants_count: number;
}

const DETAILS = `SELECT c.id AS client_id, c.name, c.type,
  CASE WHEN c.jwks IS NULL THEN 'none' ELSE 'private_key_jwt' END AS token_endpoint_auth_method,
  c.redirect_uris, c.post_logout_redirect_uris, c.allowed_origins, c.scopes, c.client_uri, c.policy_uri,
  c.logo IS NOT NULL AS has_logo, c.id_token_signed_response_alg,
  api_time(c.created_at) AS created_at, api_time(c.disabled_at) AS disabled_at, count(g.id) AS live_grants_count
FROM oauth_clients c LEFT JOIN oauth_grants g ON g.client_id = c.id AND g.expires_at > now()`;

export const MOST_LOGO_BYTES = 65_536;
const LOOPBACK_HOSTS = ['127.0.0.1', '[::1]'];
/** Members that make a JWK private (RFC 7518 §6). */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];

/** Registers the apps that may sign members in; used by the command line and the demo. */
export class ClientsService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly config: Pick<Config, 'production' | 'secrets'>,
  ) {}

  /**
   * @returns the client's id
   * @throws OperatorError
   */
  async create(wanted: NewClient): Promise<string> {
    checkClient(wanted, this.config.production);
    const id = wanted.id ?? randomUUID();
    const scopes = wanted.scopes ?? ALL_SCOPES;
    const idTokenAlg = wanted.idTokenAlg ?? 'ES256';
    if (idTokenAlg !== 'ES256')
      await new SigningKeysService(this.dataSource, this.config).provide(idTokenAlg);
    await this.dataSource.transaction(async (manager) => {
      await manager.insert(OauthClient, {
        id,
        name: wanted.name,
        type: wanted.type,
        redirect_uris: [...wanted.redirectUris],
        post_logout_redirect_uris: [...(wanted.postLogoutRedirectUris ?? [])],
        allowed_origins: [...(wanted.allowedOrigins ?? [])],
        scopes: [...scopes],
        jwks: wanted.jwks ?? null,
        client_uri: wanted.clientUri ?? null,
        policy_uri: wanted.policyUri ?? null,
        logo: wanted.logo ?? null,
        id_token_signed_response_alg: idTokenAlg,
      });
      await recordEvent(manager, {
        type: 'client.created',
        actor: wanted.actor,
        clientId: id,
        details: { name: wanted.name, scopes, redirect_uris: wanted.redirectUris },
      });
    });
    return id;
  }

  /** The newest first. */
  list(): Promise<ClientDetails[]> {
    return this.dataSource.query<ClientDetails[]>(
      `${DETAILS} GROUP BY c.id ORDER BY c.created_at DESC, c.id`,
    );
  }

  /** @throws OperatorError where there is none */
  async find(id: string): Promise<ClientDetails> {
    const [client] = await this.dataSource.query<ClientDetails[]>(
      `${DETAILS} WHERE c.id = $1 GROUP BY c.id`,
      [id],
    );
    if (!client) throw unknownClient(id);
    return client;
  }

  /**
   * Changes the registration. Sign-ins of the app that hold a scope which it may not ask for any more end, and what members once
   * said to that scope is forgotten.
   *
   * @param change what is to be different, of the client as it is at that moment
   * @returns the columns that changed, and how many sign-ins ended
   * @throws OperatorError where there is no such client, or what it would be is not allowed
   */
  async update(
    id: string,
    change: (client: ChangeableClient) => ClientChanges,
    actor: NewAuthEvent['actor'],
  ): Promise<{ changed: string[]; grants: number }> {
    const { idTokenAlg = 'ES256' } = change(await this.#changeable(id));
    if (idTokenAlg !== 'ES256')
      await new SigningKeysService(this.dataSource, this.config).provide(idTokenAlg);
    return this.dataSource.transaction(async (manager) => {
      const before = await this.#changeable(id, manager);
      const after = { ...before, ...change(before), actor };
      checkClient(after, this.config.production);
      const fields = (Object.keys(CHANGEABLE) as Changeable[]).filter(
        (field) => JSON.stringify(after[field]) !== JSON.stringify(before[field]),
      );
      const changed = fields.map((field) => CHANGEABLE[field]);
      if (fields.length === 0) return { changed, grants: 0 };
      const columns = fields.map((field) => [CHANGEABLE[field], after[field] ?? null]);
      await manager.update(OauthClient, { id }, Object.fromEntries(columns));
      const lost = before.scopes.filter((scope) => !after.scopes?.includes(scope));
      const grants = lost.length === 0 ? 0 : await takeScopes(manager, id, lost);
      await recordEvent(manager, {
        type: 'client.updated',
        actor,
        clientId: id,
        details: {
          changed,
          redirect_uris: fields.includes('redirectUris') ? after.redirectUris : undefined,
          scopes: fields.includes('scopes') ? after.scopes : undefined,
          grants: lost.length === 0 ? undefined : grants,
        },
      });
      return { changed, grants };
    });
  }

  /** @param manager of a transaction, in which nobody else changes it until the end */
  async #changeable(
    id: string,
    manager?: EntityManager,
  ): Promise<ChangeableClient & Pick<NewClient, 'type'>> {
    const row = manager
      ? await manager.findOne(OauthClient, { where: { id }, lock: { mode: 'pessimistic_write' } })
      : await this.dataSource.manager.findOneBy(OauthClient, { id });
    if (!row) throw unknownClient(id);
    const fields = Object.entries(CHANGEABLE).map(([field, column]) => [field, row[column] ?? undefined]);
    return { type: row.type, ...(Object.fromEntries(fields) as ChangeableClient) };
  }

  /**
   * For good, with all access that members gave it: tokens, codes, what they consented to. The trail keeps its id.
   *
   * @returns how many sign-ins of the app ended
   * @throws OperatorError where there is no such client
   */
  async delete(id: string, actor: NewAuthEvent['actor']): Promise<number> {
    return this.dataSource.transaction(async (manager) => {
      const client = await manager.findOne(OauthClient, {
        where: { id },
        lock: { mode: 'pessimistic_write' },
      });
      if (!client) throw unknownClient(id);
      const { affected: grants } = await manager.delete(OauthGrant, { client_id: id });
      await manager.delete(OauthClient, { id });
      await recordEvent(manager, {
        type: 'client.deleted',
        actor,
        clientId: id,
        details: { name: client.name, grants: grants! },
      });
      return grants!;
    });
  }

  /**
   * A disabled client can do nothing: it is unknown to every endpoint, and its tokens are refused at the next request.
   * Enabled again, what has not expired by then works again.
   *
   * @returns whether that changed anything
   * @throws OperatorError where there is no such client
   */
  async setDisabled(id: string, disabled: boolean, actor: NewAuthEvent['actor']): Promise<boolean> {
    await this.find(id);
    return this.dataSource.transaction(async (manager) => {
      const { affected } = await manager.update(
        OauthClient,
        { id, disabled_at: disabled ? IsNull() : Not(IsNull()) },
        { disabled_at: disabled ? () => 'now()' : null },
      );
      if (affected === 0) return false;
      const type = disabled ? 'client.disabled' : 'client.enabled';
      await recordEvent(manager, { type, actor, clientId: id });
      return true;
    });
  }
}

/** @returns how many sign-ins of the client held one of the scopes, and ended */
async function takeScopes(manager: EntityManager, id: string, scopes: readonly string[]): Promise<number> {
  const without = (column: string) =>
    `${column} = ARRAY(SELECT scope FROM unnest(${column}) AS held (scope) WHERE scope <> ALL ($2))`;
  await manager.query(
    `UPDATE oauth_consents SET ${without('granted')}, ${without('rejected')}
WHERE client_id = $1 AND (granted && $2::text[] OR rejected && $2)`,
    [id, scopes],
  );
  const [, ended] = await manager.query<[unknown, number]>(
    `DELETE FROM oauth_grants g WHERE g.client_id = $1 AND EXISTS (
  SELECT FROM jsonb_each_text(g.payload->'resources') resource
  WHERE string_to_array(resource.value, ' ') && $2::text[])`,
    [id, scopes],
  );
  return ended;
}

function unknownClient(id: string): OperatorError {
  return new OperatorError(`There is no client ${id}: \`pua clients list\` shows them`);
}

/** Checks what an app is to be registered with. @throws OperatorError that says what is wrong */
export function checkClient(client: NewClient, production: boolean): void {
  const {
    name,
    type,
    redirectUris,
    postLogoutRedirectUris = [],
    allowedOrigins = [],
    scopes = [],
    jwks,
  } = client;
  if (name.trim() === '' || [...name].length > 100 || /\p{Cc}/u.test(name))
    throw new OperatorError('the name must have 1 to 100 printable characters');
  if (redirectUris.length === 0) throw new OperatorError('at least one redirect URI is needed');
  for (const uri of [...redirectUris, ...postLogoutRedirectUris]) checkRedirectUri(uri, type, production);
  for (const origin of allowedOrigins) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin)
      throw new OperatorError(`${origin} is not an origin: scheme, host and port alone`);
  }
  const unknown = scopes.filter((scope) => !isScope(scope));
  if (unknown.length > 0)
    throw new OperatorError(`unknown scopes ${unknown.join(', ')}: there are ${ALL_SCOPES.join(', ')}`);
  if (jwks !== undefined) checkJwks(jwks);
  for (const uri of [client.clientUri, client.policyUri]) if (uri !== undefined) checkPage(uri);
  if (client.logo !== undefined) checkLogo(client.logo);
}

/** A page that members are led to from the consent page. */
function checkPage(uri: string): void {
  const url = URL.parse(uri);
  if (url?.protocol !== 'https:' || url.username !== '' || uri.length > 2048 || /[\s\p{Cc}]/u.test(uri))
    throw new OperatorError(`${uri} is not the address of a page: https, of 2048 characters at most`);
}

function checkLogo(logo: Buffer): void {
  if (logo.length > MOST_LOGO_BYTES || pixelImageType(logo) === undefined)
    throw new OperatorError('the logo must be a PNG, JPEG, WebP or GIF of 64 KB at most');
}

/** RFC 9700 §2.1, RFC 8252 §7: compared to the letter later, so it must be what a browser would show. */
function checkRedirectUri(uri: string, type: NewClient['type'], production: boolean): void {
  const refuse = (why: string): never => {
    throw new OperatorError(`the redirect URI ${uri} ${why}`);
  };
  const url = URL.parse(uri) ?? refuse('is not an absolute URI');
  if (uri.length > 2048 || /[\s\p{Cc}*]/u.test(uri))
    refuse('has white space, a wildcard or over 2048 characters');
  if (uri.includes('#')) refuse('has a fragment');
  if (url.username !== '' || url.password !== '') refuse('has a user or password');
  const { protocol, hostname } = url;
  if (protocol === 'https:') return;
  if (type === 'web') {
    const local = protocol === 'http:' && ['localhost', ...LOOPBACK_HOSTS].includes(hostname);
    if (!local) refuse('must be https');
    if (production) refuse('must be https: http on this machine is for development');
  } else if (protocol === 'http:') {
    if (!LOOPBACK_HOSTS.includes(hostname))
      refuse('must be https, a scheme of the app’s own, or http on 127.0.0.1 or [::1] (any port matches)');
  } else if (!protocol.includes('.')) {
    refuse('has a scheme that is not a reversed domain name of the app’s maker (com.example.app:)');
  }
}

function checkJwks(jwks: { keys: Record<string, unknown>[] }): void {
  if (!Array.isArray(jwks?.keys) || jwks.keys.length === 0)
    throw new OperatorError('the key set must be {"keys": […]} with at least one public key');
  for (const key of jwks.keys) {
    if (PRIVATE_MEMBERS.some((member) => member in key))
      throw new OperatorError('the key set holds a private key: register the public half alone');
    if (!['EC', 'RSA', 'OKP'].includes(key.kty as string))
      throw new OperatorError('the key set may hold EC, RSA and OKP keys');
  }
}
