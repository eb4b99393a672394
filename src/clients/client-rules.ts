import type { NewAuthEvent } from '../audit/audit.js';
import type { Owner } from '../auth/owner.js';
import { ALL_SCOPES, isScope } from '../auth/scopes.js';
import { isPublicJwk } from '../crypto/signing-keys.js';
import type { OauthClient } from '../database/schema/entities/credentials/oauth.entity.js';
import { pixelImageType } from '../values/images.js';
import { OperatorError } from '../values/operator-error.js';
import { findEndpointFault } from '../values/endpoint-urls.js';
import { isHttpUrl, isName, isStorable } from '../values/string-rules.js';
import { authMethodOf, rulesOf, secretMethodOf, type AuthMethod } from './profiles.js';

/** The columns of a client that an update can change. */
export const CHANGEABLE = [
  'name',
  'redirect_uris',
  'post_logout_redirect_uris',
  'allowed_origins',
  'scopes',
  'jwks',
  'profile',
  'pkce',
  'secret_auth_method',
  'client_uri',
  'policy_uri',
  'logo',
  'id_token_signed_response_alg',
  'backchannel_logout_uri',
  'longest_access',
] as const satisfies (keyof OauthClient)[];

export type ChangeableClient = Pick<OauthClient, (typeof CHANGEABLE)[number]>;

/** A client to register; by default with all scopes and a random id. */
export type NewClient = Pick<OauthClient, 'name' | 'type' | 'redirect_uris'> & {
  readonly [Column in keyof ChangeableClient | 'id']?: OauthClient[Column] | undefined;
} & {
  readonly actor: NewAuthEvent['actor'];
  /** The member who registers the client; undefined for an app of the platform. */
  readonly owner?: Owner | undefined;
};

/** Faults of a registration: code → message, in which `{value}` is the rejected value. */
export const CLIENT_FAULTS = {
  name: 'the name must have 1 to 100 printable characters',
  noRedirectUri: 'at least one redirect URI is required',
  tooMany: 'redirect URIs, post-logout redirect URIs and origins are limited to 50 each',
  relativeUri: 'the redirect URI {value} is not an absolute URI',
  unusualUri: 'the redirect URI {value} has white space, a wildcard or more than 2048 characters',
  uriWithFragment: 'the redirect URI {value} has a fragment',
  uriWithUser: 'the redirect URI {value} has a user or password',
  insecureUri: 'the redirect URI {value} must be https',
  localUri: 'the redirect URI {value} must be https: http on this host is only for development',
  insecureNativeUri:
    'the redirect URI {value} must be https, the app’s own scheme, or http on 127.0.0.1, [::1] or localhost (any port matches)',
  commonScheme:
    'the redirect URI {value} has a scheme that is not a reversed domain name of the developer (com.example.app:)',
  origin: '{value} is not an origin: only scheme, host and port',
  scopes: `unknown scopes {value}: the scopes are ${ALL_SCOPES.join(', ')}`,
  noKeys: 'the key set must be {"keys": […]} with at least one public key',
  privateKey: 'the key set contains a private key: register only the public part',
  keyType: 'the key set may contain only EC, RSA and OKP keys',
  brokenKey: 'the key set contains an unusable key: a part of it is missing or wrong',
  authMethod: 'a client of this profile cannot authenticate with {value}',
  pkce: 'only a confidential client of the profile oidc can omit PKCE',
  idTokenAlgorithm: 'ID tokens of this profile are not signed with {value}',
  secretOnDevice: 'an app that is installed on a device cannot keep a secret',
  secretInBrowser: 'a page cannot keep a secret: an app with a secret cannot have origins',
  secretAndKeys: 'a client can have a secret or keys, not both',
  page: '{value} is not a page URL: use https and at most 2048 characters',
  logoutUri:
    '{value} cannot receive logout messages: use an https URL on the internet, without user, password and fragment',
  logo: 'the logo must be a PNG, JPEG, WebP or GIF of at most 64 KB',
} as const;

type ClientFaultName = keyof typeof CLIENT_FAULTS;

