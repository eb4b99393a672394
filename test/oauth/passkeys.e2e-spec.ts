import { createServer } from 'node:http';
import { randomBytes } from 'node:crypto';
import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { UsersService } from '../../src/accounts/users.service.js';
import { SignInMethods } from '../../src/accounts/sign-in/sign-in-methods.js';
import { atOnce, tally } from '../support/concurrent.js';
import { postgres, thorough } from '../support/database.js';
import { listen } from '../support/listen.js';
import { OauthTest, PASSWORD, type Browser, type FormPage, csrfOf } from '../support/oauth.js';
import {
  actionOf,
  addPasskey,
  atSecurity,
  Authenticator,
  memberWithPasskey,
  optionsFor,
  startWithPasskeys,
  withCertificate,
  type Changes,
} from '../support/passkeys.js';
import { itInOneWindow } from '../support/windows.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await startWithPasskeys({ developerConsole: true })));
afterAll(() => oauth.close());

/** Details of the member's latest audit event of this type. */
const lastDetails = async (user: number, type: string) => (await oauth.details({ user, type })).at(-1);

const passkeysOf = (userId: number) =>
  oauth.query<{ name: string; sign_count: number; backed_up: boolean; last_used_at: Date | null }>(
    'SELECT name, sign_count, backed_up, last_used_at FROM passkeys WHERE user_id = $1 ORDER BY id',
    [userId],
  );

/** A browser at the sign-in page of an authorization request. */
async function atSignIn(parameters: Record<string, string> = {}, browser = oauth.browser()) {
  const clientId = await oauth.client();
  const { url, redeem } = oauth.request(clientId, parameters);
  return { browser, clientId, redeem, page: await browser.view(url) };
}

/** Signs in at a sign-in page as its script does. */
async function signIn(browser: Browser, page: FormPage, authenticator: Authenticator, changes: Changes = {}) {
  const credential = authenticator.prove(await optionsFor(browser, page), changes);
  return browser.post(page, actionOf(page), { credential });
}

