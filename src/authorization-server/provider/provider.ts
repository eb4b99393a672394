import type { JWTHeaderParameters, JWTPayload } from 'jose';
import {
  errors,
  type Client,
  type Configuration,
  type KoaContextWithOIDC,
  type Provider,
} from 'oidc-provider';
import { FIRST_SCOPES } from '../../auth/www-authenticate.js';
import type { Config } from '../../config/config.js';
import type { Logger } from '../../runtime/logger.js';
import { CookieSignatures } from '../../crypto/cookie-signatures.js';
import { deriveKey } from '../../crypto/secrets.js';
import type { SigningJwk } from '../../crypto/signing-keys.js';
import { accessClientOf, idleSeconds, secondsOf } from '../../clients/access-durations.js';
import { rulesOf, unionOf } from '../../clients/profiles.js';
import { createLibrary, SynchronousSigningKey, type Replacements } from './library.js';
import { LIFETIMES } from '../lifetimes.js';
import { because } from '../reasons/rejection-reasons.js';
import { allowedScopes, apiResource, SUPPORTED_SCOPES } from '../client-scopes.js';
import { passkeyClasses, keepEssentialClasses, signInPolicy } from './sign-in-policy.js';
import type { OauthDatabase } from '../requests/oauth-database.js';
import { TokenExchange } from '../requests/token-exchange.js';

/** Paths of the authorization server's endpoints. */
export const ROUTES = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  revocation: '/oauth/revoke',
  introspection: '/oauth/introspect',
  userinfo: '/oauth/userinfo',
  jwks: '/oauth/jwks',
  pushed_authorization_request: '/oauth/par',
  end_session: '/oauth/logout',
} as const;

/** Some clients try to register here if the metadata has no `registration_endpoint`; the server rejects them. */
export const REGISTRATION = '/register';

export const SIGN_OUT = `${ROUTES.end_session}/confirm`;

/** Paths of pages that can be shown again in another language. */
export const REOPENABLE: readonly string[] = [
  ROUTES.authorization,
  ROUTES.end_session,
  `${ROUTES.end_session}/success`,
];

const READ = ['GET', 'HEAD'];
const READ_FROM_ANYWHERE = [...READ, 'OPTIONS'];
const SENT_FROM_ANYWHERE = ['POST', 'OPTIONS'];

/** HTTP methods by exact path. The library would also accept a path in capitals or with a trailing slash. */
const METHODS: Readonly<Record<string, readonly string[]>> = {
  [ROUTES.authorization]: [...READ, 'POST'],
  [ROUTES.token]: SENT_FROM_ANYWHERE,
  [ROUTES.revocation]: SENT_FROM_ANYWHERE,
  [ROUTES.introspection]: SENT_FROM_ANYWHERE,
  [ROUTES.pushed_authorization_request]: SENT_FROM_ANYWHERE,
  [REGISTRATION]: SENT_FROM_ANYWHERE,
  [ROUTES.jwks]: READ_FROM_ANYWHERE,
  [ROUTES.end_session]: [...READ, 'POST'],
  [SIGN_OUT]: ['POST'],
  [`${ROUTES.end_session}/success`]: READ,
  '/.well-known/oauth-authorization-server': READ_FROM_ANYWHERE,
  '/.well-known/openid-configuration': READ_FROM_ANYWHERE,
};
const RESUME_PATH = new RegExp(`^${ROUTES.authorization}/[\\w-]{1,100}$`);

/** Returns the HTTP methods of a path in {@link METHODS}, or of one that resumes an authorization; undefined for others. */
export function methodsAt(path: string): readonly string[] | undefined {
  if (RESUME_PATH.test(path)) return READ;
  return Object.hasOwn(METHODS, path) ? METHODS[path] : undefined;
}

/** Tells whether this endpoint is for programs, including scripts of any origin; browsers open the others as pages. */
export function isForPrograms(path: string): boolean {
  return methodsAt(path)?.includes('OPTIONS') === true;
}

/** Returns a route's name for logs and rejections, without the id of a sign-in. */
export function routeOf(path: string): string {
  return path.startsWith(`${ROUTES.authorization}/`) ? `${ROUTES.authorization}/:uid` : path;
}

