import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { UsersService } from '../../src/accounts/users.service.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import bcrypt from 'bcrypt';
import { DataSource } from 'typeorm';
import { puaJson } from '../support/command-line.js';
import { hashPassword } from '../../src/accounts/passwords/passwords.js';
import { SignIn } from '../../src/accounts/sign-in/sign-in.js';
import { hold, postgres, thorough, waitingForLock } from '../support/database.js';
import { OauthTest, PASSWORD, type Browser, type FormPage } from '../support/oauth.js';
import { soon } from '../support/timing.js';

const NEW_PASSWORD = 'a new and much longer password';

let oauth: OauthTest;
let users: UsersService;
beforeAll(async () => {
  oauth = await OauthTest.start();
  users = new UsersService(oauth.dataSource);
});
afterAll(() => oauth.close());

interface Member {
  readonly id: number;
  readonly username: string;
}

/** Operations that end sign-ins, and the password with which the member signs in afterwards. */
const ENDINGS: [string, (id: number) => Promise<unknown>, string][] = [
  ['a new password', (id) => users.setPassword(id, NEW_PASSWORD, 'admin'), NEW_PASSWORD],
  ['revoke-access', (id) => new ConnectedApps(oauth.dataSource).revokeAll(id, { actor: 'admin' }), PASSWORD],
  [
    'disable, then a new password that keeps sessions, then enable',
    async (id) => {
      await users.disable(id, 'admin');
      await users.setPassword(id, NEW_PASSWORD, 'admin', { keepSessions: true });
      await users.enable(id, 'admin');
    },
    NEW_PASSWORD,
  ],
];

/** Sends the sign-in form of a page without following its redirect. @returns the redirect's URL */
async function signInOnly(browser: Browser, page: FormPage, username: string, password = PASSWORD) {
  const action = /action="([^"]*sign-in)"/.exec(page.html)![1]!;
  const response = await browser.post(page, action, { username, password });
  await response.arrayBuffer();
  return { status: response.status, location: response.headers.get('location') };
}

/** A browser in which the password was accepted, and the URL to continue at. */
async function halfSignedIn({ username }: Member): Promise<{ browser: Browser; location: string }> {
  const browser = oauth.browser();
  const page = await browser.view(oauth.request(await oauth.client()).url);
  const { location } = await signInOnly(browser, page, username);
  return { browser, location: location! };
}

/** Number of the member's sign-in records in the database. */
async function left({ id }: Member): Promise<object> {
  const [row] = await oauth.query<object>(
    `SELECT (SELECT count(*) FROM oauth_sessions WHERE user_id = $1) AS sessions, (SELECT count(*) FROM oauth_grants WHERE user_id = $1) AS grants,
  (SELECT count(*) FROM oauth_state WHERE user_id = $1) AS interactions`,
    [id],
  );
  return row!;
}

const NOTHING = { sessions: 0, grants: 0, interactions: 0 };

describe.each(ENDINGS)('%s', (_, end, password) => {
  it('ends a sign-in between the accepted password and the next page', async () => {
    const member = await oauth.member();
    const { browser, location } = await halfSignedIn(member);
    await end(member.id);
    expect(await left(member)).toEqual(NOTHING);
    expect((await browser.view(location)).status).toBe(400);
    expect(await left(member)).toEqual(NOTHING);
    expect(await browser.isSignedIn()).toBe(false);
  });

  it('ends a sign-in that waits for consent', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    const consent = await browser.signIn(oauth.request(await oauth.client()).url, member.username);
    expect(consent.html).toContain('checkbox');
    await end(member.id);
    const answer = await browser.press(consent, { scope: 'profile:read', decision: 'allow' }, /consent$/);
    expect([answer.status, answer.html.includes('This sign-in has expired')]).toEqual([400, true]);
    expect(await left(member)).toEqual(NOTHING);
  });

  it('ends browser sessions, tokens and codes', async () => {
    const { clientId, browser, ...member } = await oauth.memberAndClient();
    const tokens = await oauth.token(await oauth.code(clientId, member.username, {}, browser));
    const outstanding = await oauth.code(clientId, member.username, {}, browser);
    await end(member.id);
    expect(await left(member)).toEqual(NOTHING);
    await soon(async () => (await oauth.me(tokens.body.access_token)) === 401);
    expect((await oauth.refresh(clientId, tokens.body.refresh_token)).body.error).toBe('invalid_grant');
    expect((await oauth.token(outstanding)).body.error).toBe('invalid_grant');
    expect(await browser.isSignedIn()).toBe(false);
  });

  it('keeps a sign-in that starts right afterwards', async () => {
    const { id, username } = await oauth.member();
    await end(id);
    const browser = oauth.browser();
    const { url } = oauth.request(await oauth.client());
    expect((await browser.authorize(url, { username, password })).searchParams.get('code')).not.toBeNull();
    expect(await browser.isSignedIn()).toBe(true);
  });

  it('keeps the access tokens of other members, and the member’s API keys', async () => {
    const [member, other] = [await oauth.member(), await oauth.member()];
    const key = await oauth.api.key(member.id);
    const tokens = await oauth.tokens(await oauth.client(), other.username);
    await end(member.id);
    expect((await oauth.api.get('/me', key)).status).toBe(200);
    expect(await oauth.me(tokens.access_token)).toBe(200);
  });
});