describe('a passkey', () => {
  thorough.it('signs a member in at the developer pages, and again before a key is created', async () => {
    const { id, authenticator } = await memberWithPasskey(oauth);
    await oauth.query('UPDATE users SET password_off_at = now() WHERE id = $1', [id]);
    const browser = oauth.browser();
    const first = await signIn(browser, await browser.view('/developer'), authenticator);
    expect([first.status, first.headers.get('location')]).toEqual([303, '/developer']);
    await oauth.ageSignIns(id, 600);
    const again = await browser.view('/developer/new-key/confirm');
    expect(actionOf(again)).toBe('/developer/new-key/passkey');
    expect((await signIn(browser, again, authenticator, { rpId: 'elsewhere.example' })).status).toBe(401);
    const second = await signIn(browser, again, authenticator);
    expect([second.status, second.headers.get('location')]).toEqual([303, '/developer/new-key']);
    expect((await browser.view('/developer/new-key')).html).toContain('action="/developer/keys"');
  });

  it.each([
    ['on one device', { eligible: false, done: false }, 'phrh'],
    ['on several devices', { eligible: true, done: true }, 'phr'],
  ])('%s signs a member in for an app, whose ID token states the method', async (_, backup, acr) => {
    const device = new Authenticator(oauth.issuer, 0, backup);
    const { id, username, authenticator } = await memberWithPasskey(oauth, device);
    const browser = oauth.browser();
    const clientId = await oauth.client();
    const configuration = await oauth.configuration(clientId);
    const { url, verifier } = oauth.request(clientId, { nonce: 'n' });
    const page = await browser.view(url);
    const credential = authenticator.prove(await optionsFor(browser, page));
    const consent = await browser.press(page, { credential }, /\/passkey$/);
    expect(consent.html).toContain(username);
    const back = await browser.allow(consent, 'profile:read');
    const checks = { pkceCodeVerifier: verifier, expectedNonce: 'n' };
    const claims = (await client.authorizationCodeGrant(configuration, back, checks)).claims()!;
    expect([claims.sub, claims.amr, claims.acr]).toEqual([String(id), ['pop', 'user'], acr]);
    expect(Math.abs(Number(claims.auth_time) - Date.now() / 1000)).toBeLessThan(60);
    expect(await lastDetails(id, 'sign_in.succeeded')).toEqual({ method: 'passkey', language: 'en' });
    expect((await passkeysOf(id))[0]!.last_used_at).not.toBeNull();
  });

  it('signs a member in at four account pages, and sets the device cookie', async () => {
    const { authenticator } = await memberWithPasskey(oauth);
    const browser = oauth.browser();
    for (const path of ['apps', 'sessions', 'activity', 'security']) {
      const response = await signIn(browser, await browser.view(`/account/${path}`), authenticator);
      expect([path, response.status, response.headers.get('location')]).toEqual([
        path,
        303,
        `/account/${path}`,
      ]);
      expect((await browser.view(`/account/${path}`)).html).not.toContain(`/account/${path}/sign-in`);
      expect(browser.cookies.get('pua_device;/')).toBeDefined();
      for (const name of browser.cookies.keys()) if (/session/.test(name)) browser.cookies.delete(name);
    }
  });

  it('is requested without member data, even if the app sends login_hint', async () => {
    const { browser, page } = await atSignIn({ login_hint: (await memberWithPasskey(oauth)).username });
    const { challenge, ...options } = await optionsFor(browser, page);
    expect(options).toEqual({ rpId: 'localhost', timeout: 120_000, userVerification: 'required' });
    expect(Buffer.from(challenge, 'base64url')).toHaveLength(32);
    expect((await optionsFor(browser, page)).challenge).not.toBe(challenge);
  });

  it('is discoverable, requires user verification, and has a user handle without the member’s id', async () => {
    const fields = { id: 8_123_456_789 }; // random bytes do not contain this id by chance
    const { id, username, browser, authenticator } = await memberWithPasskey(oauth, undefined, fields);
    const options = await optionsFor(browser, await browser.view('/account/security'));
    expect(options).toMatchObject({
      rp: { id: 'localhost' },
      user: { name: username },
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      excludeCredentials: [{ id: authenticator.credentialId.toString('base64url'), type: 'public-key' }],
    });
    // All passkeys of a member share one user handle, so that an authenticator replaces the old passkey.
    expect(options.user.id).toBe(authenticator.userHandle);
    expect(Buffer.from(options.user.id, 'base64url')).toHaveLength(64);
    expect(Buffer.from(options.user.id, 'base64url').includes(String(id))).toBe(false);
  });

  thorough.it('is shown with its name, last use, and “Synced”; a member can use two passkeys', async () => {
    const first = await memberWithPasskey(oauth);
    const phone = new Authenticator(oauth.issuer, 0, { eligible: true, done: true });
    const { html } = await addPasskey(first.browser, phone, '  Ada’s <b>phone</b> ');
    expect(html).toContain('<bdi>Laptop</bdi>');
    expect(html).toContain('<bdi>Ada’s &lt;b&gt;phone&lt;/b&gt;</bdi> <span class="badge">Synced</span>');
    expect(html.match(/Not yet/g)).toHaveLength(2);
    for (const authenticator of [first.authenticator, phone]) {
      const { browser, page: at } = await atSignIn();
      expect((await signIn(browser, at, authenticator)).status).toBe(303);
    }
    expect((await first.browser.view('/account/security')).html).not.toContain('Not yet');
    expect(await oauth.events({ user: first.id, type: 'passkey.added' })).toMatchObject([
      { actor: 'user', ip: '127.0.0.1', details: { synced: false } },
      { actor: 'user', ip: '127.0.0.1', details: { synced: true } },
    ]);
  });

  thorough.it('signs a member in even if guessed passwords have blocked the password', async () => {
    const { username, authenticator } = await memberWithPasskey(oauth);
    for (let i = 0; i < 12; i++) await oauth.browser().signIn('/account/apps', username, 'guess');
    const { browser, page } = await atSignIn();
    expect((await browser.press(page, { username, password: PASSWORD }, /sign-in$/)).status).toBe(429);
    expect((await signIn(browser, page, authenticator)).status).toBe(303);
  });
});

