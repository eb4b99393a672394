import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import bcrypt from 'bcrypt';
import { SignIn } from '../../src/accounts/sign-in/sign-in.js';
import { UsersService } from '../../src/accounts/users.service.js';
import { PasswordResets } from '../../src/member-pages/password-reset/password-resets.js';
import { withoutAudit } from '../support/audit.js';
import { atOnce, tally } from '../support/concurrent.js';
import { hold, postgres, thorough } from '../support/database.js';
import { asksForPassword, csrfOf, OauthTest, PASSWORD } from '../support/oauth.js';
import {
  actionOf,
  addPasskey,
  atSecurity,
  Authenticator,
  optionsFor,
  startWithPasskeys,
} from '../support/passkeys.js';
import { MailServer, memberWithEmail, textOf } from '../support/smtp.js';

const NEW = 'seven quiet herons wade';
/** A random name or address that exists nowhere. */
const OTHER_HASH = '$2b$10$abcdefghijklmnopqrstuuLhnAFMCGkGaGpPeXKq7Q9GVOQ4tPzMK';

let oauth: OauthTest;
let mails: MailServer;
beforeAll(async () => {
  mails = await MailServer.start();
  oauth = await startWithPasskeys({ platformName: 'Gipfel & Tal', mail: mails.mail });
});
afterAll(async () => {
  await oauth.close();
  await mails.close();
});
beforeEach(() => {
  mails.received = [];
  mails.refusal = () => undefined;
});

/** The password reset emails, without notices. */
const received = () => mails.received.filter(({ source }) => !source.includes('<notice-'));

const member = (fields?: Record<string, unknown>) => memberWithEmail(oauth, fields);

/** Requests an email. Resolves when the server has processed the request. @returns the page */
async function ask(username: string, language = 'en', browser = oauth.browser()) {
  const csrf = csrfOf(await browser.view('/account/password-reset'));
  const headers = { Origin: 'null', 'Accept-Language': language };
  const body = new URLSearchParams({ csrf, username });
  const sent = await browser.send('/account/password-reset/send', { method: 'POST', body, headers });
  const location = sent.headers.get('location');
  // A separate page, so that a reload does not request another email.
  const answer = location === null ? sent : await browser.send(location, { headers });
  const html = (await answer.text()).replaceAll(csrf, 'CSRF');
  await oauth.api.app.get(PasswordResets).onApplicationShutdown();
  return { status: answer.status, html };
}

/** The path of the link in such an email. */
function linkOf(mail: MailServer['received'][number] | undefined): string {
  return /http:\/\/localhost:\d+(\/account\/new-password\/[\w-]{43})\s/.exec(textOf(mail))![1]!;
}

/** A member who has requested an email, and its link. */
async function memberWithLink(fields: Record<string, unknown> = {}) {
  const made = await member(fields);
  await ask(made.username);
  return { ...made, path: linkOf(received().at(-1)) };
}

async function set(path: string, password: string, at = oauth) {
  const browser = at.browser();
  const page = await browser.view(path);
  if (page.status !== 200) return page.status;
  return (await browser.post(page, `${path}/set`, { new_password: password })).status;
}

const canSignIn = async (username: string, password: string) =>
  (await oauth.browser().signIn('/account/apps', username, password)).status === 200;

/** Makes the member's links older by this many seconds. */
const later = (id: number, seconds: number) =>
  oauth.query(
    `UPDATE oauth_state SET expires_at = expires_at - make_interval(secs => $2) WHERE user_id = $1`,
    [id, seconds],
  );

