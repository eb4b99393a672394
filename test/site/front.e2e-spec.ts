import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { crc32, inflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Config } from '../../src/config/config.js';
import { PlatformLogo } from '../../src/member-pages/rendering/logos.controller.js';
import { thorough } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';

const TINY_PNG =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Size, and the first and last colors, of an indexed PNG with valid checksums. */
function pixelsOf(png: Buffer) {
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    const chunk = png.subarray(at + 4, at + 8 + length);
    expect(png.readUInt32BE(at + 8 + length)).toBe(crc32(chunk));
    chunks.set(chunk.toString('latin1', 0, 4), chunk.subarray(4));
    at += 12 + length;
  }
  const [header, palette] = [chunks.get('IHDR')!, chunks.get('PLTE')!];
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const row = 1 + Math.ceil(width / 2);
  expect(inflateSync(chunks.get('IDAT')!)).toHaveLength(row * height);
  return {
    size: [width, height],
    colors: [palette.subarray(0, 3), palette.subarray(-3)].map((color) => `#${color.toString('hex')}`),
  };
}

const HTML = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

describe('an anonymous visitor finds', () => {
  let oauth: OauthTest;
  beforeAll(
    async () =>
      void (oauth = await OauthTest.start({
        seedDemo: true,
        passwordResetUrl: 'https://platform.example/new-password',
        securityContact: 'mailto:security@platform.example',
      })),
  );
  afterAll(() => oauth.close());

  /** Another server over the same database. */
  const beside = async (settings: Partial<Config>, look: (other: OauthTest) => Promise<void>) => {
    const other = await OauthTest.start(settings, oauth);
    await look(other).finally(() => other.close());
  };

  const get = (path: string, headers: Record<string, string> = HTML, method = 'GET') =>
    fetch(oauth.issuer + path, { method, headers, redirect: 'manual' });

  it('on the start page: the purpose, a first request with its response, and links to the docs, demo and account', async () => {
    const response = await get('/');
    expect(response.status).toBe(200);
    const html = await response.text();
    expect(html).toContain('<h1>A member’s own data, for other software</h1>');
    const text = html
      .replaceAll(/<[^>]+>/g, '')
      .replaceAll('&quot;', '"')
      .replaceAll('&#39;', "'");
    expect(text).toContain(`curl -H "X-API-Key: $API_KEY" \\\n  '${oauth.issuer}/api/public/me'`);
    expect(text).toContain('"display_name": "Ada Lovelace"');
    const places = ['/docs', '/demo', '/api/public/openapi.json', '/account/apps'];
    for (const place of [...places, '/docs/paging-and-sync', '/docs/signing-in']) {
      expect(html).toContain(`href="${place}"`);
      expect([200, 303]).toContain((await get(place)).status);
    }
  });

  it('at the API’s URL: the reference for readers, and for programs an index of valid links', async () => {
    const led = await get('/api/public');
    expect([led.status, led.headers.get('location')]).toEqual([303, '/docs']);
    const response = await get('/api/public', { Accept: 'application/json' });
    const known = { Accept: 'application/json', 'If-None-Match': response.headers.get('etag')! };
    expect((await get('/api/public', known)).status).toBe(304);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'application/json; charset=utf-8',
    ]);
    const links = Object.values((await response.json()) as Record<string, string>);
    expect(links).toHaveLength(5);
    for (const link of links) expect([link, (await fetch(link)).status]).toEqual([link, 200]);
  });

  it('/readyz at /health, by a redirect', async () => {
    const probe = await fetch(`${oauth.issuer}/health`);
    expect([probe.url, probe.status]).toEqual([`${oauth.issuer}/readyz`, 200]);
  });

  it('the platform’s name, logo, color and contact, if configured', async () => {
    await beside(
      {
        platformName: 'Meetly & Co',
        platformColor: '#7a1fa2',
        platformLogoUrl: 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"/>',
        supportUrl: 'https://help.platform.example',
        privacyUrl: 'https://platform.example/privacy',
      },
      async (other) => {
        for (const path of ['/', '/docs', '/docs/times']) {
          const html = await (await fetch(other.issuer + path)).text();
          expect(html).toMatch(/<title>(.+ · )?Meetly &amp; Co API<\/title>/);
          expect(html).toContain('<img class="brand-logo" src="/logos/platform" alt=""');
          expect(/<style>([^]*?)<\/style>/.exec(html)![1]).toContain('--accent:#7a1fa2');
          expect(html).toContain('<a href="https://help.platform.example">Help</a>');
          expect(html).toContain('<a href="https://platform.example/privacy">Privacy</a>');
        }
        const { info } = (await (await fetch(`${other.issuer}/api/public/openapi.json`)).json()) as {
          info: { title: string; contact: { url: string } };
        };
        expect([info.title, info.contact.url]).toEqual(['Meetly & Co API', 'https://help.platform.example']);
      },
    );
  });

  it('a link to the developer console on the start page, the reference and a guide if the console is enabled', async () => {
    await beside({ developerConsole: true }, async (other) => {
      for (const path of ['/', '/docs', '/docs/times']) {
        const link = '<a class="only-wide" href="/developer">Developers</a>';
        expect(await (await fetch(other.issuer + path)).text()).toContain(link);
        expect(await (await get(path)).text()).not.toContain('/developer"');
      }
      for (const path of ['/', '/docs'])
        expect(await (await fetch(other.issuer + path)).text()).toMatch(/<a href="\/developer">Create a key/);
    });
  });

  it('on the start page: the URL for assistants, if assistants are enabled', async () => {
    expect(await (await get('/')).text()).not.toContain('/api/public/mcp');
    await beside({ assistants: true }, async (other) => {
      const html = await (await fetch(other.issuer)).text();
      expect(html).toContain(`<code>${other.issuer}/api/public/mcp</code>`);
      expect(html).toContain('href="/docs/assistants"');
    });
  });

  thorough.it('no demo if the demo is disabled', async () => {
    await beside({ seedDemo: false }, async (other) => {
      expect(await (await fetch(other.issuer)).text()).not.toContain('/demo');
      const demo = await fetch(`${other.issuer}/demo/`, { redirect: 'manual' });
      expect([demo.status, demo.headers.get('location')]).toEqual([404, null]);
    });
  });

  it.each(['/nothing', '/Docs', '/docs/nothing', '/interaction', '/oauth/nothing', '/.well-known/nothing'])(
    'a page for readers, and a problem document for programs, at the unknown URL %s',
    async (path) => {
      const page = await get(path);
      expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
      expect(page.headers.get('cache-control')).toBe('no-store');
      expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(await page.text()).toContain('<h1>There is nothing at this address</h1>');
      for (const headers of [{ Accept: '*/*' }, { Accept: 'application/json' }]) {
        const problem = await get(path, headers);
        expect([problem.status, problem.headers.get('content-type')]).toEqual([
          404,
          'application/problem+json; charset=utf-8',
        ]);
        expect(await problem.json()).toMatchObject({ code: 'not_found', instance: path });
      }
      const head = await get(path, HTML, 'HEAD');
      expect([head.status, await head.text()]).toEqual([404, '']);
    },
  );

  it.each([
    ['member', '/account/apps', '/nothing', '/account/security/nothing'],
    ['public', '/', '/docs', '/docs/times'],
    ['demo', '/demo', '/demo/callback'],
  ])('the same inline style sheet, allowed only by its hash, on several %s pages', async (_, ...paths) => {
    const styles = new Set<string>();
    for (const path of paths) {
      const response = await get(path);
      const html = await response.text();
      expect([path, html.match(/<style\b|rel="stylesheet"|\sstyle=/g)]).toEqual([path, ['<style']]);
      const [, style] = /<style>([^]*?)<\/style>/.exec(html)!;
      const hash = createHash('sha256').update(style!).digest('base64');
      expect(response.headers.get('content-security-policy')).toContain(`; style-src 'sha256-${hash}'; `);
      styles.add(style!);
    }
    expect(styles.size).toBe(1);
  });

  it('a page in the reader’s language at an unknown URL, with a language choice that account pages share', async () => {
    const german = await get('/nothing?x=<y>', { ...HTML, 'Accept-Language': 'de' });
    const html = await german.text();
    expect([german.headers.get('content-language'), html]).toEqual([
      'de',
      expect.stringContaining('<h1>Unter dieser Adresse ist nichts</h1>'),
    ]);
    expect(html).toContain('href="?ui_locales=fr" lang="fr" hreflang="fr">Français</a>');
    const chosen = await fetch(`${oauth.issuer}/nothing?ui_locales=fr`, {
      headers: HTML,
      redirect: 'manual',
    });
    expect([chosen.status, chosen.headers.get('location')]).toEqual([303, `${oauth.issuer}/nothing`]);
    const [cookie] = chosen.headers.getSetCookie()[0]!.split(';');
    for (const path of ['/nothing', '/account/apps'])
      expect((await get(path, { ...HTML, Cookie: cookie! })).headers.get('content-language')).toBe('fr');
  });

  it.each(['//evil.example/x', '/\\evil.example/x', '///evil.example'])(
    'no redirect to another site after the choice of a language at the unknown URL %s',
    async (path) => {
      const { port } = new URL(oauth.issuer);
      const location = await new Promise<string | undefined>((resolve, reject) => {
        const options = { port, path: `${path}?ui_locales=de`, headers: HTML };
        request(options, (answer) => resolve(answer.resume().headers.location))
          .on('error', reject)
          .end();
      });
      expect(new URL(location ?? '/', oauth.issuer).origin).toBe(oauth.issuer);
    },
  );

  it.each(['/api/public/', '/api/public/nothing', '/api/public/Events'])(
    'a problem document at the unknown API URL %s, even in a browser',
    async (path) => {
      const response = await get(path);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ code: 'not_found' });
    },
  );

  it('an error’s explanation at its type URL, as a page for readers and as JSON for programs', async () => {
    const path = '/api/public/problems/insufficient_scope';
    const led = await get(path);
    expect([led.status, led.headers.get('location')]).toEqual([303, '/docs/errors#insufficient_scope']);
    expect(await (await get('/docs/errors')).text()).toContain('id="insufficient_scope"');
    for (const Accept of ['*/*', 'application/json', 'application/json, text/html', '']) {
      const answer = await get(path, { Accept });
      expect([Accept, answer.status, await answer.json()]).toEqual([
        Accept,
        200,
        expect.objectContaining({ code: 'insufficient_scope' }),
      ]);
    }
    expect((await get('/api/public/problems/nothing')).status).toBe(404);
  });

  it('a problem document after a POST to an unknown URL', async () => {
    expect(await (await get('/nothing', HTML, 'POST')).json()).toMatchObject({ code: 'not_found' });
  });

  it.each([
    ['/docs/', '/docs'],
    ['/docs/errors/', '/docs/errors'],
    ['/demo/', '/demo'],
  ])('a page by a redirect from its URL with a trailing slash: %s', async (path, location) => {
    const response = await get(path, { Accept: '*/*' });
    expect([response.status, response.headers.get('location')]).toEqual([308, location]);
  });

  it.each(['/docs//', '/api/public/me/', '/account/apps/', '/livez/'])(
    'a 404 response, not a redirect, at the URL %s',
    async (path) => expect((await get(path)).status).toBe(404),
  );

  it('a favicon that contains a PNG', async () => {
    const response = await get('/favicon.ico');
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'image/vnd.microsoft.icon',
    ]);
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.readUInt16LE(2)).toBe(1);
    expect(bytes.subarray(22, 26).toString('latin1')).toBe('\u0089PNG');
  });

  it('icons, a manifest and a preview for shared links, all in the theme color', async () => {
    await beside({ platformName: 'Meetly', platformColor: '#ffd400' }, async (other) => {
      const html = await (await fetch(`${other.issuer}/docs`)).text();
      expect(html).toContain('<link rel="icon" href="/icon.svg" type="image/svg+xml">');
      expect(html).toMatch(
        /<meta property="og:title" content="[^"]+">\n<meta property="og:description" content="[^"]+">/,
      );
      const [, color] = /<meta name="theme-color" content="(#[0-9a-f]{6})">/.exec(html)!;
      const icon = await fetch(`${other.issuer}/icon.svg`);
      expect(icon.headers.get('Content-Type')).toBe('image/svg+xml');
      expect(await icon.text()).toContain(`fill="${color}"`);
      expect(html).toContain('<link rel="apple-touch-icon" href="/apple-touch-icon.png">');
      expect(html).toContain(`<meta property="og:image" content="${other.issuer}/social-card">`);
      for (const [path, size] of [
        ['/apple-touch-icon.png', [180, 180]],
        ['/social-card', [1200, 630]],
      ] as const) {
        const png = await fetch(other.issuer + path);
        expect([path, png.status, png.headers.get('Content-Type')]).toEqual([path, 200, 'image/png']);
        expect(pixelsOf(Buffer.from(await png.arrayBuffer()))).toEqual({ size, colors: [color, '#ffffff'] });
      }
      const manifest = await fetch(`${other.issuer}/site.webmanifest`);
      expect(manifest.headers.get('Content-Type')).toBe('application/manifest+json');
      expect(await manifest.json()).toMatchObject({
        name: 'Meetly API',
        short_name: 'Meetly',
        theme_color: color,
      });
    });
  });

  it('the platform’s logo as the preview of shared links if the logo is a PNG, but not if it is an SVG', async () => {
    for (const [platformLogoUrl, isPreview] of [
      [TINY_PNG, true],
      ['data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"/>', false],
    ] as const) {
      await beside({ platformLogoUrl }, async (other) => {
        await other.api.app.get(PlatformLogo).load();
        const bytes = Buffer.from(await (await fetch(`${other.issuer}/social-card`)).arrayBuffer());
        expect(bytes.toString('base64') === TINY_PNG.split(',')[1]).toBe(isPreview);
      });
    }
  });

  it('robots.txt, which disallows the API, OAuth and member pages, but not the guides', async () => {
    const text = await (await get('/robots.txt')).text();
    expect(text).toMatch(/^User-agent: \*\n/);
    for (const path of ['/api/', '/oauth/', '/account/', '/interaction/'])
      expect(text).toContain(`Disallow: ${path}\n`);
    expect(text).not.toContain('/docs');
  });

  it('llms.txt with links to guides as Markdown, to which the guides’ pages also link', async () => {
    const text = await (await get('/llms.txt')).text();
    const addresses = [...text.matchAll(/\]\((http[^)]+\.md)\)/g)].map(([, address]) => address!);
    expect(addresses).toContain(`${oauth.issuer}/docs/assistants.md`);
    for (const address of addresses) {
      const markdown = await fetch(address);
      expect([address, markdown.status, markdown.headers.get('content-type')]).toEqual([
        address,
        200,
        'text/markdown; charset=utf-8',
      ]);
      expect(await markdown.text()).toMatch(/^# /);
      const page = await fetch(address.replace(/\.md$/, ''));
      expect(page.headers.get('link')).toBe(
        `<${new URL(address).pathname}>; rel="alternate"; type="text/markdown"`,
      );
    }
    expect((await get('/docs/nothing.md', {})).status).toBe(404);
    const assistants = await (await get('/docs/assistants.md')).text();
    expect(assistants).toContain(`transport http my-events ${oauth.issuer}/api/public/mcp`);
  });

  it('security.txt with the contact for vulnerabilities, valid for less than a year (RFC 9116)', async () => {
    const response = await get('/.well-known/security.txt');
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const text = await response.text();
    expect(text).toMatch(/^Contact: mailto:security@platform\.example$/m);
    expect(text).toContain(`Canonical: ${oauth.issuer}/.well-known/security.txt`);
    const expires = new Date(/^Expires: (\S+Z)$/m.exec(text)![1]!).getTime();
    expect(expires).toBeGreaterThan(Date.now() + 30 * 86_400_000);
    expect(expires).toBeLessThan(Date.now() + 365 * 86_400_000);
  });

  it('the configured password page, by a redirect from /.well-known/change-password', async () => {
    const response = await get('/.well-known/change-password');
    expect([response.status, response.headers.get('location')]).toEqual([
      302,
      'https://platform.example/new-password',
    ]);
  });

  it('/account/security as the password page if no other is configured, and no security.txt without a contact', async () => {
    await beside({}, async (other) => {
      const change = await fetch(`${other.issuer}/.well-known/change-password`, { redirect: 'manual' });
      expect([change.status, change.headers.get('location')]).toEqual([302, '/account/security']);
      expect((await fetch(`${other.issuer}/.well-known/security.txt`)).status).toBe(404);
    });
  });

  it('no password page if local sign-in is disabled', async () => {
    await beside({ localSignIn: false }, async (other) => {
      expect((await fetch(`${other.issuer}/.well-known/change-password`)).status).toBe(404);
    });
  });
});
