import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { TokenKeys } from '../../src/crypto/hmac.js';
import { Encryption } from '../../src/crypto/encryption.js';
import { OauthTest } from '../support/oauth.js';
import { thorough } from '../support/database.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

thorough.describe('decryption', () => {
  it('rejects ciphertext copied from another session', async () => {
    const [attacker, victim] = [await oauth.signedIn(), await oauth.signedIn()];
    await oauth.query(
      `UPDATE oauth_sessions SET payload = (SELECT payload FROM oauth_sessions WHERE user_id = $2), user_id = $2 WHERE user_id = $1
AND key <> (SELECT key FROM oauth_sessions WHERE user_id = $2)`,
      [attacker.id, victim.id],
    );
    expect(await attacker.browser.isSignedIn()).toBe(false);
    expect(await victim.browser.isSignedIn()).toBe(true);
  });

  it('rejects ciphertext in a row with another session’s key', async () => {
    const [attacker, victim] = [await oauth.signedIn(), await oauth.signedIn()];
    expect(await attacker.browser.isSignedIn()).toBe(true);
    const moving = `WITH gone AS (DELETE FROM oauth_sessions WHERE user_id = $1 RETURNING key)
UPDATE oauth_sessions s SET key = gone.key FROM gone WHERE s.user_id = $2`;
    await oauth.query(moving, [attacker.id, victim.id]);
    expect(await attacker.browser.isSignedIn()).toBe(false);
  });

  it('rejects ciphertext copied from another interaction', async () => {
    const clientId = await oauth.client();
    const pages = [];
    for (const state of ['one', 'two']) {
      const browser = oauth.browser();
      pages.push({ browser, page: await browser.view(oauth.request(clientId, { state }).url) });
    }
    const keys = pages.map(
      ({ page }) =>
        new TokenKeys(oauth.api.config.secrets).keysOf(
          'Interaction',
          page.url.pathname.split('/').pop()!,
        )[0]!,
    );
    await oauth.query(
      'UPDATE oauth_state SET payload = (SELECT payload FROM oauth_state WHERE key = $2) WHERE key = $1',
      keys,
    );
    const statuses = await Promise.all(
      pages.map(async ({ browser, page }) => (await browser.view(page.url)).status),
    );
    expect(statuses).toEqual([400, 200]);
  });

  it('rejects a session payload that was encrypted without its row’s keys', async () => {
    const { id, browser } = await oauth.signedIn();
    expect(await browser.isSignedIn()).toBe(true);
    const encryption = new Encryption(oauth.api.config.secrets, 'oauth-state');
    const [row] = await oauth.query<{ payload: Buffer; key: Buffer; uid_key: Buffer }>(
      'SELECT payload, key, uid_key FROM oauth_sessions WHERE user_id = $1',
      [id],
    );
    const payload = encryption.open(row!.payload, 'Session', row!.uid_key, row!.key);
    expect(payload).toMatchObject({ accountId: String(id) });
    await oauth.query('UPDATE oauth_sessions SET payload = $2 WHERE key = $1', [
      row!.key,
      encryption.seal(payload, 'Session'),
    ]);
    expect(await browser.isSignedIn()).toBe(false);
  });
});