/** Tolerance of the library's time checks in seconds; {@link LATEST_IAT} limits the `iat` of assertions. */
const CLOCK_TOLERANCE = 10;
const LATEST_IAT = 60;

interface ProviderParts
  extends
    Required<Pick<Configuration, 'adapter' | 'findAccount' | 'loadExistingGrant' | 'renderError'>>,
    Pick<Replacements, 'hasSecret' | 'postForm'> {
  readonly config: Config;
  readonly logger: Logger;
  readonly database: OauthDatabase;
  /** The first key of each algorithm signs; the server only publishes the other keys. */
  readonly signingKeys: readonly SigningJwk[];
  readonly renderSignOut: (ctx: KoaContextWithOIDC) => void;
  readonly renderSignedOut: (ctx: KoaContextWithOIDC) => void;
}

/** Creates the authorization server from oidc-provider. */
export function createProvider(parts: ProviderParts): Provider {
  const { config, database } = parts;
  const secure = config.publicUrl.startsWith('https:');
  const resource = apiResource(config);

  const configuration: Configuration = {
    adapter: parts.adapter, // default: memory of one process
    jwks: { keys: parts.signingKeys.map((key) => new SynchronousSigningKey(key)) }, // default: publicly known keys
    routes: ROUTES,
    findAccount: parts.findAccount, // default: any subject exists
    loadExistingGrant: parts.loadExistingGrant, // default: only the browser session stores the consent

    acrValues: [...passkeyClasses(config)], // default: none
    responseTypes: ['code'], // default: also the hybrid and implicit flows (RFC 9700 §2.1.2)
    clientAuthMethods: unionOf(({ authMethods }) => authMethods), // default: also client_secret_jwt, which needs the secret itself
    pkce: { required: requiresPkce }, // default: only public clients need PKCE
    allowOmittingSingleRegisteredRedirectUri: false, // the client must send the redirect URI (OpenID Connect Core §3.1.2.1)
    // Rotation at each use detects replay; a token that can be used only with the client's key needs no rotation.
    rotateRefreshToken: (ctx) => {
      const { rotatesRefreshTokens } = rulesOf(ctx.oidc.client!);
      if (!rotatesRefreshTokens) TokenExchange.of(ctx)!.accept(true);
      return rotatesRefreshTokens;
    },
    // Default: only with offline_access, which requires prompt=consent. Here always, unless access ends within the time of `once`.
    issueRefreshToken: (ctx, client) =>
      Promise.resolve(client.grantTypeAllowed('refresh_token') && secondsLeft(ctx) > secondsOf('once')!),
    // Default: tokens without offline_access end with the browser session. Here apps keep their access.
    expiresWithSession: () => Promise.resolve(false),
    revokeGrantPolicy: () => true, // default: revoking an access token does not revoke its refresh token
    clockTolerance: CLOCK_TOLERANCE, // default 15 s; for stored tokens, the database's clock decides the expiry
    extraClientMetadata: {
      properties: [
        'allowed_origins',
        'api_scopes',
        'assertion_optional',
        'has_logo',
        'has_document',
        'by_member',
        'is_approved',
        'longest_access',
        'seen_as',
        'profile',
        'pkce',
        'secrets',
      ],
    },
    clientDefaults: {
      id_token_signed_response_alg: 'ES256', // default: RS256, whose key is created with the first client that needs it
      token_endpoint_auth_method: 'none',
    },
    enabledJWA: {
      // Default: also HS256, which needs a shared secret.
      clientAuthSigningAlgValues: unionOf(({ assertionAlgorithms }) => assertionAlgorithms) as NonNullable<
        Configuration['enabledJWA']
      >['clientAuthSigningAlgValues'],
    },
    // Default: accepts several audiences, and assertions that are valid for years: the database would have to keep their ids.
    assertJwtClientAuthClaimsAndHeader: (ctx, claims, header, client) => {
      checkAssertion(claims, header as JWTHeaderParameters, config, client);
      // Accepts the token endpoint as audience, until clients implement draft-ietf-oauth-rfc7523bis.
      if (claims.aud !== config.publicUrl)
        parts.logger.info(
          { client_id: ctx.oidc.client!.clientId },
          'the audience of a client assertion is the token endpoint, but should be the issuer',
        );
      return Promise.resolve();
    },
    // Default: a public client's redirect URIs determine its origins, regardless of registered origins.
    clientBasedCORS: (_ctx, origin, client) => (client.allowed_origins as string[]).includes(origin),
    extraParams: {
      // Default: silently drops scopes that the client may not have, even if none remains.
      scope(ctx: KoaContextWithOIDC, value: string | undefined, client: Client) {
        const { parameterFault, isOfAssistants } = database.current!;
        if (parameterFault !== undefined) throw new errors.InvalidRequest(parameterFault);
        const allowed = allowedScopes(client);
        const byDefault = isOfAssistants ? FIRST_SCOPES.filter((scope) => allowed.includes(scope)) : [];
        const scopes = knownScopes(value ?? byDefault.join(' '));
        const refused = scopes.filter((scope) => !allowed.includes(scope));
        if (refused.length > 0)
          throw new errors.InvalidScope('this client cannot request the scope', refused.join(' '));
        ctx.oidc.params!.scope = scopes.join(' ');
      },
      claims: (ctx: KoaContextWithOIDC, value: string | undefined) => keepEssentialClasses(ctx, value),
    },
    // Default: `openid` includes only `sub`. Here ID tokens also contain the time and method of the sign-in.
    claims: {
      openid: ['sub', 'auth_time', 'amr', 'acr'],
      profile: ['preferred_username', 'name', 'picture'],
    },

    features: {
      devInteractions: { enabled: false }, // default: pages that accept any password
      userinfo: { enabled: false }, // a separate route responds instead, since tokens for a resource never have the scope openid
      revocation: {
        enabled: true,
        // Default: tells confidential clients that another client's token exists.
        allowedPolicy: (_ctx, client, token) => Promise.resolve(token.clientId === client.clientId),
      },
      // Default: WebCrypto, see SynchronousSigningKey. If the experiment changes, startup fails; then pass the JWKs unchanged.
      externalSigningSupport: { enabled: true, ack: 'experimental-01' },
      introspection: {
        enabled: true,
        // Default: confidential clients may introspect other clients' tokens.
        allowedPolicy: (_ctx, client, token) => Promise.resolve(token.clientId === client.clientId),
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => Promise.resolve(resource), // default: none, so tokens have no audience
        useGrantedResource: () => Promise.resolve(true),
        getResourceServerInfo: (_ctx, wanted, client) => {
          if (wanted !== resource) throw new errors.InvalidTarget();
          return Promise.resolve({
            scope: client.api_scopes as string,
            audience: resource,
            accessTokenTTL: LIFETIMES.accessToken,
            accessTokenFormat: 'opaque', // a JWT could not be revoked at once
          });
        },
      },
      dPoP: { enabled: true, nonceSecret: nonceSecret(parts.signingKeys[0]!) }, // default: no nonces
      rpInitiatedLogout: {
        enabled: true,
        // Defaults: pages that load fonts from another host.
        logoutSource: (ctx) => Promise.resolve(parts.renderSignOut(ctx)),
        postLogoutSuccessSource: (ctx) => Promise.resolve(parts.renderSignedOut(ctx)),
      },
      backchannelLogout: { enabled: true },
    },
    // Default: global fetch, for any URL in client metadata. Here only PublicHttps connects to such URLs.
    fetch: () => Promise.reject(new Error('the library must not fetch URLs')),
    renderError: parts.renderError, // default: a page that loads fonts from another host

    interactions: {
      url: (_ctx, interaction) => Promise.resolve(`/interaction/${interaction.uid}`),
      policy: signInPolicy(config, database),
    },

    cookies: {
      // __Host- binds a cookie to this host and to TLS; on http browsers reject such names.
      names: secure
        ? {
            session: '__Host-pua_session',
            interaction: '__Secure-pua_interaction',
            resume: '__Secure-pua_resume',
          }
        : { session: 'pua_session', interaction: 'pua_interaction', resume: 'pua_resume' },
      long: sessionCookie(config),
      short: { httpOnly: true, sameSite: 'lax', secure, signed: true },
      keys: new CookieSignatures(config.secrets, 'oauth-cookies'),
    },

    formats: {
      // A grant's id can be shorter, since it grants no access.
      bitsOfOpaqueRandomness: (_ctx, token) => (token.kind === 'Grant' ? 128 : 256),
    },

    ttl: {
      AuthorizationCode: LIFETIMES.authorizationCode,
      AccessToken: (ctx) => Math.max(1, Math.floor(Math.min(LIFETIMES.accessToken, secondsLeft(ctx)))),
      IdToken: LIFETIMES.idToken,
      Interaction: LIFETIMES.interaction,
      Session: (_ctx, session) => (session.accountId ? LIFETIMES.session : LIFETIMES.anonymousSession),
      Grant: LIFETIMES.grant, // default: 14 days, never extended; the adapter decides the expiry
      RefreshToken: (_ctx, token, client) => idleSeconds(accessClientOf(client, token.jkt !== undefined)),
    },
  };

  const provider = createLibrary(config.publicUrl, configuration, {
    ...parts,
    exchange: async (ctx, handle) => {
      const exchange = new TokenExchange(database, ctx);
      await handle();
      await exchange.commit();
    },
    scopesOf: knownScopes,
  });
  // Makes the library use the forwarded headers, which our routes have set to PUBLIC_URL's host and protocol.
  provider.proxy = true;
  return provider;
}

