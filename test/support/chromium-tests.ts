import { afterAll, afterEach, beforeAll } from '@jest/globals';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { launchChromium } from './chromium.js';

/** A Chromium for the tests of the surrounding block. Each test begins without contexts. */
export class TestBrowser {
  #browser: Browser;

  constructor() {
    beforeAll(async () => void (this.#browser = await launchChromium()));
    afterEach(async () => {
      for (const context of this.#browser.contexts()) await context.close();
    });
    afterAll(() => this.#browser.close());
  }

  /** Opens an empty page in a new context. @returns the page, and its errors about the Content-Security-Policy */
  async open(options: BrowserContextOptions = {}) {
    const page = await (await this.#browser.newContext(options)).newPage();
    const violations: string[] = [];
    page.on('console', (message) => {
      if (/Content Security Policy/i.test(message.text())) violations.push(message.text());
    });
    return { page, violations };
  }
}
