import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { decodeJwt, UnsecuredJWT } from 'jose';
import { basic, clientWithSecret, dpopKey } from '../support/client-kinds.js';
import {
  OauthTest,
  PASSWORD,
  REDIRECT_URI,
  scopesOn,
  type Browser,
  type FormPage,
  type TokenBody,
} from '../support/oauth.js';

/*
 * Checks what modules of oidcc-basic and oidcc-formpost-basic check, with the same kind of client: a secret in the header, no PKCE.
 */

type Client = Awaited<ReturnType<typeof clientWithSecret>>;
type Parameters = Record<string, string | undefined>;

let oauth: OauthTest;
let app: Client;
beforeAll(async () => {
  oauth = await OauthTest.start();
  app = await clientWithSecret(oauth, { pkce: 'optional' });
});
afterAll(() => oauth.close());

/** An authorization request in the form of OpenID Connect Core. */
const requestOf = ({ id }: Client, parameters: Parameters) =>
  oauth.request(id, {
    scope: 'openid',
    code_challenge: undefined,
    code_challenge_method: undefined,
    nonce: 'n-1',
    state: 's-1',
    ...parameters,
  }).url;

/** Opens a request, and signs the member in if required. @returns a page, unless the request ends at the app */
async function open(
  url: URL,
  { username, browser = oauth.browser() }: { username?: string; browser?: Browser },
) {
  let at = await browser.open(url);
  while (!(at instanceof URL) && at.url.pathname.startsWith('/interaction/') && username) {
    at = at.html.includes('type="password"')
      ? await browser.submit(at, { username, password: PASSWORD }, /sign-in$/)
      : await browser.submit(at, { scope: scopesOn(at.html), decision: 'allow' }, /consent$/);
  }
  return at;
}

/** The parameters that the app receives: from the query, or from the browser's form. */
function toldBy(mode: string, at: URL | FormPage): Record<string, string> {
  if (mode === 'query') {
    expect((at as URL).href.split('?')[0]).toBe(REDIRECT_URI);
    return Object.fromEntries((at as URL).searchParams);
  }
  const { html } = at as FormPage;
  expect(html).toContain(`<form id="response" method="post" action="${REDIRECT_URI}">`);
  const fields = html.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g);
  return Object.fromEntries([...fields].map(([, name, value]) => [name!, value!.replaceAll('&#39;', "'")]));
}

const redeem = ({ id, secret }: Client, code: string, verifier?: string) =>
  oauth.token(
    {
      grant_type: 'authorization_code',
      redirect_uri: REDIRECT_URI,
      code,
      ...(verifier && { code_verifier: verifier }),
    },
    basic(id, secret),
  );

const refresh = ({ id, secret }: Client, { refresh_token }: TokenBody, scope: string) =>
  oauth.token({ grant_type: 'refresh_token', refresh_token, scope }, basic(id, secret));

/** Signs a new member in. */
async function signedIn(parameters: Parameters = {}, client = app) {
  const { id, username } = await oauth.member();
  const at = await open(requestOf(client, parameters), { username });
  const { code } = toldBy(parameters.response_mode || 'query', at);
  const { status, body } = await redeem(client, code!);
  expect(status).toBe(200);
  return { sub: String(id), code: code!, tokens: body };
}

const userinfo = (init: RequestInit) => fetch(`${oauth.issuer}/oauth/userinfo`, init);
const inHeader = ({ access_token }: TokenBody) => ({ headers: { Authorization: `Bearer ${access_token}` } });

describe.each(['query', 'form_post'])('an app with responses by %s', (response_mode) => {
  it('signs a member in; its ID token has its nonce, and no unrequested claim', async () => {
    const { sub, tokens } = await signedIn({ response_mode });
    const { iat, exp, auth_time, ...claims } = decodeJwt(tokens.id_token!);
    expect(claims).toEqual({ iss: oauth.issuer, aud: app.id, sub, nonce: 'n-1', amr: ['pwd'] });
    expect([typeof iat, typeof exp, typeof auth_time]).toEqual(['number', 'number', 'number']);
  });

  it.each([
    ['without response_type', { response_type: undefined }, 'invalid_request'],
    ['if a sign-in is required and prompt=none forbids it', { prompt: 'none' }, 'login_required'],
    ['with a request object', { request: 'eyJhbGciOiJub25lIn0.e30.' }, 'request_not_supported'],
    [
      'with a request object by URL',
      { request_uri: 'https://app.example/r.jwt' },
      'request_uri_not_supported',
    ],
  ] as [string, Parameters, string][])(
    'gets an error and no code for a rejected request: %s',
    async (_, parameters, error) => {
      const told = toldBy(response_mode, await open(requestOf(app, { response_mode, ...parameters }), {}));
      const { error_description: description = '', ...rest } = told;
      expect(rest).toEqual({ error, state: 's-1', iss: oauth.issuer });
      expect(description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/); // RFC 6749 §4.1.2.1
    },
  );

  it('gets the rejection of a request object in the object’s response mode', async () => {
    const request = new UnsecuredJWT({ response_mode, state: 'another' }).encode();
    for (const outside of [undefined, 'query', 'form_post']) {
      const url = requestOf(app, { response_mode: outside, request });
      expect(toldBy(response_mode, await open(url, {}))).toMatchObject({
        error: 'request_not_supported',
        state: 's-1',
      });
    }
  });

  it.each([{}, { request: 'eyJhbGciOiJub25lIn0.e30.' }, { prompt: 'none' }] as Parameters[])(
    'gets no response at an unregistered URL, and the member sees a page: %j',
    async (parameters) => {
      const url = requestOf(app, { response_mode, redirect_uri: `${REDIRECT_URI}/x`, ...parameters });
      const page = (await open(url, {})) as FormPage;
      expect([page.status, page.html.includes('not registered')]).toEqual([400, true]);
      expect(page.html).not.toContain('id="response"');
    },
  );
});

