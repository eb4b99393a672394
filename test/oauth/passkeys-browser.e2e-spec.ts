import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { BrowserContextOptions, CDPSession, Page } from 'playwright-core';
import { TestBrowser } from '../support/chromium-tests.js';
import { postgres } from '../support/database.js';
import { PASSWORD, type OauthTest } from '../support/oauth.js';
import { startWithPasskeys } from '../support/passkeys.js';

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

postgres.describe('a member in Chromium', () => {
  const browser = new TestBrowser();
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await startWithPasskeys()));
  afterAll(() => oauth.close());

  /** A browser with its own authenticator, which confirms at once. */
  async function device(
    options: BrowserContextOptions = {},
    { autofill = false, synced = false }: { autofill?: boolean; synced?: boolean } = {},
  ) {
    const { page, violations } = await browser.open(options);
    if (!autofill) await page.addInitScript('delete PublicKeyCredential.isConditionalMediationAvailable');
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        ctap2Version: 'ctap2_1',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
        defaultBackupEligibility: synced,
        defaultBackupState: synced,
      },
    });
    const setVerified = (isUserVerified: boolean) =>
      cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
    /** Signs out, and signs in with the passkey. */
    const signInWithPasskey = async () => {
      await page.context().clearCookies();
      await page.goto(`${oauth.issuer}/account/apps`);
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    };
    return { page, cdp, authenticatorId, violations, setVerified, signInWithPasskey };
  }

  async function credentialsOf({ cdp, authenticatorId }: { cdp: CDPSession; authenticatorId: string }) {
    const { credentials } = await cdp.send('WebAuthn.getCredentials', { authenticatorId });
    return credentials;
  }

  async function signInWithPassword(page: Page, username: string) {
    await page.goto(`${oauth.issuer}/account/security`);
    await page.getByLabel('Username').fill(username);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Security' }).waitFor();
  }

  /** Adds a passkey at the account's page. */
  async function register(page: Page, username: string, name: string) {
    await signInWithPassword(page, username);
    await page.getByLabel('Name of the new passkey').fill(name);
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByRole('status').getByText('You can sign in with your new passkey.').waitFor();
  }

  it('adds a passkey in the account on a phone, and signs in with the passkey by keyboard only', async () => {
    const { username } = await oauth.member();
    const own = await device(PHONE);
    await register(own.page, username, 'My phone');
    await own.page.getByRole('heading', { name: 'My phone' }).waitFor();
    const [credential] = await credentialsOf(own);
    expect(credential).toMatchObject({ rpId: 'localhost', isResidentCredential: true });

    await own.page.context().clearCookies();
    await own.page.goto(`${oauth.issuer}/account/apps`);
    await own.page.getByLabel('Username').focus();
    const button = own.page.getByRole('button', { name: 'Sign in with a passkey' });
    for (let tabs = 0; tabs < 5 && !(await button.evaluate((it) => it === document.activeElement)); tabs++)
      await own.page.keyboard.press('Tab');
    await own.page.keyboard.press('Enter');
    await own.page.getByText('No app can see your account.').waitFor();
    expect(own.violations).toEqual([]);
  });

  it('signs in for an app by autofill without a click, on two devices with a passkey each', async () => {
    const { username } = await oauth.member();
    const laptop = await device({}, { autofill: true });
    const phone = await device(PHONE, { autofill: true, synced: true });
    await register(laptop.page, username, 'Laptop');
    await register(phone.page, username, 'Phone');
    const clientId = await oauth.client({ name: 'Trailmix' });
    for (const { page, violations } of [laptop, phone]) {
      await page.context().clearCookies();
      await page.goto(oauth.request(clientId).url.href);
      // No typing and no click: the authenticator immediately chooses a passkey that the browser offers.
      await page.getByRole('heading', { name: 'Allow Trailmix to use your account?' }).waitFor();
      expect(violations).toEqual([]);
    }
    await phone.page.goto(`${oauth.issuer}/account/security`);
    expect(await phone.page.getByText('Synced').count()).toBe(1);
    expect(await phone.page.getByText('On one device').count()).toBe(1);
  });

  it('sees an error for a copied passkey whose counter is not above the stored counter', async () => {
    const { username } = await oauth.member();
    const own = await device();
    await register(own.page, username, 'Laptop');
    const [before] = await credentialsOf(own);
    await own.signInWithPasskey();
    await own.page.getByText('No app can see your account.').waitFor();

    const thief = await device();
    const { authenticatorId } = thief;
    await thief.cdp.send('WebAuthn.addCredential', { authenticatorId, credential: before! });
    await thief.signInWithPasskey();
    await thief.page.getByRole('alert').getByText('Your passkey could not be used.').waitFor();
    expect(new URL(thief.page.url()).pathname).toBe('/account/apps/passkey');
  });

  it('sees a message if the device has no passkey, and if the device already has a passkey', async () => {
    const { username } = await oauth.member();
    const own = await device();
    await own.setVerified(false);
    await own.signInWithPasskey();
    await own.page.getByRole('status').getByText('No passkey was used.').waitFor();
    await own.setVerified(true);
    await register(own.page, username, 'Laptop');
    await own.page.getByRole('button', { name: 'Add a passkey' }).click();
    await own.page.getByText('This device already has a passkey for your account.').waitFor();
    expect(await credentialsOf(own)).toHaveLength(1);
  });

  it('disables the password, enables it again, and removes the passkey', async () => {
    const { username } = await oauth.member();
    const own = await device();
    await register(own.page, username, 'Laptop');
    await own.page.locator('summary').filter({ hasText: 'Disable the password' }).click();
    await own.page.getByRole('button', { name: 'Disable the password' }).click();
    await own.page.getByText('Your only sign-in method: you can’t remove it.').waitFor();
    await own.page.getByRole('button', { name: 'Enable the password' }).click();
    await own.page.getByText('Remove the passkey Laptop').first().click();
    await own.page.getByRole('button', { name: 'Remove the passkey Laptop' }).click();
    await own.page.getByRole('status').getByText('The passkey is removed.').waitFor();
    await own.page.goto(`${oauth.issuer}/account/activity`);
    await own.page.getByText('One of your passkeys was removed').waitFor();
    expect(own.violations).toEqual([]);
  });

  it('signs in with the passkey, after the password, for an app that requests a passkey', async () => {
    const { username } = await oauth.member();
    const own = await device();
    await register(own.page, username, 'Laptop');
    await own.page.context().clearCookies();
    await signInWithPassword(own.page, username);
    await own.page.goto(oauth.request(await oauth.client({ name: 'Bank' }), { acr_values: 'phrh' }).url.href);
    await own.page.getByText('The app asks you to sign in with a passkey.').waitFor();
    expect(await own.page.getByLabel('Password').count()).toBe(0);
    await own.page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await own.page.getByRole('heading', { name: 'Allow Bank to use your account?' }).waitFor();
  });

  it('without JavaScript signs in with the password, and sees no passkey button', async () => {
    const { username } = await oauth.member();
    const { page } = await browser.open({ javaScriptEnabled: false });
    await page.goto(`${oauth.issuer}/account/security`);
    expect(await page.getByRole('button', { name: 'Sign in with a passkey' }).isVisible()).toBe(false);
    await signInWithPassword(page, username);
    expect(await page.getByRole('button', { name: 'Add a passkey' }).isVisible()).toBe(false);
    await page.getByText('Passkeys need JavaScript and a browser that supports them.').waitFor();
  });
});
