import { errors, interactionPolicy, Provider } from 'oidc-provider';
import type {
  AdapterFactory,
  Client,
  Configuration,
  FindAccount,
  KoaContextWithOIDC,
  RefreshToken,
  ResourceServer,
} from 'oidc-provider';
import type { JWTPayload } from 'jose';
import { ALL_SCOPES } from '../../auth/scopes.js';
import type { Config } from '../../config/config.js';
import type { SigningJwk } from '../../crypto/signing-keys.js';
import { deriveKey } from '../../crypto/secrets.js';
import { passkeyDomain } from '../passkeys/passkey-domain.js';
import { PASSKEY_CLASSES, PASSKEY_WANTED, wantsPasskey } from './assurance.js';
import { LIFETIMES } from './lifetimes.js';
import { EXTERNAL_SIGNING, SynchronousSigningKey } from './synchronous-signing-key.js';

/** Paths of the authorization server. All of them are matched to the letter before the library sees them. */
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

/** What the provider needs of the rest of the application. */
export interface ProviderParts {
  readonly config: Config;
  readonly adapter: AdapterFactory;
  /** The current signing key first, then those that are only published. */
  readonly signingKeys: readonly SigningJwk[];
  readonly findAccount: FindAccount;
  /** What was wrong with the request before the library saw it; undefined where nothing was. */
  readonly parameterFault: () => string | undefined;
  readonly loadExistingGrant: NonNullable<Configuration['loadExistingGrant']>;
  readonly renderError: NonNullable<Configuration['renderError']>;
  readonly renderSignOut: (ctx: KoaContextWithOIDC) => void;
  readonly renderSignedOut: (ctx: KoaContextWithOIDC) => void;
}

/** Makes the identifier of the API as a resource (RFC 8707), which is also the audience of every access token. */
export function apiResource(config: Config): string {
  return `${config.publicUrl}/api/public`;
}

/** What OpenID Connect defines (Core §5.4, §11), and every client may ask for; all other scopes are the API's. */
export const OPENID_SCOPES: readonly string[] = ['openid', 'offline_access', 'profile', 'email'];

/**
 * Accepted, because every OpenID library asks for it, and never granted: no address of a member is stored, and none that were
 * some day shall be open to apps that nobody was asked about.
 */
export const EMPTY_SCOPE = 'email';

/** Lists the scopes that a client may ask for: of the API those that it is registered for, and OpenID's. */
export function allowedScopes(client: Client): string[] {
  return [...OPENID_SCOPES, ...(client.api_scopes as string).split(' ').filter(Boolean)];
}

