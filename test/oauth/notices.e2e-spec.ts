import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { UsersService } from '../../src/accounts/users.service.js';
import { closeApp, createApp } from '../../src/app.js';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { NoticeChoices } from '../../src/member-pages/notices/notice-choices.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { atOnce } from '../support/concurrent.js';
import { createTestDatabase, postgres, testConfig } from '../support/database.js';
import { freePort, type OauthTest } from '../support/oauth.js';
import { Platform } from '../support/platform.js';
import { ServerProcess } from '../support/server.js';
import { addPasskey, atSecurity, Authenticator, startWithPasskeys } from '../support/passkeys.js';
import { Receiver } from '../support/receiver.js';
import { MailServer, memberWithEmail, textOf } from '../support/smtp.js';
import { until } from '../support/timing.js';

let oauth: OauthTest;
let mails: MailServer;
beforeAll(async () => {
  mails = await MailServer.start(await freePort()); // one test closes it, and opens the port again
  oauth = await startWithPasskeys({ platformName: 'Gipfel', mail: mails.mail });
});
afterAll(async () => {
  await oauth.close();
  await mails.close();
});
beforeEach(() => {
  mails.received = [];
  mails.refusal = () => undefined;
});

const member = () => memberWithEmail(oauth);

const createKey = (
  userId: number,
  name = 'Calendar',
  { dataSource, api }: Pick<OauthTest, 'dataSource'> & { api: Pick<OauthTest['api'], 'config'> } = oauth,
) =>
  new ApiKeysService(dataSource, api.config).create({
    userId,
    name,
    scopes: [],
    environment: 'live',
    cidrs: [],
    expiresInSeconds: 86_400,
    actor: 'admin',
  });

/** Resolves when no email to the member is pending. @returns the emails to the member */
async function mailsTo({ id, email }: { id: number; email: string }) {
  const waiting = 'SELECT FROM notice_emails WHERE user_id = $1';
  await until(async () => (await oauth.query(waiting, [id])).length === 0);
  return mails.received.filter(({ to }) => to[0] === email);
}

/** The member's emails that the mail server has rejected. */
const rejectedOf = (userId: number) =>
  oauth.query('SELECT FROM notice_emails WHERE user_id = $1 AND attempts > 0', [userId]);

const chosenBy = async (id: number) =>
  (await oauth.details({ user: id, type: 'notice.chosen' })).map(({ muted }) => muted);

const messageIds = (mails: readonly { source: string }[]) =>
  mails.map(({ source }) => /^Message-ID: (.*)\r$/m.exec(source)![1]);

