import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Downloads } from '../../src/personal-data/account-data.controller.js';
import { PersonalData } from '../../src/personal-data/personal-data.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import type { ApiAdapter } from '../../src/http/pipeline/api.adapter.js';
import { DeveloperRequests } from '../../src/auth/usage/developer-requests.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { postgres } from '../support/database.js';
import { csrfOf, OauthTest, type Browser, type FormPage } from '../support/oauth.js';
import { eventually, until } from '../support/timing.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start({ developerConsole: true })));
afterAll(() => oauth.close());

const signedIn = (username: string, browser: Browser) => browser.signIn('/account/data', username);

/** Reads the member's data export from the database. */
async function fileOf(userId: number) {
  const pieces: Buffer[] = [];
  for await (const piece of oauth.api.app.get(PersonalData).of(userId, () => Promise.resolve()))
    pieces.push(Buffer.from(piece));
  const text = Buffer.concat(pieces).toString();
  return { pieces, text, data: JSON.parse(text) as Record<string, Record<string, unknown>[]> };
}

describe('the data export', () => {
  it('contains consents, notices, and the requests and webhook endpoints of only the member’s apps and keys', async () => {
    const [member, other] = [await oauth.member(), await oauth.member()];
    const webhooks = new WebhooksService(oauth.dataSource, oauth.api.config);
    for (const { id } of [other, member]) {
      const owner = { userId: id, ip: null };
      const clientId = await oauth.client({ name: `App of ${id}`, owner });
      const named = { name: `Key of ${id}`, actor: 'user', owner } as const;
      const keyId = (await oauth.api.key(id, ['events:read'], named)).split('_')[2]!;
      for (const target of [{ keyId }, { clientId }]) {
        const url = `https://receiver.example/${id}`;
        await webhooks.create({ url, types: ['events.updated'], ...target, actor: 'admin' });
      }
      const nothing = { reason: null, parameter: null, value: null, error_id: null };
      const answer = { status: 403, error: 'insufficient_scope', ...nothing };
      const request = { startedAt: process.hrtime.bigint(), method: 'GET', route: `/of/${id}`, ...answer };
      for (const sender of [
        { kind: 'key', id: keyId },
        { kind: 'client', id: clientId },
      ] as const)
        oauth.api.app.get(DeveloperRequests).record(sender, request, true);
    }
    await oauth.api.app.get(DeveloperRequests).flush();
    const allowed = await oauth.client();
    await oauth.tokens(allowed, member.username, {});
    const { data, text } = await fileOf(member.id);
    const request = expect.objectContaining({ route: `/of/${member.id}`, status: 403 });
    expect(data.own_apps_requests).toEqual([request, request]);
    expect(data.own_apps_requests!.map(({ app_name }) => app_name as string).toSorted()).toEqual([
      `App of ${member.id}`,
      `Key of ${member.id}`,
    ]);
    const receiver = expect.objectContaining({
      url: `https://receiver.example/${member.id}`,
      types: ['events.updated'],
    });
    expect(data.webhooks).toEqual([receiver, receiver]);
    const chosen = { duration: '30', access_ends_at: expect.any(String) };
    expect(data.consents).toMatchObject([{ client_id: allowed, rejected: [], ...chosen }]);
    const notices = data.platform_news!.flatMap(({ notice }) => (notice as string | null) ?? []);
    expect(notices.sort()).toEqual(['consent.granted', 'key.created']);
    expect(data.platform_news!.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['member.signed_in', 'consent.granted']),
    );
    // The export contains only metadata of secrets: authentication method and creation time.
    expect(text.replaceAll(/"own_apps_secrets"|"secret_auth_method"/g, '')).not.toContain('secret');
    expect(text).not.toContain(`/${other.id}"`);
  });

  it('is read in chunks of at most 1 MB, even with long texts', async () => {
    const { platform } = oauth.api;
    const id = await platform.user();
    const many = 12;
    for (let n = 0; n < many; n++) {
      const event = await platform.event({
        title: '🎉'.repeat(300),
        summary: '🎉'.repeat(1_000),
        description: '🎉'.repeat(20_000),
        tags: Array.from({ length: 100 }, (_, i) => `${i} ${'🎉'.repeat(90)}`),
      });
      await platform.participant(event, id, { role: 'attendee' });
    }
    const { data, pieces } = await fileOf(id);
    expect(data.events).toHaveLength(many);
    expect(pieces.length).toBeGreaterThan(10);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(1_000_000);
  });

  it('contains all rows of a table that takes several reads', async () => {
    const { id } = await oauth.member();
    await oauth.query(
      `INSERT INTO member_usage (user_id, day, app_kind, app_id, scope, uses, last_used_at)
SELECT $1, current_date - n % 7, 'client', 'app' || n, 'events:read', 1, now() FROM generate_series(1, 250) n`,
      [id],
    );
    await oauth.query(
      `INSERT INTO auth_events (type, actor, user_id, details)
SELECT 'session.ended', 'user', $1, jsonb_build_object('sessions', n) FROM generate_series(1, 250) n`,
      [id],
    );
    const { data } = await fileOf(id);
    expect(new Set(data.usage!.map(({ app_id }) => app_id)).size).toBe(250);
    expect(data.account_events!.map(({ details }) => (details as { sessions: number }).sessions)).toEqual(
      Array.from({ length: 250 }, (_, i) => 250 - i),
    );
  });
});

