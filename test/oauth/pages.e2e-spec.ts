import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { onwardTo } from '../../src/authorization-server/ports.js';
import { loadConfig } from '../../src/config/config.js';
import { Layout, SECURITY_HEADERS, writePalette } from '../../src/layout/layout.js';
import { PlatformLogo } from '../../src/member-pages/rendering/logos.controller.js';
import { Pages } from '../../src/member-pages/rendering/pages.js';
import type { Page as SamplePage } from '../../src/member-pages/rendering/page-contents.js';
import { chooseLanguage } from '../../src/member-pages/rendering/wording.js';
import { contrastOf } from '../../src/values/colors.js';
import { HEADLESS_SHELL, launchChromium } from '../support/chromium.js';
import { postgres } from '../support/database.js';
import { listen } from '../support/listen.js';
import {
  faultsOf,
  firstVisitOf,
  LARGE_TEXT,
  look,
  NOTICEABLE,
  overflowOf,
  shiftOf,
  unseenOf,
  VIEWS,
} from '../support/page-checks.js';
import { AUTOMATIC, HOSTILE, SAMPLES } from '../support/page-samples.js';
import { pathPattern } from '../../src/http/route-table.js';
import { QUESTIONS } from '../../src/member-pages/rendering/questions.js';

/** Pages of a platform with these settings. */
const pagesWith = (settings: Record<string, string> = {}) => {
  const config = loadConfig({ NODE_ENV: 'test', SECRET_KEY: process.env.TEST_SECRET_KEY, ...settings });
  return new Pages(config, new PlatformLogo(config), new Layout(config));
};
const pages = pagesWith();
const ICON = '<link rel="icon" href="/favicon.ico">\n';
/** The source of a script or style sheet in the page's Content-Security-Policy. */
const sourceOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const styleOf = (html: string) => /<style>([^]*?)<\/style>/.exec(html)![1]!;
const htmlOf = (page: SamplePage, of = pages, language = 'en') => of.render(page, language).html;

