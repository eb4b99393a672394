import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { thorough } from '../support/database.js';
import { OauthTest, PASSWORD, type Browser, type FormPage } from '../support/oauth.js';
import { atSecurity } from '../support/passkeys.js';

const NEW = 'seven quiet herons wade';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

/** Details of the member's new passwords. */
const changesOf = (user: number) => oauth.details({ user, type: 'user.password_set' });

const change = (
  browser: Browser,
  page: FormPage,
  old: string,
  wanted: string,
  more: Record<string, string> = {},
) =>
  browser.post(page, '/account/security/password', { current_password: old, new_password: wanted, ...more });

const canSignIn = async (username: string, password: string) =>
  (await oauth.browser().signIn('/account/apps', username, password)).status === 200;

describe('a password change', () => {
  it('makes the new password valid, and ends the other sessions if requested, as the page confirms', async () => {
    const { id, username } = await oauth.member();
    const others = [await atSecurity(oauth, username), await atSecurity(oauth, username)];
    const { browser, page } = await atSecurity(oauth, username);
    expect(page.html).toContain('name="end_others" value="yes" checked');
    const answer = await change(browser, page, PASSWORD, NEW, { end_others: 'yes' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/account/security']);
    const after = await browser.view('/account/security');
    expect(after.html).toContain('Your password is changed. Other sessions that were signed out: 2.');
    expect((await browser.view('/account/security')).html).not.toContain('Your password is changed');
    for (const other of others)
      expect((await other.browser.view('/account/security')).html).toContain('/account/security/sign-in');
    expect([await canSignIn(username, NEW), await canSignIn(username, PASSWORD)]).toEqual([true, false]);
    expect(await oauth.details({ user: id, type: 'session.ended' })).toEqual([{ sessions: 2 }]);
    expect(await changesOf(id)).toEqual([{ sessions_kept: false }]);
  });

  it('keeps the other sessions unless the member requests their end, as the page confirms', async () => {
    const { id, username } = await oauth.member();
    const other = await atSecurity(oauth, username);
    const { browser, page } = await atSecurity(oauth, username);
    expect((await change(browser, page, PASSWORD, NEW)).status).toBe(303);
    const after = await browser.view('/account/security');
    expect(after.html).toContain('Other sessions that were signed out: 0.');
    expect(await other.browser.isSignedIn()).toBe(true);
    expect(await oauth.events({ user: id, type: 'session.ended' })).toEqual([]);
    expect(await changesOf(id)).toEqual([{ sessions_kept: true }]);
  });

  thorough.it(
    'that ends the other sessions also ends unfinished sign-ins, and keeps the apps’ access',
    async () => {
      const { username, clientId } = await oauth.memberAndClient();
      const tokens = await oauth.tokens(clientId, username);
      const thief = oauth.browser();
      const consent = await thief.signIn(oauth.request(await oauth.client()).url, username);
      const { browser, page } = await atSecurity(oauth, username);
      await change(browser, page, PASSWORD, NEW, { end_others: 'yes' });
      const answer = await thief.press(consent, { decision: 'allow', scope: 'profile:read' }, /consent$/);
      expect(answer.status).toBe(400);
      expect(answer.html).toContain('This sign-in has expired');
      expect(await oauth.me(tokens.access_token)).toBe(200);
    },
  );

  it.each([
    ['a text that is too short', 'nine 9999', 'must have 10 to 128 characters'],
    ['one of the most common passwords', 'QWERTYuiop', 'one of the most common'],
    ['a text that cannot be stored', 'with\0null and more', 'characters that are not allowed'],
    ['the current password', PASSWORD, 'the same as the current one'],
    ['a password similar to the username', 'USERNAME1', 'too similar to your username'],
  ])('to %s is rejected with the reason, and keeps the old password', async (_, wanted, why) => {
    const { id, username } = await oauth.member();
    const { browser, page } = await atSecurity(oauth, username);
    const answer = await change(browser, page, PASSWORD, wanted.replace('USERNAME', username.toUpperCase()));
    const html = await answer.text();
    expect([answer.status, html]).toEqual([400, expect.stringContaining(why)]);
    expect(html).not.toContain(PASSWORD);
    expect(await changesOf(id)).toEqual([]);
    expect(await canSignIn(username, PASSWORD)).toBe(true);
  });

  thorough.it('requires the old password, and is blocked after ten wrong guesses', async () => {
    const { id, username } = await oauth.member();
    const { browser, page } = await atSecurity(oauth, username);
    const statuses = [];
    for (let i = 0; i < 12; i++) statuses.push((await change(browser, page, `guess ${i}`, NEW)).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
    const right = await change(browser, page, PASSWORD, NEW);
    expect([right.status, Number(right.headers.get('retry-after')) > 0]).toEqual([429, true]);
    expect(await changesOf(id)).toEqual([]);
  });

  it('is rejected without a sign-in, without this server’s form, or with a disabled password', async () => {
    const { id, username } = await oauth.member();
    const { browser, page } = await atSecurity(oauth, username);
    const stranger = oauth.browser();
    expect((await change(stranger, await stranger.view('/account/apps'), PASSWORD, NEW)).status).toBe(401);
    expect((await change(stranger, page, PASSWORD, NEW)).status).toBe(403);
    await oauth.query('UPDATE users SET password_off_at = now() WHERE id = $1', [id]);
    expect((await change(browser, page, PASSWORD, NEW)).status).toBe(401);
    expect((await browser.view('/account/security')).html).not.toContain('name="new_password"');
  });
});
