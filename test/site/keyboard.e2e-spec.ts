import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { registerDemoClient } from '../../src/clients/own-clients.js';
import { DEMO_PASSWORD, seedDemo } from '../../src/operations/demo/demo.js';
import { postgres } from '../support/database.js';
import { PublicPages } from '../support/public-pages.js';

/** Elements that a mouse can use. */
const OPERABLE = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';

/** The focus as a user without a mouse sees it. */
interface Stop {
  /** Name of the focused element; undefined if the focus has left the page. */
  readonly name: string | undefined;
  /** Whether a part of the element is visible: on the screen, and not covered. */
  readonly onScreen: boolean;
  /** Whether the previous element looked different while it had the focus. */
  readonly oneBeforeStoodOut: boolean;
}

postgres.describe('the pages, with the keyboard only', () => {
  let pages: PublicPages;
  beforeAll(async () => {
    pages = await PublicPages.start();
    const { dataSource, api } = pages.oauth;
    await seedDemo(dataSource);
    await registerDemoClient(dataSource, api.config);
  });
  afterEach(() => pages.closePages());
  afterAll(() => pages.close());

  /** Presses Tab until the focus is on the element. */
  async function tabTo(target: Locator): Promise<void> {
    const page = target.page();
    for (let pressed = 0; pressed < 200; pressed++) {
      await page.keyboard.press('Tab');
      if (await target.evaluate((element) => element === document.activeElement)) return;
    }
    throw new Error(`Tab does not come to ${target.toString()}`);
  }

  const press = async (target: Locator, key = 'Enter') => {
    await target.waitFor();
    await tabTo(target);
    await target.page().keyboard.press(key);
  };

  /** Signs the demo's member in if the page requires it; the cursor is in the first field. */
  async function signIn(page: Page): Promise<void> {
    await page.locator('[name=username]:focus').waitFor();
    await page.keyboard.type('ada');
    await page.keyboard.press('Tab');
    await page.keyboard.type(DEMO_PASSWORD);
    await page.keyboard.press('Enter');
  }

  it.each([
    ['/', 1280],
    ['/', 390],
    ['/docs', 1280],
    ['/docs/times', 390],
    ['/docs/errors', 1280],
    ['/demo', 1280],
    ['/nothing', 1280],
    ['/account/apps', 390],
  ] as const)('%s, %d px wide: Tab reaches every control, and shows the focus', async (path, width) => {
    // The policy is bypassed only for the style that disables transitions, since appearances are compared.
    const { page } = await pages.open(path, { viewport: { width, height: 900 }, bypassCSP: true });
    await page.addStyleTag({
      content: '* { transition: none !important; scroll-behavior: auto !important }',
    });
    const operable = await page.evaluate(namesOfOperable, OPERABLE);
    const reached = new Set<string>();
    const faults: string[] = [];
    let before = '';
    // A page may begin with the cursor in its first field.
    for (let first = true; ; first = false) {
      if (!first || (await page.locator(':focus').count()) === 0) await page.keyboard.press('Tab');
      const { name, onScreen, oneBeforeStoodOut } = await page.evaluate(stopHere);
      if (before !== '' && !oneBeforeStoodOut) faults.push(`${before} looks the same with the focus`);
      if (name === undefined || reached.has(name)) break;
      if (!onScreen) faults.push(`${name} has the focus, and cannot be seen`);
      reached.add((before = name));
    }
    expect(faults).toEqual([]);
    expect(operable.filter((name) => !reached.has(name))).toEqual([]);
    expect(operable.length).toBeGreaterThan(0);
  });

  it('/docs allows a reader to choose a language, copy code and open a response', async () => {
    const { page } = await pages.open('/docs#getEvent', {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const call = page.locator('#getEvent');
    await tabTo(call.locator('.languages input:checked'));
    await page.keyboard.press('ArrowRight');
    expect(await call.locator('pre.in-curl').isVisible()).toBe(false);
    const shown = await call.locator('pre:visible').first().textContent();
    await press(call.locator('.request').getByRole('button', { name: 'Copy' }));
    await page.getByText('Copied', { exact: true }).first().waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(shown!.trimEnd());
    const other = call.locator('details.response').nth(1);
    await press(other.locator('summary'), 'Space');
    expect(await other.locator('pre').isVisible()).toBe(true);
  });

  it('/docs allows a member to sign in, send a request, read the response, and sign out', async () => {
    const { page } = await pages.open('/docs#listEvents');
    const call = page.locator('#listEvents');
    await press(call.locator('.try > summary'));
    await press(call.getByRole('button', { name: 'Sign in' }));
    await signIn(page);
    await press(page.getByRole('button', { name: 'Allow' }));
    await page.getByText('Signed in as Ada Lovelace').waitFor();
    await tabTo(call.getByLabel('limit'));
    await page.keyboard.type('1');
    await page.keyboard.press('Enter'); // as in any form
    const result = call.locator('.try-result');
    await result.getByText('"pagination"').waitFor();
    await press(result.getByText('Request and headers'));
    expect(await result.locator('pre').last().textContent()).toMatch(/^GET \/api\/public\/events\?limit=1&/);
    await page.goto(`${pages.oauth.issuer}/docs`);
    await press(page.getByRole('button', { name: 'Sign out' }));
    await page.getByRole('banner').getByRole('button', { name: 'Sign in' }).waitFor();
  });

  it('/demo allows a member to untick a scope, request the scope again, refresh the token, and revoke the access', async () => {
    const { page } = await pages.open('/demo');
    await press(page.getByRole('button', { name: 'Sign in' }));
    await signIn(page);
    await press(page.getByLabel('See the events'), 'Space');
    await press(page.getByRole('button', { name: 'Allow' }));
    await page.locator('[data-step=call]').getByText('GET /api/public/credential').waitFor();
    await press(page.getByRole('button', { name: 'Ask again' }));
    await press(page.getByLabel('See the events'), 'Space');
    await press(page.getByRole('button', { name: 'Allow' }));
    await page.getByRole('heading', { name: 'Events' }).waitFor();
    const later = page.locator('#later > li').first();
    await press(page.getByRole('button', { name: 'Refresh the token' }));
    await later.getByText('grant_type=refresh_token').waitFor();
    await press(page.getByRole('button', { name: 'Revoke the access' }));
    await later.getByText('POST /oauth/revoke').waitFor();
    await press(page.getByRole('button', { name: 'Call again' }));
    await later.getByText(/^401/).waitFor();
    expect(await later.textContent()).toContain('invalid_credentials');
  });
});

/** Runs in the page: names of all visible controls; of radio buttons, only the name of the button that Tab reaches. */
function namesOfOperable(selector: string): string[] {
  const names: string[] = [];
  document.querySelectorAll<HTMLElement>(selector).forEach((element, number) => {
    const { type, name, checked, disabled } = element as HTMLInputElement;
    element.dataset.keyboard = `${number} <${element.localName}> ${(element.textContent || name || type || '').trim().slice(0, 40)}`;
    if (disabled || !element.checkVisibility({ visibilityProperty: true })) return;
    if (type === 'radio' && !checked) return;
    if (element.closest('[inert]') || element.tabIndex < 0) return;
    names.push(element.dataset.keyboard);
  });
  return names;
}

/** Runs in the page: the focused element. */
function stopHere(): Stop {
  const kept = window as unknown as { before?: { elements: Element[]; looks: string } };
  const looksOf = (elements: readonly Element[]) =>
    elements
      .map((each) => {
        const { outline, boxShadow, borderColor, backgroundColor, color, opacity, transform } =
          getComputedStyle(each);
        return [outline, boxShadow, borderColor, backgroundColor, color, opacity, transform].join();
      })
      .join(' / ');
  const { before } = kept;
  const oneBeforeStoodOut = before !== undefined && looksOf(before.elements) !== before.looks;
  const element = document.activeElement as HTMLElement;
  if (element === document.body || element === document.documentElement) {
    return { name: undefined, onScreen: false, oneBeforeStoodOut };
  }
  const label = (element as HTMLInputElement).labels?.[0];
  const elements = [element, element.parentElement!, ...(label ? [label] : [])];
  kept.before = { elements, looks: looksOf(elements) };
  // The label of a radio button draws the button.
  const drawn = label && (element as HTMLInputElement).type === 'radio' ? label : element;
  const { left, top, right, bottom } = drawn.getClientRects()[0]!;
  const onScreen = [0.1, 0.5, 0.9].some((x) =>
    [0.1, 0.5, 0.9].some((y) => {
      const hit = document.elementFromPoint(
        left + (right - left) * x,
        Math.min(innerHeight - 2, top + (bottom - top) * y),
      );
      return hit !== null && (drawn.contains(hit) || element.contains(hit));
    }),
  );
  return { name: element.dataset.keyboard ?? element.outerHTML.slice(0, 80), onScreen, oneBeforeStoodOut };
}