describe('an app', () => {
  it('that sends an empty response_mode signs a member in by the default mode', async () => {
    await signedIn({ response_mode: '' });
  });

  it('that sends an empty response_type gets the error for a missing response_type', async () => {
    const told = async (response_type?: string) =>
      toldBy('query', await open(requestOf(app, { response_type }), {}));
    expect(await told('')).toEqual(await told(undefined));
    expect((await told('')).error_description).toBe("missing required parameter 'response_type'");
  });
});

it('an app with a pushed request signs a member in with its secret in the form, PKCE and form_post, like ASP.NET Core', async () => {
  const { id, secret } = await clientWithSecret(oauth, { secret_auth_method: 'client_secret_post' });
  const own = { client_id: id, client_secret: secret };
  const parameters = { scope: 'openid profile', response_mode: 'form_post', nonce: 'n-1', state: 's-1' };
  const { url, verifier } = oauth.request(id, parameters);
  const pushed = await oauth.post('/oauth/par', { ...Object.fromEntries(url.searchParams), ...own });
  expect(pushed.status).toBe(201);
  const { username } = await oauth.member();
  const { code, state } = toldBy('form_post', await open(oauth.pushedUrl(id, pushed), { username }));
  const { status, body } = await oauth.token({
    grant_type: 'authorization_code',
    redirect_uri: REDIRECT_URI,
    code: code!,
    code_verifier: verifier,
    ...own,
  });
  expect([status, state, decodeJwt(body.id_token!).nonce]).toEqual([200, 's-1', 'n-1']);
});

describe('userinfo', () => {
  it('accepts the token by GET and POST in the header, and by POST in a form', async () => {
    const { sub, tokens } = await signedIn();
    const { access_token } = tokens;
    for (const init of [
      inHeader(tokens),
      { method: 'POST', ...inHeader(tokens) },
      { method: 'POST', body: new URLSearchParams({ access_token }) },
    ] as RequestInit[]) {
      const response = await userinfo(init);
      expect([response.status, await response.json()]).toEqual([200, { sub }]);
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    }
  });

  type Sent = { path?: string; method?: string; type?: string; body?: string; headers?: object };
  it.each<[string, number, (token: string) => Sent]>([
    ['in the query', 401, (token) => ({ path: `?access_token=${token}` })],
    ['in a form by PUT', 405, (token) => ({ method: 'PUT', body: `access_token=${token}` })],
    ['in a form of another type', 401, (token) => ({ type: 'text/plain', body: `access_token=${token}` })],
    ['twice in a form', 400, (token) => ({ body: `access_token=${token}&access_token=${token}` })],
    [
      'in a form and the header',
      400,
      (token) => ({ headers: { Authorization: `Bearer ${token}` }, body: `access_token=${token}` }),
    ],
    [
      'in a form that is too long',
      413,
      (token) => ({ body: `access_token=${token}&x=${'x'.repeat(20_000)}` }),
    ],
    ['that is empty', 401, () => ({ body: 'access_token=' })],
    ['in a form, altered', 401, (token) => ({ body: `access_token=${token.slice(1)}` })],
  ])('rejects a token %s: %i', async (_, status, sent) => {
    const { tokens } = await signedIn();
    const { path = '', type, headers, ...init } = sent(tokens.access_token);
    const response = await fetch(`${oauth.issuer}/oauth/userinfo${path}`, {
      method: 'POST',
      ...init,
      headers: { 'Content-Type': type ?? 'application/x-www-form-urlencoded', ...headers },
    });
    expect(response.status).toBe(status);
  });

  it('rejects a form with a DPoP-bound token, with or without a proof', async () => {
    const proof = await dpopKey(oauth);
    const { username, clientId } = await oauth.memberAndClient();
    const { body } = await oauth.token(await oauth.code(clientId, username), await proof());
    const form = new URLSearchParams({ access_token: body.access_token });
    const headers = await proof('/oauth/userinfo', 'POST', body.access_token);
    for (const init of [{}, { headers }])
      expect((await userinfo({ method: 'POST', body: form, ...init })).status).toBe(401);
  });
});