describe('an existing sign-in', () => {
  it('survives `set-password --keep-sessions`, and ends after `set-password`', async () => {
    const { environment } = oauth.api;
    const member = await oauth.member();
    const browser = oauth.browser();
    const tokens = await oauth.token(await oauth.code(await oauth.client(), member.username, {}, browser));
    const args = ['users', 'set-password', member.username, '--password-stdin'];
    expect(await puaJson(environment, [...args, '--keep-sessions'], NEW_PASSWORD)).toEqual({
      ...member,
      changed: true,
      sessions_kept: true,
    });
    expect(await oauth.me(tokens.body.access_token)).toBe(200);
    expect(await browser.isSignedIn()).toBe(true);
    expect(await puaJson(environment, args, NEW_PASSWORD)).toMatchObject({ sessions_kept: false });
    expect(await left(member)).toEqual(NOTHING);
  });

  thorough.it('survives when another sign-in replaces the member’s imported password hash', async () => {
    const imported = await bcrypt.hash(PASSWORD, 4);
    const member = await oauth.member();
    const browser = oauth.browser();
    await oauth.code(await oauth.client(), member.username, {}, browser);
    const replaced = () => oauth.api.app.get(SignIn).onApplicationShutdown(); // in parallel to the sign-in
    await oauth.query('UPDATE users SET password_hash = $2 WHERE id = $1', [member.id, imported]);
    await oauth.browser().authorize(oauth.request(await oauth.client()).url, member);
    await replaced();
    expect(await browser.isSignedIn()).toBe(true);
    expect(await left(member)).toMatchObject({ sessions: 2 });
    const [row] = await oauth.query<object>('SELECT password_hash FROM users WHERE id = $1', [member.id]);
    expect(row).toMatchObject({ password_hash: expect.stringMatching(/^\$argon2id/) });
  });

  it('ends after 30 days, even if its session is in use', async () => {
    const { clientId, browser, ...member } = await oauth.memberAndClient();
    await oauth.code(clientId, member.username, {}, browser);
    await oauth.ageSignIns(member.id, 30 * 86_400 - 60);
    const silent = oauth.request(clientId, { prompt: 'none' }).url;
    expect((await browser.leave(silent)).searchParams.has('code')).toBe(true);
    const soon = `SELECT FROM oauth_sessions
WHERE user_id = $1 AND expires_at BETWEEN now() AND now() + interval '60 seconds'`;
    expect(await oauth.query(soon, [member.id])).toHaveLength(1);
    await oauth.age('oauth_sessions', 60);
    expect((await browser.leave(silent)).searchParams.get('error')).toBe('login_required');
    expect(await browser.isSignedIn()).toBe(false);
  });
});