describe('a wrong passkey proof', () => {
  const REFUSED = [401, expect.stringContaining('Your passkey could not be used.')];
  const WRONG: [string, Changes][] = [
    ['of another site', { origin: 'https://evil.example' }],
    ['of another port', { origin: 'http://localhost:1' }],
    ['for another relying party', { rpId: 'evil.example' }],
    ['from within a page of another site', { crossOrigin: true }],
    ['of a registration', { type: 'webauthn.create' }],
    ['without user verification', { flags: 0x01 }],
    ['without user presence', { flags: 0x04 }],
    ['of a single-device passkey that became a synced passkey', { flags: 0x0d }],
    ['for another member', { userHandle: randomBytes(64).toString('base64url') }],
    ['with another signature', { signature: randomBytes(70) }],
    ['of an unknown passkey', { credentialId: randomBytes(32) }],
    ['for a challenge that was never issued', { challenge: randomBytes(32).toString('base64url') }],
  ];

  thorough.it.each(WRONG)(
    '%s signs no member in, and gets the same error as the other wrong proofs',
    async (_, changes) => {
      const { id, authenticator } = await memberWithPasskey(oauth);
      const { browser, page } = await atSignIn();
      const response = await signIn(browser, page, authenticator, changes);
      expect([response.status, await response.text()]).toEqual(REFUSED);
      expect((await passkeysOf(id))[0]!.last_used_at).toBeNull();
      expect(await oauth.details({ user: id, type: 'sign_in.succeeded' })).toMatchObject([
        { method: 'password' },
      ]);
    },
  );

  thorough.it.each([
    ['an empty text', ''],
    ['a text that is not JSON', '{'],
    ['null', 'null'],
    ['a list', '[]'],
    ['JSON without a response', '{"id":"AA","type":"public-key"}'],
    ['invalid base64', '{"id":"A A","type":"public-key","response":{"clientDataJSON":"…"}}'],
    ['JSON with a prototype', '{"__proto__":{"id":"AA"},"response":{"clientDataJSON":"bnVsbA"}}'],
    ['deep JSON', '['.repeat(4_000)],
    ['U+0000', '{"id":"\\u0000"}'],
  ])('sent as %s is rejected at a sign-in and at a registration', async (_, credential) => {
    const { browser, page } = await atSignIn();
    expect((await browser.post(page, actionOf(page), { credential })).status).toBe(401);
    const own = await atSecurity(oauth, (await oauth.member()).username);
    expect((await own.browser.post(own.page, '/account/security/passkeys', { credential })).status).toBe(409);
  });

  it('of a disabled member gets the same error as other wrong proofs, and the audit log names the reason', async () => {
    const { id, authenticator } = await memberWithPasskey(oauth);
    await new UsersService(oauth.dataSource).disable(id, 'admin');
    const { browser, page } = await atSignIn();
    const response = await signIn(browser, page, authenticator);
    expect([response.status, await response.text()]).toEqual(REFUSED);
    expect(await lastDetails(id, 'sign_in.refused')).toEqual({ method: 'passkey', reason: 'disabled' });
  });

  it('whose counter has not increased is rejected as a copy and audited, until the counter increases', async () => {
    const { id, authenticator } = await memberWithPasskey(oauth, new Authenticator(oauth.issuer, 5));
    const attempt = async () => {
      const { browser, page } = await atSignIn();
      return (await signIn(browser, page, authenticator)).status;
    };
    authenticator.signCount = 7;
    expect(await attempt()).toBe(303);
    for (const copy of [7, 6, 1]) {
      authenticator.signCount = copy;
      expect([copy, await attempt()]).toEqual([copy, 401]);
      expect(await lastDetails(id, 'sign_in.refused')).toEqual({
        method: 'passkey',
        reason: 'counter_went_back',
      });
    }
    authenticator.signCount = 0;
    expect(await attempt()).toBe(401);
    authenticator.signCount = 8;
    expect(await attempt()).toBe(303);
    expect((await passkeysOf(id))[0]!.sign_count).toBe(8);
  });

  thorough.it('with a wrong signature is audited as wrong, even if the counter has decreased', async () => {
    const { id, authenticator } = await memberWithPasskey(oauth, new Authenticator(oauth.issuer, 9));
    authenticator.signCount = 1;
    const { browser, page } = await atSignIn();
    await signIn(browser, page, authenticator, { signature: randomBytes(70) });
    expect(await lastDetails(id, 'sign_in.refused')).toEqual({ method: 'passkey', reason: 'wrong_proof' });
  });
});