type ClientField = Exclude<
  keyof ChangeableClient,
  'id_token_signed_response_alg' | 'pkce' | 'longest_access'
>;

export class ClientFault extends OperatorError {
  constructor(
    readonly fault: ClientFaultName,
    readonly field: ClientField,
    readonly value = '',
    options?: ErrorOptions,
  ) {
    super(
      CLIENT_FAULTS[fault].replace('{value}', () => value),
      options,
    );
  }
}

const MAX_LOGO_BYTES = 65_536;
const MAX_PER_LIST = 50;
/** RFC 8252 §8.3 advises against `localhost`, but the metadata documents of Claude Code and VS Code contain it. */
const LOOPBACK_HOSTS = ['127.0.0.1', '[::1]', 'localhost'];
/** Allowed schemes without a domain name: Cursor's. */
const KNOWN_SCHEMES = ['cursor:'];
/** JSON members of private and symmetric JWKs. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];

/** Checks the registration of an app. @param nameBefore the app's current name, which is always allowed @throws ClientFault */
export function checkClient(
  client: Omit<NewClient, 'actor'>,
  production: boolean,
  nameBefore?: string,
): void {
  const {
    name,
    type,
    redirect_uris,
    post_logout_redirect_uris = [],
    allowed_origins = [],
    scopes = [],
    jwks,
  } = client;
  if (name !== nameBefore && !isName(name)) throw new ClientFault('name', 'name');
  if (redirect_uris.length === 0) throw new ClientFault('noRedirectUri', 'redirect_uris');
  for (const [field, values] of Object.entries({ redirect_uris, post_logout_redirect_uris, allowed_origins }))
    if (values.length > MAX_PER_LIST) throw new ClientFault('tooMany', field as ClientField);
  for (const [field, uris] of Object.entries({ redirect_uris, post_logout_redirect_uris })) {
    for (const uri of uris) {
      const fault = redirectUriFault(uri, type, production);
      if (fault) throw new ClientFault(fault, field as ClientField, uri);
    }
  }
  for (const origin of allowed_origins) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin)
      throw new ClientFault('origin', 'allowed_origins', origin);
  }
  const unknown = scopes.filter((scope) => !isScope(scope));
  if (unknown.length > 0) throw new ClientFault('scopes', 'scopes', unknown.join(', '));
  if (jwks !== undefined && jwks !== null) checkJwks(jwks);
  checkProfile(client);
  for (const field of ['client_uri', 'policy_uri'] as const) {
    const uri = client[field];
    if (typeof uri === 'string' && !isPageUrl(uri)) throw new ClientFault('page', field, uri);
  }
  const { backchannel_logout_uri: logoutUri, logo } = client;
  if (typeof logoutUri === 'string' && findEndpointFault(logoutUri, production) !== undefined)
    throw new ClientFault('logoutUri', 'backchannel_logout_uri', logoutUri);
  if (logo && (logo.length > MAX_LOGO_BYTES || pixelImageType(logo) === undefined))
    throw new ClientFault('logo', 'logo');
}

function checkProfile({
  type,
  profile = 'oauth21',
  pkce = 'required',
  jwks = null,
  secret_auth_method = null,
  allowed_origins = [],
  id_token_signed_response_alg: alg = 'ES256',
}: Omit<NewClient, 'actor'>): void {
  const rules = rulesOf({ profile });
  if (secret_auth_method !== null) {
    if (type === 'native') throw new ClientFault('secretOnDevice', 'secret_auth_method');
    if (jwks !== null) throw new ClientFault('secretAndKeys', 'jwks');
    if (allowed_origins.length > 0) throw new ClientFault('secretInBrowser', 'allowed_origins');
  }
  const method = authMethodOf({ jwks, secret_auth_method });
  if (!rules.authMethods.includes(method)) throw new ClientFault('authMethod', 'profile', method);
  if (!rules.pkce.includes(pkce) || (pkce !== 'required' && method === 'none'))
    throw new ClientFault('pkce', 'profile');
  if (!rules.idTokenAlgorithms.includes(alg)) throw new ClientFault('idTokenAlgorithm', 'profile', alg);
}

