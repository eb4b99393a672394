import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
import { describe } from '@jest/globals';

const EXECUTABLE = '/usr/bin/chromium';
const isThere = existsSync(EXECUTABLE);
if (!isThere) console.warn(`SKIPPED: what is looked at in a browser, since ${EXECUTABLE} is not there`);

/** `describe` for what needs a browser; skipped, and loudly, where there is none. */
export const inChromium = isThere ? describe : describe.skip;

/** With a profile of its own, and no calls home. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}