postgres.describe('a sign-in with a concurrent transaction', () => {
  /** Ends the member's sign-ins in a transaction that commits when a statement that requires a sign-in waits for its lock. */
  async function endWhile<T>(member: Member, work: () => Promise<T>): Promise<T> {
    const end = 'UPDATE users SET sign_ins_valid_since = clock_timestamp() WHERE id = $1';
    const ending = await hold(oauth.dataSource, end, [member.id]);
    const running = work();
    await waitingForLock(oauth.api.app.get(DataSource), 'signed_in AS');
    await ending.commit();
    return running;
  }

  it('is rejected for an app if the transaction ends the member’s sign-ins', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    const page = await browser.view(oauth.request(await oauth.client()).url);
    const { status } = await endWhile(member, () => signInOnly(browser, page, member.username));
    expect(status).toBe(400);
    expect(await left(member)).toEqual(NOTHING);
  });

  it('is rejected for the account pages if the transaction ends the member’s sign-ins', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    const page = await browser.view('/account/apps');
    await endWhile(member, () => signInOnly(browser, page, member.username));
    expect(await left(member)).toEqual(NOTHING);
    expect(await browser.isSignedIn()).toBe(false);
  });

  it('gets no code for an app with consent if the transaction ends the member’s sign-ins', async () => {
    const { clientId, browser, ...member } = await oauth.memberAndClient();
    await oauth.code(clientId, member.username, {}, browser);
    const back = await endWhile(member, () => browser.leave(oauth.request(clientId).url));
    const { error, code } = Object.fromEntries(back.searchParams);
    expect([error, code]).toEqual(['invalid_request', undefined]);
    expect(await left(member)).toEqual(NOTHING);
  });

  it('stores no session, no grant and no interaction if the transaction ends the member’s sign-ins', async () => {
    const member = await oauth.member();
    const { browser, location } = await halfSignedIn(member);
    await endWhile(member, () => browser.open(location));
    expect(await left(member)).toEqual(NOTHING);
  });

  it('gets no grant if the transaction ends the member’s sign-ins during the consent', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    const consent = await browser.signIn(oauth.request(await oauth.client()).url, member.username);
    const allow = { scope: 'profile:read', decision: 'allow' };
    expect((await endWhile(member, () => browser.press(consent, allow, /consent$/))).status).toBe(400);
    expect(await left(member)).toEqual(NOTHING);
  });

  it('is ended by a new password even if the transaction is storing its session', async () => {
    const member = await oauth.member();
    const { browser, location } = await halfSignedIn(member);
    const lock = 'SELECT FROM users WHERE id = $1 FOR KEY SHARE'; // the lock of a session's writer
    const writer = await hold(oauth.dataSource, lock, [member.id]);
    await writer.query(
      `INSERT INTO oauth_sessions (uid_key, key, user_id, payload, expires_at)
VALUES (sha256('uid'), sha256('key'), $1, '', now() + interval '1 day')`,
      [member.id],
    );
    const ending = users.setPassword(member.id, NEW_PASSWORD, 'admin');
    await waitingForLock(oauth.api.app.get(DataSource), 'UPDATE "users"');
    await writer.commit();
    await ending;
    expect(await left(member)).toEqual(NOTHING);
    expect((await browser.view(location)).status).toBe(400);
  });

  it('does not wait if the transaction changes only the member’s bio', async () => {
    const member = await oauth.member({ password_hash: await hashPassword(PASSWORD) });
    const update = `UPDATE users SET bio = 'imported' WHERE id = $1`;
    const importing = await hold(oauth.dataSource, update, [member.id]);
    const { access_token } = await oauth.tokens(await oauth.client(), member.username);
    expect(await oauth.me(access_token)).toBe(200);
    await importing.rollback();
  });

  it('does not restore its session if the transaction deletes the session during a request', async () => {
    const { clientId, browser, ...member } = await oauth.memberAndClient();
    await oauth.code(clientId, member.username, {}, browser);
    const deletion = 'DELETE FROM oauth_sessions WHERE user_id = $1';
    const deleting = await hold(oauth.dataSource, deletion, [member.id]);
    const use = browser.open(oauth.request(clientId).url);
    await waitingForLock(oauth.api.app.get(DataSource), 'UPDATE oauth_sessions');
    await deleting.commit();
    await use;
    expect(await left(member)).toMatchObject({ sessions: 0 });
  });
});
