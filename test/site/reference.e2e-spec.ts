import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PROBLEMS } from '../../src/http/output/problems.js';
import { GUIDES } from '../../src/site/site.js';
import { TestApi } from '../support/api.js';
import { thorough } from '../support/database.js';
import type { ApiDocument, Described } from '../support/openapi.js';

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

  const ids = (page: string) => [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!);
  const textOf = (part: string) => part.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
  /** The section of the page that describes one operation. */
  const section = (name: string) =>
    html.split('<section class="row call"').find((part) => part.includes(`id="${name}"`))!;
  const unescape = (text: string) =>
    text
      .replaceAll('&quot;', '"')
      .replaceAll('&#39;', "'")
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&');

  it('has a search index of less than 25 KB, with each error, and only existing targets', async () => {
    const answer = await api.send('GET', '/docs/search.json', { 'Accept-Encoding': 'br' });
    expect(Number(answer.headers['content-length'])).toBeLessThan(25 * 1_024);
    const entries = answer.body as [href: string, title: string, text: string][];
    const known = new Map<string, string[]>();
    for (const [href, title, text] of entries) {
      const [path, fragment] = href.split('#') as [string, string?];
      expect([href, typeof title, typeof text]).toEqual([href, 'string', 'string']);
      if (!known.has(path)) known.set(path, ids((await api.send('GET', path)).text));
      if (fragment !== undefined)
        expect([href, known.get(path)]).toEqual([href, expect.arrayContaining([fragment])]);
    }
    const hrefs = entries.map(([href]) => href);
    for (const code of PROBLEMS.keys()) expect(hrefs).toContain(`/docs/errors#${code}`);
    expect(hrefs).toEqual(expect.arrayContaining(['/docs#listEvents', '/docs/webhooks', '/docs/times']));
  });

  it('lists released versions at /docs/changelog, and with their dates in an Atom feed', async () => {
    const page = await api.send('GET', '/docs/changelog', { Accept: 'text/html' });
    expect(page.text).toContain(
      '<link rel="alternate" type="application/atom+xml" href="/docs/changelog.atom">',
    );
    const { text, headers: of } = await api.send('GET', '/docs/changelog.atom');
    expect(of['content-type']).toBe('application/atom+xml; charset=utf-8');
    const entries = text.split('<entry>').slice(1);
    expect(entries.length).toBeGreaterThan(0);
    for (const entry of entries) {
      const [, address, id] = /<id>([^<#]+)#([^<]+)<\/id>/.exec(entry)!;
      expect([address, ids(page.text)]).toEqual([
        'http://localhost:0/docs/changelog',
        expect.arrayContaining([id]),
      ]);
      expect(entry).toMatch(/<updated>20\d\d-\d\d-\d\dT00:00:00Z<\/updated>/);
    }
    expect(text).not.toContain('unreleased');
  });

  it('links each guide to the previous and the next guide', async () => {
    const order: (string | undefined)[] = [];
    for (let next: string | undefined = 'first-program'; next !== undefined;) {
      const { text } = await api.send('GET', `/docs/${next}`, { Accept: 'text/html' });
      expect(/rel="prev" href="\/docs\/([\w-]+)"/.exec(text)?.[1]).toBe(order.at(-1));
      order.push(next);
      next = /rel="next" href="\/docs\/([\w-]+)"/.exec(text)?.[1];
    }
    expect(order).toEqual(GUIDES.map(({ name }) => name));
  });

  const documents = ['/api/public/openapi.json', '/api/platform/openapi.json'];
  it.each(documents)(
    'describes every operation of %s with scope, parameters, values, response and errors',
    async (of) => {
      const { body } = await api.send('GET', of);
      const { paths, components } = body as ApiDocument;
      const named = ($ref: string) => $ref.split('/').at(-1)!;
      for (const [path, operations] of Object.entries(paths)) {
        for (const [method, operation] of Object.entries(operations)) {
          const text = textOf(section(operation.operationId));
          expect(text).toContain(` ${operation.summary} `);
          expect(text).toContain(` ${method.toUpperCase()} ${path}`);
          const scope = operation['x-required-scope'];
          expect(text).toContain(scope === undefined ? 'no credential' : (scope ?? 'any credential'));
          for (const { name: parameter, schema } of operation.parameters) {
            expect(text).toContain(` ${parameter} `);
            const { $ref, enum: inline = [] } = schema.items ?? schema;
            const values = $ref ? components.schemas[named($ref)]!.enum! : inline;
            if (values.length < 12) for (const value of values) expect(text).toContain(` ${value} `);
          }
          // Each `action` has its own operation.
          const content =
            operation.operationId === 'listAchievements'
              ? ''
              : JSON.stringify((operation.responses['200'] as Described).content);
          for (const [, name] of content.matchAll(/#\/components\/schemas\/(\w+)"/g))
            for (const key of Object.keys(components.schemas[name!]!.properties ?? {}))
              expect(text).toMatch(new RegExp(`[ .]${key} `));
          for (const code of operation['x-problems'])
            expect(text).toContain(` ${PROBLEMS.get(code)!.status} ${code} `);
          // Each error has its response.
          const statuses = new Set(operation['x-problems'].map((code) => PROBLEMS.get(code)!.status));
          const errors = Object.keys(operation.responses).filter((status) => Number(status) >= 400);
          expect(errors).toEqual([...statuses].toSorted((one, other) => one - other).map(String));
        }
      }
    },
  );

  it('has a separate section for each action of achievements', () => {
    const sections = [
      'listAchievements',
      'listEarnedAchievements',
      'listAllAchievements',
      'getAchievementStatistics',
      'getAchievement',
      'listPinnedAchievements',
    ];
    const texts = Object.fromEntries(sections.map((name) => [name, textOf(section(name))]));
    expect(texts.listAchievements).toMatch(/ action .* all stats detail pinned /);
    expect(texts.listAchievements).toContain(
      ' Response: list of achievements, or achievement statistics, or achievement detail ',
    );
    expect(texts.listAllAchievements).toContain(' GET /api/public/achievements/all ');
    expect(texts.listAllAchievements).toContain(' /api/public/achievements?action=all ');
    expect(texts.listAllAchievements).toMatch(/ position name -earned_at rarity_percentage -progress /);
    expect(texts.getAchievement).toMatch(/Parameters id .*required/);
    expect(texts.getAchievement).toContain('achievement_not_found');
    expect(texts.getAchievementStatistics).not.toMatch(/ cursor |achievement_not_found|missing_parameter/);
    expect(texts.listPinnedAchievements).not.toContain('invalid_cursor');
  });

  it('shows each operation’s request in five languages, and the example responses of OpenAPI', async () => {
    const { body } = await api.send('GET', '/api/public/openapi.json');
    const { paths } = body as ApiDocument;
    const shown = new Set<string>();
    for (const operations of Object.values(paths))
      for (const { responses } of Object.values(operations))
        for (const { value } of Object.values(
          (responses['200'] as Described).content!['application/json']!.examples ?? {},
        )) {
          const json = JSON.stringify(value, null, 2);
          const blocks = [...html.matchAll(/<pre[^>]*aria-label="Response"[^>]*><code>([^]*?)<\/code>/g)];
          expect(blocks.map(([, code]) => unescape(code!.replaceAll(/<[^>]+>/g, '')))).toContain(json);
          shown.add(json);
        }
    expect(shown.size).toBeGreaterThanOrEqual(15);
    for (const part of html.split('<section class="row call"').slice(1))
      expect([...part.matchAll(/<pre class="in-(\w+)"/g)].map(([, language]) => language)).toEqual([
        'curl',
        'javascript',
        'python',
        'go',
        'php',
      ]);
  });

  it('explains each error only on /docs/errors, and links to these explanations', async () => {
    const errors = (await api.send('GET', '/docs/errors', { Accept: 'text/html' })).text;
    for (const { code, status, fix } of PROBLEMS.values()) {
      const row = new RegExp(`<tr id="${code}">([^]*?)</tr>`).exec(errors)![1]!;
      expect(textOf(row)).toContain(` ${status} ${code} `.trimStart());
      expect(unescape(textOf(row)).replaceAll(' ', '')).toContain(fix.replaceAll(/[` ]/g, ''));
      expect(html).not.toContain(`id="${code}"`);
    }
    const linked = new Set([...html.matchAll(/href="\/docs\/errors#(\w+)"/g)].map(([, code]) => code!));
    for (const code of linked) expect(PROBLEMS.has(code)).toBe(true);
    expect(linked.size).toBeGreaterThan(15);
  });

  thorough.it('has a target for each link and no duplicate id, like the guides', async () => {
    const pages = new Map<string, string>([['/docs', html]]);
    for (const [, path] of html.matchAll(/href="(\/docs\/[\w-]+)["#]/g))
      if (!pages.has(path!)) pages.set(path!, (await api.send('GET', path!, { Accept: 'text/html' })).text);
    expect(pages.size).toBeGreaterThanOrEqual(9);
    for (const [path, page] of pages) {
      expect([path, new Set(ids(page)).size]).toEqual([path, ids(page).length]);
      for (const [, target] of page.matchAll(/href="([^"]+)"/g)) {
        const [file = '', fragment] = target!.split('#');
        const leads = file === '' ? page : pages.get(file);
        if (leads !== undefined && fragment !== undefined) expect(ids(leads)).toContain(fragment);
        else if (leads === undefined && file.startsWith('/')) {
          const status = (await fetch(`${api.url}${file}`, { redirect: 'manual' })).status;
          expect([path, file, [200, 303].includes(status) || file === '/demo']).toEqual([path, file, true]);
        }
      }
    }
  });

  it('allows only its own style sheet and two scripts, by their hashes', () => {
    const [style, early, script] = [...html.matchAll(/<(style|script)[^>]*>([^]*?)<\/\1>/g)].map(
      ([, , text]) => ({
        text: text!,
        source: `'sha256-${createHash('sha256').update(text!).digest('base64')}'`,
      }),
    );
    expect(headers['content-security-policy']).toBe(
      `default-src 'none'; style-src ${style!.source}; script-src ${script!.source} ${early!.source}; connect-src 'self'; img-src 'self'; manifest-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
    );
    expect(html).not.toMatch(/<(img|iframe|object|embed|base)\b/i);
    expect(html.match(/<script\b/gi)).toHaveLength(2);
    expect(html).not.toMatch(/\s(on\w+|style|src)=/i);
    expect(html.match(/<style\b|rel="stylesheet"/gi)).toHaveLength(1);
    expect(style!.text).not.toMatch(/url\(|@import/);
    expect(headers['x-frame-options']).toBe('DENY');
  });

  it('is served as text/html, the same for another query', async () => {
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect((await api.send('GET', '/docs?utm_source=mail&code=x')).text).toBe(html);
  });

  thorough.it('states this server’s limits', async () => {
    await using limited = await TestApi.start({ rateLimits: { read: 7, write: 0, auth: 20 } });
    const { text } = await limited.send('GET', '/docs', { Accept: 'text/html' });
    expect(textOf(text)).toContain(
      'For each member, a credential can send 7 reads per minute and any number of writes',
    );
  });
});
