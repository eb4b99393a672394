import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { createApp } from '../../src/app.js';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { TokenKeys } from '../../src/crypto/hmac.js';
import { pepperIdsOf } from '../../src/crypto/secret-hashes.js';
import { Secrets } from '../../src/crypto/secrets.js';
import { thorough } from '../support/database.js';
import { endApp } from '../support/api.js';
import { basic, clientWithKey, clientWithSecret, dpopKey } from '../support/client-kinds.js';
import { eventually } from '../support/timing.js';
import { OauthTest, type Browser } from '../support/oauth.js';

const OLD = Buffer.from(process.env.TEST_SECRET_KEY!, 'base64');
const NEW = Buffer.alloc(32, 'new');

/** Sends values that were issued under one SECRET_KEY to a server with the next SECRET_KEY. */
describe('a new SECRET_KEY', () => {
  let oauth: OauthTest;
  let app: NestExpressApplication;
  let url: string;
  let clientId: string;

  async function start(secrets: Secrets): Promise<void> {
    app = await createApp({ ...oauth.api.config, secrets });
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
  }

  async function begin(): Promise<void> {
    oauth = await OauthTest.start();
    clientId = await oauth.client();
    await start(new Secrets(NEW, OLD));
  }
  async function end(): Promise<void> {
    await endApp(app);
    await oauth.close();
  }

  /** Copies a browser's cookies to a browser at the new server. */
  function moved(from: Browser): Browser {
    const browser = oauth.browser(url);
    for (const [name, cookie] of from.cookies) browser.cookies.set(name, cookie);
    return browser;
  }

  describe('with SECRET_KEY_PREVIOUS', () => {
    beforeAll(begin);
    afterAll(end);

    it('moves a reusable refresh token to the new key, and accepts parallel uses', async () => {
      const { id, assertion } = await clientWithKey(oauth, { profile: 'fapi2' });
      const prove = await dpopKey(oauth);
      const { username } = await oauth.member();
      const request = oauth.request(id);
      const parameters = { ...Object.fromEntries(request.url.searchParams), ...(await assertion()) };
      const pushed = oauth.pushedUrl(id, await oauth.post('/oauth/par', parameters));
      const form = request.formOf(await oauth.browser().authorize(pushed, { username }));
      const { refresh_token } = (await oauth.token({ ...form, ...(await assertion()) }, await prove())).body;
      const refresh = async () =>
        oauth.token(
          { grant_type: 'refresh_token', refresh_token, ...(await assertion()) },
          await prove(),
          url,
        );
      const statuses = (await Promise.all([refresh(), refresh(), refresh()])).map(({ status }) => status);
      expect([...statuses, (await refresh()).status]).toEqual([200, 200, 200, 200]);
      const stored = await oauth.query<{ key: Buffer }>(
        `SELECT t.key FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id
WHERE g.client_id = $1 AND t.model = 'RefreshToken'`,
        [id],
      );
      expect(stored).toEqual([{ key: new TokenKeys(new Secrets(NEW)).keyOf('RefreshToken', refresh_token) }]);
    });

    it('still detects the reuse of a refresh token', async () => {
      const { refresh_token } = await oauth.tokens(clientId, (await oauth.member()).username);
      const { body } = await oauth.refresh(clientId, refresh_token);
      await oauth.age('oauth_tokens', 11);
      expect((await oauth.refresh(clientId, refresh_token, {}, url)).body.error).toBe('invalid_grant');
      expect((await oauth.refresh(clientId, body.refresh_token, {}, url)).body.error).toBe('invalid_grant');
    });

    it('redeems a code only once', async () => {
      const code = await oauth.code(clientId, (await oauth.member()).username);
      const { status, body } = await oauth.token(code, {}, url);
      expect(status).toBe(200);
      expect((await oauth.token(code, {}, url)).body.error).toBe('invalid_grant');
      expect(await oauth.me(body.access_token, url)).toBe(401);
    });

    it('keeps members signed in, and allows them to sign out', async () => {
      const { username } = await oauth.member();
      const browser = oauth.browser();
      await oauth.code(clientId, username, {}, browser);
      const after = moved(browser);
      expect(await after.isSignedIn()).toBe(true);
      const silent = await after.leave(oauth.request(clientId, { prompt: 'none' }).url);
      expect(silent.searchParams.has('code')).toBe(true);
      const page = await after.view('/account/sessions');
      expect(page.html.match(/\/account\/sessions\/[0-9a-f]{64}\/end/g)).toHaveLength(1);
      await after.submit(page, {}, /sign-out/);
      expect(await after.isSignedIn()).toBe(false);
    });

    it('accepts client secrets, and hashes each secret again when it is used', async () => {
      const { id, secret } = await clientWithSecret(oauth);
      const answers = async (origin: string) =>
        (await oauth.post('/oauth/revoke', { token: 'x'.repeat(43) }, basic(id, secret), origin)).status;
      const isMoved = async () => {
        const [row] = await oauth.query<{ pepper_id: Buffer }>(
          'SELECT pepper_id FROM oauth_client_secrets WHERE client_id = $1',
          [id],
        );
        return row!.pepper_id.equals(pepperIdsOf(new Secrets(NEW))[0]!);
      };
      expect([await answers(oauth.issuer), await isMoved()]).toEqual([200, false]);
      expect(await answers(url)).toBe(200);
      await eventually(async () => (await isMoved()) || undefined);
      oauth.api.app.get(RevocationChannel).announce('all');
      expect(await answers(oauth.issuer)).toBe(401);
      expect(await answers(url)).toBe(200);
    });
  });

  describe('without SECRET_KEY_PREVIOUS', () => {
    beforeAll(begin);
    afterAll(end);

    thorough.it(
      'prevents the start if it cannot decrypt the signing keys, and explains the cause',
      async () => {
        const other = Buffer.alloc(32, 'other');
        const unfit = await createApp({ ...oauth.api.config, secrets: new Secrets(other) });
        await expect(unfit.init()).rejects.toThrow(/signing key .* SECRET_KEY_PREVIOUS/);
        await endApp(unfit);
      },
    );

    it('invalidates codes, tokens, sessions and started sign-ins without an internal error', async () => {
      const { username } = await oauth.member();
      const browser = oauth.browser();
      const { body } = await oauth.token(await oauth.code(clientId, username, {}, browser));
      const code = await oauth.code(clientId, username, {}, browser);
      const begun = oauth.browser();
      const page = await begun.view(oauth.request(clientId).url);
      const { searchParams } = oauth.request(clientId).url;
      const pushed = await oauth.post('/oauth/par', Object.fromEntries(searchParams));
      await endApp(app);
      await oauth.query('DELETE FROM signing_keys'); // as an admin must do after losing the key
      await start(new Secrets(NEW));

      expect(await oauth.me(body.access_token, url)).toBe(401);
      for (const refused of [
        await oauth.refresh(clientId, body.refresh_token, {}, url),
        await oauth.token(code, {}, url),
      ])
        expect([refused.status, refused.body.error]).toEqual([400, 'invalid_grant']);
      const form = { token: body.access_token, client_id: clientId };
      expect((await oauth.post('/oauth/revoke', form, {}, url)).status).toBe(200);
      expect(await moved(browser).isSignedIn()).toBe(false);
      const expired = await moved(begun).view(page.url);
      expect([expired.status, /expired/.test(expired.html)]).toEqual([400, true]);
      expect((await oauth.browser(url).view(oauth.pushedUrl(clientId, pushed))).status).toBe(400);
      // Members can sign in again.
      const again = await oauth.code(clientId, username, {}, oauth.browser(url));
      expect((await oauth.token(again, {}, url)).status).toBe(200);
    });
  });
});
