import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

const EXECUTABLE = '/usr/bin/chromium';

/** Launches Chromium with its own profile, and without its background requests. @param more switches of its command line */
export async function launchChromium(...more: string[]): Promise<Browser> {
  if (!existsSync(EXECUTABLE)) throw new Error(`${EXECUTABLE} is not there: apt-get install chromium`);
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
      ...more,
    ],
  });
}
