import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { registerDocsClient } from '../../src/clients/own-clients.js';
import type { Config } from '../../src/config/config.js';
import { launchChromium } from './chromium.js';
import { OauthTest, PASSWORD } from './oauth.js';

/** A server with the demo and with the client of the API reference, and Chromium. */
export class PublicPages {
  private constructor(
    readonly oauth: OauthTest,
    readonly browser: Browser,
  ) {}

  static async start(settings: Partial<Config> = {}, executable?: string): Promise<PublicPages> {
    const oauth = await OauthTest.start({ seedDemo: true, ...settings });
    await registerDocsClient(oauth.dataSource, oauth.api.config);
    return new PublicPages(oauth, await launchChromium(executable));
  }

  async close(): Promise<void> {
    await this.browser.close();
    await this.oauth.close();
  }

  /** Opens a page with its own cookies. @returns also its errors and its API requests, which later ones join */
  async open(path: string, options: BrowserContextOptions = {}) {
    const context = await this.browser.newContext({ reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    const errors: string[] = [];
    const calls: string[] = [];
    page.on('pageerror', (error) => errors.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text());
    });
    page.on('request', (request) => {
      if (request.url().includes('/api/')) calls.push(request.url().slice(this.oauth.issuer.length));
    });
    await page.goto(this.oauth.issuer + path);
    return { page, errors, calls };
  }

  /** Closes what a test opened. */
  async closePages(): Promise<void> {
    for (const context of this.browser.contexts()) await context.close();
  }
}

/** Signs a member in on the sign-in page. */
export async function signInOn(page: Page, username: string, password = PASSWORD): Promise<void> {
  await page.getByLabel('Username').fill(username);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}
