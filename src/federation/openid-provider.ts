import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import {
  createRemoteJWKSet,
  customFetch,
  errors as joseErrors,
  jwtVerify,
  type JWTPayload,
  type JWTVerifyOptions,
} from 'jose';
import * as client from 'openid-client';
import type { UpstreamClaims } from '../accounts/sign-in/upstream-members.js';
import { Config, type UpstreamConfig } from '../config/config.js';
import { toClientKey } from '../crypto/client-key.js';
import { Logger } from '../runtime/logger.js';
import { isHttpUrl } from '../values/string-rules.js';
import { providerFetch } from './provider-fetch.js';

/** Timeout for each response of the provider, in seconds: short, since members wait. */
const MAX_SECONDS = 3;
/** Tolerated difference from the provider's clock, in seconds, also for a token's expiry. */
const CLOCK_TOLERANCE_SECONDS = 90;
const HOUR_MS = 3_600_000;
/** Pause in ms before the next metadata request if the provider did not respond, and the server knows no earlier metadata. */
const RETRY_WHERE_AWAY_MS = 1_000;
const RETRY_WHERE_KNOWN_MS = 60_000;
/** Minimum interval between reads of the keys for unknown key ids, since anyone can send a forged logout token. */
const KEYS_COOLDOWN_SECONDS = 30;
const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const;
const OTHER_ENDPOINTS = ['userinfo_endpoint', 'end_session_endpoint'] as const;

const FETCH = providerFetch();

const ASYMMETRIC = /^(RS|PS|ES)(256|384|512)$|^(EdDSA|Ed25519)$/;

export class UpstreamFault extends Error {
  constructor(
    /** `away`: no response in time, or a server error. `wrong`: an unusable response or token. `refused`: an error in the redirect. */
    readonly kind: 'away' | 'wrong' | 'refused',
    message: string,
    /** The provider's OAuth or OpenID error code, if well-formed. */
    readonly code?: string,
    /** Minimum seconds until the next attempt. */
    readonly retryAfter = 1,
  ) {
    super(message);
  }
}

/** Secrets of an authorization request: `nonce` protects against replayed ID tokens, `verifier` (PKCE) against stolen codes. */
export interface UpstreamSecrets {
  readonly nonce: string;
  readonly verifier: string;
}

interface Known {
  readonly configuration: client.Configuration;
  readonly keys: ReturnType<typeof createRemoteJWKSet>;
  readonly algorithms: string[];
}

/** The external identity provider: authorization code with PKCE, state and nonce (openid-client). Verifies tokens (jose); stores none. */
@Injectable()
export class OpenidProvider implements OnApplicationBootstrap {
  #known: Known | undefined;
  #reading: Promise<Known> | undefined;
  #readAgainAt = 0;
  #fault: UpstreamFault | undefined;

  constructor(
    private readonly config: Config,
    private readonly logger: Logger,
  ) {}

  /** The URL to register at the provider. */
  get redirectUri(): string {
    return `${this.config.publicUrl}/sign-in/callback`;
  }

  /** Logs at startup whether the provider is available; the server starts without it. */
  onApplicationBootstrap(): void {
    if (this.config.upstream) void this.#provider().catch(() => undefined);
  }