/** Tells whether an authorization request must use PKCE. @throws InvalidRequest if PKCE is optional, but the request has no nonce */
function requiresPkce(ctx: KoaContextWithOIDC, client: Client): boolean {
  if (client.pkce === 'off') return false;
  if (client.pkce !== 'optional') return true;
  if (!ctx.oidc.params!.nonce)
    throw because('no_pkce', new errors.InvalidRequest('PKCE can be omitted only with a nonce'));
  return false;
}

/** Checks an assertion by the client's profile; the library has checked signature, issuer and expiry. @throws InvalidClientAuth */
function checkAssertion(
  { aud, exp, iat, jti }: JWTPayload,
  { alg, crit }: JWTHeaderParameters,
  { publicUrl: issuer }: Config,
  client: Client,
): void {
  const rules = rulesOf(client);
  const refuse = (text: string): never => {
    throw new errors.InvalidClientAuth(text);
  };
  const refuseByProfile = (text: string): never => {
    throw because('profile_rule', new errors.InvalidClientAuth(`the profile of the client ${text}`));
  };
  // The library accepts the extension b64, which a JWT must not use (RFC 7797 §7).
  if (crit !== undefined) refuse('a client_assertion must not have critical extensions');
  const now = Date.now() / 1000;
  if (!rules.assertionAlgorithms.includes(alg))
    refuseByProfile(`does not allow client assertions with ${alg}`);
  if (aud !== issuer && !rules.acceptsTokenEndpointAudience)
    refuseByProfile('requires the issuer as the only audience of a client_assertion');
  if (aud !== issuer && aud !== issuer + ROUTES.token)
    refuse('the audience of a client_assertion must be the issuer');
  if (typeof exp !== 'number' || exp <= now || exp > now + LIFETIMES.clientAssertion)
    refuse(`an assertion must expire within ${LIFETIMES.clientAssertion} seconds`);
  if (iat !== undefined && iat > now + LATEST_IAT)
    refuse('the iat of a client_assertion must not be in the future');
  if (typeof jti !== 'string' || jti.length > 256) refuse('jti must have at most 256 characters');
}

/** Seconds until the access of the presented code or token ends. */
const secondsLeft = (ctx: KoaContextWithOIDC) => TokenExchange.of(ctx)?.token?.seconds_left ?? Infinity;

/** Drops unknown scopes (OpenID Connect Core §3.1.2.1). @throws InvalidScope if none is left */
function knownScopes(text: string): string[] {
  const scopes = text.split(' ').filter((scope) => SUPPORTED_SCOPES.includes(scope));
  if (scopes.length === 0)
    throw new errors.InvalidScope('scope must contain at least one of scopes_supported', '');
  return scopes;
}

/** Derives the DPoP nonce secret (RFC 9449 §8) from the signing key, since instances may have different SECRET_KEYs during its rotation. */
function nonceSecret({ d }: SigningJwk): Buffer {
  return deriveKey(Buffer.from(d, 'base64url'), 'dpop-nonce');
}

/** Returns the attributes of the session cookie. */
export function sessionCookie(config: Config) {
  const secure = config.publicUrl.startsWith('https:');
  return { httpOnly: true, sameSite: 'lax', secure, signed: true, path: '/' } as const;
}
