import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PlatformLogo } from '../../src/member-pages/rendering/logos.controller.js';
import { pua } from '../support/command-line.js';
import { thorough } from '../support/database.js';
import { PIXEL as PNG } from '../support/images.js';
import { listen } from '../support/listen.js';
import { OauthTest, PASSWORD, REDIRECT_URI, type FormPage } from '../support/oauth.js';
import { itInOneWindow } from '../support/windows.js';

const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'pua-logo-'))));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(name: string, content: Buffer | string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

let plain: OauthTest;
beforeAll(async () => void (plain = await OauthTest.start()));
afterAll(() => plain.close());

/** Starts a server with this logo, and loads the logo. */
async function withLogo(platformLogoUrl: string): Promise<OauthTest> {
  const oauth = await OauthTest.start({ platformLogoUrl, platformName: 'Gipfel' }, plain);
  await oauth.api.app
    .get(PlatformLogo)
    .load()
    .catch(() => undefined);
  return oauth;
}

const signInPage = async (oauth: OauthTest) => (await oauth.browser().view('/account/apps')).html;

describe('the platform’s logo', () => {
  it.each([
    ['a file URL', 'image/png', () => pathToFileURL(fileOf('logo.png', PNG)).href],
    ['a data URL', 'image/png', () => `data:image/png;base64,${PNG.toString('base64')}`],
    ['an SVG file', 'image/svg+xml', () => pathToFileURL(fileOf('logo.svg', SVG)).href],
  ])('is served by this server, and appears on the sign-in page: %s', async (_, type, urlOf) => {
    await using oauth = await withLogo(urlOf());
    expect(await signInPage(oauth)).toContain('<img class="brand-logo" src="/logos/platform" alt="">');
    const response = await fetch(`${oauth.issuer}/logos/platform`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe(type);
    // If a browser opens the SVG directly, the policy blocks scripts and resources.
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; .*sandbox/);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const headers = { 'If-None-Match': response.headers.get('etag')! };
    expect((await fetch(`${oauth.issuer}/logos/platform`, { headers })).status).toBe(304);
  });

  thorough.it(
    'is fetched only at startup, and is not used if the response is a redirect, too large or not an image',
    async () => {
      let asked: string[] = [];
      const host = createServer((request, response) => {
        asked.push(request.url!);
        if (request.url === '/logo.png') response.end(PNG);
        else if (request.url === '/moved') response.writeHead(302, { Location: '/logo.png' }).end();
        else if (request.url === '/big') response.end(Buffer.concat([PNG, Buffer.alloc(300_000)]));
        else response.end('<html>secret</html>');
      });
      const at = await listen(host);
      const good = await withLogo(`${at}/logo.png`);
      asked = [];
      for (let times = 0; times < 3; times++)
        expect((await fetch(`${good.issuer}/logos/platform`)).status).toBe(200);
      expect(asked).toEqual([]);
      await good.close();

      for (const path of ['/moved', '/big', '/page']) {
        asked = [];
        const oauth = await withLogo(at + path);
        expect(asked).not.toContain('/logo.png');
        expect([path, (await fetch(`${oauth.issuer}/logos/platform`)).status]).toEqual([path, 404]);
        expect(await signInPage(oauth)).not.toContain('/logos/platform');
        await oauth.close();
      }
      host.close();
    },
  );
});

describe('the platform’s name and texts', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start({ platformName: 'Gipfel' }, plain)));
  afterAll(() => oauth.close());

  it('appear on the sign-in page and in the API’s metadata', async () => {
    expect(await signInPage(oauth)).toContain('<title>Sign in · Gipfel</title>');
    const metadata = await oauth.json('/.well-known/oauth-protected-resource/api/public');
    expect(metadata.resource_name).toBe('Gipfel API');
  });

  it('are in the browser’s language, with a Vary header', async () => {
    const response = await fetch(`${oauth.issuer}/account/apps`, { headers: { 'Accept-Language': 'de-CH' } });
    const html = await response.text();
    expect(html).toContain('<html lang="de">');
    expect(html).toContain('<h1>Anmelden</h1>');
    expect(response.headers.get('content-language')).toBe('de');
    expect(response.headers.get('vary')).toBe('Accept-Language, Cookie');
  });

  it('are in the language that the app requests, on sign-in, consent and error pages', async () => {
    const { username, clientId, browser } = await oauth.memberAndClient();
    const signIn = await browser.view(oauth.request(clientId, { ui_locales: 'it de' }).url);
    expect(signIn.html).toContain('<h1>Anmelden</h1>');
    const refused = await browser.press(signIn, { username, password: 'wrong' });
    expect(refused.html).toContain('Der Benutzername oder das Passwort stimmt nicht.');
    const consent = await browser.press(refused, { username, password: PASSWORD });
    expect(consent.html).toContain('Zugriff auf dein Konto geben?');
    const wrong = oauth.request(clientId, { ui_locales: 'de', redirect_uri: 'https://other.example/' }).url;
    expect((await oauth.browser().view(wrong)).html).toContain(
      'Wir können dich nicht zu dieser App zurückleiten',
    );
  });

  it('are in the language that the member chose in a page’s footer, regardless of the app’s language', async () => {
    const browser = oauth.browser();
    const signIn = await browser.view('/account/apps?other=1');
    expect(signIn.html).toContain('href="?other=1&amp;ui_locales=fr" lang="fr" hreflang="fr">Français</a>');
    const chosen = await browser.view('/account/apps?other=1&ui_locales=fr');
    expect([chosen.url.pathname, chosen.url.search]).toEqual(['/account/apps', '?other=1']);
    expect(chosen.html).toContain('<h1>Se connecter</h1>');
    const url = oauth.request(await oauth.client(), { ui_locales: 'de' }).url;
    expect((await browser.view(url)).html).toContain('<h1>Se connecter</h1>');
    // GET of a form's URL redirects to the page with the form.
    const above = await browser.view('/account/calendar/create?ui_locales=de');
    expect(above.url.pathname).toBe('/account/calendar');
    expect(above.html).toContain('<h1>Anmelden</h1>');
    expect((await browser.view('/account/apps?ui_locales=xx')).html).toContain('<h1>Anmelden</h1>');
    // A page whose URL has a `code` offers no language links, which would repeat the code.
    expect((await browser.view('/account/apps?other=1&code=x')).html).not.toContain('hreflang');
  });

  it('are in the language that the member chooses during a sign-in, even after a rejected form', async () => {
    const browser = oauth.browser();
    const { username } = await oauth.member();
    const choose = async (page: FormPage, language: string) => {
      expect(page.html).toContain(`href="?ui_locales=${language}"`);
      return await browser.view(new URL(`?ui_locales=${language}`, page.url));
    };
    const first = await browser.view(oauth.request(await oauth.client()).url);
    const french = await choose(first, 'fr');
    expect(french.url.pathname).toBe(first.url.pathname);
    expect(french.html).toContain('<h1>Se connecter</h1>');
    const german = await choose(await browser.press(french, { username, password: 'wrong' }), 'de');
    const consent = await browser.press(german, { username, password: PASSWORD });
    expect(consent.html).toContain('Zugriff auf dein Konto geben?');
    expect((await choose(consent, 'en')).html).toContain('It would be able to');
  });

  it('are in the language that the member chooses on an error or sign-out page, which keeps its URL', async () => {
    const browser = oauth.browser();
    const parameters = { ui_locales: 'de', redirect_uri: 'https://other.example/' };
    const app = oauth.request(await oauth.client(), parameters);
    const wrong = await browser.view(app.url);
    const french = await browser.press(wrong, { language: 'fr' }, /\/account\/language$/);
    expect(french.url.href).toBe(app.url.href);
    expect(french.html).toContain('<html lang="fr">');
    const { username } = await oauth.member();
    await browser.authorize(oauth.request(await oauth.client()).url, { username });
    const asked = await browser.view('/oauth/logout?state=%22%3E%3Cb%3E');
    expect(asked.html).toContain('<html lang="fr">');
    const english = await browser.press(asked, { language: 'en' }, /\/account\/language$/);
    expect([english.url.search, english.html]).toEqual([
      '?state=%22%3E%3Cb%3E',
      expect.stringContaining('You will be signed out of this browser'),
    ]);
  });

  const MANY = '&a'.repeat(100);
  it.each([
    ['a malformed request', `/oauth/authorize?ui_locales=de${MANY}`],
    ['a malformed sign-out', `/oauth/logout?ui_locales=de${MANY}`],
    ['a secret in the URL', '/oauth/authorize?client_secret=s&ui_locales=de'],
  ])(
    'are in the app’s or the browser’s language on the error page for %s, which offers no other language',
    async (_, address) => {
      for (const [path, accepted, language] of [
        [address, 'fr', 'de'],
        [address.replace('ui_locales=de', 'x=y'), 'fr', 'fr'],
      ] as const) {
        const headers = { Accept: 'text/html', 'Accept-Language': accepted };
        const response = await fetch(oauth.issuer + path, { headers });
        const html = await response.text();
        expect([response.status, response.headers.get('content-language')]).toEqual([400, language]);
        expect(html).toContain({ de: 'Das hat nicht geklappt', fr: 'Cela n’a pas fonctionné' }[language]);
        expect(html).not.toMatch(/hreflang|name="language"/);
      }
    },
  );

  itInOneWindow('are in the app’s or the browser’s language on the rate-limit page', async () => {
    await using limited = await OauthTest.start({ rateLimits: { read: 1, write: 1, auth: 1 } }, plain);
    const ask = (query: string) => {
      const headers = { Accept: 'text/html', 'Accept-Language': 'fr' };
      return fetch(`${limited.issuer}/oauth/authorize?${query}`, { headers });
    };
    let response: Response;
    do response = await ask('x=y');
    while (response.status !== 429);
    expect(await response.text()).toContain('<h1>Trop de requêtes</h1>');
    expect(await (await ask('ui_locales=de')).text()).toContain('<h1>Zu viele Anfragen</h1>');
  });

  it.each([
    ['https://evil.example/oauth/authorize?x', 'de'],
    ['//evil.example/oauth/authorize', 'de'],
    ['/\\evil.example/oauth/authorize', 'de'],
    ['/oauth/authorize/../../account/apps', 'de'],
    ['/oauth/authorize/abc', 'de'],
    ['/account/apps', 'de'],
    ['javascript:alert(1)', 'de'],
    ['', 'de'],
    ['/oauth/logout', 'xx'],
  ])('keep their language if a form is rejected for its path or language: %j, %s', async (to, language) => {
    const browser = oauth.browser();
    const page = await browser.view('/oauth/logout?x');
    const { status, headers } = await browser.post(page, '/account/language', { to, language });
    expect([status, headers.get('location'), headers.getSetCookie()]).toEqual([400, null, []]);
  });
});