describe('a member page', () => {
  it.each(Object.keys(SAMPLES))(
    '%s: loads no foreign script or resource, and escapes hostile text',
    (name) => {
      let html = htmlOf(SAMPLES[name]!).replaceAll('src="/logos/client?client_id=trailmix"', '');
      expect(html).toContain('<html lang="en">');
      // This server's scripts, identified by their hashes.
      const { headers } = pages.render(SAMPLES[name]!, 'en');
      const own = Array.from(html.matchAll(/<script>([^]*?)<\/script>/g), ([, text]) => sourceOf(text!));
      const allowed = /script-src ([^;]+)/.exec(headers['Content-Security-Policy']!)?.[1]!.split(' ') ?? [];
      expect(new Set(allowed)).toEqual(new Set(own));
      html = html
        .replace(/<script>[^]*?<\/script>/g, '')
        .replace(ICON, '')
        .replace(/<style>[^]*?<\/style>/, '');
      expect(html).not.toMatch(/<(script|style|iframe|link|object|embed|base)\b/i);
      expect(html).not.toMatch(/\s(on\w+|style|src)=(?!https:\/\/evil|&#39;)/i);
      expect(html).not.toContain('\u202e');
      expect(html).not.toContain('W'.repeat(400));
    },
  );

  it.each(['https://help.example/?a=1&b=2', 'mailto:help@platform.example'])(
    'links to the platform’s support, and asks for the error id on an error page: %s',
    (supportUrl) => {
      const supported = pagesWith({ SUPPORT_URL: supportUrl });
      const link = `<a href="${supportUrl.replace('&', '&amp;')}">`;
      for (const sample of Object.values(SAMPLES))
        expect(htmlOf(sample, supported)).toContain(`<footer>${link}Help</a></footer>`);
      expect(htmlOf(SAMPLES.error!, supported)).toContain(
        `If you ${link}ask for help</a>, give this error id:`,
      );
      for (const sample of Object.values(SAMPLES)) expect(htmlOf(sample)).not.toContain('<footer>');
    },
  );

  it('shows the platform’s name, color and links', () => {
    const own = pagesWith({
      PLATFORM_NAME: 'Gipfel <&> Tal',
      PLATFORM_COLOR: '#7a0019',
      PRIVACY_URL: 'https://gipfel.example/privacy',
      SIGN_UP_URL: 'https://gipfel.example/join',
      PASSWORD_RESET_URL: 'https://gipfel.example/reset',
    });
    for (const sample of Object.values(SAMPLES)) {
      const html = htmlOf(sample, own);
      expect(html).toContain('<bdi>Gipfel &lt;&amp;&gt; Tal</bdi></p>');
      expect(html).toMatch(/<title>[^<]* · Gipfel &lt;&amp;&gt; Tal<\/title>/);
      expect(html).toContain('<footer><a href="https://gipfel.example/privacy">Privacy</a></footer>');
      expect(styleOf(html)).toContain('--accent:#7a0019');
    }
    const signIn = htmlOf(SAMPLES['sign-in']!, own);
    expect(signIn).toContain('href="https://gipfel.example/join">Create one</a>');
    expect(signIn).toContain('href="https://gipfel.example/reset">Forgot your password?</a>');
    expect(htmlOf(SAMPLES['sign-in']!)).not.toMatch(/Create one|Forgot your password/);
  });

  it.each(['#7a0019', '#767676', '#d6336c', '#0000ff', '#000000'])(
    'has a contrast of at least 4.5 with the platform’s color, light and dark: %s',
    (color) => {
      const palettes = [
        ...writePalette(color).matchAll(
          /--accent:(#\w+);--accent-strong:(#\w+);--on-accent:(#\w+);--tint:(#\w+)/g,
        ),
      ];
      expect(palettes).toHaveLength(2);
      for (const [index, [, accent, strong, on, tint]] of palettes.entries()) {
        const grounds = index === 0 ? ['#ffffff', '#f2f4f8'] : ['#171b23', '#0e1117'];
        for (const [text, ground] of [
          ...grounds.flatMap((ground) => [
            [accent, ground],
            [strong, ground],
          ]),
          [on, accent],
          [on, strong],
          [strong, tint],
        ])
          expect(contrastOf(text!, ground!)).toBeGreaterThanOrEqual(4.5);
      }
    },
  );

  it.each(Object.keys(SAMPLES))(
    '%s: contains no common English words in German, and declares its language',
    (name) => {
      const { html, headers } = pages.render(SAMPLES[name]!, 'de');
      expect(html).toContain('<html lang="de">');
      expect(headers).toMatchObject({ 'Content-Language': 'de', Vary: 'Accept-Language, Cookie' });
      const words = html.replace(/<(script|style)>[^]*?<\/\1>/g, '');
      expect(words).not.toMatch(/\b(Sign|You|your|the|access|undefined)\b|\{\w+\}|\[object/);
    },
  );

  it('for consent marks scopes that allow changes, and states how long access lasts', () => {
    const consent = htmlOf(SAMPLES.consent!);
    const label = (scope: string) => new RegExp(`value="${scope}"[^]*?</label>`).exec(consent)![0];
    expect(label('profile:write')).toContain('Can change data');
    expect(label('profile:read')).not.toContain('Can change data');
    expect(consent).toContain('Access also ends after 30 days without use.');
    expect(htmlOf(SAMPLES['consent to a native app']!)).toContain('value="180" checked><span>180 days<');
  });

  it('shows an app’s image from this server, and opens the app’s pages in another tab', () => {
    const { html, headers } = pages.render(SAMPLES['consent to a described app']!, 'en');
    expect(html).toContain('<img class="tile" src="/logos/client?client_id=trailmix" alt=""');
    expect(headers['Content-Security-Policy']).toContain("; img-src 'self'; ");
    for (const page of ['https://trailmix.example/', 'https://trailmix.example/privacy'])
      expect(html).toContain(`<a href="${page}" target="_blank" rel="noopener noreferrer">`);
  });

  it('has the CSS classes by which programs find the sign-in and cancel buttons', () => {
    const html = htmlOf(SAMPLES['sign-in']!);
    expect(html).toMatch(/<button class="[^"]*\bbutton-go\b[^"]*" type="submit">/);
    expect(html).toMatch(
      /<form class="below" [^>]*\/cancel">\s*<input [^>]*>\s*<button class="[^"]*\blink\b/,
    );
  });

  it('has security headers that allow only its own style sheet, and this server’s images and forms', () => {
    const { html, headers } = pages.render(SAMPLES['sign-in']!, 'en');
    expect(headers).toEqual({
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Language': 'en',
      Vary: 'Accept-Language, Cookie',
      'Content-Security-Policy': `default-src 'none'; style-src ${sourceOf(styleOf(html))}; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
      'X-Frame-Options': 'DENY',
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
    });
    expect(SECURITY_HEADERS['Content-Security-Policy']).toBe(
      "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    );
  });

  it('allows only the passkey script, by its hash, to call this server', () => {
    for (const name of ['sign-in with a passkey', 'sign-in with a passkey alone', 'security']) {
      const { html, headers } = pages.render(SAMPLES[name]!, 'en');
      const [, script] = /<script>([^]*?)<\/script>/.exec(html)!;
      expect(headers['Content-Security-Policy']).toContain(
        `; script-src ${sourceOf(script!)}; connect-src 'self'; `,
      );
    }
    for (const name of ['sign-in', 'security without a fresh sign-in', 'security with nothing to change'])
      expect(pages.render(SAMPLES[name]!, 'en').headers['Content-Security-Policy']).not.toMatch(
        /script|connect/,
      );
  });

  it('allows forms and their redirects only to this server, except form_post responses', () => {
    for (const [name, sample] of Object.entries(SAMPLES)) {
      const { headers } = pages.render(sample, 'en');
      const [policy] = /form-action [^;]*/.exec(headers['Content-Security-Policy']!) ?? [];
      expect([name, policy]).toEqual([
        name,
        sample.name === 'onward' && sample.form ? undefined : "form-action 'self'",
      ]);
    }
  });
});

describe('an irreversible action', () => {
  it.each(Object.keys(QUESTIONS))('%s: is sent only by the button below its question', (route) => {
    const sent = new RegExp(` action="${pathPattern(route).source.slice(1, -1)}"`);
    const html = Object.values(SAMPLES).map((sample) => pages.render(sample, 'en').html);
    expect(html.filter((page) => sent.test(page)).length).toBeGreaterThan(0);
    const unasked = html.map((page) => page.replaceAll(/<details class="ask"[^]*?<\/details>/g, ''));
    expect(unasked.filter((page) => sent.test(page))).toEqual([]);
  });

  it('has a distinct question in every language', () => {
    const asked = pages.languages.flatMap((language) =>
      Object.values(SAMPLES).flatMap((sample) => {
        const { html } = pages.render(sample, language);
        return [...html.matchAll(/<details class="ask"[^]*?<p>([^<]+)<\/p>/g)].map(([, text]) => text!);
      }),
    );
    expect(new Set(asked).size).toBe(pages.languages.length * new Set(Object.values(QUESTIONS)).size);
  });
});

/** Controls that show a page in another language: forms on the authorization server's pages, links on all others. */
function languagesAt({ name }: SamplePage) {
  if (name === 'onward') return undefined;
  const isItsOwn = ['error', 'sign-out', 'signed-out'].includes(name);
  return isItsOwn ? { to: '/oauth/authorize?client_id=trailmix', csrf: 'token' } : new URLSearchParams();
}

/** The narrowest window without scrolling in two directions (WCAG 2.2, 1.4.10). */
const SMALLEST = { width: 320, colorScheme: 'dark' } as const;

const SHOWN = Object.keys(SAMPLES).filter((name) => !(AUTOMATIC as readonly string[]).includes(name));

postgres.describe('in Chromium', () => {
  let browser: Browser;
  let site: Server;
  let client: Server;
  let siteUrl: string;
  let clientUrl: string;
  /** Forms that were posted to the site, newest last. */
  let posts: { path: string; form: URLSearchParams; origin: string | undefined }[] = [];
  let redirectTo = '';
  /** A browser context that stays open between tests. */
  let lasting: BrowserContext | undefined;

  beforeAll(async () => {
    site = createServer((request, response) => void answer(request, response));
    client = createServer((_, response) => response.end('back at the client'));
    siteUrl = await listen(site);
    clientUrl = await listen(client);
    browser = await launchChromium(HEADLESS_SHELL);
  });
  afterAll(async () => {
    await browser.close();
    site.close();
    client.close();
  });
  afterEach(async () => {
    for (const context of browser.contexts()) if (context !== lasting) await context.close();
    posts = [];
  });

  /** Serves the samples by name. Stores each posted form, and redirects to the client as this server does. */
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(request.url!.slice(1));
    if (request.method === 'POST') {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      posts.push({ path: `/${path}`, form: new URLSearchParams(body), origin: request.headers.origin });
      const { html, headers } = pages.render(onwardTo(redirectTo), 'en');
      response.writeHead(200, headers).end(html);
      return;
    }
    if (path.startsWith('logos/') || path === 'favicon.ico') {
      response
        .writeHead(200, { 'Content-Type': 'image/svg+xml' })
        .end('<svg xmlns="http://www.w3.org/2000/svg"/>');
      return;
    }
    const [name = '', asked] = path.split('#');
    const language = chooseLanguage(asked, request.headers);
    const sample = SAMPLES[name];
    if (!sample) {
      response.writeHead(404).end();
      return;
    }
    const { html, headers } = pages.render(sample, language, languagesAt(sample));
    response.writeHead(200, headers).end(html);
  }

  async function open(name: string, options: BrowserContextOptions = {}) {
    const page = await (await browser.newContext(options)).newPage();
    // No server behind these pages can send passkey options to the script.
    await page.addInitScript('delete PublicKeyCredential.isConditionalMediationAvailable');
    const complaints: string[] = [];
    const requests: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(`${siteUrl}/${encodeURIComponent(name)}`);
    return { page, complaints, requests };
  }

  // One page shows all samples in all appearances: opening another page takes longer than checking it.
  describe('a page', () => {
    let page: Page;
    let complaints: string[];
    let requests: string[];
    beforeAll(async () => {
      ({ page, complaints, requests } = await open(SHOWN[0]!));
      lasting = page.context();
    });
    afterAll(() => page.context().close());

    const visit = async (name: string, language = 'en') => {
      await look(page, { width: 390 });
      complaints.length = requests.length = 0;
      await page.goto(`${siteUrl}/${encodeURIComponent(`${name}#${language}`)}`);
    };

    it.each(SHOWN)(
      '%s is accessible in three views, fits with large text, has targets of at least 44 × 44 px on a phone, does not shift noticeably, and loads only logos',
      async (name) => {
        await visit(name);
        expect(await shiftOf(page)).toBeLessThan(NOTICEABLE); // a busy host paints while the page arrives
        expect(await unseenOf(page)).toEqual([]);
        await askEverything(page);
        const switches = await page.locator('footer').getByRole('navigation', { name: 'Language' }).count();
        expect(switches).toBe(languagesAt(SAMPLES[name]!) ? 1 : 0);
        expect(await page.evaluate(smallTargets)).toEqual([]);
        for (const view of VIEWS) {
          await look(page, view);
          expect([view, await overflowOf(page), await faultsOf(page)]).toEqual([view, [], []]);
        }
        for (const view of [SMALLEST, ...LARGE_TEXT]) {
          await look(page, view);
          expect([view, await overflowOf(page)]).toEqual([view, []]);
        }
        expect(complaints).toEqual([]);
        expect(requests.every((url) => url.startsWith(`${siteUrl}/`))).toBe(true);
        expect(requests.slice(1).filter((url) => !url.startsWith(`${siteUrl}/logos/`))).toEqual([]);
      },
    );

    it.each(['de', 'fr'])('fits a small window and large text in another language: %s', async (language) => {
      for (const name of SHOWN) {
        await visit(name, language);
        await askEverything(page);
        for (const view of [SMALLEST, { width: 768, text: 200 }]) {
          await look(page, view);
          expect([name, view, await overflowOf(page)]).toEqual([name, view, []]);
        }
      }
    });
  });

  it.each(['Allow', 'Deny'])(
    'the consent page’s button %s redirects to a client on another origin, without JavaScript',
    async (button) => {
      redirectTo = `${clientUrl}/callback`;
      const { page } = await open('consent', { javaScriptEnabled: false });
      await page.getByLabel('See your achievements and your progress').uncheck();
      await page.getByRole('button', { name: button }).click();
      await page.waitForURL(`${clientUrl}/callback`);
      const [{ path, form, origin }] = posts as [(typeof posts)[0]];
      expect(path).toBe('/interaction/u/consent');
      expect(form.getAll('scope')).toEqual(['profile:read', 'profile:write', 'events:read']);
      expect(form.get('decision')).toBe(button.toLowerCase());
      expect(form.get('csrf')).toBe('token');
      expect(origin).toBe('null');
    },
  );

  it.each([
    ['by itself', AUTOMATIC[1], true],
    ['by its button, without JavaScript', AUTOMATIC[1], false],
    ['by its button, for an app that the member does not know', 'a response in a form', true],
  ])('a form_post response reaches an app on another origin: %s', async (_, name, javaScriptEnabled) => {
    const page = await (await browser.newContext({ javaScriptEnabled })).newPage();
    await page.route('https://app.trailmix.example/**', (route) =>
      route.fulfill({ body: 'back at the app' }),
    );
    const sent = page.waitForRequest('https://app.trailmix.example/callback');
    await page.goto(`${siteUrl}/${encodeURIComponent(name)}`, { waitUntil: 'commit' });
    if (name !== AUTOMATIC[1] || !javaScriptEnabled) await page.getByRole('button').click();
    const request = await sent;
    expect(request.method()).toBe('POST');
    expect(new URLSearchParams(request.postData()!).get('code')).toBe('c');
    await page.waitForURL('https://app.trailmix.example/callback');
  });

  it('the consent page redirects to a native app that listens on the IPv6 loopback', async () => {
    const app = createServer((_, response) => response.end('back at the app'));
    const appUrl = await listen(app, '::1');
    redirectTo = `${appUrl}/callback`;
    const { page } = await open('consent to a native app', { javaScriptEnabled: false });
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`${appUrl}/callback`);
    expect(await page.content()).toContain('back at the app');
    app.close();
  });

  it('the button “Not you?” of the consent page posts to /switch-user, and the browser shows the sign-in', async () => {
    redirectTo = '/sign-in';
    const { page } = await open('consent', { javaScriptEnabled: false });
    await page.getByRole('button', { name: 'Not you?' }).click();
    await page.waitForURL(`${siteUrl}/sign-in`);
    expect(posts.map(({ path, form }) => [path, form.toString()])).toEqual([
      ['/interaction/u/switch-user', 'csrf=token'],
    ]);
  });

  it('Enter in the list of scopes denies the request', async () => {
    redirectTo = `${clientUrl}/callback`;
    const { page } = await open('consent', { javaScriptEnabled: false });
    await page.getByLabel('Change your name, bio and picture').press('Enter');
    await page.waitForURL(`${clientUrl}/callback`);
    expect(posts[0]!.form.get('decision')).toBe('deny');
  });

  it('a rejected sign-in keeps the username, focuses the password field, marks it as invalid, and shows the error', async () => {
    const { page } = await open('sign-in refused');
    const password = page.getByLabel('Password');
    expect(await password.evaluate((field) => field === document.activeElement)).toBe(true);
    expect(await password.evaluate((field: HTMLInputElement) => field.ariaInvalid)).toBe('true');
    expect(await page.getByLabel('Username').inputValue()).toBe('ada');
    expect(await page.getByRole('alert').textContent()).toContain('The username or password is wrong.');
    expect(await page.title()).toMatch(/^Error: /);
  });

  it('the external identity provider’s button reads “Continue with Example”', async () => {
    const { page } = await open('sign-in with the platform’s own login');
    const link = page.getByRole('link', { name: 'Continue with Example' });
    expect(await link.innerText()).toBe('Continue with Example');
  });

  it('the error page keeps at least 16 px between the error id and the next action', async () => {
    const { page: refused } = await open('error of an unknown person');
    const id = (await refused.locator('.error-id').boundingBox())!;
    const next = (await refused.getByRole('link', { name: 'Use another account' }).boundingBox())!;
    expect(next.y - (id.y + id.height)).toBeGreaterThanOrEqual(16);
  });

  it('the usage chart has a pattern per app, and its values in a table that opens with the keyboard', async () => {
    const { page } = await open('activity', { javaScriptEnabled: false });
    const fills = await page
      .locator('pattern path')
      .evaluateAll((all) => all.map((path) => path.getAttribute('d')));
    expect([fills.length, new Set(fills).size]).toEqual([6, 6]);
    expect((await page.locator('.chart li').allInnerTexts()).map((text) => text.trim())).toEqual(
      expect.arrayContaining(['Trailmix 987', 'Removed app 120']),
    );
    const labels = ['60', '30', '0', '23 Aug', '22 Sept', '21 Oct', '20 Nov'];
    expect(await page.locator('.plot text').allTextContents()).toEqual(labels);
    const row = page.locator('.chart tbody tr').last();
    expect(await row.isVisible()).toBe(false);
    await page.getByText('Values as a table').focus();
    await page.keyboard.press('Enter');
    expect(await row.innerText()).toMatch(/^20 November 2026\s+2\s+3\s+0\s+4\s+0\s+1$/);
  });

  it.each(['sign-in', 'consent', 'connected apps', 'developer', 'activity', 'requests', 'hostile apps'])(
    'the page %s waits for no other resource at the first visit on slow 3G, and does not shift noticeably',
    async (name) => {
      const { blocking, shifts } = await firstVisitOf(browser, `${siteUrl}/${encodeURIComponent(name)}`);
      expect(blocking).toEqual([]);
      expect(Math.max(...shifts)).toBeLessThan(NOTICEABLE);
    },
  );

  it.each(['activity', 'hostile activity', 'requests', 'hostile requests'])(
    'the tables of the page %s fit a phone without horizontal scrolling, and stay tables for screen readers',
    async (sample) => {
      const { page } = await open(sample, { viewport: { width: 320, height: 640 } });
      for (const table of await page.locator('.records').all()) {
        expect(await table.evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
        const heads = await table.getByRole('columnheader').allTextContents();
        const [first] = await table
          .getByRole('row')
          .filter({ has: page.getByRole('cell') })
          .all();
        const labels = await first!
          .getByRole('cell')
          .evaluateAll((cells) => cells.map((cell) => cell.dataset.label));
        expect([heads.length > 3, labels]).toEqual([true, heads]);
      }
    },
  );

  it('a hostile name is shown as short plain text', async () => {
    const { page } = await open('hostile consent');
    const heading = await page.getByRole('heading', { level: 1 }).textContent();
    expect(heading).toMatch(/^Allow "><script>alert\(1\)<\/script><img src=https:\/\/evil\.example\/x …/);
    expect(heading!.length).toBeLessThan(100);
    expect(HOSTILE.length).toBeGreaterThan(500);
  });

  /** Opens the question below the button, cancels it, and opens it again to confirm. */
  const ask = async (page: Page, name: string) => {
    const button = page.getByRole('button', { name });
    const question = page.locator('details.ask').filter({ hasText: name });
    for (const isOpen of [true, false, true]) {
      await question.locator('summary').click();
      expect([name, await button.isVisible()]).toEqual([name, isOpen]);
    }
    expect(await question.locator('summary').innerText()).toBe('Cancel');
    await button.click();
  };

  it('buttons name the sessions and the app access that they end', async () => {
    redirectTo = '/sessions';
    const { page } = await open('sessions', { javaScriptEnabled: false });
    /** The form's response redirects: the next navigation must not interrupt the redirect. */
    const askAndReturn = (name: string) =>
      Promise.all([
        page.waitForEvent('load', { predicate: () => page.url() === siteUrl + redirectTo }),
        ask(page, name),
      ]);
    await askAndReturn('Sign out of Safari on iPhone');
    await askAndReturn('Sign out of all others');
    redirectTo = `/${encodeURIComponent('connected apps')}`;
    await page.goto(siteUrl + redirectTo);
    await askAndReturn('Revoke access of Pocket Calendar');
    expect(posts.map(({ path, form }) => [path, form.toString()])).toEqual([
      ['/account/sessions/b/end', 'csrf=token'],
      ['/account/sessions/end-others', 'csrf=token'],
      ['/account/apps/revoke', 'csrf=token&client_id=b'],
    ]);
  });
});

/** The links, buttons and fields smaller than 44 × 44 px. */
function smallTargets(): string[] {
  const targets = document.querySelectorAll(
    'a, button, summary, label:has(input), input:not([type=hidden], [aria-hidden]):not(label input)',
  );
  return [...targets].flatMap((target) => {
    const { width, height } = target.getBoundingClientRect();
    return width < 44 || height < 44 ? [`${target.textContent}: ${width} × ${height}`] : [];
  });
}

/** Opens all questions of the page at once, although members see one at a time. */
async function askEverything(page: Page): Promise<void> {
  await page.evaluate(() => {
    for (const question of document.querySelectorAll<HTMLDetailsElement>('details.ask')) {
      question.removeAttribute('name');
      question.open = true;
    }
  });
}