/** Makes the authorization server: oidc-provider with every option that differs from its default, and why. */
export function createProvider(parts: ProviderParts): Provider {
  const { config } = parts;
  const secure = config.publicUrl.startsWith('https:');
  const resource = apiResource(config);

  const resourceServer = (client: Client): ResourceServer => ({
    scope: client.api_scopes as string,
    audience: resource,
    accessTokenTTL: LIFETIMES.accessToken,
    accessTokenFormat: 'opaque', // a JWT could not be revoked at once
  });

  const configuration: Configuration = {
    adapter: parts.adapter, // default: memory of one process
    jwks: { keys: parts.signingKeys.map((key) => new SynchronousSigningKey(key)) }, // default: keys that everybody knows
    routes: ROUTES,
    findAccount: parts.findAccount, // default: any subject exists
    loadExistingGrant: parts.loadExistingGrant, // default: consent is remembered by the browser session alone

    acrValues: passkeyDomain(config) === undefined ? [] : PASSKEY_CLASSES, // default: none
    responseTypes: ['code'], // default: the hybrid and implicit flows too (RFC 9700 §2.1.2)
    clientAuthMethods: ['none', 'private_key_jwt'], // default: shared secrets too, which leak (RFC 9700 §2.5)
    pkce: { required: () => true }, // default: public clients only; OAuth 2.1 asks it of all
    allowOmittingSingleRegisteredRedirectUri: false, // what is compared must have been sent (RFC 9700 §2.1)
    rotateRefreshToken: true, // default: sometimes; replay can be noticed only where each use rotates
    // Default: with offline_access, which is dropped without prompt=consent. Here the client's registration decides.
    issueRefreshToken: (_ctx, client) => Promise.resolve(client.grantTypeAllowed('refresh_token')),
    // Default: tokens end with the browser session. Signing out of the browser does not end the apps' access.
    expiresWithSession: () => Promise.resolve(false),
    revokeGrantPolicy: () => true, // default: revoking an access token leaves its refresh token alive
    clockTolerance: 0, // default 15 s: expiry is judged by one clock, the database's
    extraClientMetadata: {
      properties: ['allowed_origins', 'api_scopes', 'has_logo', 'has_document', 'by_member'],
    },
    clientDefaults: {
      id_token_signed_response_alg: 'ES256', // default RS256, for which there is a key only where a client is registered for it
      token_endpoint_auth_method: 'none',
    },
    enabledJWA: {
      // Default: HS256 too, which needs a shared secret.
      clientAuthSigningAlgValues: ['ES256', 'RS256', 'PS256', 'Ed25519', 'EdDSA'],
    },
    // Default: an assertion may be for several servers, and live for years: so long its id would be kept.
    assertJwtClientAuthClaimsAndHeader: (_ctx, claims) => {
      checkAssertion(claims);
      return Promise.resolve();
    },
    // Default: the origins of redirect URIs. Where a page may call from is a decision of its own.
    clientBasedCORS: (_ctx, origin, client) => (client.allowed_origins as string[]).includes(origin),
    extraParams: {
      // Default: scopes that are not the client's are dropped in silence, to the last one.
      scope(_ctx: KoaContextWithOIDC, value: string | undefined, client: Client) {
        const fault = parts.parameterFault();
        if (fault !== undefined) throw new errors.InvalidRequest(fault);
        const allowed = allowedScopes(client);
        const scopes = (value ?? '').split(' ').filter(Boolean);
        if (scopes.length === 0) throw new errors.InvalidScope('scope is missing', '');
        const refused = scopes.filter((scope) => !allowed.includes(scope));
        if (refused.length > 0)
          throw new errors.InvalidScope('this client may not ask for the scope', refused.join(' '));
      },
    },
    // Default: all that OpenID knows. Of these the ID token carries what was granted; userinfo answers from the grant. When and how the
    // member signed in, every ID token says: it may have been with the platform's own login.
    claims: {
      openid: ['sub', 'auth_time', 'amr', 'acr'],
      profile: ['preferred_username', 'name', 'picture'],
      [EMPTY_SCOPE]: [],
    },

    features: {
      devInteractions: { enabled: false }, // default: pages that accept any password
      userinfo: { enabled: false }, // tokens for a resource never carry openid: a route of ours answers
      revocation: {
        enabled: true,
        // Default: tells a confidential client that another's token exists.
        allowedPolicy: (_ctx, client, token) => Promise.resolve(token.clientId === client.clientId),
      },
      externalSigningSupport: EXTERNAL_SIGNING, // default: WebCrypto, see SynchronousSigningKey
      introspection: {
        enabled: true,
        // Default: confidential clients may look into everybody's tokens.
        allowedPolicy: (_ctx, client, token) => Promise.resolve(token.clientId === client.clientId),
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => Promise.resolve(resource), // default: none, and then tokens without an audience
        useGrantedResource: () => Promise.resolve(true),
        getResourceServerInfo: (_ctx, wanted, client) => {
          if (wanted !== resource) throw new errors.InvalidTarget();
          return Promise.resolve(resourceServer(client));
        },
      },
      dPoP: { enabled: true, nonceSecret: nonceSecret(parts.signingKeys[0]!) }, // default: no nonces
      rpInitiatedLogout: {
        enabled: true,
        // Defaults: pages that load fonts from elsewhere.
        logoutSource: (ctx) => Promise.resolve(parts.renderSignOut(ctx)),
        postLogoutSuccessSource: (ctx) => Promise.resolve(parts.renderSignedOut(ctx)),
      },
    },
    renderError: parts.renderError, // default: as above

    interactions: {
      url: (_ctx, interaction) => Promise.resolve(`/interaction/${interaction.uid}`),
      policy: policy(config),
    },

    cookies: {
      // __Host- binds a cookie to this host and to TLS; on http browsers refuse such names.
      names: secure
        ? {
            session: '__Host-pua_session',
            interaction: '__Secure-pua_interaction',
            resume: '__Secure-pua_resume',
          }
        : { session: 'pua_session', interaction: 'pua_interaction', resume: 'pua_resume' },
      long: sessionCookie(config),
      short: { httpOnly: true, sameSite: 'lax', secure, signed: true },
      keys: config.secrets.derive('oauth-cookies').map((key) => key.export().toString('base64url')),
    },

    formats: {
      // A grant's id opens nothing and stands in logs.
      bitsOfOpaqueRandomness: (_ctx, token) => (token.kind === 'Grant' ? 128 : 256),
    },

    ttl: {
      AuthorizationCode: LIFETIMES.authorizationCode,
      AccessToken: LIFETIMES.accessToken,
      IdToken: LIFETIMES.idToken,
      Interaction: LIFETIMES.interaction,
      Session: (_ctx, session) => (session.accountId ? LIFETIMES.session : LIFETIMES.anonymousSession),
      Grant: LIFETIMES.grant, // default 14 days, never extended: it signs everybody out
      RefreshToken: (_ctx, token, client) => refreshLifetime(token, client),
    },
  };

  const provider = new Provider(config.publicUrl, configuration);
  // Host and protocol were pinned to PUBLIC_URL before the library sees a request; this makes it look there.
  provider.proxy = true;
  return provider;
}