  async authorizationUrl(
    state: string,
    { nonce, verifier }: UpstreamSecrets,
    more: Readonly<Record<string, string>>,
  ): Promise<URL> {
    const { configuration } = await this.#provider();
    return client.buildAuthorizationUrl(configuration, {
      ...more,
      redirect_uri: this.redirectUri,
      scope: this.config.upstream!.scopes,
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
  }

  /** @param query of the redirect, with a known state @returns the member's claims, and claims of the ID token @throws UpstreamFault */
  async redeem(
    query: URLSearchParams,
    { nonce, verifier }: UpstreamSecrets,
  ): Promise<{ idToken: JWTPayload; member: UpstreamClaims }> {
    const known = await this.#provider();
    const { configuration } = known;
    const { claim, createMembers } = this.config.upstream!;
    try {
      const response = new URL(`${this.redirectUri}?${query}`);
      const tokens = await client.authorizationCodeGrant(configuration, response, {
        expectedState: query.get('state')!,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const verify = () => this.#verify(tokens.id_token!, known);
      const { payload } = await verify().catch(async (error: unknown) => {
        const { JWKSNoMatchingKey, JWSSignatureVerificationFailed } = joseErrors;
        if (!(error instanceof JWKSNoMatchingKey || error instanceof JWSSignatureVerificationFailed))
          throw error;
        // Reads the keys again: the token came directly from the provider, which may have just changed them.
        await known.keys.reload();
        return verify();
      });
      const more = createMembers || payload[claim] === undefined;
      const told =
        more && configuration.serverMetadata().userinfo_endpoint !== undefined
          ? await client.fetchUserInfo(configuration, tokens.access_token, payload.sub!)
          : {};
      // Takes the claim and `email_verified` from the same source: the ID token, or else userinfo.
      const naming: UpstreamClaims = payload[claim] === undefined ? told : payload;
      const { [claim]: name, email_verified } = naming;
      return { idToken: payload, member: { ...told, ...payload, [claim]: name, email_verified } };
    } catch (error) {
      throw upstreamFaultOf(error);
    }
  }

  /** Verifies a logout token's signature, issuer, audience, times and type (OpenID Back-Channel Logout 1.0 §2.6). @throws UpstreamFault */
  async verifyLogoutToken(token: string): Promise<JWTPayload> {
    const known = await this.#provider();
    const { coolingDown } = known.keys;
    try {
      const { payload, protectedHeader } = await this.#verify(token, known, {
        requiredClaims: ['iat', 'exp', 'jti', 'events'],
        maxTokenAge: MAX_LOGOUT_SECONDS,
      });
      const { typ } = protectedHeader;
      if (typ !== undefined && !/^(application\/)?(logout\+jwt|jwt)$/i.test(typ))
        throw new UpstreamFault('wrong', 'a token of another type');
      return payload;
    } catch (error) {
      // The token's key may be newer than the last read of the keys, but another read is not allowed yet.
      if (coolingDown && error instanceof joseErrors.JWKSNoMatchingKey)
        throw new UpstreamFault('away', 'the key is not known yet', undefined, KEYS_COOLDOWN_SECONDS);
      throw upstreamFaultOf(error);
    }
  }

  /** Returns the provider's sign-out URL, if any (OpenID Connect RP-Initiated Logout 1.0). @param state that the provider returns */
  async endSessionUrl(state: string | undefined): Promise<URL | undefined> {
    try {
      const { configuration } = await this.#provider();
      if (configuration.serverMetadata().end_session_endpoint === undefined) return undefined;
      return client.buildEndSessionUrl(configuration, {
        client_id: this.config.upstream!.clientId,
        post_logout_redirect_uri: `${this.config.publicUrl}/sign-in/signed-out`,
        ...(state === undefined ? {} : { state }),
      });
    } catch {
      return undefined;
    }
  }

  #verify(token: string, { keys, algorithms }: Known, more: JWTVerifyOptions = {}) {
    const { issuer, clientId } = this.config.upstream!;
    return jwtVerify(token, keys, {
      issuer,
      audience: clientId,
      algorithms,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      ...more,
    });
  }

  /** Reads the metadata on first use and after an hour; while the provider is unavailable, uses the last metadata. */
  async #provider(): Promise<Known> {
    if (performance.now() >= this.#readAgainAt)
      this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    if (this.#known) return this.#known;
    if (this.#reading) return this.#reading;
    throw this.#fault!;
  }

  async #read(): Promise<Known> {
    const { issuer } = this.config.upstream!;
    try {
      this.#known = await discover(this.config.upstream!);
      this.#readAgainAt = performance.now() + HOUR_MS;
      this.logger.info({ issuer }, 'the external identity provider is available');
      return this.#known;
    } catch (error) {
      this.#fault = upstreamFaultOf(error);
      const { kind, message: reason } = this.#fault;
      const retryMs = kind === 'away' ? RETRY_WHERE_AWAY_MS : 0;
      this.#readAgainAt = performance.now() + (this.#known ? RETRY_WHERE_KNOWN_MS : retryMs);
      this.logger.warn({ issuer, reason }, 'the external identity provider is unavailable');
      if (this.#known) return this.#known;
      throw this.#fault;
    }
  }
}

/** Reads the provider's metadata. @throws UpstreamFault if the provider does not respond, or its metadata cannot be used */
export async function discover(upstream: UpstreamConfig): Promise<Known> {
  const { issuer, clientId, clientSecret, clientKey } = upstream;
  const isInsecure = issuer.startsWith('http:');
  const unusable = (name: string) =>
    new UpstreamFault('wrong', `the provider's metadata has no ${name} that can be used`);
  try {
    const auth = clientKey ? client.PrivateKeyJwt(await toClientKey(clientKey)) : bySecret(clientSecret!);
    const tolerance = { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS };
    const configuration = await client.discovery(new URL(issuer), clientId, tolerance, auth, {
      timeout: MAX_SECONDS,
      execute: isInsecure ? [client.allowInsecureRequests] : [],
      [client.customFetch]: FETCH,
    });
    const metadata = configuration.serverMetadata();
    for (const name of [...ENDPOINTS, ...OTHER_ENDPOINTS.filter((other) => metadata[other] !== undefined)])
      if (!isHttpUrl(String(metadata[name])) || (!isInsecure && !/^https:/i.test(metadata[name]!)))
        throw unusable(name);
    const algorithms = (metadata.id_token_signing_alg_values_supported ?? ['RS256']).filter((alg) =>
      ASYMMETRIC.test(alg),
    );
    if (algorithms.length === 0) throw unusable('id_token_signing_alg_values_supported');
    const keys = createRemoteJWKSet(new URL(metadata.jwks_uri!), {
      timeoutDuration: MAX_SECONDS * 1000,
      cooldownDuration: KEYS_COOLDOWN_SECONDS * 1000,
      [customFetch]: FETCH,
    });
    return { configuration, keys, algorithms };
  } catch (error) {
    throw upstreamFaultOf(error);
  }
}

/** Maximum age of a logout token in seconds: an older token could end sessions that began long after its time of issue. */
const MAX_LOGOUT_SECONDS = 300;

/** Describes an error. Copies only a well-formed code from error responses, which may contain untrusted input or a token. */
export function upstreamFaultOf(error: unknown): UpstreamFault {
  if (error instanceof UpstreamFault) return error;
  if (error instanceof client.AuthorizationResponseError)
    return new UpstreamFault('refused', 'the provider responded with an error', codeOf(error.error));
  if (error instanceof client.ResponseBodyError)
    return new UpstreamFault(
      error.status >= 500 ? 'away' : 'wrong',
      `the provider responded with ${error.status} ${codeOf(error.error) ?? ''}`.trim(),
    );
  if (isAway(error)) return new UpstreamFault('away', 'the provider did not respond');
  const { code, message, cause } = error as Error & { code?: unknown };
  // The cause of openid-client's generic error names the claim, but not its value.
  const detail =
    cause instanceof Error && cause.name === 'OperationProcessingError' ? cause.message : message;
  const words = `${typeof code === 'string' ? code : 'ERROR'}: ${detail}`;
  return new UpstreamFault('wrong', words.slice(0, 200));
}

/** Tells whether an error indicates that the provider is unavailable. */
function isAway(error: unknown): boolean {
  if (error instanceof Response) return error.status >= 500;
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  // ERR_JOSE_GENERIC: the response from the keys' URL was not 200 with JSON.
  return error.message === 'fetch failed' || code === 'ERR_JOSE_GENERIC' || isAway(error.cause);
}

function codeOf(code: string): string | undefined {
  return /^[a-z_]{1,64}$/.test(code) ? code : undefined;
}

/**
 * Sends the secret by HTTP Basic, or in the body if the provider does not support Basic. Form-encodes minimally (RFC 6749 §2.3.1):
 * openid-client also encodes hyphens, dots and underscores, which some providers (django-oidc-provider) do not decode.
 */
function bySecret(secret: string): client.ClientAuth {
  const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1);
  return (server, metadata, body, headers) => {
    const supported = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    if (!supported.includes('client_secret_basic')) {
      client.ClientSecretPost(secret)(server, metadata, body, headers);
      return;
    }
    const credentials = `${encoded(metadata.client_id)}:${encoded(secret)}`;
    headers.set('Authorization', `Basic ${Buffer.from(credentials).toString('base64')}`);
  };
}
