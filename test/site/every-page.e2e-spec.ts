import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { GUIDES } from '../../src/site/site.js';
import { HEADLESS_SHELL } from '../support/chromium.js';
import { postgres } from '../support/database.js';
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
import type { OauthTest } from '../support/oauth.js';
import { PublicPages } from '../support/public-pages.js';

const KB = 1024;
const WHOLE = ['html'];

// One operation of each kind from the reference: other operations look the same, and axe is slow.
const OF_REFERENCE = [
  'header',
  '#start',
  '#credentials',
  '#conventions',
  '#updateProfile',
  '#listPinnedAchievements',
];

/** Paths, with the parts that axe checks. */
const PAGES: readonly (readonly [path: string, parts: readonly string[]])[] = [
  ['/', WHOLE],
  ['/docs', [...OF_REFERENCE, '#contents']],
  ['/docs#updateProfile?body=%7B%7D', ['#updateProfile']],
  ...GUIDES.map(({ name }) => [`/docs/${name}`, WHOLE] as const),
  ['/nothing', WHOLE],
  ['/account/apps', WHOLE], // the sign-in page; test/oauth/pages.e2e-spec.ts checks the other account pages
  ['/demo', WHOLE],
];

postgres.describe('a public page', () => {
  let pages: PublicPages;
  let oauth: OauthTest;
  let page: Page;
  const requested: string[] = [];
  beforeAll(async () => {
    pages = await PublicPages.start({ developerConsole: true }, HEADLESS_SHELL);
    ({ oauth } = pages);
    page = await (await pages.browser.newContext({ reducedMotion: 'reduce' })).newPage();
    page.on('request', (request) => requested.push(request.url().replace(oauth.issuer, '')));
  });
  afterAll(() => pages.close());

  it.each(PAGES)(
    '%s loads no unexpected file, does not shift, is accessible in light and dark, and fits at three widths',
    async (path, parts) => {
      requested.length = 0;
      await look(page, VIEWS[0]!);
      await page.goto('about:blank'); // otherwise a fragment would not load the page again
      await page.goto(oauth.issuer + path);
      expect(await shiftOf(page)).toBeLessThan(NOTICEABLE); // a busy host paints while the page arrives
      expect(await unseenOf(page)).toEqual([]);
      await page.evaluate(() => {
        for (const closed of document.querySelectorAll('details')) closed.open = true;
      });
      for (const view of VIEWS) {
        await look(page, view);
        const seen = parts.filter((part) => part !== '#contents' || view.width > 960); // opens the menu on a phone
        expect([view, await overflowOf(page), await faultsOf(page, seen)]).toEqual([view, [], []]);
      }
      for (const view of LARGE_TEXT) {
        await look(page, view);
        expect([view, await overflowOf(page)]).toEqual([view, []]);
      }
      const own = [
        /^\/(favicon\.ico|icon\.svg|site\.webmanifest)$/,
        /^\/demo\//,
        /^about:blank$/,
        /^\/account\//,
      ];
      for (const url of requested)
        if (!own.some((pattern) => pattern.test(url)))
          expect(url.replace(/#.*/, '')).toBe(path.replace(/#.*/, ''));
    },
  );

  it('has less than 60 KB, compressed', async () => {
    for (const [path] of PAGES) {
      const headers = { 'Accept-Encoding': 'gzip', Accept: 'text/html' };
      const [response] = (await once(get(oauth.issuer + path, { headers }), 'response')) as [IncomingMessage];
      expect([path, (await buffer(response)).length < 60 * KB]).toEqual([path, true]);
    }
  });

  it.each([...PAGES.map(([path]) => path), '/developer'])(
    '%s has no render-blocking resource at the first visit on slow 3G, and does not shift',
    async (path) => {
      const { blocking, shifts } = await firstVisitOf(pages.browser, oauth.issuer + path);
      expect(blocking).toEqual([]);
      expect(Math.max(...shifts)).toBeLessThan(NOTICEABLE);
    },
  );

  it.each(['/', '/docs', '/docs/first-program'])(
    '%s shows samples in the stored programming language, without a shift',
    async (path) => {
      const kept = { 'public-user-api:language': 'python' };
      const { shifts, languages } = await firstVisitOf(pages.browser, oauth.issuer + path, kept);
      expect(Math.max(...shifts)).toBeLessThan(NOTICEABLE);
      expect(languages).toEqual(['python']);
    },
  );
});
