import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ROUTES } from '../../src/authorization-server/provider/provider.js';
import { RouteTable } from '../../src/http/route-table.js';
import { puaJson } from '../support/command-line.js';
import { OauthTest, REDIRECT_URI } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start({ developerConsole: true, assistants: true })));
afterAll(() => oauth.close());

/** Sends a token request with an unknown code. @returns the part of the response that a page of this origin can read */
async function seenFrom(origin: string, clientId: string) {
  const code = { code: 'x', redirect_uri: REDIRECT_URI, code_verifier: 'v'.repeat(43) };
  const form = { grant_type: 'authorization_code', client_id: clientId, ...code };
  const { status, headers, body } = await oauth.token(form, { Origin: origin });
  return [status, body.error, headers.get('access-control-allow-origin')];
}

const READABLE = (origin: string) => [400, 'invalid_grant', origin];
const HIDDEN = [400, 'invalid_request', null];

const CREATE = ['clients', 'create', '--name', 'Page', '--type', 'web', '--redirect-uri', REDIRECT_URI];
const create = (...more: string[]) =>
  puaJson<{ client_id: string; allowed_origins: string[] }>(oauth.api.environment, [...CREATE, ...more]);

describe('the origins that may call the token endpoint', () => {
  it('are by default the origins of the redirect URIs, as the command states', async () => {
    const others = ['https://app.example/other', 'https://second.example:8443/cb'];
    const { client_id, allowed_origins } = await create(...others);
    expect(allowed_origins).toEqual(['https://app.example', 'https://second.example:8443']);
    for (const origin of allowed_origins) expect(await seenFrom(origin, client_id)).toEqual(READABLE(origin));
    for (const origin of ['https://evil.example', 'https://second.example', 'http://app.example', 'null'])
      expect([origin, await seenFrom(origin, client_id)]).toEqual([origin, HIDDEN]);
  });

  it('are only the configured origins if any are configured; a native app gets none from its redirect URIs', async () => {
    const { client_id } = await create('--origin', 'https://page.example');
    expect(await seenFrom('https://page.example', client_id)).toEqual(READABLE('https://page.example'));
    for (const origin of ['https://app.example', 'https://page.example.evil.example', 'null'])
      expect([origin, await seenFrom(origin, client_id)]).toEqual([origin, HIDDEN]);
    const redirect_uris = ['http://127.0.0.1/cb', REDIRECT_URI];
    const native = await oauth.client({ type: 'native', redirect_uris });
    expect(await seenFrom('https://app.example', native)).toEqual(HIDDEN);
  });

  it('follow the redirect URIs of an app that a member registers, as the form states', async () => {
    const { username } = await oauth.member();
    const browser = oauth.browser();
    await browser.signIn('/developer', username);
    const form = await browser.view('/developer/new-client');
    expect(form.html).toContain('Default: the origins of a web app’s redirect URIs.');
    const fields = { name: 'Own', type: 'web', redirect_uris: REDIRECT_URI, scopes: 'profile:read' };
    const made = await browser.press(form, fields, /\/developer\/clients$/);
    const clientId = made.url.pathname.split('/').at(-1)!;
    expect(await seenFrom('https://app.example', clientId)).toEqual(READABLE('https://app.example'));
    expect(made.html).toMatch(/<textarea id="allowed_origins"[^>]*>\s*<\/textarea>/);
  });

  it('exclude unregistered origins; the app’s audit log has one event for repeated rejections', async () => {
    const clientId = await oauth.client();
    for (const origin of ['https://evil.example', 'https://other.example', 'https://evil.example'])
      await seenFrom(origin, clientId);
    expect(await oauth.events({ client: clientId, type: '%refused' })).toMatchObject([
      { type: 'token.refused', details: { reason: 'origin_not_allowed' } },
    ]);
    await seenFrom('https://evil.example', 'nobody');
    expect(await oauth.events({ client: 'nobody' })).toEqual([]);
  });
});

it('a page of any origin may send the header mcp-protocol-version to each document that it may read outside the API', async () => {
  const paths = oauth.api.app.get(RouteTable).routes.filter(({ method }) => method === 'GET');
  const ofLibrary = [
    ...Object.values(ROUTES),
    '/.well-known/openid-configuration',
    '/.well-known/oauth-authorization-server',
  ];
  const preflight = {
    Origin: 'https://page.example',
    'Access-Control-Request-Method': 'GET',
    'Access-Control-Request-Headers': 'mcp-protocol-version',
  };
  const readable: string[] = [];
  for (const path of [...paths.map((route) => route.path.replaceAll(/:\w+/g, 'x')), ...ofLibrary]) {
    if (path.startsWith('/api/')) continue;
    const { status, headers } = await fetch(oauth.issuer + path, { redirect: 'manual' });
    if (status !== 200 || headers.get('access-control-allow-origin') !== '*') continue;
    readable.push(path);
    const allowed = await fetch(oauth.issuer + path, { method: 'OPTIONS', headers: preflight });
    expect([path, allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([
      path,
      204,
      expect.stringMatching(/^(\*|https:\/\/page\.example)$/),
    ]);
    expect(allowed.headers.get('access-control-allow-headers')).toMatch(/^(\*|mcp-protocol-version)$/);
  }
  expect(readable).toEqual(
    expect.arrayContaining([
      '/.well-known/oauth-protected-resource/api/public',
      '/.well-known/oauth-protected-resource/api/public/mcp',
      '/oauth/jwks',
    ]),
  );
});