it.each(['email', 'address', 'phone'])(
  'an unsupported scope is ignored before and after openid, and grants nothing: %s',
  async (scope) => {
    for (const asked of [`openid ${scope}`, `${scope} openid`]) {
      const { sub, tokens } = await signedIn({ scope: asked });
      expect(await (await userinfo(inHeader(tokens))).json()).toEqual({ sub });
      expect((await refresh(app, tokens, asked)).status).toBe(200);
    }
  },
);

it('a refresh token granted by offline_access returns another ID token for the same sign-in', async () => {
  const scope = 'openid offline_access';
  const { sub, tokens } = await signedIn({ scope, prompt: 'consent' });
  const { status, headers, body } = await refresh(app, tokens, scope);
  expect([status, headers.get('cache-control'), body.token_type]).toEqual([200, 'no-store', 'Bearer']);
  const [first, second] = [decodeJwt(tokens.id_token!), decodeJwt(body.id_token!)];
  for (const claim of ['iss', 'aud', 'sub', 'auth_time', 'azp']) expect(second[claim]).toEqual(first[claim]);
  expect(await (await userinfo(inHeader(body))).json()).toEqual({ sub });
});

describe('PKCE', () => {
  const without = { code_challenge: undefined, code_challenge_method: undefined };

  it('may be omitted by a client registered with PKCE off, and is verified if sent', async () => {
    const off = await clientWithSecret(oauth, { pkce: 'off' });
    const { username } = await oauth.member();
    const codeOf = async (url: URL) =>
      (await oauth.browser().authorize(url, { username })).searchParams.get('code')!;
    const bare = await codeOf(oauth.request(off.id, { ...without, scope: 'openid' }).url);
    const { status, body } = await redeem(off, bare);
    expect([status, typeof body.id_token]).toEqual([200, 'string']);
    const { url, verifier } = oauth.request(off.id);
    const bound = await codeOf(url);
    expect((await redeem(off, bound)).body.error).toBe('invalid_grant');
    expect((await redeem(off, bound, verifier)).status).toBe(200);
  });

  it.each([
    ['a nonce', { nonce: undefined }, undefined],
    ['a non-empty nonce', { nonce: '' }, undefined],
    [
      'the scope openid',
      { nonce: 'n', scope: 'profile:read' },
      'openid scope must be requested when using the nonce parameter',
    ],
  ])('registered as optional is required without %s', async (_what, parameters, said) => {
    const back = await oauth.browser().leave(oauth.request(app.id, { ...without, ...parameters }).url);
    expect(Object.fromEntries(back.searchParams)).toMatchObject({
      error: 'invalid_request',
      error_description: said ?? 'PKCE can be omitted only with a nonce',
    });
  });

  it.each(['a verifier without a challenge', 'a challenge without a verifier'])(
    'rejects a downgrade: %s',
    async (which) => {
      const { username } = await oauth.member();
      const isLeftOut = which.startsWith('a verifier');
      const request = oauth.request(app.id, { ...(isLeftOut ? without : {}), nonce: 'n' });
      const back = await oauth.browser().authorize(request.url, { username });
      const verifier = isLeftOut ? request.verifier : undefined;
      const { status, body } = await redeem(app, back.searchParams.get('code')!, verifier);
      expect([status, body.error]).toEqual([400, 'invalid_grant']);
    },
  );
});

describe('form_post', () => {
  it('sends the code in a form, submitted by one hashed script or a button', async () => {
    const { username } = await oauth.member();
    const request = requestOf(app, { response_mode: 'form_post', state: `"><x` });
    const page = (await open(request, { username })) as FormPage;
    const policy = page.headers.get('content-security-policy')!;
    expect(/script-src ([^;]+)/.exec(policy)![1]!.match(/'sha256-[^']+'/g)).toHaveLength(1);
    expect(policy).not.toContain('form-action'); // the app may redirect anywhere
    expect(policy).toContain("default-src 'none'");
    expect(page.headers.get('cache-control')).toBe('no-store');
    expect(page.html).toMatch(/<button [^>]*type="submit">/);
    const { code, state, iss } = toldBy('form_post', page);
    expect([state, iss]).toEqual(['&quot;&gt;&lt;x', oauth.issuer]);
    expect((await redeem(app, code!)).status).toBe(200);
  });

  it('shows only a button, and no script, for an app that a member registered', async () => {
    const owner = { userId: (await oauth.member()).id, ip: null };
    const id = await oauth.client({ profile: 'oidc', owner });
    const { url } = oauth.request(id, { response_mode: 'form_post', prompt: 'none' });
    const page = await oauth.browser().view(url);
    expect(page.html).toContain('login_required');
    expect(page.html).not.toContain('<script');
    expect(page.html).toMatch(/<button [^>]*type="submit">/);
  });
});