/** Tells whether the text is an https URL to which the consent page may link. */
export function isPageUrl(uri: string): boolean {
  const url = URL.parse(uri);
  return url?.protocol === 'https:' && url.username === '' && uri.length <= 2048 && !/[\s\p{Cc}]/u.test(uri);
}

/** Finds the fault of a redirect URI (RFC 9700 §2.1, RFC 8252 §7). Requests must match it exactly, except a native app's loopback port. */
export function redirectUriFault(
  uri: string,
  type: NewClient['type'],
  production: boolean,
): ClientFaultName | undefined {
  const url = URL.parse(uri);
  if (!url) return 'relativeUri';
  if (uri.length > 2048 || /[\s\p{Cc}*]/u.test(uri) || !isStorable(uri)) return 'unusualUri';
  if (uri.includes('#')) return 'uriWithFragment';
  if (url.username !== '' || url.password !== '') return 'uriWithUser';
  const { protocol, hostname } = url;
  // Rejects `https:app.example` and backslashes, which browsers rewrite.
  if (/^https?:$/.test(protocol) && !isHttpUrl(uri)) return 'relativeUri';
  if (protocol === 'https:') return undefined;
  if (type === 'web') {
    const local = protocol === 'http:' && LOOPBACK_HOSTS.includes(hostname);
    if (!local) return 'insecureUri';
    return production ? 'localUri' : undefined;
  }
  if (protocol === 'http:') return LOOPBACK_HOSTS.includes(hostname) ? undefined : 'insecureNativeUri';
  return protocol.includes('.') || KNOWN_SCHEMES.includes(protocol) ? undefined : 'commonScheme';
}

/** Returns the scheme, host and port of a redirect URI. */
export function parseOrigin(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  return `${protocol}//${host}`;
}

/** Returns the origins that may call OAuth endpoints: the registered ones; by default, the redirect origins of a web app without secret. */
export function allowedOriginsOf(
  client: {
    readonly type: NewClient['type'];
    readonly redirect_uris: readonly string[];
    readonly allowed_origins: readonly string[];
  },
  authMethod: AuthMethod,
): string[] {
  if (client.allowed_origins.length > 0 || client.type === 'native' || secretMethodOf(authMethod))
    return [...client.allowed_origins];
  return [...new Set(client.redirect_uris.map(parseOrigin))];
}

/** Reads a key set from JSON, without checking its keys. @throws ClientFault if the text is not JSON, or is `null` */
export function parseKeySet(text: string): { keys: object[] } {
  let keys: unknown;
  try {
    keys = JSON.parse(text);
  } catch (cause) {
    throw new ClientFault('noKeys', 'jwks', '', { cause });
  }
  if (keys === null) throw new ClientFault('noKeys', 'jwks');
  return keys as { keys: object[] };
}

function checkJwks(jwks: { keys: object[] }): void {
  const refuse = (fault: ClientFaultName): never => {
    throw new ClientFault(fault, 'jwks');
  };
  if (!Array.isArray(jwks?.keys) || jwks.keys.length === 0) refuse('noKeys');
  for (const key of jwks.keys as Record<string, unknown>[]) {
    if (typeof key !== 'object' || key === null) refuse('noKeys');
    if (PRIVATE_MEMBERS.some((member) => member in key)) refuse('privateKey');
    if (!['EC', 'RSA', 'OKP'].includes(key.kty as string)) refuse('keyType');
    if (!isPublicJwk(key)) refuse('brokenKey');
  }
  if (!isStorableJson(jwks)) refuse('brokenKey');
}

/** Rejects NUL and lone surrogates, which PostgreSQL rejects in JSON, and more than five levels of nesting. */
function isStorableJson(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return isStorable(value);
  if (typeof value !== 'object' || value === null) return true;
  return (
    depth < 5 &&
    Object.entries(value).every(([name, member]) => isStorable(name) && isStorableJson(member, depth + 1))
  );
}