describe('a member who forgot the password', () => {
  it('requests an email, and sets a new password by its link, which ends the sessions and the apps’ access', async () => {
    const { id, username, email } = await member();
    const tokens = await oauth.tokens(await oauth.client(), username);
    const { browser } = await atSecurity(oauth, username);
    const signIn = await oauth.browser().view('/account/apps');
    expect(signIn.html).toContain('href="/account/password-reset">Forgot your password?</a>');
    const { status, html } = await ask(` ${username.toUpperCase()}\u00a0`);
    expect([status, html]).toEqual([200, expect.stringContaining('the email is on its way')]);

    const [mail] = received();
    expect(received().map(({ to }) => to)).toEqual([[email]]);
    expect(mail!.source).toMatch(/^From: Gipfel <no-reply@gipfel\.example>\r$/m);
    expect(mail!.source).toMatch(/^Auto-Submitted: auto-generated\r$/m);
    expect(mail!.source).toMatch(/^Subject: Set a new password for Gipfel & Tal\r$/m);
    const path = linkOf(mail);
    // Opening the link does not consume it: email programs open links before the member does.
    for (let i = 0; i < 3; i++) {
      const page = await oauth.browser().view(path);
      expect([page.status, page.headers.get('referrer-policy')]).toEqual([200, 'no-referrer']);
    }
    expect(await set(path, NEW)).toBe(200);
    expect([await canSignIn(username, NEW), await canSignIn(username, PASSWORD)]).toEqual([true, false]);
    expect(asksForPassword(await browser.view('/account/security'))).toBe(true);
    expect(await oauth.me(tokens.access_token)).toBe(401);
    expect(await oauth.events({ user: id, type: 'user.password%' })).toMatchObject([
      { type: 'user.password_reset_sent', actor: 'user' },
      { type: 'user.password_set', actor: 'user' },
    ]);
  });

  it('gets the email in German if the browser prefers German', async () => {
    const { username } = await member();
    await ask(username, 'de');
    expect(received()[0]!.source).toMatch(/^Hallo member-/m);
  });

  it('sees the same page for known and unknown names; only an enabled member with an email address and an enabled password gets an email', async () => {
    const without = await oauth.member();
    const [disabled, none, off] = [await member(), await member({ password_hash: null }), await member()];
    await new UsersService(oauth.dataSource).disable(disabled.id, 'admin');
    await oauth.query('UPDATE users SET password_off_at = now() WHERE id = $1', [off.id]);
    const { username } = await member();
    const known = await ask(username);
    const names = [without, disabled, none, off].map((one) => one.username);
    for (const name of [...names, 'nobody', '', 'nul\0', 'x'.repeat(5000), 'a@b.example\r\nBcc: c@d.example'])
      expect(await ask(name)).toEqual(known);
    expect(received()).toHaveLength(1);
  });

  it('gets one email for three requests within five minutes, and another email later', async () => {
    const { id, username } = await member();
    for (let i = 0; i < 3; i++) await ask(username);
    expect(received()).toHaveLength(1);
    await later(id, 301);
    await ask(username);
    expect(received()).toHaveLength(2);
    // Either link works, and its use deletes the other link.
    const [one, other] = received().map(linkOf);
    expect([await set(one!, NEW), await set(other!, PASSWORD)]).toEqual([200, 410]);
  });

  it('gets at most five emails a day, together with the other members with that email address', async () => {
    const { id, username, email } = await member();
    const other = await member();
    await oauth.query('UPDATE users SET email = $2 WHERE id = $1', [other.id, email.toUpperCase()]);
    for (let i = 0; i < 7; i++) {
      await ask(username);
      await later(id, 301);
    }
    await ask(other.username);
    expect(received()).toHaveLength(5);
    await later(id, 86_400 - 7 * 301);
    await ask(other.username);
    expect(received()).toHaveLength(6);
  });

  it('gets one email for concurrent requests', async () => {
    const { username } = await member();
    const browser = oauth.browser();
    const page = await browser.view('/account/password-reset');
    const send = () => browser.post(page, '/account/password-reset/send', { username });
    for (const { status } of await atOnce(10, send)) expect(status).toBe(303);
    await oauth.api.app.get(PasswordResets).onApplicationShutdown();
    expect(received()).toHaveLength(1);
  });

  thorough.it('signs in with the new password in the browser of the reset despite guesses', async () => {
    const { username } = await member();
    const guess = () => oauth.browser().signIn('/account/apps', username, 'guess');
    const block = async () => expect((await atOnce(12, guess)).map(({ status }) => status)).toContain(429);
    await block();
    await ask(username);
    const path = linkOf(received()[0]);
    const browser = oauth.browser();
    const page = await browser.view(path);
    expect((await browser.post(page, `${path}/set`, { new_password: NEW })).status).toBe(200);
    expect(await canSignIn(username, NEW)).toBe(true);
    await block();
    expect(await canSignIn(username, NEW)).toBe(false);
    expect((await browser.signIn('/account/apps', username, NEW)).status).toBe(200);
  });

  it('sees no error if the mail server rejects every email', async () => {
    const { username } = await member();
    mails.refusal = () => new Error('no such mailbox');
    expect((await ask(username)).status).toBe(200);
    expect(received()).toEqual([]);
  });
});

