import { createServer } from 'node:http';
import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { UsersService } from '../../src/accounts/users.service.js';
import { SignInMethods } from '../../src/accounts/sign-in/sign-in-methods.js';
import { postgres, thorough } from '../support/database.js';
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

/** The member's audit events, the latest first. */
const trailOf = (userId: number, type: string) =>
  oauth.query<{ details: Record<string, unknown>; actor: string; ip: string | null }>(
    'SELECT details, actor, host(ip) AS ip FROM auth_events WHERE user_id = $1 AND type = $2 ORDER BY id DESC',
    [userId, type],
  );

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
  thorough.it(
    'signs a member in at the developer pages, and again before a key is created, without a password',
    async () => {
      const { id, authenticator } = await memberWithPasskey(oauth);
      await oauth.query('UPDATE users SET password_off_at = now() WHERE id = $1', [id]);
      const browser = oauth.browser();
      const first = await signIn(browser, await browser.view('/developer'), authenticator);
      expect([first.status, first.headers.get('location')]).toEqual([303, '/developer']);
      await oauth.query(
        "UPDATE oauth_sessions SET signed_in_at = now() - interval '10 minutes' WHERE user_id = $1",
        [id],
      );
      const again = await browser.view('/developer/new-key/confirm');
      expect(actionOf(again)).toBe('/developer/new-key/passkey');
      const wrong = await signIn(browser, again, authenticator, { rpId: 'elsewhere.example' });
      expect(wrong.status).toBe(401);
      const second = await signIn(browser, again, authenticator);
      expect([second.status, second.headers.get('location')]).toEqual([303, '/developer/new-key']);
      expect((await browser.view('/developer/new-key')).html).toContain('action="/developer/keys"');
    },
  );

  it.each([
    ['on one device', { eligible: false, done: false }, 'phrh'],
    ['on several devices', { eligible: true, done: true }, 'phr'],
  ])('%s signs a member in for an app, whose ID token states the method', async (_, backup, acr) => {
    const { id, username, authenticator } = await memberWithPasskey(
      oauth,
      new Authenticator(oauth.issuer, 0, backup),
    );
    const browser = oauth.browser();
    const clientId = await oauth.client();
    const configuration = await oauth.configuration(clientId);
    const { url, verifier } = oauth.request(clientId, { nonce: 'n' });
    const page = await browser.view(url);
    const credential = authenticator.prove(await optionsFor(browser, page));
    const consent = await browser.press(page, { credential }, /\/passkey$/);
    expect(consent.html).toContain(username);
    const back = (await browser.submit(
      consent,
      { decision: 'allow', scope: ['profile:read'] },
      /consent$/,
    )) as URL;
    const tokens = await client.authorizationCodeGrant(configuration, back, {
      pkceCodeVerifier: verifier,
      expectedNonce: 'n',
    });
    const claims = tokens.claims()!;
    expect([claims.sub, claims.amr, claims.acr]).toEqual([String(id), ['pop', 'user'], acr]);
    expect(Math.abs(Number(claims.auth_time) - Date.now() / 1000)).toBeLessThan(60);
    expect((await trailOf(id, 'sign_in.succeeded'))[0]!.details).toEqual({
      method: 'passkey',
      language: 'en',
    });
    expect((await passkeysOf(id))[0]!.last_used_at).not.toBeNull();
  });

  it('signs a member in at each account page, and remembers the browser', async () => {
    const { authenticator } = await memberWithPasskey(oauth);
    const browser = oauth.browser();
    for (const path of ['apps', 'sessions', 'activity', 'security']) {
      const page = await browser.view(`/account/${path}`);
      const response = await signIn(browser, page, authenticator);
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

  it('is requested without a username: the browser gets the same data for every member', async () => {
    const { browser, page } = await atSignIn({ login_hint: (await memberWithPasskey(oauth)).username });
    const { challenge, ...options } = await optionsFor(browser, page);
    expect(options).toEqual({ rpId: 'localhost', timeout: 120_000, userVerification: 'required' });
    expect(Buffer.from(challenge, 'base64url')).toHaveLength(32);
    expect((await optionsFor(browser, page)).challenge).not.toBe(challenge);
  });

  it('is discoverable, requires user verification, and contains no member data', async () => {
    // A member id that random bytes do not contain by chance.
    const { id, username, browser, authenticator } = await memberWithPasskey(oauth, undefined, {
      id: 8_123_456_789,
    });
    const page = await browser.view('/account/security');
    const options = (await optionsFor(browser, page)) as unknown as Record<string, unknown> & {
      user: { id: string };
      challenge: string;
    };
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

  thorough.it(
    'is shown with its name, creation, last use and backups; a member can use two passkeys',
    async () => {
      const first = await memberWithPasskey(oauth);
      const phone = new Authenticator(oauth.issuer, 0, { eligible: true, done: true });
      const page = await addPasskey(first.browser, phone, '  Ada’s <b>phone</b> ');
      expect(page.html).toContain('<bdi>Laptop</bdi>');
      expect(page.html).toContain(
        '<bdi>Ada’s &lt;b&gt;phone&lt;/b&gt;</bdi> <span class="badge">Synced</span>',
      );
      expect(page.html.match(/Not yet/g)).toHaveLength(2);
      for (const authenticator of [first.authenticator, phone]) {
        const { browser, page: at } = await atSignIn();
        expect((await signIn(browser, at, authenticator)).status).toBe(303);
      }
      expect((await first.browser.view('/account/security')).html).not.toContain('Not yet');
      expect(await trailOf(first.id, 'passkey.added')).toMatchObject([
        { actor: 'user', ip: '127.0.0.1', details: { synced: true } },
        { actor: 'user', details: { synced: false } },
      ]);
    },
  );

  thorough.it('is not throttled by guessed passwords', async () => {
    const { username, authenticator } = await memberWithPasskey(oauth);
    for (let i = 0; i < 12; i++) {
      const browser = oauth.browser();
      const page = await browser.view('/account/apps');
      await browser.submit(page, { username, password: 'guess' });
    }
    const { browser, page } = await atSignIn();
    const password = await browser.press(page, { username, password: PASSWORD }, /sign-in$/);
    expect(password.status).toBe(429);
    expect((await signIn(browser, page, authenticator)).status).toBe(303);
  });
});

describe('a wrong passkey proof', () => {
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
    '%s signs no member in, and is rejected like every other wrong proof',
    async (_, changes) => {
      const { id, authenticator } = await memberWithPasskey(oauth);
      const { browser, page } = await atSignIn();
      const response = await signIn(browser, page, authenticator, changes);
      const html = await response.text();
      expect(response.status).toBe(401);
      expect(html).toContain('Your passkey could not be used.');
      expect((await passkeysOf(id))[0]!.last_used_at).toBeNull();
      expect((await trailOf(id, 'sign_in.succeeded')).map(({ details }) => details.method)).toEqual([
        'password',
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
  ])('as %s is rejected, and never fails the server', async (_, credential) => {
    const { browser, page } = await atSignIn();
    expect((await browser.post(page, actionOf(page), { credential })).status).toBe(401);
    const member = await oauth.member();
    const own = await atSecurity(oauth, member.username);
    expect((await own.browser.post(own.page, '/account/security/passkeys', { credential })).status).toBe(409);
  });

  it('of a disabled member gets the same error as other wrong proofs, and the audit log names the reason', async () => {
    const { id, authenticator } = await memberWithPasskey(oauth);
    await new UsersService(oauth.dataSource).disable(id, 'admin');
    const { browser, page } = await atSignIn();
    const response = await signIn(browser, page, authenticator);
    expect([response.status, await response.text()]).toEqual([
      401,
      expect.stringContaining('Your passkey could not be used.'),
    ]);
    expect((await trailOf(id, 'sign_in.refused'))[0]!.details).toEqual({
      method: 'passkey',
      reason: 'disabled',
    });
  });

  it('whose counter has not increased is rejected as a copy and audited; with an increased counter it is accepted', async () => {
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
      expect((await trailOf(id, 'sign_in.refused'))[0]!.details).toEqual({
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

  thorough.it('with a wrong signature causes no audit event about a decreased counter', async () => {
    const { id, authenticator } = await memberWithPasskey(oauth, new Authenticator(oauth.issuer, 9));
    authenticator.signCount = 1;
    const { browser, page } = await atSignIn();
    await signIn(browser, page, authenticator, { signature: randomBytes(70) });
    expect((await trailOf(id, 'sign_in.refused'))[0]!.details).toEqual({
      method: 'passkey',
      reason: 'wrong_proof',
    });
  });
});

describe('a passkey challenge', () => {
  thorough.it('is accepted in only one of 50 concurrent responses', async () => {
    const { id, authenticator } = await memberWithPasskey(oauth);
    const { browser, page } = await atSignIn();
    const credential = authenticator.prove(await optionsFor(browser, page));
    const statuses = await Promise.all(
      Array.from(
        { length: 50 },
        async () => (await browser.post(page, actionOf(page), { credential })).status,
      ),
    );
    expect(statuses.toSorted((one, other) => one - other)).toEqual([
      303,
      ...Array.from({ length: 49 }, () => 401),
    ]);
    expect(
      (await trailOf(id, 'sign_in.succeeded')).filter(({ details }) => details.method === 'passkey'),
    ).toHaveLength(1);
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
    expect((await browser.post(account, '/account/sessions/passkey', { credential: forApp })).status).toBe(
      401,
    );
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
    'to add a passkey is accepted in only one of ten concurrent responses, and only from its session',
    async () => {
      const { id, username } = await oauth.member();
      const { browser, page } = await atSecurity(oauth, username);
      const options = await optionsFor(browser, page);
      const other = await atSecurity(oauth, (await oauth.member()).username);
      const stolen = new Authenticator(oauth.issuer).register(options);
      expect(
        (await other.browser.post(other.page, '/account/security/passkeys', { credential: stolen })).status,
      ).toBe(409);
      const answers = await Promise.all(
        Array.from({ length: 10 }, async () => {
          const credential = new Authenticator(oauth.issuer).register(options);
          return (await browser.post(page, '/account/security/passkeys', { credential })).status;
        }),
      );
      expect(answers.toSorted((one, two) => one - two)).toEqual([
        303,
        ...Array.from({ length: 9 }, () => 409),
      ]);
      expect(await passkeysOf(id)).toHaveLength(1);
    },
  );

  it('is stored encrypted: its row shows neither the challenge nor the sign-in', async () => {
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
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await refused({ attestation: withCertificate(Buffer.from(`http://127.0.0.1:${port}/crl`)) });
    for (const format of ['tpm', 'apple', 'android-key', 'android-safetynet', 'fido-u2f'])
      await refused({ attestation: [format, withCertificate(randomBytes(300))[1]] });
    server.close();
    expect(asked).toBe(0);
  });

  it('is rejected if the passkey already exists', async () => {
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
    const credentials = [];
    for (let i = 0; i < 3; i++)
      credentials.push(new Authenticator(oauth.issuer).register(await optionsFor(browser, page)));
    const statuses = await Promise.all(
      credentials.map(
        async (credential) => (await browser.post(page, '/account/security/passkeys', { credential })).status,
      ),
    );
    expect(statuses.toSorted((one, other) => one - other)).toEqual([303, 409, 409]);
    expect(await passkeysOf(id)).toHaveLength(20);
    expect((await browser.view('/account/security')).html).toContain('You’ve reached the limit of passkeys.');
  });
});

describe('a change of sign-in methods', () => {
  it('requires a sign-in within five minutes, which the page requests, and otherwise changes nothing', async () => {
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
    expect(await trailOf(id, 'user.password_switched')).toEqual([]);

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

  it('cannot affect another member', async () => {
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

  thorough.it('requires this server’s form at every step', async () => {
    const { browser, authenticator } = await memberWithPasskey(oauth);
    const page = await browser.view('/account/security');
    const paths = [
      'security/passkeys/options',
      'security/passkeys',
      'security/passkeys/1/remove',
      'security/password/off',
    ];
    const { browser: stranger, page: signInPage } = await atSignIn();
    for (const [from, path] of [
      ...paths.map((path) => [browser, `/account/${path}`] as const),
      [stranger, '/account/apps/passkey'] as const,
      [stranger, '/account/apps/passkey/options'] as const,
      [stranger, actionOf(signInPage)] as const,
      [stranger, `${actionOf(signInPage)}/options`] as const,
    ]) {
      for (const [csrf, origin] of [
        ['', 'null'],
        [csrfOf(await oauth.browser().view('/account/apps')), 'null'],
        [csrfOf(from === browser ? page : signInPage), 'https://evil.example'],
      ] as const) {
        const { status } = await from.send(path, {
          method: 'POST',
          body: new URLSearchParams({ csrf }),
          headers: { Origin: origin },
        });
        expect([path, status]).toEqual([path, 403]);
      }
    }
    expect(authenticator.userHandle).not.toBe('');
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
    expect([refused.status, await refused.text()]).toEqual([
      409,
      expect.stringContaining('your only sign-in method'),
    ]);
    await oauth.query('UPDATE users SET password_hash = NULL, password_off_at = NULL WHERE id = $1', [id]);
    expect((await browser.post(page, remove)).status).toBe(409);
    await addPasskey(browser, new Authenticator(oauth.issuer), 'Phone');
    expect((await browser.post(page, remove)).status).toBe(303);
    expect((await passkeysOf(id)).map(({ name }) => name)).toEqual(['Phone']);
    expect(await trailOf(id, 'passkey.removed')).toHaveLength(1);
  });

  thorough.it(
    'may be the external identity provider, so that its users can remove their only passkey',
    async () => {
      const { id } = await memberWithPasskey(oauth);
      await oauth.query('UPDATE users SET password_hash = NULL WHERE id = $1', [id]);
      const ways = new SignInMethods(oauth.dataSource);
      const [passkey] = await ways.listPasskeys(id);
      const by = { userId: id, at: Math.floor(Date.now() / 1000), validSince: null, ip: null };
      expect(await ways.removePasskey({ ...by, upstream: false }, passkey!.id)).toBe(false);
      expect(await ways.removePasskey({ ...by, upstream: true }, passkey!.id)).toBe(true);
    },
  );

  thorough.it('cannot be removed: a password without a passkey', async () => {
    const { id, username } = await oauth.member();
    const { browser, page } = await atSecurity(oauth, username);
    expect(page.html).not.toContain('Disable the password');
    expect((await browser.post(page, '/account/security/password/off')).status).toBe(409);
    expect(await trailOf(id, 'user.password_switched')).toEqual([]);
  });

  postgres.it('remains when all methods are removed at the same time', async () => {
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
    const page = await browser.view('/account/security');
    const off = await browser.press(page, {}, /password\/off$/);
    expect(off.html).toContain('Your password is disabled.');
    const attempt = async () => {
      const at = oauth.browser();
      return await at.press(await at.view('/account/apps'), {
        username,
        password: PASSWORD,
      });
    };
    const refused = await attempt();
    expect([refused.status, refused.html]).toEqual([
      401,
      expect.stringContaining('The username or password is wrong.'),
    ]);
    expect((await trailOf(id, 'sign_in.refused'))[0]!.details).toEqual({
      method: 'password',
      reason: 'no_password',
    });
    const [row] = await oauth.query<{ kept: boolean }>(
      'SELECT password_hash IS NOT NULL AS kept FROM users WHERE id = $1',
      [id],
    );
    expect(row!.kept).toBe(true);
    const signedIn = await atSignIn();
    expect((await signIn(signedIn.browser, signedIn.page, authenticator)).status).toBe(303);
    const on = await browser.press(off, {}, /password\/on$/);
    expect(on.html).toContain('You can sign in with your password again.');
    expect((await attempt()).status).toBe(200);
    expect((await trailOf(id, 'user.password_switched')).map(({ details }) => details)).toEqual([
      { on: true },
      { on: false },
    ]);
  });

  thorough.it(
    'stays disabled after an import, and is enabled when an admin sets a new password',
    async () => {
      const { id, username, browser } = await memberWithPasskey(oauth);
      await browser.submit(await browser.view('/account/security'), {}, /password\/off$/);
      const off = async () =>
        (
          await oauth.query<{ off: boolean }>(
            'SELECT password_off_at IS NOT NULL AS off FROM users WHERE id = $1',
            [id],
          )
        )[0]!.off;
      await oauth.query('UPDATE users SET password_hash = password_hash WHERE id = $1', [id]);
      expect(await off()).toBe(true);
      await new UsersService(oauth.dataSource).setPassword(id, 'a new one for who lost the phone', 'admin');
      expect(await off()).toBe(false);
      const at = oauth.browser();
      const page = await at.view('/account/apps');
      const signedIn = await at.submit(page, { username, password: 'a new one for who lost the phone' });
      expect((signedIn as FormPage).status).toBe(200);
    },
  );
});

describe('an app that sends max_age=0', () => {
  thorough.it('gets a fresh sign-in, and a passkey suffices', async () => {
    const { authenticator } = await memberWithPasskey(oauth);
    const browser = oauth.browser();
    const first = await browser.view('/account/apps');
    await signIn(browser, first, authenticator);
    const { page } = await atSignIn({ max_age: '0' }, browser);
    expect(page.html).toContain('id="passkey"');
    expect((await signIn(browser, page, authenticator)).status).toBe(303);
  });
});

thorough.describe('a passkey sign-in', () => {
  it('is rejected if the member’s sign-ins end between the passkey proof and the new session', async () => {
    const { id, authenticator } = await memberWithPasskey(oauth);
    const { browser, page } = await atSignIn();
    const response = await signIn(browser, page, authenticator);
    await oauth.query('UPDATE users SET sign_ins_valid_since = clock_timestamp() WHERE id = $1', [id]);
    const at = await browser.view(response.headers.get('location')!);
    expect(at.html).not.toContain('value="allow"');
  });

  it('starts a new session: a session id that an attacker planted in the browser is rejected', async () => {
    const { authenticator } = await memberWithPasskey(oauth);
    const [attacker, victim] = [oauth.browser(), oauth.browser()];
    await attacker.open('/oauth/logout');
    for (const [name, cookie] of attacker.cookies) victim.cookies.set(name, cookie);
    const page = await victim.view('/account/apps');
    await signIn(victim, page, authenticator);
    expect((await victim.view('/account/apps')).html).not.toContain('type="password"');
    expect((await attacker.view('/account/apps')).html).toContain('type="password"');
  });
});

thorough.describe('two instances with passkeys', () => {
  it('accept each other’s challenges, each once', async () => {
    const { host } = new URL(oauth.issuer);
    const other = await OauthTest.start({ publicUrl: oauth.issuer }, oauth);
    try {
      expect(new URL(other.api.url).host).not.toBe(host);
      const { authenticator } = await memberWithPasskey(oauth);
      const { browser, page } = await atSignIn();
      const credential = authenticator.prove(await optionsFor(browser, page));
      const there = oauth.browser(other.api.url);
      for (const [name, cookie] of browser.cookies) there.cookies.set(name, cookie);
      const statuses = await Promise.all(
        [browser, there].map(async (at) => (await at.post(page, actionOf(page), { credential })).status),
      );
      expect(statuses.toSorted((one, two) => one - two)).toEqual([303, 401]);
    } finally {
      await other.close();
    }
  });
});

thorough.describe('disabled passkeys', () => {
  it.each<[string, Parameters<typeof OauthTest.start>[0]]>([
    ['on an IP address instead of a hostname', {}],
    [
      'if the external identity provider is the only sign-in method',
      { publicUrl: 'http://localhost:1', localSignIn: false },
    ],
  ])('appear on no page, and no route accepts a passkey: %s', async (_, overrides) => {
    const { browser: known, page } = await atSignIn();
    const without = await OauthTest.start(overrides, oauth);
    try {
      const browser = without.browser(without.api.url);
      expect(JSON.stringify(await browser.open('/account/apps'))).not.toContain('id="passkey"');
      for (const [name, cookie] of known.cookies) browser.cookies.set(name, cookie);
      for (const path of ['/account/apps/passkey', '/account/apps/passkey/options'])
        expect([path, (await browser.post(page, path, { credential: '{}' })).status]).toEqual([path, 400]);
      const metadata = await fetch(`${without.api.url}/.well-known/openid-configuration`);
      expect(await metadata.json()).not.toHaveProperty('acr_values_supported');
    } finally {
      await without.close();
    }
  });
});

describe('RATE_LIMIT_AUTH for passkeys', () => {
  itInOneWindow(
    'limits rejected passkeys per address, without affecting passwords from that address',
    async () => {
      const limited = await startWithPasskeys(
        { rateLimits: { ...oauth.api.config.rateLimits, auth: 3 } },
        oauth,
      );
      try {
        // Failures of other tests count in the same window.
        await oauth.query('DELETE FROM login_throttle');
        await oauth.query('DELETE FROM rate_limit_counts');
        const { username, authenticator } = await memberWithPasskey(limited);
        const attempt = async (changes: Changes = {}) => {
          const browser = limited.browser();
          const page = await browser.view('/account/apps');
          return signIn(browser, page, authenticator, changes);
        };
        for (let i = 0; i < 4; i++) expect((await attempt()).status).toBe(303);
        for (let i = 0; i < 3; i++)
          expect((await attempt({ origin: 'https://evil.example' })).status).toBe(401);
        const refused = await attempt();
        expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
        expect((await atSecurity(limited, username)).page.html).toContain('Laptop');
      } finally {
        await limited.close();
      }
    },
  );

  thorough.it('of 0 does not limit passkey sign-ins', async () => {
    const unlimited = await startWithPasskeys(
      { rateLimits: { ...oauth.api.config.rateLimits, auth: 0 } },
      oauth,
    );
    try {
      const { authenticator } = await memberWithPasskey(unlimited);
      const browser = unlimited.browser();
      const page = await browser.view('/account/apps');
      expect((await signIn(browser, page, authenticator, { origin: 'https://evil.example' })).status).toBe(
        401,
      );
      expect((await signIn(browser, page, authenticator)).status).toBe(303);
    } finally {
      await unlimited.close();
    }
  });
});
