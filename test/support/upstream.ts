import { jest } from '@jest/globals';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair, importJWK, SignJWT, decodeJwt, type JWK, type JWTPayload } from 'jose';
import { Provider, type Adapter, type AdapterPayload, type Configuration } from 'oidc-provider';
import type { UpstreamConfig } from '../../src/config/config.js';
import { Logger } from '../../src/runtime/logger.js';
import { Browser, freePort, OauthTest, type FormPage } from './oauth.js';

export const SECRET = 'a secret that only the platform’s login and its client know'.replace(/\W/g, '-');
const CLIENT = 'public-user-api';

/** Faults of the provider's next responses. */
export interface Faults {
  /** Connections for these paths are cut off. */
  readonly away?: RegExp;
  /** Requests to these paths never get a response. */
  readonly silent?: RegExp;
  /** Requests to these paths get this status, and a page. */
  readonly broken?: readonly [path: RegExp, status: number];
  /** Responses at these paths stop within their body. */
  readonly stalling?: RegExp;
  /** Changes the metadata. */
  readonly metadata?: (metadata: Record<string, unknown>) => Record<string, unknown>;
  /** Publishes other keys than the signing keys. */
  readonly otherKeys?: boolean;
  /** Changes the claims of an ID token before it is signed. */
  readonly claims?: (claims: JWTPayload) => JWTPayload;
  /** Changes the token endpoint's response. */
  readonly answer?: (answer: Record<string, unknown>) => Record<string, unknown>;
}

/** A provider's storage, in memory. */
function memory(): (model: string) => Adapter {
  const kept = new Map<string, AdapterPayload>();
  return (model) => {
    const find = (id: string) => Promise.resolve(kept.get(`${model}:${id}`));
    const destroy = (id: string) => Promise.resolve(void kept.delete(`${model}:${id}`));
    return {
      find,
      destroy,
      upsert: (id, payload) => Promise.resolve(void kept.set(`${model}:${id}`, payload)),
      consume: async (id) => void Object.assign((await find(id))!, { consumed: 1 }),
      findByUid: (uid) =>
        Promise.resolve([...kept.values()].find((payload) => payload.uid === uid && payload.kind === model)),
      findByUserCode: () => Promise.resolve(undefined),
      revokeByGrantId: () => Promise.resolve(),
    };
  };
}

/** The external identity provider as an independent implementation: oidc-provider with few options; members sign in automatically. */
export class UpstreamServer {
  /** The account that signs in next. */
  account: { sub: string; claims?: Record<string, unknown> } = { sub: 'nobody' };
  /** The member's action at the provider. */
  decision: { amr?: string[]; acr?: string; ts?: number } | { error: string; error_description: string } = {};
  faults: Faults = {};
  /** Parameters of the last authorization request. */
  asked = new URLSearchParams();
  #provider: Provider;
  readonly #kept = memory();
  #key: JWK;
  #rotations = 0;

  private constructor(
    readonly issuer: string,
    readonly server: Server,
    private readonly client: string,
  ) {}

  /** @param client origin of the server that uses the provider */
  static async start(client: string): Promise<UpstreamServer> {
    const port = await freePort();
    const server = createServer();
    const upstream = new UpstreamServer(`http://127.0.0.1:${port}`, server, client);
    await upstream.rotate();
    server.on('request', (request, response) => void upstream.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return upstream;
  }

  /** The settings of its client. */
  get config(): UpstreamConfig {
    return {
      issuer: this.issuer,
      clientId: CLIENT,
      clientSecret: SECRET,
      clientKey: undefined,
      scopes: 'openid',
      label: 'Example',
      claim: 'sub',
      match: 'external_id',
      createMembers: false,
      logout: false,
    };
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  /** Signs with another key from now on, and publishes only that key. */
  async rotate(): Promise<void> {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    this.#key = {
      ...(await exportJWK(privateKey)),
      kid: `key-${++this.#rotations}`,
      alg: 'ES256',
      use: 'sig',
    };
    this.#provider = new Provider(this.issuer, this.#configuration());
    this.#provider.on('server_error', (_ctx, error) => console.error(error));
    this.#provider.on('backchannel.error', (_ctx, error) => console.error(error));
  }

  /** Goes through the provider's pages, by default in a new browser. @returns the URL to which it redirects back */
  async visit(url: URL, browser = new Browser(this.issuer, this.issuer)): Promise<URL> {
    this.asked = url.searchParams;
    const back = await browser.open(url);
    if (!(back instanceof URL)) throw new Error(`the provider stays: ${back.status} ${back.html}`);
    return back;
  }

  /** Opens a page with a link to the provider, and follows it. @returns the URL to which it redirects back */
  async answerTo(browser: Browser, url: URL | string): Promise<URL> {
    return this.visit((await browser.open(upstreamLink(await browser.view(url)))) as URL);
  }

  /** Makes a logout token for its client. */
  async logoutToken(claims: JWTPayload, header: Record<string, unknown> = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    return this.#sign(
      {
        iss: this.issuer,
        aud: CLIENT,
        iat: now,
        exp: now + 120,
        jti: crypto.randomUUID(),
        events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
        ...claims,
      },
      { typ: 'logout+jwt', ...header },
    );
  }

  async #sign(claims: JWTPayload, header: Record<string, unknown> = {}): Promise<string> {
    const key = await importJWK(this.#key, 'ES256');
    return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: this.#key.kid!, ...header }).sign(key);
  }

