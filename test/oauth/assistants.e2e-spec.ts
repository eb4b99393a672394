import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { FIRST_SCOPES } from '../../src/auth/www-authenticate.js';
import type { NewClient } from '../../src/clients/client-rules.js';
import { PublicHttps } from '../../src/runtime/public-https.js';
import { dpopKey } from '../support/client-kinds.js';
import { postgres } from '../support/database.js';
import { allowDocuments, DocumentSite, sendJson } from '../support/document-site.js';
import { soon } from '../support/timing.js';
import { OauthTest, pkcePair } from '../support/oauth.js';

const PATH = '/api/public/mcp';
const REDIRECT = 'http://localhost:4321/callback';

let oauth: OauthTest;
beforeAll(
  async () => void (oauth = await OauthTest.start({ assistants: true, clientIdMetadataDocuments: true })),
);
afterAll(() => oauth.close());

const address = () => oauth.issuer + PATH;
const send = (headers: Record<string, string>, method: string, params: object = {}, to = address()) =>
  fetch(to, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
const use = (token: string, name: string, scheme = 'Bearer', headers: Record<string, string> = {}) =>
  send({ Authorization: `${scheme} ${token}`, ...headers }, 'tools/call', { name, arguments: {} });
const updateProfile = (token: string) =>
  send({ Authorization: `Bearer ${token}` }, 'tools/call', {
    name: 'update_profile',
    arguments: { bio: 'x' },
  });
/** Signs a member in to an assistant whose registered loopback redirect URI has no port. */
async function signedIn(more: Record<string, string | undefined> = {}, fields: Partial<NewClient> = {}) {
  const redirect_uris = ['http://localhost/callback'];
  const clientId = await oauth.client({ name: 'Helper', type: 'native', redirect_uris, ...fields });
  const { username } = await oauth.member();
  const scope = 'profile:read events:read';
  const parameters = { redirect_uri: REDIRECT, resource: address(), scope, ...more };
  const code = await oauth.code(clientId, username, parameters);
  return { clientId, username, ...(await oauth.token({ ...code, resource: parameters.resource })) };
}

describe('an assistant', () => {
  it('signs a member in through a loopback redirect on an unregistered port, and reads data with its token', async () => {
    const { status, body } = await signedIn();
    expect([status, body.scope]).toEqual([200, 'profile:read events:read']);
    const { result } = (await (await use(body.access_token, 'list_events')).json()) as { result: object };
    expect(result).toMatchObject({ content: [{ text: '{"total":0,"data":[]}' }] });
    expect(await oauth.me(body.access_token)).toBe(200);
  });

  it('is offered each tool whose scope its app may request, even if the member has not granted the scope', async () => {
    const offered = async (scope: string, scopes?: string[]) => {
      const { body } = await signedIn({ scope }, scopes ? { scopes } : {});
      const answer = await send({ Authorization: `Bearer ${body.access_token}` }, 'tools/list');
      const { result } = (await answer.json()) as { result: { tools: { name: string }[] } };
      return result.tools.map(({ name }) => name);
    };
    const all = await offered('profile:read events:read');
    for (const name of ['update_profile', 'list_connections', 'changes_since']) expect(all).toContain(name);
    expect(await offered('openid')).toEqual(all);
    expect(await offered('events:read', ['events:read'])).toEqual([
      'list_events',
      'get_event',
      'changes_since',
    ]);
  });

  it('learns a tool’s missing scope from the 403 response, and requests the scope', async () => {
    const { body, clientId, username } = await signedIn();
    const refused = await updateProfile(body.access_token);
    const data = { code: 'insufficient_scope', required_scope: 'profile:write' };
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      { jsonrpc: '2.0', id: 1, error: { data } },
    ]);
    const [, scope] = / scope="([^"]*)"/.exec(refused.headers.get('www-authenticate')!)!;
    expect(scope).toBe('profile:read events:read profile:write');
    const parameters = { redirect_uri: REDIRECT, resource: address(), scope: scope! };
    const code = await oauth.code(clientId, username, parameters);
    const { body: wider } = await oauth.token({ ...code, resource: address() });
    const changed = await updateProfile(wider.access_token);
    expect(await changed.json()).not.toHaveProperty('result.isError');
    expect(changed.status).toBe(200);
  });

  it('refreshes its token for the MCP URL', async () => {
    const { clientId, body } = await signedIn();
    const renewed = await oauth.refresh(clientId, body.refresh_token, { resource: address() });
    expect(renewed.status).toBe(200);
    expect((await use(renewed.body.access_token, 'get_profile')).status).toBe(200);
  });

  it('may add a trailing slash to the MCP URL in sign-ins and messages', async () => {
    const slashed = `${address()}/`;
    const post = (headers: Record<string, string>) => send(headers, 'ping', {}, slashed);
    const stranger = await post({});
    const metadata = `${oauth.issuer}/.well-known/oauth-protected-resource${PATH}`;
    expect([stranger.status, stranger.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringContaining(`resource_metadata="${metadata}"`),
    ]);
    expect((await fetch(`${metadata}/?v=1`)).status).toBe(200);
    const { status, body } = await signedIn({ resource: slashed });
    expect(status).toBe(200);
    expect((await post({ Authorization: `Bearer ${body.access_token}` })).status).toBe(200);
    for (const other of ['/api/public/profile/', `${PATH}//`, `/other${PATH}/`])
      expect([other, (await fetch(oauth.issuer + other)).status]).toEqual([other, 404]);
  });

  it('that requests no scope gets the read scopes that its app may request', async () => {
    const { body } = await signedIn({ scope: undefined });
    expect(new Set(body.scope.split(' '))).toEqual(new Set(FIRST_SCOPES));
    const fewer = await signedIn({ scope: undefined }, { scopes: ['profile:write', 'events:read'] });
    expect(fewer.body.scope).toBe('events:read');
    // The default also applies to POST and to pushed requests.
    const clientId = await oauth.client();
    const { url } = oauth.request(clientId, { scope: undefined, resource: address() });
    const form = { method: 'POST', body: url.searchParams, redirect: 'manual' } as const;
    const asForm = await fetch(new URL(url.pathname, url), form);
    const started = await fetch(new URL(asForm.headers.get('location')!, url), { redirect: 'manual' });
    expect(started.headers.get('location')).toMatch(/^\/interaction\//);
    expect((await oauth.post('/oauth/par', Object.fromEntries(url.searchParams))).status).toBe(201);
    // A request without the MCP resource has no default scope.
    const ofApi = await fetch(oauth.request(clientId, { scope: undefined }).url, { redirect: 'manual' });
    expect(ofApi.headers.get('location')).toContain('error=invalid_scope');
  });

  it('gets an explanation of client registration when it tries to register itself', async () => {
    const { status, headers, body } = await oauth.post('/register', {});
    expect([status, headers.get('access-control-allow-origin'), body.error]).toEqual([
      403,
      '*',
      'access_denied',
    ]);
    expect(body.error_description).toMatch(/client metadata document .*pua clients create --assistant/);
    const preflight = await fetch(`${oauth.issuer}/register`, {
      method: 'OPTIONS',
      headers: { Origin: 'http://localhost:6274', 'Access-Control-Request-Method': 'POST' },
    });
    expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([204, 'POST']);
    expect((await fetch(`${oauth.issuer}/register`)).status).toBe(405);
  });

  it('in a web page may send requests only from the origins of its app and of this server', async () => {
    const at = async (token: string, Origin: string) => {
      const { status, body } = await oauth
        .post(PATH, {}, { Authorization: `Bearer ${token}`, Origin })
        .then((answer) => answer as { status: number; body: { code?: string } });
      return status === 403 ? body.code : 'served';
    };
    const web = { type: 'web', redirect_uris: ['https://app.example/callback'] } satisfies Partial<NewClient>;
    const back = { redirect_uri: 'https://app.example/callback' };
    const { body: ofPage } = await signedIn(back, web);
    const { body: ofOther } = await signedIn(back, { ...web, allowed_origins: ['https://pages.example'] });
    const { body: ofDevice } = await signedIn();
    const refused = 'origin_not_allowed';
    for (const [token, origin, answer] of [
      [ofPage, 'https://app.example', 'served'],
      [ofPage, oauth.issuer, 'served'],
      [ofPage, 'https://app.example:8443', refused],
      [ofPage, 'https://evil.example', refused],
      [ofPage, 'null', refused],
      [ofOther, 'https://pages.example', 'served'],
      [ofOther, 'https://app.example', refused],
      [ofDevice, 'http://localhost:4321', refused],
      [ofDevice, oauth.issuer, 'served'],
    ] as const)
      expect([origin, await at(token.access_token, origin)]).toEqual([origin, answer]);
    const headers = { Authorization: `Bearer ${ofPage.access_token}`, Origin: 'https://evil.example' };
    expect((await oauth.post(PATH, {}, headers)).headers.has('x-oauth-scopes')).toBe(true);
    expect(await oauth.me(ofPage.access_token)).toBe(200);
  });

  it('gets invalid_target if it requests another resource', async () => {
    const { url } = oauth.request(await oauth.client(), { resource: `${address()}/other` });
    const response = await fetch(url, { redirect: 'manual' });
    expect(response.headers.get('location')).toContain('error=invalid_target');
  });

  it('is rejected with an expired token, or a token for another audience', async () => {
    for (const change of [
      `payload = t.payload || '{"aud":"https://other.example/mcp"}'`,
      `expires_at = now() - interval '1 second'`,
    ]) {
      const { body, clientId } = await signedIn();
      await oauth.query(
        `UPDATE oauth_tokens t SET ${change} FROM oauth_grants g WHERE g.id = t.grant_id AND g.client_id = $1 AND t.model = 'AccessToken'`,
        [clientId],
      );
      const { status, headers } = await use(body.access_token, 'get_profile');
      expect([status, headers.get('www-authenticate')]).toEqual([
        401,
        expect.stringContaining('invalid_token'),
      ]);
    }
  });

  it('with a DPoP key must send a proof with each message', async () => {
    const clientId = await oauth.client({ name: 'Bound' });
    const [own, other] = [await dpopKey(oauth), await dpopKey(oauth)];
    const { username } = await oauth.member();
    const tokens = async () => {
      const code = await oauth.code(clientId, username, { resource: address(), scope: 'events:read' });
      return (await oauth.token({ ...code, resource: address() }, await own())).body;
    };
    const [{ access_token: token, token_type: type }, second] = [await tokens(), await tokens()];
    expect(type).toBe('DPoP');
    const proof = await own(PATH, 'POST', token);
    expect((await use(token, 'list_events', 'DPoP', proof)).status).toBe(200);
    expect((await use(token, 'list_events', 'DPoP', await own(PATH, 'POST', token))).status).toBe(200);
    expect((await use(token, 'list_events', 'DPoP', await own(`${PATH}/`, 'POST', token))).status).toBe(200);
    for (const [why, wrong] of Object.entries({
      'used before': proof,
      missing: {},
      'of another method': await own(PATH, 'GET', token),
      'for another address': await own('/api/public/profile', 'POST', token),
      'for the resource above': await own('/api/public', 'POST', token),
      'with another token': await own(PATH, 'POST', second.access_token),
      'without a token': await own(PATH),
      'of another key': await other(PATH, 'POST', token),
    })) {
      const { status, headers } = await use(token, 'list_events', 'DPoP', wrong as Record<string, string>);
      expect([why, status, headers.get('www-authenticate')]).toEqual([
        why,
        401,
        `DPoP realm="public-user-api", scope="${FIRST_SCOPES.join(' ')}", error="invalid_dpop_proof", algs="ES256 Ed25519 EdDSA", resource_metadata="${oauth.issuer}/.well-known/oauth-protected-resource${PATH}"`,
      ]);
    }
    const asBearer = await use(token, 'list_events', 'Bearer', await own(PATH, 'POST', token));
    expect([asBearer.status, asBearer.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringMatching(/^Bearer .*error="invalid_token"/),
    ]);
  });
});

