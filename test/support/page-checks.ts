import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A display of a page: the window's width, the browser's preferences, and the text size in percent. */
export interface View {
  readonly width: number;
  readonly colorScheme?: 'light' | 'dark';
  readonly forcedColors?: 'active' | 'none';
  readonly text?: number;
}

/** Each width of the design with each color scheme once: layouts depend only on the width, colors only on the scheme. */
export const VIEWS: readonly View[] = [
  { width: 1280, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
  { width: 768, forcedColors: 'active' },
];

/** Text of twice its size (WCAG 2.2, 1.4.4), at each width. */
export const LARGE_TEXT: readonly View[] = [1280, 768, 390].map((width) => ({ width, text: 200 }));

/** Changes the display of an open page without reloading it. */
export async function look(page: Page, { width, text = 100, ...colours }: View): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none', ...colours });
  await page.setViewportSize({ width, height: 900 });
  await page.evaluate((percent) => (document.documentElement.style.fontSize = `${percent}%`), text);
}

/** Number of pixels by which the document exceeds the window, and the innermost elements that cause it. */
export async function overflowOf(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const isClipped = (element: Element | null): boolean =>
      element !== null &&
      (getComputedStyle(element).overflowX !== 'visible' || isClipped(element.parentElement));
    const wide = [...document.body.querySelectorAll('*')].filter(
      (element) => element.getBoundingClientRect().right > width + 1 && !isClipped(element.parentElement),
    );
    return [
      `${document.documentElement.scrollWidth} of ${width} px`,
      ...wide.slice(-2).map((element) => element.outerHTML.slice(0, 120)),
    ];
  });
}

const COLOR_RULES = ['color-contrast', 'link-in-text-block'];

/** Findings of axe, each with the elements and the remedy. Runs through the debugger, past the page's policy. @param parts selectors of the checked parts */
export async function faultsOf(page: Page, parts: readonly string[] = ['html']): Promise<string[]> {
  // The browser chooses forced colors, and axe supports only half of them.
  if (await page.evaluate(() => matchMedia('(forced-colors: active)').matches)) return [];
  const isDark = await page.evaluate(() => matchMedia('(prefers-color-scheme: dark)').matches);
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  // Skips the style sheets and media that axe would load first; counts passed rules without describing them.
  const options = {
    resultTypes: ['violations'],
    preload: false,
    selectors: false,
    ...(isDark && { runOnly: COLOR_RULES }), // the other rules have the same result as in light colors
  };
  const { violations, passes } = await page.evaluate<AxeResults>(
    `axe.run(${JSON.stringify(parts)}, ${JSON.stringify(options)})`,
  );
  if (!passes.some(({ id }) => id === 'color-contrast')) return ['axe has seen no text'];
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ html, failureSummary }) => `${html}\n${failureSummary}`).join('\n')}`,
  );
}

/** Sum of the layout shifts since the page was loaded: https://web.dev/articles/cls, without its time windows. */
export async function shiftOf(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        let sum = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) sum += (entry as PerformanceEntry & { value: number }).value;
        }).observe({ type: 'layout-shift', buffered: true });
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)));
      }),
  );
}

/** Returns the elements that stay invisible in the complete page. */
export async function unseenOf(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.body.querySelectorAll('*')]
      .filter((element) => getComputedStyle(element).visibility !== 'visible')
      .map((element) => element.outerHTML.slice(0, 120)),
  );
}

/** Permitted shift: a paragraph that is still loading at the first paint grows. Less than a tenth of web.dev's “good”. */
export const NOTICEABLE = 0.01;

/** Round trip in ms, and bytes per second: 400 ms, 400 kbit/s. */
const SLOW_3G = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 };

/**
 * Measures how a page arrives on slow 3G at a first visit: the resources that its first paint waits for; how much its layout has shifted, at a
 * desk and on a phone; and the languages of its samples.
 *
 * @param kept what earlier visits left in the browser (`localStorage`)
 */
export async function firstVisitOf(browser: Browser, url: string, kept: Record<string, string> = {}) {
  const visits = await Promise.all(
    [1280, 390].map(async (width) => {
      const context = await browser.newContext({ viewport: { width, height: 900 }, reducedMotion: 'reduce' });
      await context.addInitScript((items) => Object.assign(localStorage, items), kept);
      const page = await context.newPage();
      const devtools = await context.newCDPSession(page);
      await devtools.send('Network.emulateNetworkConditions', SLOW_3G);
      await page.goto(url);
      const resources = await page.evaluate(() =>
        (
          performance.getEntriesByType('resource') as (PerformanceResourceTiming & {
            renderBlockingStatus: string;
          })[]
        ).map(({ name, renderBlockingStatus }) => [renderBlockingStatus, name] as const),
      );
      const blocking = resources.filter(([status]) => status !== 'non-blocking').map(([, name]) => name);
      const shift = await shiftOf(page);
      const chosen = await page.$$eval('.languages :checked', (inputs) =>
        inputs.map((input) => (input as HTMLInputElement).value),
      );
      await context.close();
      return { blocking, shift, chosen };
    }),
  );
  const blocking = visits.flatMap((visit) => visit.blocking);
  const shifts = visits.map(({ shift }) => shift);
  const languages = [...new Set(visits.flatMap(({ chosen }) => chosen))];
  return { blocking, shifts, languages };
}
