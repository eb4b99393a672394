import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Usage } from '../../src/auth/usage/usage.js';
import { latestFor } from '../support/timing.js';
import { OauthTest, PASSWORD, type FormPage } from '../support/oauth.js';

const REDIRECT = 'http://localhost:4321/callback';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start({ assistants: true })));
afterAll(() => oauth.close());

const address = () => `${oauth.issuer}/api/public/mcp`;
const use = (token: string, name: string) =>
  fetch(address(), {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } }),
  });

/** Signs a member in to an assistant on their device, which was registered without a port. */
async function signedIn() {
  const redirect_uris = ['http://localhost/callback'];
  const clientId = await oauth.client({ name: 'Helper', type: 'native', redirect_uris });
  const { username } = await oauth.member();
  const parameters = { redirect_uri: REDIRECT, resource: address(), scope: 'profile:read events:read' };
  const code = await oauth.code(clientId, username, parameters);
  return { clientId, username, ...(await oauth.token({ ...code, resource: address() })) };
}

describe('an assistant', () => {
  it('signs a member in from its address, on any port of their device, and reads with what it got', async () => {
    const { status, body } = await signedIn();
    expect([status, body.scope]).toEqual([200, 'profile:read events:read']);
    const { result } = (await (await use(body.access_token, 'list_events')).json()) as { result: object };
    expect(result).toMatchObject({ structuredContent: { data: [] } });
    expect(await oauth.me(body.access_token)).toBe(200);
  });

  it('renews its access for the same address', async () => {
    const { clientId, body } = await signedIn();
    const renewed = await oauth.refresh(clientId, body.refresh_token, { resource: address() });
    expect(renewed.status).toBe(200);
    expect((await use(renewed.body.access_token, 'get_profile')).status).toBe(200);
  });

  it('gets nothing for another resource', async () => {
    const clientId = await oauth.client();
    const { url } = oauth.request(clientId, { resource: `${address()}/other` });
    const response = await fetch(url, { redirect: 'manual' });
    expect(response.headers.get('location')).toContain('error=invalid_target');
  });

  it('is refused with a token for another audience, or one that has expired', async () => {
    for (const change of [
      `payload = t.payload || '{"aud":"https://other.example/mcp"}'`,
      `expires_at = now() - interval '1 second'`,
    ]) {
      const { body, clientId } = await signedIn();
      await oauth.dataSource.query(
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

  it('is shown to the member, and ended there in the middle of a conversation', async () => {
    const { body, username, clientId } = await signedIn();
    expect((await use(body.access_token, 'get_profile')).status).toBe(200);
    await oauth.api.app.get(Usage).flush();
    const browser = oauth.browser();
    const signIn = (await browser.open('/account/activity')) as FormPage;
    const activity = (await browser.submit(signIn, { username, password: PASSWORD })) as FormPage;
    expect(activity.html).toContain('Helper');
    const apps = (await browser.open('/account/apps')) as FormPage;
    const forms = [...apps.html.matchAll(/<form[^>]*>[^]*?<\/form>/g)];
    const own = forms.findIndex(([form]) => form.includes(`name="client_id" value="${clientId}"`));
    const ended = (await browser.submit(apps, {}, own)) as FormPage;
    expect(ended.html).toContain('The app has no access to your account any more.');
    const end = latestFor(1_000);
    while ((await use(body.access_token, 'get_profile')).status !== 401)
      if (performance.now() > end) throw new Error('still served');
  });
});
