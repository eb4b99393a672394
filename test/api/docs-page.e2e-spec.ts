import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import type { Browser } from 'playwright-core';
import { PROBLEMS } from '../../src/http/output/problems.js';
import { TestApi } from '../support/api.js';
import { launchChromium } from '../support/chromium.js';
import { postgres } from '../support/database.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe('GET /docs', () => {
  let api: TestApi;
  let html: string;
  let headers: Record<string, string>;
  beforeAll(async () => {
    api = await TestApi.start();
    const answer = await api.send('GET', '/docs', { Accept: 'text/html' });
    expect(answer.status).toBe(200);
    html = answer.text;
    headers = answer.headers;
  });
  afterAll(() => api.close());

  const ids = () => [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!);
  /** The part of the page that describes one endpoint, without tags. */
  const section = (method: string, path: string) =>
    html
      .split('<section class="endpoint"')
      .map((part) => part.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' '))
      .find((part) => part.includes(` ${method} ${path} `))!;

  it('describes every endpoint with scope, parameters, values, answer and errors', async () => {
    const { body } = await api.send('GET', '/api/public/openapi.json');
    const { paths, components } = body as {
      paths: Record<string, Record<string, Operation>>;
      components: { schemas: Record<string, { properties: object }> };
    };
    for (const [path, operations] of Object.entries(paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        const text = section(method.toUpperCase(), path);
        expect(text).toContain(operation.summary);
        const scope = operation['x-required-scope'];
        expect(text).toContain(scope === undefined ? 'no credential' : (scope ?? 'any credential'));
        for (const { name, schema } of operation.parameters) {
          expect(text).toContain(` ${name} `);
          for (const value of schema.enum ?? schema.items?.enum ?? []) expect(text).toContain(` ${value} `);
        }
        for (const [status, response] of Object.entries(operation.responses)) {
          const content = JSON.stringify(response.content ?? {});
          for (const [, name] of content.matchAll(/#\/components\/schemas\/(\w+)"/g)) {
            if (['Problem', 'Pagination'].includes(name!)) continue;
            for (const key of Object.keys(components.schemas[name!]!.properties))
              expect(text).toMatch(new RegExp(`[ .]${key} `));
          }
          if (Number(status) < 400) continue;
          expect(text).toContain(` ${status} `);
          const codes = /"code":\{"enum":(\[[^\]]*\])/.exec(content)![1]!;
          for (const code of JSON.parse(codes) as string[]) expect(text).toContain(` ${code} `);
        }
      }
    }
  });

  it('says which parameters an action takes', () => {
    expect(section('GET', '/api/public/achievements')).toMatch(
      /action=all limit cursor sort earned category rarity sort : position, name, -earned_at, rarity_percentage, -progress/,
    );
  });

  it('lists every error code with its meaning and fix', () => {
    for (const { code, status } of PROBLEMS.values())
      expect(html).toMatch(new RegExp(`<div id="${code}">\\s*<dt><span class="status">${status}<`));
    expect(html).toContain('Send X-API-Key: &lt;key&gt; from a server');
  });

  it('has one place for each of its own links', () => {
    expect(new Set(ids()).size).toBe(ids().length);
    for (const [, target] of html.matchAll(/href="#([^"]+)"/g)) expect(ids()).toContain(target);
  });

  it('runs no script and loads nothing', () => {
    const style = /<style>([^]*?)<\/style>/.exec(html)![1]!;
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
    );
    expect(html).not.toMatch(/<(script|img|iframe|link|object|embed|base|form)\b/i);
    expect(html).not.toMatch(/\s(on\w+|style|src)=/i);
    expect(style).not.toMatch(/url\(|@import/);
  });

  it('is a page: text/html, 304 for its ETag, nothing for HEAD, 406 where only JSON is wanted', async () => {
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    const again = await api.send('GET', '/docs', { 'If-None-Match': headers.etag! });
    expect([again.status, again.text]).toEqual([304, '']);
    const head = await api.send('HEAD', '/docs');
    expect([head.status, head.text ?? '']).toEqual([200, '']);
    expect((await api.send('GET', '/docs', { Accept: 'text/plain' })).body.code).toBe('not_acceptable');
  });

  postgres.describe('in Chromium', () => {
    let browser: Browser;
    beforeAll(async () => void (browser = await launchChromium()), 60_000);
    afterAll(() => browser.close());

    it.each([
      ['a desktop in light', 1280, 'light'],
      ['a desktop in dark', 1280, 'dark'],
      ['a phone in light', 390, 'light'],
      ['a phone in dark', 390, 'dark'],
    ] as const)(
      'fits and can be read by everybody on %s',
      async (_, width, colorScheme) => {
        const context = await browser.newContext({
          viewport: { width, height: 900 },
          colorScheme,
          reducedMotion: 'reduce',
          bypassCSP: true, // for axe alone: the page itself has no script
        });
        const page = await context.newPage();
        const requests: string[] = [];
        page.on('request', (request) => requests.push(request.url()));
        await page.goto(`${api.url}/docs`);
        expect(requests).toEqual([`${api.url}/docs`]);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
        await page.evaluate(AXE);
        // The other endpoints are more of the same, and axe takes its time.
        const parts = ['header', 'nav', '#credentials', '#lists', '#put-profile', '#codes'];
        const { violations } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify(parts)})`);
        expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html: text }) => text)])).toEqual([]);
        await context.close();
      },
      60_000,
    );
  });
});

interface Operation {
  summary: string;
  'x-required-scope'?: string | null;
  parameters: { name: string; schema: { enum?: string[]; items?: { enum?: string[] } } }[];
  responses: Record<string, { content?: object }>;
}