postgres.describe('an unregistered client', () => {
  let site: DocumentSite;
  beforeAll(async () => {
    site = await DocumentSite.start(({ headers: { host }, url }, response) =>
      sendJson(response, {
        client_id: `https://${host}${url}`,
        client_name: 'Week planner',
        redirect_uris: [REDIRECT],
        token_endpoint_auth_method: 'none',
      }),
    );
    allowDocuments(oauth.api.app.get(PublicHttps));
  });
  afterAll(() => site.close());

  const read = async (url: string) => (await (await fetch(url)).json()) as Record<string, string & string[]>;

  it('needs only the MCP URL to read a member’s events, until the member ends its access', async () => {
    const { id, username } = await oauth.member();
    const { platform } = oauth.api;
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const event = await platform.event({ title: 'Choir', starts_at: tomorrow });
    await platform.participant(event, id);

    // The 401 response and its metadata contain all other URLs.
    const stranger = await send({}, 'initialize');
    expect(stranger.status).toBe(401);
    const challenge = stranger.headers.get('www-authenticate')!;
    const said = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(challenge)![1]!;
    const resource = await read(said('resource_metadata'));
    expect(resource.resource).toBe(address());
    const server = await read(`${resource.authorization_servers![0]}/.well-known/oauth-authorization-server`);
    expect(server.client_id_metadata_document_supported).toBe(true);

    const clientId = `${site.at}/planner.json`;
    const { verifier, challenge: code_challenge } = pkcePair();
    const sent = {
      client_id: clientId,
      response_type: 'code',
      redirect_uri: REDIRECT,
      scope: said('scope'),
      resource: resource.resource!,
      code_challenge,
      code_challenge_method: 'S256',
    };
    const browser = oauth.browser();
    const start = `${server.authorization_endpoint}?${new URLSearchParams(sent)}`;
    const consent = await browser.signIn(start, username);
    for (const shown of ['Week planner', `Its description comes from <bdi>${new URL(site.at).host}</bdi>`])
      expect(consent.html).toContain(shown);
    const { status, body: tokens } = await oauth.token({
      grant_type: 'authorization_code',
      client_id: clientId,
      code: (await browser.allow(consent)).searchParams.get('code')!,
      code_verifier: verifier,
      redirect_uri: REDIRECT,
      resource: resource.resource!,
    });
    expect([status, tokens.scope]).toEqual([200, said('scope')]);

    const authorization = { Authorization: `Bearer ${tokens.access_token}` };
    const ask = async (method: string, params?: object) =>
      ((await (await send(authorization, method, params)).json()) as { result: unknown }).result;
    const clientInfo = { name: 'planner', version: '1' };
    const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    expect(await ask('initialize', hello)).toMatchObject({ protocolVersion: '2025-11-25' });
    const { tools } = (await ask('tools/list')) as { tools: readonly { readonly name: string }[] };
    expect(tools.map(({ name }) => name)).toContain('list_events');
    const week = { starts_after: new Date().toISOString(), sort: 'starts_at' };
    expect(await ask('tools/call', { name: 'list_events', arguments: week })).toMatchObject({
      content: [{ text: expect.stringContaining(`{"id":${event},"title":"Choir"`) }],
    });

    for (const page of ['/account/activity', '/account/apps']) {
      const { html } = await browser.view(page);
      for (const shown of ['Week planner', new URL(site.at).host])
        expect([page, html]).toEqual([page, expect.stringContaining(shown)]);
    }
    await browser.submit(await browser.view('/account/apps'), {}, /\/apps\/revoke$/);
    const isRejected = async () => (await use(tokens.access_token, 'list_events')).status === 401;
    await soon(isRejected);
    expect(await isRejected()).toBe(true);
    const renewed = await oauth.refresh(clientId, tokens.refresh_token, { resource: resource.resource! });
    expect(renewed.body.error).toBe('invalid_grant');
  });
});