describe('a notice to a member', () => {
  it('is a single email, marked as automatically generated', async () => {
    const one = await member();
    await createKey(one.id, 'My\u202e calendar');
    const [mail, ...others] = await mailsTo(one);
    expect(others).toEqual([]);
    expect(mail!.source).toMatch(/^From: Gipfel <no-reply@gipfel\.example>\r$/m);
    expect(mail!.source).toMatch(/^Subject: New API key \(Gipfel\)\r$/m);
    expect(mail!.source).toMatch(/^Auto-Submitted: auto-generated\r$/m);
    expect(mail!.source).toMatch(/^Message-ID: <notice-\d+-\d{14}@localhost>\r$/m);
    const text = textOf(mail);
    expect(text).toContain('There is a new API key for your account at Gipfel: “My calendar”.');
    expect(text).toContain(`${oauth.issuer}/account/keys`);
    expect(text).toMatch(/\d{4}, \d\d:\d\d UTC/);
  });

  it('is in the language of the latest sign-in', async () => {
    const one = await member();
    const signedInIn = (language: string) =>
      oauth.query(
        `INSERT INTO auth_events (type, actor, user_id, details) VALUES ('sign_in.succeeded', 'user', $1, jsonb_build_object('language', $2::text))`,
        [one.id, language],
      );
    await signedInIn('fr');
    await createKey(one.id);
    expect(textOf((await mailsTo(one))[0])).toContain(`Bonjour ${one.username}`);
    await signedInIn('de');
    await createKey(one.id);
    expect(textOf((await mailsTo(one))[1])).toContain(`Hallo ${one.username}`);
  });

  it('about expiring app access links to the page for choosing another duration', async () => {
    const one = await member();
    await oauth.query(
      `INSERT INTO auth_events (type, actor, user_id, client_id) VALUES ('access.ending', 'system', $1, $2)`,
      [one.id, await oauth.client({ name: 'Diary' })],
    );
    const [mail] = await mailsTo(one);
    expect(textOf(mail)).toContain('The app “Diary” loses access to your account at Gipfel within 7 days.');
    expect(textOf(mail).replaceAll('\r', '')).toContain(
      `choose another duration:\n${oauth.issuer}/account/apps\n`,
    );
  });

  it('about a new passkey or password has no unsubscribe link, and a forged link gets a 404', async () => {
    const one = await member();
    const { browser } = await atSecurity(oauth, one.username);
    await addPasskey(browser, new Authenticator(oauth.issuer), 'Old phone');
    await new UsersService(oauth.dataSource).setPassword(one.id, 'seven quiet herons wade', 'admin');
    const found = await mailsTo(one);
    const subjects = found.map(({ source }) => /^Subject: (.*)\r$/m.exec(source)![1]!);
    expect(subjects.sort()).toEqual(['New passkey (Gipfel)', 'New password (Gipfel)']);
    for (const { source } of found) expect(source).not.toMatch(/unsubscribe/i);
    const forged = oauth.api.app.get(NoticeChoices).linkTo(one.id, 'passkey.added');
    expect((await fetch(oauth.issuer + forged, { method: 'POST' })).status).toBe(404);
  });

  it('is not emailed to members without an address, disabled members, or erased members', async () => {
    const [without, disabled, erased] = [await oauth.member(), await member(), await member()];
    mails.refusal = () => new Error('not now');
    for (const { id } of [without, disabled, erased]) await createKey(id);
    await new UsersService(oauth.dataSource).disable(disabled.id, 'admin');
    await oauth.dataSource.transaction((manager) => eraseMembers(manager, [erased.id], { actor: 'admin' }));
    expect(
      await oauth.query('SELECT FROM notice_emails WHERE user_id = ANY ($1)', [[without.id, erased.id]]),
    ).toEqual([]);
    // The mail server still refuses all emails, since one may be on its way: only emails without a recipient disappear.
    await oauth.query('UPDATE notice_emails SET due_at = now()');
    expect(await mailsTo(disabled)).toEqual([]);
  });
});

it('a member who is disabled while a notice is created gets at most one email; the platform gets one record of the notice', async () => {
  for (let round = 0; round < 5; round++) {
    const one = await member();
    await Promise.all([createKey(one.id), new UsersService(oauth.dataSource).disable(one.id, 'admin')]);
    expect((await mailsTo(one)).length).toBeLessThanOrEqual(1);
    expect(
      await oauth.query(`SELECT notice FROM platform_changes WHERE user_id = $1 AND type = 'notice'`, [
        one.id,
      ]),
    ).toEqual([{ notice: 'key.created' }]);
  }
});