describe('POST /account/data/download', () => {
  it('rejects a member’s second concurrent download, and a fifth concurrent download of all members', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    const page = await signedIn(member.username, browser);
    const ended = Promise.withResolvers<void>();
    const downloads = oauth.api.app.get(Downloads);
    const own = downloads.run(member.id, () => ended.promise);
    const again = await browser.press(page, {}, /download$/);
    expect([again.status, again.headers.get('retry-after')]).toEqual([429, '10']);
    expect(again.html).toContain('Your data is already being downloaded.');
    ended.resolve();
    await own;
    const others = Promise.withResolvers<void>();
    const four = [1, 2, 3, 4].map((id) => downloads.run(-id, () => others.promise));
    const refused = await browser.press(page, {}, /download$/);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10']);
    expect(refused.html).toContain('Many members are downloading their data.');
    others.resolve();
    await Promise.all(four);
    const { html } = await browser.press(page, {}, /download$/);
    expect(JSON.parse(html)).toMatchObject({ profile: { id: member.id } });
  });

  it('aborts the download when the member’s sign-ins end', async () => {
    const { id, username } = await oauth.member();
    const browser = oauth.browser();
    const page = await signedIn(username, browser);
    const files = oauth.api.app.get(PersonalData);
    const of = files.of.bind(files);
    const sending = jest.spyOn(files, 'of').mockImplementationOnce(async function* (userId, confirm) {
      const pieces = of(userId, confirm);
      yield (await pieces.next()).value as string;
      await new ConnectedApps(oauth.dataSource).revokeAll(userId, { actor: 'user' });
      yield* pieces;
    });
    await expect(browser.submit(page, {}, /download$/)).rejects.toThrow('terminated');
    expect(sending).toHaveBeenCalledWith(id, expect.any(Function));
    sending.mockRestore();
  });
});

postgres.describe('downloads of clients that stop reading', () => {
  const MANY = 40;

  /** Creates a member whose export exceeds the buffers of a socket. */
  async function memberWithMuch(): Promise<{ id: number; username: string }> {
    const member = await oauth.member();
    await oauth.query(
      `WITH made AS (
  INSERT INTO events (title, status, visibility, starts_at, timezone, organizer_id, description)
  SELECT 'Event ' || n, 'scheduled', 'public', now() + n * interval '1 hour', 'Europe/Berlin', $1, repeat(md5(n::text), 500)
  FROM generate_series(1, 1200) n RETURNING id
) INSERT INTO participants (event_id, user_id, role) SELECT id, $1, 'organizer' FROM made`,
      [member.id],
    );
    return member;
  }

  /** Sends the form, but does not read the response. */
  async function sendUnread(browser: Browser, page: FormPage): Promise<Socket> {
    const body = new URLSearchParams({ csrf: csrfOf(page) }).toString();
    const cookie = [...browser.cookies].map(([key, { value }]) => `${key.split(';')[0]}=${value}`).join('; ');
    const { port } = new URL(oauth.issuer);
    const socket = connect(Number(port), '127.0.0.1').on('error', () => {});
    socket.pause();
    await once(socket, 'connect');
    socket.write(
      `POST /account/data/download HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nCookie: ${cookie}\r\n` +
        `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    return socket;
  }

  it('do not prevent other requests, and time out', async () => {
    const downloads = oauth.api.app.get(Downloads);
    const readers: { browser: Browser; page: FormPage }[] = [];
    for (let n = 0; n < 5; n++) {
      const browser = oauth.browser();
      const { username } = await memberWithMuch();
      readers.push({ browser, page: await signedIn(username, browser) });
    }
    const sockets = await Promise.all(
      Array.from({ length: MANY }, (_, n) => {
        const { browser, page } = readers[n % readers.length]!;
        return sendUnread(browser, page);
      }),
    );
    await eventually(() => downloads.inProgress === 4 || undefined);
    // Until the rejected requests have their responses, they take the places of others.
    const { pages } = (oauth.api.app.getHttpAdapter() as ApiAdapter).entryPoint.admissions;
    await until(() => pages.state().atWork + pages.state().waiting === 0);
    const key = await oauth.api.key(await oauth.api.platform.user());
    await until(async () => {
      expect((await oauth.api.get('/me', key)).status).toBe(200);
      expect((await fetch(`${oauth.issuer}/readyz`)).status).toBe(200);
      expect((await oauth.browser().view('/account/apps')).status).toBe(200);
      return downloads.inProgress === 0;
    });
    for (const socket of sockets) socket.destroy();
    // A client that reads the response gets the complete export.
    const { browser, page } = readers[0]!;
    const { html } = await browser.press(page, {}, /download$/);
    expect((JSON.parse(html) as { events: unknown[] }).events).toHaveLength(1_200);
  });
});
