import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { loadConfig } from '../../src/config/config.js';
import { Pages, SECURITY_HEADERS } from '../../src/oauth/pages/pages.js';
import { launchChromium } from '../support/chromium.js';
import { postgres } from '../support/database.js';
import { HOSTILE, SAMPLES } from '../support/page-samples.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** @param supportUrl where members ask for help */
const pagesWith = (supportUrl?: string) =>
  new Pages(
    loadConfig({
      NODE_ENV: 'test',
      SECRET_KEY: process.env.TEST_SECRET_KEY,
      ...(supportUrl === undefined ? {} : { SUPPORT_URL: supportUrl }),
    }),
  );
const pages = pagesWith();

describe('What every page is sent with', () => {
  it.each(Object.keys(SAMPLES))(
    '%s: no script, nothing from elsewhere, every hostile text escaped',
    (name) => {
      const { html } = pages.render(SAMPLES[name]!);
      expect(html).toContain('<html lang="en">');
      expect(html).not.toMatch(/<(script|img|iframe|link|object|embed|base)\b/i);
      expect(html).not.toMatch(/\s(on\w+|style|src)=(?!https:\/\/evil|&#39;)/i);
      expect(html).not.toContain('\u202e');
      expect(html).not.toContain('W'.repeat(400));
    },
  );

  it.each(['https://help.example/?a=1&b=2', 'mailto:help@platform.example'])(
    'leads to where members ask for help, on an error with the error id: %s',
    (supportUrl) => {
      const supported = pagesWith(supportUrl);
      const link = `<a href="${supportUrl.replace('&', '&amp;')}">`;
      for (const sample of Object.values(SAMPLES))
        expect(supported.render(sample).html).toContain(`<footer>${link}Help</a></footer>`);
      expect(supported.render(SAMPLES.error!).html).toContain(
        `If you ${link}ask for help</a>, give this error id:`,
      );
      for (const sample of Object.values(SAMPLES))
        expect(pages.render(sample).html).not.toContain('<footer>');
    },
  );

  it('forbids everything that pages do not need', () => {
    const { headers } = pages.render(SAMPLES['sign-in']!);
    expect(headers).toEqual({
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
      ),
      'X-Frame-Options': 'DENY',
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
    });
    expect(SECURITY_HEADERS['Content-Security-Policy']).toBe(
      "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    );
  });

  it("lets forms lead to the client's origin or scheme, and to nothing that could widen the policy", () => {
    const formAction = (...targets: string[]) =>
      pages
        .render(SAMPLES.consent!, targets)
        .headers['Content-Security-Policy']!.split('; ')
        .find((directive) => directive.startsWith('form-action'));
    expect(formAction('https://app.example', 'com.example.app:')).toBe(
      "form-action 'self' https://app.example com.example.app:",
    );
    expect(formAction('http://127.0.0.1:8123')).toBe("form-action 'self' http://127.0.0.1:8123");
    expect(formAction('http://[::1]:8123')).toBe("form-action 'self' http://*:8123");
    for (const target of [
      '*',
      'https:',
      'http:',
      'data:',
      'javascript:',
      "https://a.example; script-src 'unsafe-inline'",
      'https://a.example\r\nX: y',
      'https://*.example',
      'https://a.example/path',
      '',
    ])
      expect(formAction(target)).toBe("form-action 'self'");
  });
});

postgres.describe('In Chromium', () => {
  let browser: Browser;
  let site: Server;
  let client: Server;
  let siteUrl: string;
  let clientUrl: string;
  /** Forms that were posted to the site, newest last. */
  let posts: { path: string; form: URLSearchParams; origin: string | undefined }[] = [];
  let formTargets: string[] = [];
  let redirectTo = '';

  beforeAll(async () => {
    site = createServer((request, response) => void answer(request, response));
    client = createServer((_, response) => response.end('back at the client'));
    siteUrl = await listen(site);
    clientUrl = await listen(client);
    browser = await launchChromium();
  }, 60_000);
  afterAll(async () => {
    await browser.close();
    site.close();
    client.close();
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
    posts = [];
    formTargets = [];
  });

  /** The samples by name; a posted form is kept, and answered with a redirect to the client. */
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(request.url!.slice(1));
    if (request.method === 'POST') {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      posts.push({ path: `/${path}`, form: new URLSearchParams(body), origin: request.headers.origin });
      response.writeHead(303, { ...SECURITY_HEADERS, Location: redirectTo }).end();
      return;
    }
    const sample = SAMPLES[path];
    if (!sample) {
      response.writeHead(404).end();
      return;
    }
    const { html, headers } = pages.render(sample, formTargets);
    response.writeHead(200, headers).end(html);
  }

  async function open(name: string, options: BrowserContextOptions = {}) {
    const page = await (await browser.newContext(options)).newPage();
    const complaints: string[] = [];
    const requests: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(`${siteUrl}/${encodeURIComponent(name)}`);
    return { page, complaints, requests };
  }

  describe.each([
    ['on a desktop in light', { viewport: { width: 1100, height: 800 }, colorScheme: 'light' }],
    ['on a small phone in the dark', { viewport: { width: 320, height: 640 }, colorScheme: 'dark' }],
  ] as const)('%s', (_, options) => {
    it.each(Object.keys(SAMPLES))('%s is accessible, fits, and loads nothing else', async (name) => {
      const { page, complaints, requests } = await open(name, options);
      const { violations, passes } = await check(page);
      const findings = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      expect(findings.map(describeFinding)).toEqual([]);
      expect(passes.map(({ id }) => id)).toContain('color-contrast');
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(overflow).toBeLessThanOrEqual(0);
      expect(complaints).toEqual([]);
      expect(requests).toHaveLength(1);
    });
  });

  it.each(Object.keys(SAMPLES))('%s: a finger hits everything on a phone', async (name) => {
    const { page } = await open(name, { viewport: { width: 390, height: 844 } });
    const targets = page.locator('a, button, label:has(input), input:not([type=hidden]):not(label input)');
    const small: string[] = [];
    for (const target of await targets.all()) {
      const box = await target.boundingBox();
      if (!box || box.width < 44 || box.height < 44)
        small.push(`${await target.textContent()}: ${box?.width} × ${box?.height}`);
    }
    expect(small).toEqual([]);
  });

  it.each(['Allow', 'Deny'])('%s leads to a client on another origin, without JavaScript', async (button) => {
    formTargets = [clientUrl];
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
  });

  it('leads to a native app that listens on the IPv6 loopback', async () => {
    const app = createServer((_, response) => response.end('back at the app'));
    await new Promise<void>((resolve) => app.listen(0, '::1', resolve));
    const appUrl = `http://[::1]:${(app.address() as AddressInfo).port}`;
    formTargets = [appUrl];
    redirectTo = `${appUrl}/callback`;
    const { page } = await open('consent to a native app', { javaScriptEnabled: false });
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`${appUrl}/callback`);
    expect(await page.content()).toContain('back at the app');
    app.close();
  });

  it('leads nowhere that the page was not made for', async () => {
    redirectTo = `${clientUrl}/callback`;
    const { page, complaints } = await open('consent');
    const complaint = page.waitForEvent('console');
    await page.getByRole('button', { name: 'Allow' }).click();
    await complaint;
    expect(complaints.join()).toContain('form-action');
    expect(page.url()).not.toContain(clientUrl);
  });

  it('lets somebody else sign in', async () => {
    redirectTo = '/sign-in';
    const { page } = await open('consent', { javaScriptEnabled: false });
    await page.getByRole('button', { name: 'Not you?' }).click();
    await page.waitForURL(`${siteUrl}/sign-in`);
    expect(posts.map(({ path, form }) => [path, form.toString()])).toEqual([
      ['/interaction/u/switch', 'csrf=token'],
    ]);
  });

  it('denies where Enter is pressed in the list of scopes', async () => {
    formTargets = [clientUrl];
    redirectTo = `${clientUrl}/callback`;
    const { page } = await open('consent', { javaScriptEnabled: false });
    await page.getByLabel('Change your name, bio and picture').press('Enter');
    await page.waitForURL(`${clientUrl}/callback`);
    expect(posts[0]!.form.get('decision')).toBe('deny');
  });

  it('signs in with the keyboard alone', async () => {
    formTargets = [clientUrl];
    redirectTo = `${clientUrl}/callback`;
    const { page } = await open('sign-in', { javaScriptEnabled: false });
    await page.locator('[name=username]:focus').waitFor(); // the browser puts the cursor there once it has drawn
    await page.keyboard.type('ada');
    await page.keyboard.press('Tab');
    await page.keyboard.type('secret');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${clientUrl}/callback`);
    expect(posts[0]!.form.toString()).toBe('csrf=token&username=ada&password=secret');
  });

  it('puts the cursor where the mend is, and says the fault with the field', async () => {
    const { page } = await open('sign-in refused');
    const password = page.getByLabel('Password');
    expect(await password.evaluate((field) => field === document.activeElement)).toBe(true);
    expect(await password.evaluate((field: HTMLInputElement) => field.ariaInvalid)).toBe('true');
    const said = await page.getByRole('alert').textContent();
    expect(said).toContain('The username or the password is not right.');
    expect(await page.title()).toMatch(/^Error: /);
  });

  it('shows a hostile name as text, and short', async () => {
    const { page } = await open('hostile consent');
    const heading = await page.getByRole('heading', { level: 1 }).textContent();
    expect(heading).toMatch(/^Allow "><script>alert\(1\)<\/script><img src=https:\/\/evil\.example\/x …/);
    expect(heading!.length).toBeLessThan(100);
    expect(HOSTILE.length).toBeGreaterThan(500);
  });

  it('ends one session or all others, and cuts one app off, each by a button that says which', async () => {
    redirectTo = '/sessions';
    const { page } = await open('sessions', { javaScriptEnabled: false });
    await page.getByRole('button', { name: 'End the session of Safari on iPhone' }).click();
    await page.getByRole('button', { name: 'End all others' }).click();
    redirectTo = `/${encodeURIComponent('connected apps')}`;
    await page.goto(siteUrl + redirectTo);
    await page.getByRole('button', { name: 'Cut off Pocket Calendar' }).click();
    expect(posts.map(({ path, form }) => [path, form.toString()])).toEqual([
      ['/account/sessions/b/end', 'csrf=token'],
      ['/account/sessions/end-others', 'csrf=token'],
      ['/account/apps/b/disconnect', 'csrf=token'],
    ]);
  });
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Through the debugger, past the page's policy: axe is not the page's. */
async function check(page: Page): Promise<AxeResults> {
  await page.evaluate(AXE);
  return page.evaluate("axe.run({ resultTypes: ['violations'] })");
}

function describeFinding({ id, nodes }: AxeResults['violations'][number]): string {
  return `${id}: ${nodes.map(({ html, failureSummary }) => `${html}\n${failureSummary}`).join('\n')}`;
}