describe('a mail server', () => {
  it('that rejects one address delays no other email; the audit log shows the failure after three days', async () => {
    const [rejected, other] = [await member(), await member()];
    mails.refusal = (address) => (address === rejected.email ? new Error('no such mailbox') : undefined);
    await createKey(rejected.id);
    await createKey(other.id);
    expect(await mailsTo(other)).toHaveLength(1);
    await until(async () => (await rejectedOf(rejected.id)).length === 1);
    await oauth.query(
      `UPDATE notice_emails SET created_at = created_at - interval '3 days', due_at = now() WHERE user_id = $1`,
      [rejected.id],
    );
    expect(await mailsTo(rejected)).toEqual([]);
    const [event, ...others] = await oauth.events({ user: rejected.id, type: 'notice.undelivered' });
    expect(event).toMatchObject({ actor: 'system', details: { notice: 'key.created' } });
    expect(event!.details.attempts).toBeGreaterThan(0);
    expect(others).toEqual([]);
  });

  it('that was down gets the email when the mail server is available again', async () => {
    const one = await member();
    const { port } = mails;
    await mails.close();
    await createKey(one.id);
    await until(async () => (await rejectedOf(one.id)).length === 1);
    mails = await MailServer.start(port);
    await oauth.query('UPDATE notice_emails SET attempts = 0, due_at = now()'); // the third attempt is in 5 minutes
    expect(await mailsTo(one)).toHaveLength(1);
  });

  postgres.it('that serves two instances gets each email once', async () => {
    const port = await freePort();
    const app = await createApp({ ...oauth.api.config, port });
    await app.listen(port, '127.0.0.1');
    try {
      const one = await member();
      await atOnce(40, (i) => createKey(one.id, `Key ${i}`));
      const ids = messageIds(await mailsTo(one));
      expect([ids.length, new Set(ids).size]).toEqual([40, 40]);
    } finally {
      await closeApp(app);
    }
  });
});

postgres.it.each([
  ['before the mail server accepts an email loses no email', 'recipient'],
  ['after the mail server accepts an email causes one resend, with the same Message-ID', 'email'],
] as const)('an instance that is killed %s', async (_, at) => {
  const database = await createTestDatabase();
  const config = testConfig(database.environment);
  const dataSource = await createDataSource(config, 'maintenance').initialize();
  const server = await MailServer.start();
  const { smtpUrl: SMTP_URL, from: MAIL_FROM } = server.mail;
  const servers: ServerProcess[] = [];
  const start = async () =>
    servers.push(await ServerProcess.start({ ...database.environment, SMTP_URL, MAIL_FROM }));
  try {
    await start();
    const held = new Promise<void>((resolve) => (server.hold = { at, held: resolve }));
    const userId = await new Platform(dataSource).user({ email: 'ada@mail.example' });
    await createKey(userId, 'Phone', { dataSource, api: { config } });
    await held;
    await servers[0]!.kill('SIGKILL');
    server.hold = undefined;
    const [claim] = await dataSource.query<{ seconds: number; attempts: number }[]>(
      'SELECT EXTRACT(epoch FROM due_at - now())::float8 AS seconds, attempts FROM notice_emails',
    );
    expect([claim!.attempts, claim!.seconds <= 60]).toEqual([1, true]);
    await dataSource.query('UPDATE notice_emails SET due_at = now()'); // skips the claim's 60 seconds
    await Promise.all([start(), start()]);
    await until(async () => (await dataSource.query<[]>('SELECT FROM notice_emails')).length === 0);
    const ids = messageIds(server.received);
    expect([ids.length, new Set(ids).size]).toEqual([at === 'recipient' ? 1 : 2, 1]);
    expect(await dataSource.query(`SELECT notice FROM platform_changes WHERE type = 'notice'`)).toEqual([
      { notice: 'key.created' },
    ]);
  } finally {
    await Promise.all(servers.map((one) => one.kill('SIGKILL')));
    await server.close();
    await dataSource.destroy();
    await database.drop();
  }
});

