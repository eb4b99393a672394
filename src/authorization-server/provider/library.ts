import type { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import {
  errors,
  ExternalSigningKey,
  Provider,
  type Adapter,
  type AdapterPayload,
  type Client,
  type Configuration,
  type KoaContextWithOIDC,
  type TokenEndpointGrantContext,
} from 'oidc-provider';
import { randomBytes } from '../../crypto/random.js';
import { Signer, type SigningJwk } from '../../crypto/signing-keys.js';
import type { FormFields } from '../ports.js';

/** Functions that replace parts of the library for which it has no option. */
export interface Replacements {
  /** Sends a response to the client by a form. Default: a page without our headers and texts. */
  readonly postForm: (ctx: KoaContextWithOIDC, action: string, fields: FormFields) => Promise<void>;
  /** Checks a client's secret. Default: compares it with the stored secret, but this server stores only hashes. */
  readonly hasSecret: (client: Client, sent: string) => boolean;
  /** Runs the library's handler of a token request (`handle`). Default: sends the handler's response without further writes. */
  readonly exchange: (ctx: KoaContextWithOIDC, handle: () => Promise<void>) => Promise<void>;
  /** Selects the scopes of a request. Default: all scopes; a refresh request with unknown scopes would be rejected. */
  readonly scopesOf: (sent: string) => readonly string[];
}

/** Creates the provider with {@link Replacements}. Only this file patches the library; `library.spec.ts` tests the patches. */
export function createLibrary(
  issuer: string,
  configuration: Configuration,
  replacements: Replacements,
): Provider {
  /** The constructor of {@link Provider} calls these methods. */
  class Library extends Provider {
    override registerResponseMode(...[name, handler]: Parameters<Provider['registerResponseMode']>): void {
      const postForm: typeof handler = (ctx, action, fields) =>
        replacements.postForm(ctx, action, fields as FormFields);
      super.registerResponseMode(name, name === 'form_post' ? postForm : handler);
    }

    override registerGrantType<Params extends object>(
      name: string,
      handle: (ctx: TokenEndpointGrantContext<Params>) => void | Promise<void>,
      ...parameters: readonly ReadonlySet<string>[]
    ): void {
      const exchange: typeof handle = (ctx) => replacements.exchange(ctx, async () => handle(ctx));
      super.registerGrantType<Params>(name, exchange, ...parameters);
    }
  }

  const library = new Library(issuer, configuration);
  const { Client, OIDCContext, Session } = library;
  Object.assign(Client, { needsSecret: () => false }); // the library's types lack this method
  Client.prototype.compareClientSecret = function (sent) {
    return replacements.hasSecret(this, sent);
  };
  // Default: the registered method. A client document may name two methods, and each request chooses one.
  Object.defineProperty(Client.prototype, 'clientAuthMethod', {
    get(this: Client) {
      const isSigned = Provider.ctx?.oidc?.params?.client_assertion !== undefined;
      return this.assertion_optional === true && !isSigned ? 'none' : this.tokenEndpointAuthMethod;
    },
  });
  // Default: notifies clients once, while the member waits. Here the database records ended sessions: see BackChannelLogout.
  Object.assign(Client.prototype, { backchannelLogout: () => Promise.resolve() });
  // Default: returns 0 for an unknown time, and apps would get `auth_time` 0.
  Session.prototype.authTime = function () {
    return this.loginTs || undefined;
  };
  // Default: deletes the row and stores a new row. Here the row gets a new key.
  Session.prototype.resetIdentifier = function () {
    Object.assign(this, { jti: randomBytes(32).toString('base64url'), touched: true });
  };
  Object.defineProperty(OIDCContext.prototype, 'requestParamScopes', {
    get(this: KoaContextWithOIDC['oidc']) {
      const { scope } = this.params!;
      return new Set(typeof scope === 'string' ? replacements.scopesOf(scope) : []);
    },
  });
  return library;
}

/** Events of rejected requests, one per enabled endpoint, and of failures. */
const FAILURES = [
  'authorization.error',
  'discovery.error',
  'end_session.error',
  'end_session_confirm.error',
  'end_session_success.error',
  'grant.error',
  'introspection.error',
  'jwks.error',
  'pushed_authorization_request.error',
  'revocation.error',
  'server_error',
];

/** Reports the error of each rejected or failed request: the library responds instead of throwing it. */
export function onFailures(library: Provider, note: (error: Error) => void): void {
  const events: EventEmitter = library; // the library's types have a signature for each event
  for (const event of FAILURES) events.on(event, (_ctx, error: Error) => note(error));
}

const STEP_GONE = 'interaction session not found';
const STEP_COOKIE_GONE = 'authorization request has expired';
const SIGN_OUT_GONE = 'could not find logout details';

/** Makes the error for a step that has expired, or that another request continued. The member sees a page; the app gets no error. */
export function stepGone(): errors.SessionNotFound {
  return Object.assign(new errors.SessionNotFound(STEP_GONE), { allow_redirect: false });
}

/** Tells whether the error means that a step of a sign-in has expired or ended, or that its cookie is missing. */
export function isStepGone(error: unknown): boolean {
  return (
    error instanceof errors.SessionNotFound &&
    [STEP_GONE, STEP_COOKIE_GONE].includes(error.error_description!)
  );
}

/** Tells whether the error means that the sign-out form was already sent, or that its session has expired. */
export function isSignOutGone(error: Error): boolean {
  return (error as errors.OIDCProviderError).error_description === SIGN_OUT_GONE;
}

/** Returns the library's state in the session between the sign-out page and its form. */
export function signOutStateOf({ oidc }: KoaContextWithOIDC): { readonly secret: string } | undefined {
  return (oidc.session as { state?: { secret: string } } | undefined)?.state;
}

/** Adjusts `exp` and `iat`, so that only the database's clock decides about expiry. */
export function alive({ find, findByUid, ...others }: Partial<Adapter>): Partial<Adapter> {
  const adjusted = (payload: AdapterPayload | undefined | void) => {
    const now = Math.floor(Date.now() / 1000);
    if (payload?.exp !== undefined && payload.exp <= now) payload.exp = now + 1;
    if (payload?.iat !== undefined && payload.iat > now) payload.iat = now;
    return payload;
  };
  return {
    ...others,
    find: async (id) => adjusted(await find!(id)),
    ...(findByUid ? { findByUid: async (uid) => adjusted(await findByUid(uid)) } : {}),
  };
}

/** Makes the body readable again, with the stream features that the library uses. */
export function putBack(request: IncomingMessage, body: Buffer): void {
  const { headers } = request;
  if (headers['content-length'] !== undefined) headers['content-length'] = String(body.length);
  Object.defineProperties(request, { readable: { value: true }, iterator: { value: () => [body] } });
}

/** Signs on the calling thread: in WebCrypto's thread pool, a signature would wait for password hashing. */
export class SynchronousSigningKey extends ExternalSigningKey {
  readonly #signer: Signer;

  constructor(jwk: SigningJwk) {
    super();
    this.#signer = new Signer(jwk);
    Object.assign(this, { kid: jwk.kid, alg: jwk.alg }); // by setters that the library's types lack
  }

  override keyObject() {
    return this.#signer.publicKey;
  }

  override sign(data: Uint8Array): Uint8Array {
    return this.#signer.sign(data);
  }
}