  #configuration(): Configuration {
    return {
      adapter: this.#kept,
      clients: [
        {
          client_id: CLIENT,
          client_secret: SECRET,
          redirect_uris: [`${this.client}/sign-in/callback`],
          post_logout_redirect_uris: [`${this.client}/sign-in/signed-out`],
          backchannel_logout_uri: `${this.client}/sign-in/backchannel-logout`,
          backchannel_logout_session_required: true,
          id_token_signed_response_alg: 'ES256',
        },
      ],
      jwks: { keys: [this.#key as never] },
      cookies: { keys: ['cookies of the upstream'] },
      clientAuthMethods: ['client_secret_basic'],
      pkce: { required: () => true },
      // By default, loopback addresses are rejected, and a response may take 2.5 seconds.
      fetch: (url, options) => fetch(url, { ...options, signal: null, dispatcher: undefined } as RequestInit),
      acrValues: ['gold'],
      claims: {
        openid: ['sub', 'amr', 'acr', 'sid', 'auth_time'],
        email: ['email', 'email_verified'],
        profile: ['preferred_username', 'name', 'given_name', 'family_name', 'picture'],
      },
      features: {
        devInteractions: { enabled: false },
        backchannelLogout: { enabled: true },
        rpInitiatedLogout: {
          enabled: true,
          logoutSource: (ctx, form) => {
            ctx.body = `<!doctype html><title>Sign out of Example</title>${form.replace('</form>', '<input type="hidden" name="logout" value="yes"/><button>Sign out</button></form>')}`;
          },
        },
      },
      findAccount: (_ctx, sub) => ({
        accountId: sub,
        claims: () => Promise.resolve({ ...(sub === this.account.sub ? this.account.claims : {}), sub }),
      }),
      loadExistingGrant: async ({ oidc }) => {
        const { provider, client, session } = oidc;
        const grant = new provider.Grant({ clientId: client!.clientId, accountId: session!.accountId! });
        grant.addOIDCScope('openid email profile');
        await grant.save();
        return grant;
      },
      interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
      ttl: { Session: 3600, Interaction: 600, Grant: 600, AccessToken: 60, IdToken: 60 },
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url!.split('?')[0]!;
    const { away, silent, broken, stalling, metadata, otherKeys, claims, answer } = this.faults;
    if (away?.test(path)) {
      request.socket.destroy();
      return;
    }
    if (silent?.test(path)) return;
    if (broken?.[0].test(path)) {
      response.writeHead(broken[1], { 'Content-Type': 'text/html' }).end('<h1>Oops</h1>');
      return;
    }
    if (stalling?.test(path)) {
      response.writeHead(200, { 'Content-Type': 'application/json' }).write('{"access_token":');
      return;
    }
    if (metadata && path === '/.well-known/openid-configuration')
      this.#changed(response, undefined, metadata);
    if (path.startsWith('/interaction/')) {
      const { decision } = this;
      const result = 'error' in decision ? decision : { login: { accountId: this.account.sub, ...decision } };
      await this.#provider.interactionFinished(request, response, result);
      return;
    }
    if (otherKeys && path === '/jwks') {
      const { publicKey } = await generateKeyPair('ES256', { extractable: true });
      const keys = [{ ...(await exportJWK(publicKey)), kid: this.#key.kid, alg: 'ES256', use: 'sig' }];
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ keys }));
      return;
    }
    if (path === '/token' && (claims || answer)) this.#changed(response, claims, answer);
    await this.#provider.callback()(request, response);
  }

  /** Sends the response with its changes applied. */
  #changed(response: ServerResponse, claims: Faults['claims'], answer: Faults['answer']): void {
    const end = response.end.bind(response);
    response.end = ((body: string | Buffer) => {
      void (async () => {
        let told = JSON.parse(String(body)) as Record<string, unknown>;
        if (claims && typeof told.id_token === 'string')
          told.id_token = await this.#sign(claims(decodeJwt(told.id_token)));
        if (answer) told = answer(told);
        const text = JSON.stringify(told);
        response.setHeader('Content-Length', Buffer.byteLength(text));
        end(text);
      })();
      return response;
    }) as typeof response.end;
  }
}

/** Starts a server with an external identity provider, which closes with the server. */
export async function startWithUpstream(
  settings: Partial<UpstreamConfig> = {},
  overrides: Parameters<typeof OauthTest.start>[0] = {},
): Promise<{ oauth: OauthTest; upstream: UpstreamServer }> {
  const port = await freePort();
  const publicUrl = `http://127.0.0.1:${port}`;
  const upstream = await UpstreamServer.start(publicUrl);
  const config = { port, publicUrl, upstream: { ...upstream.config, ...settings }, ...overrides };
  const oauth = await OauthTest.start(config);
  const close = oauth.close.bind(oauth);
  oauth.close = () => close().finally(() => upstream.close());
  return { oauth, upstream };
}

/** The URL of a sign-in page's link to the external identity provider. */
export function upstreamLink(page: FormPage): string {
  const [, href] = /href="([^"]*\/upstream)"/.exec(page.html) ?? [];
  if (href === undefined) throw new Error(`there is no link to the platform’s login: ${page.html}`);
  return href;
}

/** The server's log from now on. */
export function logOf({ api }: OauthTest): () => string {
  const logger = api.app.get(Logger);
  const spies = (['info', 'warn'] as const).map((level) => jest.spyOn(logger, level));
  return () => JSON.stringify(spies.flatMap(({ mock }) => mock.calls));
}