describe('a member’s choice of emails', () => {
  const choose = async (username: string, notice: string[]) => {
    const { browser, page } = await atSecurity(oauth, username);
    return browser.press(page, { notice }, /notices$/);
  };

  it('on /account/security determines the sent emails; the platform gets records of all notices', async () => {
    const one = await member();
    const { page } = await atSecurity(oauth, one.username);
    expect(page.html.match(/name="notice" value="[\w.]+" checked/g)).toHaveLength(6);
    const saved = await choose(one.username, ['consent.granted', 'calendar_link.created']);
    expect([saved.status, saved.html]).toEqual([200, expect.stringContaining('Your choice is saved.')]);
    expect(saved.html.match(/name="notice" value="[\w.]+" checked/g)).toHaveLength(2);
    await createKey(one.id);
    expect(await mailsTo(one)).toEqual([]);
    expect(
      await oauth.query('SELECT notice FROM platform_changes WHERE user_id = $1 AND notice IS NOT NULL', [
        one.id,
      ]),
    ).toEqual([{ notice: 'key.created' }]);
    await choose(one.username, ['consent.granted', 'calendar_link.created']);
    expect(await chosenBy(one.id)).toEqual([['access.ending', 'key.created', 'key.ending', 'key.rotated']]);
  });

  it('is rejected for unknown emails and for emails that cannot be muted', async () => {
    const one = await member();
    for (const notice of [['passkey.added'], ['nothing'], ['toString']])
      expect((await choose(one.username, notice)).status).toBe(400);
    expect(await chosenBy(one.id)).toEqual([]);
  });

  it('changes by a POST to an email’s unsubscribe link without a sign-in, but not by a GET', async () => {
    const one = await member();
    await createKey(one.id);
    const [mail] = await mailsTo(one);
    const header = mail!.source.replace(/\r\n[ \t]+/g, ' ');
    expect(header).toMatch(/^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m);
    const link = /^List-Unsubscribe: <(\S+)>\r$/m.exec(header)![1]!;
    expect(textOf(mail)).toContain(link);
    const page = await fetch(link);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('New API key')]);
    expect(await chosenBy(one.id)).toEqual([]);
    for (let i = 0; i < 2; i++) {
      const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' });
      expect((await fetch(link, { method: 'POST', body })).status).toBe(200);
    }
    expect(await chosenBy(one.id)).toEqual([['key.created']]);
    mails.received = [];
    await createKey(one.id);
    expect(await mailsTo(one)).toEqual([]);
  });

  it('does not change by an altered unsubscribe link, which gets a 404', async () => {
    const [one, other] = [await member(), await member()];
    const link = oauth.issuer + oauth.api.app.get(NoticeChoices).linkTo(one.id, 'key.created');
    const [, code] = /-([\w-]{43})$/.exec(link)!;
    for (const changed of [
      link.replace(`/${one.id}-`, `/${other.id}-`),
      link.replace('key-created', 'key-rotated'),
      link.replace(code!, 'A'.repeat(43)),
      `${oauth.issuer}/account/unsubscribe/x`,
    ])
      for (const method of ['GET', 'POST']) expect((await fetch(changed, { method })).status).toBe(404);
    expect([await chosenBy(one.id), await chosenBy(other.id)]).toEqual([[], []]);
  });
});

it('a mail server that never responds delays neither the notice’s record, nor a request, nor a webhook', async () => {
  const receiver = await Receiver.start();
  try {
    const one = await member();
    await new WebhooksService(oauth.dataSource, oauth.api.config).create({
      url: receiver.url,
      types: ['profile.updated'],
      actor: 'admin',
    });
    await new Promise<void>((resolve, reject) => {
      mails.hold = { at: 'recipient', held: resolve };
      createKey(one.id).catch(reject);
    });
    const key = await oauth.api.key(one.id, ['profile:read', 'profile:write']);
    expect((await oauth.api.put('/profile', key, { bio: 'new' })).status).toBe(200);
    await receiver.untilReceived(1);
    expect(receiver.received[0]!.message).toMatchObject({ data: { member_id: one.id } });
    const waiting = 'SELECT FROM notice_emails WHERE user_id = $1';
    const given = `SELECT FROM platform_changes WHERE user_id = $1 AND notice = 'key.created'`;
    for (const rows of [waiting, given]) expect(await oauth.query(rows, [one.id])).toHaveLength(1);
  } finally {
    mails.hold = undefined;
    await receiver.close();
  }
});