describe('a member who forgot the password, and may have passkeys,', () => {
  thorough.it(
    'reads in the email and on the last page that the passkeys stay valid, and how to remove a passkey',
    async () => {
      const { username, email } = await member();
      const { browser } = await atSecurity(oauth, username);
      const phone = new Authenticator(oauth.issuer);
      await addPasskey(browser, phone, 'Old <phone>');
      await addPasskey(browser, new Authenticator(oauth.issuer), 'Key at work');
      await ask(username);
      expect(received()[0]!.to).toEqual([email]);
      const mail = textOf(received()[0]);
      expect(mail).toContain(`remove its passkey at ${oauth.issuer}/account/security`);
      expect(mail).toMatch(/^- Old <phone>\r\n- Key at work\r$/m);

      const reset = oauth.browser();
      const page = await reset.view(linkOf(received()[0]));
      const { status, html } = await reset.press(page, { new_password: NEW }, /\/set$/);
      expect(status).toBe(200);
      for (const text of ['You can still sign in with these passkeys.', 'Old &lt;phone&gt;', 'Key at work'])
        expect(html).toContain(text);
      expect(html).toContain('href="/account/security"');
      const signIn = await reset.view('/account/security');
      const credential = phone.prove(await optionsFor(reset, signIn));
      const signedIn = await reset.post(signIn, actionOf(signIn), { credential });
      expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/account/security']);
    },
  );

  it('sees no text about passkeys if the member has no passkey', async () => {
    const { path } = await memberWithLink();
    expect(textOf(received()[0])).not.toMatch(/passkey/i);
    const reset = oauth.browser();
    const { status, html } = await reset.press(await reset.view(path), { new_password: NEW }, /\/set$/);
    expect([status, /passkey/i.test(html)]).toEqual([200, false]);
  });
});