describe('a passkey challenge', () => {
  thorough.it('is accepted in only one of 20 concurrent sign-ins', async () => {
    const { id, authenticator } = await memberWithPasskey(oauth);
    const { browser, page } = await atSignIn();
    const credential = authenticator.prove(await optionsFor(browser, page));
    const answers = await atOnce(20, () => browser.post(page, actionOf(page), { credential }));
    expect(tally(answers.map(({ status }) => status))).toEqual({ 303: 1, 401: 19 });
    expect(await oauth.details({ user: id, type: 'sign_in.succeeded' })).toMatchObject([
      { method: 'password' },
      { method: 'passkey' },
    ]);
  });

  thorough.it('sent by another browser is rejected, and stays valid for its own browser', async () => {
    const { authenticator } = await memberWithPasskey(oauth);
    const [own, other] = [await atSignIn(), await atSignIn()];
    const credential = authenticator.prove(await optionsFor(own.browser, own.page));
    expect((await other.browser.post(other.page, actionOf(other.page), { credential })).status).toBe(401);
    expect((await own.browser.post(own.page, actionOf(own.page), { credential })).status).toBe(303);
  });

  it('for an account sign-in is rejected in an app sign-in, and vice versa', async () => {
    const { authenticator } = await memberWithPasskey(oauth);
    const { browser, page } = await atSignIn();
    const account = await browser.view('/account/apps');
    const forAccount = authenticator.prove(await optionsFor(browser, account));
    expect((await browser.post(page, actionOf(page), { credential: forAccount })).status).toBe(401);
    const forApp = authenticator.prove(await optionsFor(browser, page));
    const atAccount = await browser.post(account, '/account/sessions/passkey', { credential: forApp });
    expect(atAccount.status).toBe(401);
  });

  it('expires after two minutes', async () => {
    const { authenticator } = await memberWithPasskey(oauth);
    const { browser, page } = await atSignIn();
    const credential = authenticator.prove(await optionsFor(browser, page));
    const [row] = await oauth.query<{ seconds: number }>(
      `SELECT extract(epoch FROM max(expires_at) - now())::float8 AS seconds FROM oauth_state WHERE model = 'PasskeySignIn'`,
    );
    expect(row!.seconds).toBeLessThanOrEqual(120);
    await oauth.query(
      `UPDATE oauth_state SET expires_at = expires_at - interval '121 seconds' WHERE model = 'PasskeySignIn'`,
    );
    expect((await browser.post(page, actionOf(page), { credential })).status).toBe(401);
  });

  thorough.it(
    'to add a passkey is accepted in only one of ten concurrent requests, and not from another member’s session',
    async () => {
      const { id, username } = await oauth.member();
      const { browser, page } = await atSecurity(oauth, username);
      const options = await optionsFor(browser, page);
      const other = await atSecurity(oauth, (await oauth.member()).username);
      const add = async (from: typeof other) => {
        const credential = new Authenticator(oauth.issuer).register(options);
        return (await from.browser.post(from.page, '/account/security/passkeys', { credential })).status;
      };
      expect(await add(other)).toBe(409);
      expect(tally(await atOnce(10, () => add({ browser, page })))).toEqual({ 303: 1, 409: 9 });
      expect(await passkeysOf(id)).toHaveLength(1);
    },
  );

  it('is stored encrypted: its row shows neither the challenge nor the path of the sign-in', async () => {
    const { browser, page } = await atSignIn();
    const { challenge } = await optionsFor(browser, page);
    const rows = await oauth.query<{ row: string }>(
      `SELECT encode(key, 'hex') || encode(payload, 'escape') AS row FROM oauth_state WHERE model = 'PasskeySignIn'`,
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const { row } of rows) {
      expect(row).not.toContain(challenge);
      expect(row).not.toContain('/interaction/');
    }
  });
});