/** @throws InvalidClientAuth; signature, issuer, and that it has not expired, the library has checked */
function checkAssertion({ aud, exp, jti }: JWTPayload): void {
  const refuse = (reason: string): never => {
    throw new errors.InvalidClientAuth(reason);
  };
  if (typeof aud !== 'string') refuse('the audience of an assertion must be one string');
  if (typeof exp !== 'number' || exp > Date.now() / 1000 + LIFETIMES.clientAssertion)
    refuse(`an assertion must expire within ${LIFETIMES.clientAssertion} seconds`);
  if (typeof jti !== 'string' || jti.length > 256) refuse('jti must have at most 256 characters');
}

/**
 * Every instance has to know the others' nonces, and the library takes one secret: of SECRET_KEY and the one before, instances have
 * one or the other first while it changes. So it comes from the key that signs, which they share; after a rotation a client is
 * told a fresh nonce (RFC 9449 §8.2).
 */
function nonceSecret({ d }: SigningJwk): Buffer {
  return deriveKey(Buffer.from(d, 'base64url'), 'dpop-nonce');
}

/** Gives the attributes of the session's cookie. */
export function sessionCookie(config: Config) {
  const secure = config.publicUrl.startsWith('https:');
  return { httpOnly: true, sameSite: 'lax', secure, signed: true, path: '/' } as const;
}

/** Web: absolute since the sign-in. Native: sliding, with an absolute end. In seconds from now. */
function refreshLifetime(token: RefreshToken, client: Client): number {
  const age = token.totalLifetime();
  const left =
    client.applicationType === 'native'
      ? Math.min(LIFETIMES.nativeRefreshIdle, LIFETIMES.nativeRefresh - age)
      : LIFETIMES.webRefresh - age;
  return Math.max(1, left);
}

function policy(config: Config): interactionPolicy.DefaultPolicy {
  const prompts = interactionPolicy.base();
  if (passkeyDomain(config) !== undefined) {
    prompts.get('login')!.checks.add(
      // Default: acr_values are only told in the ID token. What the member has just signed in with is what there is.
      new interactionPolicy.Check(PASSKEY_WANTED, 'the app asks for a passkey', 'login_required', (ctx) => {
        const { params, session, result } = ctx.oidc;
        return result?.login === undefined && wantsPasskey(params?.acr_values, session?.acr);
      }),
    );
  }
  prompts.get('login')!.checks.add(
    // Without it a session of a member who is gone or disabled makes the library fail.
    new interactionPolicy.Check('account_gone', 'the signed-in member cannot sign in any more', (ctx) => {
      const { oidc } = ctx;
      return oidc.session?.accountId !== undefined && oidc.account === undefined;
    }),
  );
  return prompts;
}

export const SUPPORTED_SCOPES = [...OPENID_SCOPES, ...ALL_SCOPES];
