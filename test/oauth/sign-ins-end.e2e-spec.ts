import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { UsersService } from '../../src/accounts/users.service.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import bcrypt from 'bcrypt';
import { DataSource } from 'typeorm';
import { puaJson } from '../support/command-line.js';
import { hashPassword } from '../../src/accounts/passwords/passwords.js';
import { SignIn } from '../../src/accounts/sign-in/sign-in.js';
import { postgres, thorough, waitingForLock } from '../support/database.js';
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

/** Every operation that ends sign-ins, and the password with which the member signs in afterwards. */
const ENDINGS: [string, (member: Member) => Promise<string>][] = [
  [
    'a new password',
    async ({ id }) => {
      await users.setPassword(id, NEW_PASSWORD, 'admin');
      return NEW_PASSWORD;
    },
  ],
  [
    'revoke-access',
    async ({ id }) => {
      await new ConnectedApps(oauth.dataSource).revokeAll(id, { actor: 'admin' });
      return PASSWORD;
    },
  ],
  [
    'disable, then a new password that keeps sessions, then enable',
    async ({ id }) => {
      await users.disable(id, 'admin');
      await users.setPassword(id, NEW_PASSWORD, 'admin', { keepSessions: true });
      await users.enable(id, 'admin');
      return NEW_PASSWORD;
    },
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

describe.each(ENDINGS)('%s', (_, end) => {
  it('ends a sign-in between the accepted password and the next page', async () => {
    const member = await oauth.member();
    const { browser, location } = await halfSignedIn(member);
    await end(member);
    expect(await left(member)).toEqual(NOTHING);
    const page = await browser.view(location);
    expect(page.status).toBe(400);
    expect(await left(member)).toEqual(NOTHING);
    expect(/type="password"/.test((await browser.view('/account/apps')).html)).toBe(true);
  });

  it('ends a sign-in that waits for consent', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    const consent = await browser.signIn(oauth.request(await oauth.client()).url, member.username);
    expect(consent.html).toContain('checkbox');
    await end(member);
    const answer = await browser.press(consent, { scope: 'profile:read', decision: 'allow' }, /consent$/);
    expect([answer.status, answer.html.includes('This sign-in has expired')]).toEqual([400, true]);
    expect(await left(member)).toEqual(NOTHING);
  });

  it('ends browser sessions, tokens and codes within a second', async () => {
    const member = await oauth.member();
    const clientId = await oauth.client();
    const browser = oauth.browser();
    const tokens = await oauth.token(await oauth.code(clientId, member.username, {}, browser));
    const outstanding = await oauth.code(clientId, member.username, {}, browser);
    await end(member);
    expect(await left(member)).toEqual(NOTHING);
    await soon(async () => (await oauth.me(tokens.body.access_token)) === 401);
    expect((await oauth.refresh(clientId, tokens.body.refresh_token)).body.error).toBe('invalid_grant');
    expect((await oauth.token(outstanding)).body.error).toBe('invalid_grant');
    expect((await browser.view('/account/apps')).html).toContain('type="password"');
  });

  it('keeps later sign-ins, even in the same second', async () => {
    const member = await oauth.member();
    const password = await end(member);
    const browser = oauth.browser();
    const back = await browser.authorize(oauth.request(await oauth.client()).url, {
      username: member.username,
      password,
    });
    expect(back.searchParams.get('code')).not.toBeNull();
    expect((await browser.view('/account/apps')).html).not.toContain('type="password"');
  });

  it('keeps the sign-ins of other members, and the member’s API keys', async () => {
    const [member, other] = [await oauth.member(), await oauth.member()];
    const key = await oauth.api.key(member.id);
    const tokens = await oauth.tokens(await oauth.client(), other.username);
    await end(member);
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
    expect((await browser.view('/account/apps')).html).not.toContain('type="password"');
    expect(await puaJson(environment, args, NEW_PASSWORD)).toMatchObject({ sessions_kept: false });
    expect(await left(member)).toEqual(NOTHING);
  });

  thorough.it('survives when a sign-in replaces an imported hash', async () => {
    const imported = await bcrypt.hash(PASSWORD, 4);
    const member = await oauth.member();
    const browser = oauth.browser();
    await oauth.code(await oauth.client(), member.username, {}, browser);
    const replaced = () => oauth.api.app.get(SignIn).onApplicationShutdown(); // in parallel to the sign-in
    await oauth.query('UPDATE users SET password_hash = $2 WHERE id = $1', [member.id, imported]);
    await oauth.browser().authorize(oauth.request(await oauth.client()).url, member);
    await replaced();
    expect((await browser.view('/account/apps')).html).not.toContain('type="password"');
    expect(await left(member)).toMatchObject({ sessions: 2 });
    const [row] = await oauth.query<object>('SELECT password_hash FROM users WHERE id = $1', [member.id]);
    expect(row).toMatchObject({ password_hash: expect.stringMatching(/^\$argon2id/) });
  });

  it('ends after 30 days, even if its session is in use', async () => {
    const member = await oauth.member();
    const clientId = await oauth.client();
    const browser = oauth.browser();
    await oauth.code(clientId, member.username, {}, browser);
    await oauth.ageSignIns(member.id, 30 * 86_400 - 60);
    const use = async () => browser.open(oauth.request(clientId, { prompt: 'none' }).url) as Promise<URL>;
    expect((await use()).searchParams.get('error')).toBeNull();
    const [row] = await oauth.query<{ seconds: number }>(
      'SELECT EXTRACT(epoch FROM expires_at - now())::float8 AS seconds FROM oauth_sessions WHERE user_id = $1',
      [member.id],
    );
    expect(row!.seconds).toBeGreaterThan(0);
    expect(row!.seconds).toBeLessThanOrEqual(60);
    await oauth.age('oauth_sessions', 60);
    expect((await use()).searchParams.get('error')).toBe('login_required');
    expect((await browser.view('/account/apps')).html).toContain('type="password"');
  });
});

postgres.describe('a sign-in that is revoked midway', () => {
  /** Ends the member's sign-ins in a transaction that commits when a statement that requires a sign-in waits for its lock. */
  async function endWhile<T>(member: Member, work: () => Promise<T>): Promise<T> {
    const runner = oauth.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('UPDATE users SET sign_ins_valid_since = clock_timestamp() WHERE id = $1', [
      member.id,
    ]);
    const running = work();
    await waitingForLock(oauth.api.app.get(DataSource), 'signed_in AS');
    await runner.commitTransaction();
    await runner.release();
    return running;
  }

  it('with an accepted password is rejected for an app', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    const page = await browser.view(oauth.request(await oauth.client()).url);
    const { status } = await endWhile(member, () => signInOnly(browser, page, member.username));
    expect(status).toBe(400);
    expect(await left(member)).toEqual(NOTHING);
  });

  it('with an accepted password is rejected for the account pages', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    const page = await browser.view('/account/apps');
    await endWhile(member, () => signInOnly(browser, page, member.username));
    expect(await left(member)).toEqual(NOTHING);
    expect((await browser.view('/account/apps')).html).toContain('type="password"');
  });

  it('to an app with consent gets no code', async () => {
    const member = await oauth.member();
    const clientId = await oauth.client();
    const browser = oauth.browser();
    await oauth.code(clientId, member.username, {}, browser);
    const { url } = oauth.request(clientId);
    const back = (await endWhile(member, () => browser.open(url))) as URL;
    expect([back.searchParams.get('error'), back.searchParams.get('code')]).toEqual([
      'invalid_request',
      null,
    ]);
    expect(await left(member)).toEqual(NOTHING);
  });

  it('stores no session, no grant and no interaction after the end', async () => {
    const member = await oauth.member();
    const { browser, location } = await halfSignedIn(member);
    await endWhile(member, () => browser.open(location));
    expect(await left(member)).toEqual(NOTHING);
  });

  it('gets no grant when the member consents', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    const consent = await browser.signIn(oauth.request(await oauth.client()).url, member.username);
    const answer = (await endWhile(member, () =>
      browser.submit(consent, { scope: 'profile:read', decision: 'allow' }, /consent$/),
    )) as FormPage;
    expect(answer.status).toBe(400);
    expect(await left(member)).toEqual(NOTHING);
  });

  it('is ended even if its session was stored just before the end', async () => {
    const member = await oauth.member();
    const { browser, location } = await halfSignedIn(member);
    const runner = oauth.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('SELECT FROM users WHERE id = $1 FOR KEY SHARE', [member.id]); // the lock of a session's writer
    await runner.query(
      `INSERT INTO oauth_sessions (uid_key, key, user_id, payload, expires_at)
VALUES (sha256('uid'), sha256('key'), $1, '', now() + interval '1 day')`,
      [member.id],
    );
    const ending = users.setPassword(member.id, NEW_PASSWORD, 'admin');
    await waitingForLock(oauth.api.app.get(DataSource), 'UPDATE "users"');
    await runner.commitTransaction();
    await runner.release();
    await ending;
    expect(await left(member)).toEqual(NOTHING);
    expect((await browser.view(location)).status).toBe(400);
  });

  postgres.it('does not wait for a writer of other columns of the member', async () => {
    const member = await oauth.member({ password_hash: await hashPassword(PASSWORD) });
    const runner = oauth.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query(`UPDATE users SET bio = 'imported' WHERE id = $1`, [member.id]);
    const { access_token } = await oauth.tokens(await oauth.client(), member.username);
    expect(await oauth.me(access_token)).toBe(200);
    await runner.rollbackTransaction();
    await runner.release();
  });

  it('does not restore its session if another transaction deletes the session during a request', async () => {
    const member = await oauth.member();
    const clientId = await oauth.client();
    const browser = oauth.browser();
    await oauth.code(clientId, member.username, {}, browser);
    const [{ uid_key }] = (await oauth.query('SELECT uid_key FROM oauth_sessions WHERE user_id = $1', [
      member.id,
    ])) as [{ uid_key: Buffer }];
    const runner = oauth.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('DELETE FROM oauth_sessions WHERE uid_key = $1', [uid_key]);
    const using = browser.open(oauth.request(clientId).url);
    await waitingForLock(oauth.api.app.get(DataSource), 'UPDATE oauth_sessions');
    await runner.commitTransaction();
    await runner.release();
    await using;
    expect(await left(member)).toMatchObject({ sessions: 0 });
  });
});