describe('a passkey registration', () => {
  const refused = async (changes: Changes, authenticator = new Authenticator(oauth.issuer)) => {
    const member = await oauth.member();
    const { browser, page } = await atSecurity(oauth, member.username);
    const credential = authenticator.register(await optionsFor(browser, page), changes);
    const response = await browser.post(page, '/account/security/passkeys', { credential });
    expect([response.status, await passkeysOf(member.id)]).toEqual([409, []]);
  };

  thorough.it.each<[string, Changes]>([
    ['made for another site', { origin: 'https://evil.example' }],
    ['for another relying party', { rpId: 'evil.example' }],
    ['from a sign-in', { type: 'webauthn.get' }],
    ['without user verification', { flags: 0x01 }],
    ['with another challenge', { challenge: randomBytes(32).toString('base64url') }],
    ['with an attestation statement of an unknown format', { attestation: ['made-up', Buffer.from([0xa0])] }],
  ])('%s is rejected', (_, changes) => refused(changes));

  thorough.it('is rejected with an attestation certificate, whose URL the server never follows', async () => {
    let asked = 0;
    const server = createServer((_, response) => {
      asked++;
      response.end();
    });
    await refused({ attestation: withCertificate(Buffer.from(`${await listen(server)}/crl`)) });
    for (const format of ['tpm', 'apple', 'android-key', 'android-safetynet', 'fido-u2f'])
      await refused({ attestation: [format, withCertificate(randomBytes(300))[1]] });
    server.close();
    expect(asked).toBe(0);
  });

  it('is rejected if another member has a passkey with the same id', async () => {
    const { authenticator } = await memberWithPasskey(oauth);
    await refused({ credentialId: authenticator.credentialId });
  });

  thorough.it('is limited to 20 passkeys per member, even with concurrent requests', async () => {
    const { id, browser } = await memberWithPasskey(oauth);
    await oauth.query(
      `INSERT INTO passkeys (user_id, credential_id, user_handle, public_key, sign_count, backup_eligible, backed_up, name)
SELECT $1::bigint, decode(md5($1::bigint::text || n), 'hex'), '\\x01', '\\x01', 0, false, false, 'one of many' FROM generate_series(1, 18) n`,
      [id],
    );
    const page = await browser.view('/account/security');
    const statuses = await atOnce(3, async () => {
      const credential = new Authenticator(oauth.issuer).register(await optionsFor(browser, page));
      return (await browser.post(page, '/account/security/passkeys', { credential })).status;
    });
    expect(tally(statuses)).toEqual({ 303: 1, 409: 2 });
    expect(await passkeysOf(id)).toHaveLength(20);
    expect((await browser.view('/account/security')).html).toContain('You’ve reached the limit of passkeys.');
  });
});

