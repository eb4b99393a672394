import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { chromium, type Browser } from 'playwright-core';

/** Chromium without windows, with half the processor time. Closing a page that is still navigating never ends. */
export const HEADLESS_SHELL = '/usr/bin/chromium-headless-shell';

/** Limit of a wait, in ms, as in timing.ts, which only tests can import: bin/pages.mjs imports this file too. */
const PATIENCE_MS = 120_000;

/** Launches Chromium with its own profile, and without its background requests. @param more switches of its command line */
export async function launchChromium(
  executable = '/usr/bin/chromium',
  more: readonly string[] = [],
): Promise<Browser> {
  if (!existsSync(executable))
    throw new Error(`${executable} is not there: apt-get install ${basename(executable)}`);
  const browser = await chromium.launch({
    executablePath: executable,
    timeout: PATIENCE_MS,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...more,
    ],
  });
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(PATIENCE_MS);
    return context;
  };
  return browser;
}