describe('an app', () => {
  const CREATE = ['clients', 'create', '--name', 'Trailmix', '--type', 'web', '--redirect-uri', REDIRECT_URI];
  const create = (...more: string[]) => pua(plain.api.environment, [...CREATE, ...more]);

  it('has its logo and links on the consent page, and its logo on /account/apps', async () => {
    const [site, policy] = ['https://trailmix.example/', 'https://trailmix.example/privacy'];
    const links = ['--client-uri', site, '--policy-uri', policy];
    const { stdout } = await create(...links, '--logo-file', fileOf('client.png', PNG));
    const clientId = stdout.trim();
    const { username } = await plain.member();
    const browser = plain.browser();
    const consent = await browser.signIn(plain.request(clientId).url, username);
    const image = `/logos/client?client_id=${clientId}`;
    expect(consent.html).toContain(`<img class="tile" src="${image}"`);
    for (const link of [site, policy]) expect(consent.html).toContain(`<a href="${link}" target="_blank"`);
    await browser.allow(consent);
    expect((await browser.view('/account/apps')).html).toContain(`src="${image}"`);
    const response = await fetch(plain.issuer + image);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png']);
    expect(Buffer.from(await response.arrayBuffer()).equals(PNG)).toBe(true);
  });

  it('cannot be registered with an SVG logo, even if the file is named .png', async () => {
    const { code, stderr } = await create('--logo-file', fileOf('logo2.png', SVG));
    expect([code, stderr]).toEqual([1, expect.stringContaining('the logo must be a PNG, JPEG, WebP or GIF')]);
  });

  it('has no logo (404) if the URL’s client id is invalid, or if it was registered without a logo', async () => {
    const without = await plain.client();
    for (const query of [
      '',
      '?client_id=',
      '?client_id=%00',
      '?client_id=nobody',
      '?client_id=a&client_id=b',
      `?client_id=${without}`,
    ])
      expect([query, (await fetch(`${plain.issuer}/logos/client${query}`)).status]).toEqual([query, 404]);
  });
});