describe('a change of sign-in methods', () => {
  it('requires a sign-in within the last five minutes; otherwise the page asks for it, and nothing changes', async () => {
    const { id, username, browser, authenticator } = await memberWithPasskey(oauth);
    const page = await browser.view('/account/security');
    const forms = page.html.match(/(?<=action=")\/account\/security\/(passkeys|password)[^"]*/g)!;
    expect(forms).toHaveLength(4);
    await oauth.ageSignIns(id, 180);
    expect((await browser.view('/account/security')).html).not.toContain('Confirm that it is you');
    const credential = new Authenticator(oauth.issuer).register(await optionsFor(browser, page));

    await oauth.ageSignIns(id, 121);
    const old = await browser.view('/account/security');
    expect(old.html).toContain('<a class="link" href="/account/security/confirm">Confirm that it is you</a>');
    expect(old.html).not.toMatch(/action="\/account\/security/);
    expect(old.html).toContain('<bdi>Laptop</bdi>');
    const options = await browser.post(page, '/account/security/passkeys/options');
    expect([options.status, await options.json()]).toEqual([409, { confirm: '/account/security/confirm' }]);
    for (const path of forms) {
      const { status, headers } = await browser.post(page, path, { credential });
      expect([path, status, headers.get('location')]).toEqual([path, 303, '/account/security/confirm']);
    }
    expect(await passkeysOf(id)).toHaveLength(1);
    expect(await oauth.events({ user: id, type: 'user.password_switched' })).toEqual([]);

    const confirm = await browser.view('/account/security/confirm');
    expect(confirm.html).toContain(`value="${username}"`);
    expect((await signIn(browser, confirm, authenticator)).headers.get('location')).toBe('/account/security');
    const fresh = await browser.view('/account/security');
    expect(fresh.html).toContain('action="/account/security/password/off"');
  });

  thorough.it('is rejected if the member’s sign-in has ended', async () => {
    const { id, browser } = await memberWithPasskey(oauth);
    const page = await browser.view('/account/security');
    await oauth.query('UPDATE users SET sign_ins_valid_since = clock_timestamp() WHERE id = $1', [id]);
    for (const path of ['password/off', 'passkeys/options', 'passkeys', 'passkeys/1/remove'])
      expect([path, (await browser.post(page, `/account/security/${path}`)).status]).toEqual([path, 401]);
  });

  it('cannot remove another member’s passkey', async () => {
    const victim = await memberWithPasskey(oauth);
    const [passkey] = await new SignInMethods(oauth.dataSource).listPasskeys(victim.id);
    const mine = await memberWithPasskey(oauth);
    const page = await mine.browser.view('/account/security');
    const path = `/account/security/passkeys/${passkey!.id}/remove`;
    expect((await mine.browser.post(page, path)).status).toBe(303); // as if it had been removed already
    expect(await passkeysOf(victim.id)).toHaveLength(1);
    for (const id of ['0', 'x', '-1', '99999999999999999', '1e3'])
      expect((await mine.browser.post(page, `/account/security/passkeys/${id}/remove`)).status).toBe(400);
  });
});

describe('the last sign-in method', () => {
  it('cannot be removed: a passkey of a member without a password, or with a disabled password', async () => {
    const { id, browser } = await memberWithPasskey(oauth);
    const page = await browser.view('/account/security');
    const remove = /\/account\/security\/passkeys\/\d+\/remove/.exec(page.html)![0];
    expect((await browser.post(page, '/account/security/password/off')).status).toBe(303);
    const alone = await browser.view('/account/security');
    expect(alone.html).toContain('Your only sign-in method: you can’t remove it.');
    expect(alone.html).not.toContain(remove);
    const refused = await browser.post(page, remove);
    expect(refused.status).toBe(409);
    expect(await refused.text()).toContain('your only sign-in method');
    await oauth.query('UPDATE users SET password_hash = NULL, password_off_at = NULL WHERE id = $1', [id]);
    expect((await browser.post(page, remove)).status).toBe(409);
    await addPasskey(browser, new Authenticator(oauth.issuer), 'Phone');
    expect((await browser.post(page, remove)).status).toBe(303);
    expect((await passkeysOf(id)).map(({ name }) => name)).toEqual(['Phone']);
    expect(await oauth.events({ user: id, type: 'passkey.removed' })).toHaveLength(1);
  });

  thorough.it('may be the external identity provider: its users can remove their only passkey', async () => {
    const { id } = await memberWithPasskey(oauth);
    await oauth.query('UPDATE users SET password_hash = NULL WHERE id = $1', [id]);
    const ways = new SignInMethods(oauth.dataSource);
    const [passkey] = await ways.listPasskeys(id);
    const by = { userId: id, at: Math.floor(Date.now() / 1000), validSince: null, ip: null };
    expect(await ways.removePasskey({ ...by, upstream: false }, passkey!.id)).toBe(false);
    expect(await ways.removePasskey({ ...by, upstream: true }, passkey!.id)).toBe(true);
  });

  thorough.it('cannot be removed: a password without a passkey', async () => {
    const { id, username } = await oauth.member();
    const { browser, page } = await atSecurity(oauth, username);
    expect(page.html).not.toContain('Disable the password');
    expect((await browser.post(page, '/account/security/password/off')).status).toBe(409);
    expect(await oauth.events({ user: id, type: 'user.password_switched' })).toEqual([]);
  });

  postgres.it('remains when the member removes all methods at the same time', async () => {
    for (let round = 0; round < 5; round++) {
      const { id, browser } = await memberWithPasskey(oauth);
      const page = await addPasskey(browser, new Authenticator(oauth.issuer), 'Phone');
      const removals = page.html.match(/\/account\/security\/passkeys\/\d+\/remove/g)!;
      expect(removals).toHaveLength(2);
      await Promise.all(
        ['/account/security/password/off', ...removals].map((path) => browser.post(page, path)),
      );
      const [left] = await oauth.query<{ ways: number }>(
        `SELECT (SELECT count(*) FROM passkeys WHERE user_id = u.id) + (u.password_off_at IS NULL)::int AS ways FROM users u WHERE id = $1`,
        [id],
      );
      expect(left!.ways).toBe(1);
    }
  });
});

describe('a disabled password', () => {
  it('is rejected like a wrong password, and accepted again when the member enables it', async () => {
    const { id, username, browser, authenticator } = await memberWithPasskey(oauth);
    const off = await browser.press(await browser.view('/account/security'), {}, /password\/off$/);
    expect(off.html).toContain('Your password is disabled.');
    const attempt = () => oauth.browser().signIn('/account/apps', username);
    const refused = await attempt();
    expect(refused.status).toBe(401);
    expect(refused.html).toContain('The username or password is wrong.');
    expect(await lastDetails(id, 'sign_in.refused')).toEqual({ method: 'password', reason: 'no_password' });
    const kept = 'SELECT FROM users WHERE id = $1 AND password_hash IS NOT NULL';
    expect(await oauth.query(kept, [id])).toHaveLength(1);
    const signedIn = await atSignIn();
    expect((await signIn(signedIn.browser, signedIn.page, authenticator)).status).toBe(303);
    const on = await browser.press(off, {}, /password\/on$/);
    expect(on.html).toContain('You can sign in with your password again.');
    expect((await attempt()).status).toBe(200);
    const switched = await oauth.details({ user: id, type: 'user.password_switched' });
    expect(switched).toEqual([{ on: false }, { on: true }]);
  });

  thorough.it(
    'stays disabled if the hash is written again, and is enabled when an admin sets a new password',
    async () => {
      const { id, username, browser } = await memberWithPasskey(oauth);
      await browser.submit(await browser.view('/account/security'), {}, /password\/off$/);
      const off = () =>
        oauth.query('SELECT password_off_at IS NOT NULL AS off FROM users WHERE id = $1', [id]);
      await oauth.query('UPDATE users SET password_hash = password_hash WHERE id = $1', [id]);
      expect(await off()).toEqual([{ off: true }]);
      const password = 'a new one for who lost the phone';
      await new UsersService(oauth.dataSource).setPassword(id, password, 'admin');
      expect(await off()).toEqual([{ off: false }]);
      expect((await oauth.browser().signIn('/account/apps', username, password)).status).toBe(200);
    },
  );
});

describe('an app that sends max_age=0', () => {
  thorough.it('makes the member sign in again, and a passkey suffices', async () => {
    const { authenticator } = await memberWithPasskey(oauth);
    const browser = oauth.browser();
    await signIn(browser, await browser.view('/account/apps'), authenticator);
    const { page } = await atSignIn({ max_age: '0' }, browser);
    expect(page.html).toContain('id="passkey"');
    expect((await signIn(browser, page, authenticator)).status).toBe(303);
  });
});

thorough.describe('a passkey sign-in', () => {
  it('shows no consent page if the member’s sign-ins end between the passkey proof and the new session', async () => {
    const { id, authenticator } = await memberWithPasskey(oauth);
    const { browser, page } = await atSignIn();
    const response = await signIn(browser, page, authenticator);
    await oauth.query('UPDATE users SET sign_ins_valid_since = clock_timestamp() WHERE id = $1', [id]);
    expect((await browser.view(response.headers.get('location')!)).html).not.toContain('value="allow"');
  });

  it('starts a new session: a session id that an attacker planted in the browser is rejected', async () => {
    const { authenticator } = await memberWithPasskey(oauth);
    const [attacker, victim] = [oauth.browser(), oauth.browser()];
    await attacker.open('/oauth/logout');
    for (const [name, cookie] of attacker.cookies) victim.cookies.set(name, cookie);
    await signIn(victim, await victim.view('/account/apps'), authenticator);
    expect(await victim.isSignedIn()).toBe(true);
    expect(await attacker.isSignedIn()).toBe(false);
  });

  it('requires this server’s form for the passkey options and for the proof', async () => {
    const { browser, page } = await atSignIn();
    const foreign = csrfOf(await oauth.browser().view('/account/apps'));
    for (const action of ['/account/apps/passkey', actionOf(page)])
      for (const path of [action, `${action}/options`])
        for (const [csrf, Origin] of [
          ['', 'null'],
          [foreign, 'null'],
          [csrfOf(page), 'https://evil.example'],
        ] as const) {
          const body = new URLSearchParams({ csrf });
          const { status } = await browser.send(path, { method: 'POST', body, headers: { Origin } });
          expect([path, status]).toEqual([path, 403]);
        }
  });
});

thorough.it('two instances with passkeys accept a challenge only once, on either instance', async () => {
  await using other = await OauthTest.start({ publicUrl: oauth.issuer }, oauth);
  expect(new URL(other.api.url).host).not.toBe(new URL(oauth.issuer).host);
  const { authenticator } = await memberWithPasskey(oauth);
  const { browser, page } = await atSignIn();
  const credential = authenticator.prove(await optionsFor(browser, page));
  const there = oauth.browser(other.api.url);
  for (const [name, cookie] of browser.cookies) there.cookies.set(name, cookie);
  const statuses = await Promise.all(
    [browser, there].map(async (at) => (await at.post(page, actionOf(page), { credential })).status),
  );
  expect(tally(statuses)).toEqual({ 303: 1, 401: 1 });
});

thorough.it.each<[string, Parameters<typeof OauthTest.start>[0]]>([
  ['on an IP address instead of a hostname', {}],
  [
    'if the external identity provider is the only sign-in method',
    { publicUrl: 'http://localhost:1', localSignIn: false },
  ],
])('disabled passkeys appear on no page, and no route accepts a passkey: %s', async (_, overrides) => {
  const { browser: known, page } = await atSignIn();
  await using without = await OauthTest.start(overrides, oauth);
  const browser = without.browser(without.api.url);
  expect(JSON.stringify(await browser.open('/account/apps'))).not.toContain('id="passkey"');
  for (const [name, cookie] of known.cookies) browser.cookies.set(name, cookie);
  for (const path of ['/account/apps/passkey', '/account/apps/passkey/options'])
    expect([path, (await browser.post(page, path, { credential: '{}' })).status]).toEqual([path, 400]);
  const metadata = await fetch(`${without.api.url}/.well-known/openid-configuration`);
  expect(await metadata.json()).not.toHaveProperty('acr_values_supported');
});

describe('RATE_LIMIT_AUTH for passkeys', () => {
  const startWith = (auth: number) =>
    startWithPasskeys({ rateLimits: { ...oauth.api.config.rateLimits, auth } }, oauth);
  const attempt = async (at: OauthTest, authenticator: Authenticator, changes: Changes = {}) => {
    const browser = at.browser();
    return signIn(browser, await browser.view('/account/apps'), authenticator, changes);
  };
  const WRONG = { origin: 'https://evil.example' };

  itInOneWindow(
    'limits rejected passkeys per address, without affecting passwords from that address',
    async () => {
      await using limited = await startWith(3);
      // Failures of other tests count in the same window.
      await oauth.query('DELETE FROM login_throttle');
      await oauth.query('DELETE FROM rate_limit_counts');
      const { username, authenticator } = await memberWithPasskey(limited);
      for (let i = 0; i < 4; i++) expect((await attempt(limited, authenticator)).status).toBe(303);
      for (let i = 0; i < 3; i++) expect((await attempt(limited, authenticator, WRONG)).status).toBe(401);
      const refused = await attempt(limited, authenticator);
      expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
      expect((await atSecurity(limited, username)).page.html).toContain('Laptop');
    },
  );

  thorough.it('allows a passkey sign-in after a failure if it is 0', async () => {
    await using unlimited = await startWith(0);
    const { authenticator } = await memberWithPasskey(unlimited);
    expect((await attempt(unlimited, authenticator, WRONG)).status).toBe(401);
    expect((await attempt(unlimited, authenticator)).status).toBe(303);
  });
});