describe('a password reset link', () => {
  postgres.it('stays valid if passkeys cannot be read: the server responds 503', async () => {
    const { path } = await memberWithLink();
    const databaseDeadlines = { ...oauth.api.config.databaseDeadlines, lock: 300 };
    await using impatient = await OauthTest.start({ mail: mails.mail, databaseDeadlines }, oauth);
    const locked = await hold(oauth.dataSource, 'LOCK TABLE passkeys IN ACCESS EXCLUSIVE MODE');
    expect(await set(path, NEW, impatient).finally(locked.rollback)).toBe(503);
    expect(await set(path, NEW)).toBe(200);
  });

  it('stays valid if its audit event cannot be stored', async () => {
    const { path } = await memberWithLink();
    expect(await withoutAudit(oauth.dataSource, 'user.password_set', () => set(path, NEW))).toBe(500);
    expect(await set(path, NEW)).toBe(200);
  });

  thorough.it('is accepted for only one of 20 concurrent uses', async () => {
    const { path } = await memberWithLink();
    const browser = oauth.browser();
    const page = await browser.view(path);
    const answers = await atOnce(20, (i) =>
      browser.post(page, `${path}/set`, { new_password: `${NEW} ${i}` }),
    );
    expect(tally(answers.map(({ status }) => status))).toEqual({ 200: 1, 410: 19 });
    expect(await set(path, NEW)).toBe(410);
  });

  thorough.it(
    'expires after 30 minutes, when the password or email address changes, or when the member is disabled',
    async () => {
      const endings: ((id: number, username: string) => Promise<unknown>)[] = [
        (id) => later(id, 1801),
        (id) => new UsersService(oauth.dataSource).setPassword(id, NEW, 'admin'),
        (id) => new UsersService(oauth.dataSource).setPassword(id, NEW, 'admin', { keepSessions: true }),
        (id) => new UsersService(oauth.dataSource).update(id, { email: 'other@mail.example' }, 'admin'),
        (id) => new UsersService(oauth.dataSource).update(id, { email: null }, 'admin'),
        async (_, username) => {
          const { browser, page } = await atSecurity(oauth, username);
          const passwords = { current_password: PASSWORD, new_password: NEW };
          expect((await browser.post(page, '/account/security/password', passwords)).status).toBe(303);
        },
        // As imports and feeds do.
        (id) => oauth.query('UPDATE users SET password_hash = $2 WHERE id = $1', [id, OTHER_HASH]),
        async (id) => {
          await oauth.query('UPDATE users SET password_off_at = now() WHERE id = $1', [id]);
          await oauth.query('UPDATE users SET password_off_at = NULL WHERE id = $1', [id]);
        },
        (id) => new UsersService(oauth.dataSource).disable(id, 'admin'),
      ];
      for (const end of endings) {
        const { id, username, path } = await memberWithLink();
        await end(id, username);
        expect(await set(path, 'another one for them')).toBe(410);
      }
    },
  );

  it('stays valid after a sign-in that stores a new hash of the same password', async () => {
    const imported = await bcrypt.hash(PASSWORD, 4);
    const { id, username, path } = await memberWithLink({ password_hash: imported });
    expect(await canSignIn(username, PASSWORD)).toBe(true);
    await oauth.api.app.get(SignIn).onApplicationShutdown();
    const changed = 'SELECT FROM users WHERE id = $1 AND password_hash <> $2';
    expect(await oauth.query(changed, [id, imported])).toHaveLength(1);
    expect(await set(path, NEW)).toBe(200);
  });

  it('rejects a forbidden password, and stays valid', async () => {
    const { username, path } = await memberWithLink();
    for (const password of ['short', 'qwertyuiop', `${username}1`])
      expect(await set(path, password)).toBe(400);
    expect(await set(path, NEW)).toBe(200);
  });

  it('gets 410 if it is unknown; the forms reject a request without a CSRF token', async () => {
    const { username, path } = await memberWithLink();
    for (const made of ['A'.repeat(43), 'x', '0'.repeat(100)])
      expect(await set(`/account/new-password/${made}`, NEW)).toBe(410);
    for (const action of [`${path}/set`, '/account/password-reset/send']) {
      const body = new URLSearchParams({ new_password: NEW, username });
      expect((await oauth.browser().send(action, { method: 'POST', body })).status).toBe(403);
    }
    expect(received()).toHaveLength(1);
  });

  it('appears in no row of the OAuth state or the audit log', async () => {
    const token = (await memberWithLink()).path.split('/').pop()!;
    const rows = await oauth.query<{ row: string }>(
      `SELECT s::text AS row FROM oauth_state s UNION ALL SELECT e::text FROM auth_events e`,
    );
    for (const { row } of rows) {
      expect(row).not.toContain(token);
      expect(row).not.toContain(Buffer.from(token, 'base64url').toString('hex'));
    }
  });
});

describe('a disabled password reset', () => {
  const NO_SERVER = { smtpUrl: 'smtp://127.0.0.1:1', from: 'a@b.example' };

  thorough.it.each<[string, Parameters<typeof OauthTest.start>[0]]>([
    ['without a mail server', {}],
    ['with the platform’s own reset page', { mail: NO_SERVER, passwordResetUrl: 'https://p.example/' }],
    ['without local passwords', { mail: NO_SERVER, localSignIn: false }],
  ])('is not linked from the sign-in page, and its own pages respond 404: %s', async (_, overrides) => {
    await using other = await OauthTest.start(overrides, oauth);
    const ask = async (path: string, method: string) => {
      const answer = await fetch(other.api.url + path, { method, headers: { Accept: 'text/html' } });
      const body = (await answer.text()).replaceAll(path, '').replace(/[0-9a-f-]{36}/g, '');
      return [answer.status, answer.headers.get('content-type'), body];
    };
    const path = '/account/password-reset';
    for (const method of ['GET', 'POST']) {
      const nothing = await ask('/account/nothing', method);
      expect(nothing[0]).toBe(404);
      for (const closed of [path, `${path}/send`, '/account/new-password/x', '/account/new-password/x/set'])
        expect([closed, ...(await ask(closed, method))]).toEqual([closed, ...nothing]);
    }
    expect(await (await fetch(`${other.api.url}/account/apps`)).text()).not.toContain(path);
  });
});
