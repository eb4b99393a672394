import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { asksForPassword, OauthTest, REDIRECT_URI, type Browser, type FormPage } from '../support/oauth.js';

const BYE = 'https://app.example/bye';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

/** An app that a member registered for themselves. */
async function ownApp(): Promise<string> {
  const { id: userId } = await oauth.member();
  return oauth.client({ post_logout_redirect_uris: [BYE], owner: { userId, ip: null } });
}

/** A browser with a signed-in member who has connected an app of the platform. */
async function signedIn(clientId?: string): Promise<Browser> {
  const { username } = await oauth.member();
  const browser = oauth.browser();
  await browser.authorize(oauth.request(clientId ?? (await oauth.client())).url, { username });
  return browser;
}

/** Parameters that make a request fail after the server has verified its redirect URI. */
const FAILING: [string, Record<string, string | undefined>][] = [
  ['prompt=none', { prompt: 'none' }],
  ['a scope that the app may not have', { scope: ' ' }],
  ['another response type', { response_type: 'token' }],
  ['another response mode', { response_mode: 'fragment' }],
  ['no PKCE', { code_challenge: undefined }],
  ['PKCE with the method plain', { code_challenge_method: 'plain' }],
  ['a wrong max_age', { max_age: '-1' }],
  ['another resource', { resource: 'https://other.example/' }],
  ['a wrong prompt', { prompt: 'none login' }],
  ['a wrong hint', { id_token_hint: 'a.b.c' }],
  ['a control character', { state: '\0' }],
  ['a request object', { request: 'a.b.c' }],
];

const linkOn = (page: FormPage) => {
  const [, href] = /<a class="button[^"]*" href="([^"]+)"/.exec(page.html) ?? [];
  return href === undefined ? undefined : new URL(href.replaceAll('&amp;', '&'));
};

describe('an app that another member registered', () => {
  it.each(FAILING)('gets its error by a link instead of a redirect, with %s', async (_, parameters) => {
    const { url } = oauth.request(await ownApp(), { state: 'state', ...parameters });
    for (const browser of [oauth.browser(), await signedIn()]) {
      const page = await browser.view(url);
      expect([page.status, page.headers.get('location')]).toEqual([400, null]);
      expect(page.html).toContain('Go to app.example');
      const link = linkOn(page)!;
      expect([link.origin + link.pathname, link.searchParams.get('error')]).toEqual([
        REDIRECT_URI,
        expect.stringMatching(/^[a-z_]+$/),
      ]);
      expect(page.html).toContain(link.searchParams.get('error')!);
    }
  });

  it.each(FAILING.slice(0, 3))(
    'gets a redirect if the member has connected the app: %s',
    async (_, parameters) => {
      const clientId = await ownApp();
      const browser = await signedIn(clientId);
      const asked = { ...parameters, scope: parameters.scope ?? 'openid events:read profile:read' };
      const back = await browser.leave(oauth.request(clientId, asked).url);
      expect(back.origin + back.pathname).toBe(REDIRECT_URI);
    },
  );

  it('gets a redirect if an admin has approved it', async () => {
    const clientId = await ownApp();
    await oauth.query('UPDATE oauth_clients SET approved_at = now() WHERE id = $1', [clientId]);
    const back = await oauth.browser().leave(oauth.request(clientId, { prompt: 'none' }).url);
    expect([back.origin + back.pathname, back.searchParams.get('error')]).toEqual([
      REDIRECT_URI,
      'login_required',
    ]);
  });

  it('gets a redirect if the member declines on the page that names the app', async () => {
    const { username } = await oauth.member();
    const browser = oauth.browser();
    const back = await browser.authorize(oauth.request(await ownApp()).url, { username, deny: true });
    expect([back.origin, back.searchParams.get('error')]).toEqual(['https://app.example', 'access_denied']);
    const page = await browser.view(oauth.request(await ownApp(), { prompt: 'login' }).url);
    await browser.submitAndLeave(page, {}, /\/cancel$/);
  });

  it('gets a link after sign-out, or a redirect if the member has connected the app', async () => {
    const clientId = await ownApp();
    const asked = { client_id: clientId, post_logout_redirect_uri: BYE, state: 's' };
    const url = `/oauth/logout?${new URLSearchParams(asked)}`;
    const nobody = await oauth.browser().view(url);
    expect([nobody.status, String(linkOn(nobody))]).toEqual([200, `${BYE}?state=s`]);

    const browser = await signedIn();
    const out = await browser.press(await browser.view(url), { logout: 'yes' });
    expect([out.status, String(linkOn(out))]).toEqual([200, `${BYE}?state=s`]);
    expect(asksForPassword(await browser.view('/account/apps'))).toBe(true);

    const known = await signedIn(clientId);
    const back = await known.submitAndLeave(await known.view(url), { logout: 'yes' });
    expect(back.href).toBe(`${BYE}?state=s`);
  });
});
