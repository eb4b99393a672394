import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { setTimeout } from 'node:timers/promises';
import nodeIcal, { type VEvent } from 'node-ical';
import { Usage } from '../../src/auth/usage/usage.js';
import { CalendarFiles } from '../../src/calendar/calendar-files.js';
import { CalendarLinks } from '../../src/calendar/calendar-links.js';
import { TokenKeys } from '../../src/crypto/hmac.js';
import { Secrets } from '../../src/crypto/secrets.js';
import { Database } from '../../src/database/database.js';
import { atOnce } from '../support/concurrent.js';
import { pua, puaJson } from '../support/command-line.js';
import { postgres, thorough } from '../support/database.js';
import { OauthTest, PASSWORD, type Browser, type FormPage } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

/** A new link's URL, which only the response to the form shows. */
const LINK = /value="(http[^"]*\/calendar\/[\w-]{43}\.ics)"/;

async function accountPage(username: string, browser = oauth.browser()) {
  const page = await browser.view('/account/calendar');
  return { browser, page: await browser.press(page, { username, password: PASSWORD }) };
}

const make = async (browser: Browser, page: FormPage, name = 'Phone') =>
  await browser.press(page, { name }, /\/calendar\/create$/);

/** Creates a link without the page, which another test covers. */
const linkOf = (userId: number) =>
  oauth.api.app.get(CalendarLinks).create(userId, 'Phone', { actor: 'user' });

async function read(link: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(link, { headers, method });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** The events that node-ical reads from a calendar file, by UID. */
async function entries(link: string): Promise<Record<string, VEvent>> {
  const { status, text } = await read(link);
  expect(status).toBe(200);
  const found = Object.values(nodeIcal.sync.parseICS(text)).filter((part) => part?.type === 'VEVENT');
  return Object.fromEntries((found as VEvent[]).map((entry) => [entry.uid, entry]));
}

const uidOf = (event: number) => `event-${event}@127.0.0.1`;

async function memberWithEvent(fields: Record<string, unknown> = {}, relation: Record<string, unknown> = {}) {
  const member = await oauth.member();
  const event = await oauth.api.platform.event(fields);
  await oauth.api.platform.participant(event, member.id, relation);
  return { member, event, link: await linkOf(member.id) };
}

/** The event's URL, which the file declares as a URI. */
const urlOf = ({ url }: VEvent) => (url as unknown as { val: string } | undefined)?.val ?? null;

/** The unfolded lines of a calendar file. */
const linesOf = (text: string) => text.replaceAll('\r\n ', '').split('\r\n');

describe('a calendar link', () => {
  it('is created on the account page, shown only once, and serves the member’s events until it is revoked', async () => {
    const { username, id } = await oauth.member();
    const event = await oauth.api.platform.event({ title: 'Summer party' });
    await oauth.api.platform.participant(event, id);
    const { browser, page } = await accountPage(username);
    expect(page.status).toBe(200);
    const made = await make(browser, page, ' Phone, <b>mine</b> ');
    expect([made.status, made.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const link = LINK.exec(made.html)![1]!;
    expect((await entries(link))[uidOf(event)]!.summary).toBe('Summer party');

    const after = await browser.view('/account/calendar');
    expect(after.html).toContain('Phone, &lt;b&gt;mine&lt;/b&gt;');
    expect(after.html).not.toMatch(LINK);
    expect(after.html).not.toContain('Not used yet');
    const revoked = await browser.press(after, {}, /\/revoke$/);
    expect(revoked.html).toContain('That calendar link no longer works.');
    expect((await read(link)).status).toBe(404);
    const events = await oauth.query<{ type: string; details: object }>(
      `SELECT type, details FROM auth_events WHERE user_id = $1 AND type LIKE 'calendar%' ORDER BY id`,
      [id],
    );
    const details = { link: expect.any(Number) };
    expect(events).toEqual([
      { type: 'calendar_link.created', details },
      { type: 'calendar_link.revoked', details },
    ]);
    expect((await browser.view('/account/activity')).html).toContain('You revoked a calendar link');
  });

  it.each(['', '   ', 'x'.repeat(61), '\0\u200b'])('cannot be created with the name %j', async (name) => {
    const { username, id } = await oauth.member();
    const { browser, page } = await accountPage(username);
    const refused = await make(browser, page, name);
    expect(refused.status).toBe(422);
    expect(refused.html).toContain('Give the link a name of at most 60 characters.');
    expect(await oauth.api.app.get(CalendarLinks).list(id)).toEqual([]);
  });

  thorough.it('cannot be created while the member has ten links', async () => {
    const { username, id } = await oauth.member();
    const { browser, page } = await accountPage(username);
    let last = await browser.view('/account/calendar');
    for (let i = 0; i < 10; i++) last = await make(browser, last, `Link ${i}`);
    expect(last.html).toContain('reached the limit of');
    expect((await make(browser, page, 'One more')).status).toBe(422);
    const links = oauth.api.app.get(CalendarLinks);
    const [newest] = await links.list(id);
    expect(await links.revoke(id, newest!.id, { actor: 'user' })).toBe(true);
    expect((await make(browser, page, 'One more')).html).toMatch(LINK);
  });

  it('cannot be revoked by another member or with a forged CSRF token', async () => {
    const [owner, other] = [await oauth.member(), await oauth.member()];
    const link = await linkOf(owner.id);
    const [{ id } = { id: 0 }] = await oauth.api.app.get(CalendarLinks).list(owner.id);
    await linkOf(other.id);
    const { browser, page } = await accountPage(other.username);
    const own = /\/account\/calendar\/\d+\/revoke/.exec(page.html)![0];
    const foreign = { ...page, html: page.html.replace(own, `/account/calendar/${id}/revoke`) };
    const { html } = await browser.press(foreign, {}, /\/revoke$/);
    expect(html).not.toContain('no longer works');
    const forged = {
      ...page,
      html: page.html.replaceAll(/name="csrf" value="[^"]*"/g, 'name="csrf" value="x"'),
    };
    expect((await browser.press(forged, {}, /\/revoke$/)).status).toBe(403);
    expect((await read(link)).status).toBe(200);
  });

  it('has a secret that neither its row nor the audit log contains', async () => {
    const { username, id } = await oauth.member();
    const { browser, page } = await accountPage(username);
    const link = LINK.exec((await make(browser, page)).html)![1]!;
    const secret = /calendar\/([\w-]+)\.ics/.exec(link)![1]!;
    await read(link);
    for (const table of ['calendar_links', 'auth_events']) {
      const [{ dump }] = (await oauth.query(
        `SELECT string_agg(t::text, ' ') AS dump FROM ${table} t WHERE user_id = $1`,
        [id],
      )) as [{ dump: string }];
      expect(dump).not.toContain(secret);
      expect(dump).not.toContain(Buffer.from(secret).toString('hex'));
      expect(dump).not.toContain(Buffer.from(secret, 'base64url').toString('hex'));
    }
  });

  it('returns the same 404 response if it is unknown or malformed, or if its member is disabled or erased', async () => {
    const { member, link } = await memberWithEvent();
    const gone = await memberWithEvent();
    await puaJson(oauth.api.environment, ['users', 'disable', member.username]);
    await puaJson(oauth.api.environment, ['users', 'erase', gone.member.username, '--yes']);
    const answers = [];
    for (const path of [
      new URL(link).pathname,
      new URL(gone.link).pathname,
      `/calendar/${'a'.repeat(43)}.ics`,
      '/calendar/a.ics',
      '/calendar/%00.ics',
      `/calendar/${'a'.repeat(5000)}.ics`,
    ]) {
      const { status, headers, text } = await read(oauth.issuer + path);
      const body = { ...(JSON.parse(text) as object), instance: '', request_id: '' };
      answers.push({ status, body, cache: headers.get('cache-control'), type: headers.get('content-type') });
    }
    expect(answers[0]).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
      cache: 'no-store',
      type: 'application/problem+json; charset=utf-8',
    });
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    const left = await oauth.query('SELECT FROM calendar_links WHERE user_id = $1', [gone.member.id]);
    expect(left).toEqual([]);
  });

  it('gets 404 if it is revoked while its request waits for the file', async () => {
    const { member, link } = await memberWithEvent();
    const files = oauth.api.app.get(CalendarFiles);
    const of = files.of.bind(files);
    const waiting = jest.spyOn(files, 'of').mockImplementationOnce(async (userId) => {
      await oauth.api.app.get(CalendarLinks).revokeAll(member.id, { actor: 'user' });
      return of(userId);
    });
    expect((await read(link)).status).toBe(404);
    expect(waiting).toHaveBeenCalledTimes(1);
    waiting.mockRestore();
  });

  it('stays valid after a sign-out, until all access is revoked or the password changes', async () => {
    const end = {
      'revoke-access': (username: string) => pua(oauth.api.environment, ['users', 'revoke-access', username]),
      'set-password': (username: string) =>
        pua(oauth.api.environment, ['users', 'set-password', username, '--password-stdin'], 'a new secret 1'),
    };
    for (const command of Object.values(end)) {
      const { member, link } = await memberWithEvent();
      const browser = oauth.browser();
      const { page } = await accountPage(member.username, browser);
      await browser.submit(page, {}, /\/sign-out$/);
      expect((await read(link)).status).toBe(200);
      expect(await command(member.username)).toMatchObject({ code: 0 });
      expect((await read(link)).status).toBe(404);
      expect(await oauth.api.app.get(CalendarLinks).list(member.id)).toEqual([]);
    }
  });

  thorough.it('is valid under the previous SECRET_KEY, and hashed under the new one when used', async () => {
    const { member, link } = await memberWithEvent();
    const secret = /calendar\/([\w-]+)\.ics/.exec(link)![1]!;
    const before = Buffer.from(process.env.TEST_SECRET_KEY!, 'base64');
    const after = Buffer.alloc(32, 'new');
    const find = (secrets: Secrets) =>
      new CalendarLinks(
        oauth.api.config,
        oauth.api.app.get(Database),
        new TokenKeys(secrets),
        oauth.api.app.get(Usage),
      ).find(secret);
    expect(await find(new Secrets(after))).toBeUndefined();
    expect(await find(new Secrets(after, before))).toMatchObject({ user_id: member.id });
    expect(await find(new Secrets(after))).toMatchObject({ user_id: member.id });
  });

  thorough.it('gets 429 after repeated reads, and so does an unknown link', async () => {
    const rateLimits = { read: 3, write: 3, auth: 2 };
    await using limited = await OauthTest.start({ rateLimits, trustProxy: 1 }, oauth);
    const from = { 'X-Forwarded-For': '203.0.113.77' };
    const { link } = await memberWithEvent();
    const there = link.replace(oauth.issuer, limited.issuer);
    /** Statuses before the first 429, and the 429 response. At most one rate-limit window ends meanwhile. */
    const untilRefused = async (url: string) => {
      const before = new Set<number>();
      for (let i = 0; i < 10; i++) {
        const answer = await read(url, from);
        if (answer.status === 429) return { before, ...answer };
        before.add(answer.status);
      }
      throw new Error('there is no limit');
    };
    for (const [url, status] of [
      [there, 200],
      [`${limited.issuer}/calendar/${'b'.repeat(43)}.ics`, 404],
    ] as const) {
      const { before, headers, text } = await untilRefused(url);
      expect(before).toEqual(new Set([status]));
      expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(JSON.parse(text)).toMatchObject({ code: 'rate_limited' });
    }
  });
});

describe('a calendar file', () => {
  it('keeps an event’s UID and raises its SEQUENCE when the event moves or is canceled, and omits inaccessible events', async () => {
    const { event, link, member } = await memberWithEvent({
      starts_at: '2031-05-01T18:00:00Z',
      ends_at: '2031-05-01T20:00:00Z',
      timezone: 'Europe/Berlin',
    });
    const change = (sql: string) => oauth.query(`UPDATE events SET ${sql} WHERE id = $1`, [event]);
    const first = (await entries(link))[uidOf(event)]!;
    expect(first).toMatchObject({ status: 'CONFIRMED', transparency: 'OPAQUE' });
    expect(first.start.toISOString()).toBe('2031-05-01T18:00:00.000Z');
    await change(`starts_at = '2031-12-02T09:30:00Z', ends_at = '2031-12-02T10:00:00Z'`);
    const moved = (await entries(link))[uidOf(event)]!;
    expect([moved.start.toISOString(), moved.end!.toISOString()]).toEqual([
      '2031-12-02T09:30:00.000Z',
      '2031-12-02T10:00:00.000Z',
    ]);
    expect(Number(moved.sequence)).toBeGreaterThan(Number(first.sequence));
    await change(`status = 'cancelled', cancelled_at = now()`);
    const cancelled = (await entries(link))[uidOf(event)]!;
    expect(cancelled).toMatchObject({ status: 'CANCELLED', transparency: 'TRANSPARENT' });
    expect(Number(cancelled.sequence)).toBeGreaterThan(Number(moved.sequence));
    await oauth.query('DELETE FROM participants WHERE event_id = $1', [event]);
    expect(await entries(link)).toEqual({});
    await oauth.api.platform.participant(event, member.id, { role: 'invitee', rsvp_status: 'pending' });
    expect((await entries(link))[uidOf(event)]).toMatchObject({ transparency: 'TRANSPARENT' });
    await change('deleted_at = now()');
    expect(await entries(link)).toEqual({});
  });

  it('contains exactly the events that the API lists, with the same online URLs, for four roles and five statuses', async () => {
    const member = await oauth.member();
    const key = await oauth.api.key(member.id);
    for (const status of ['draft', 'scheduled', 'ongoing', 'completed', 'cancelled'])
      for (const [role, rsvp_status] of [
        ['organizer', null],
        ['co_organizer', null],
        ['attendee', 'going'],
        ['attendee', 'maybe'],
        ['invitee', 'declined'],
      ]) {
        const event = await oauth.api.platform.event({
          status,
          is_online: true,
          online_url: 'https://meet.example/room',
          ...(status === 'cancelled' ? { cancelled_at: '2026-01-01T00:00:00Z' } : {}),
        });
        await oauth.api.platform.participant(event, member.id, { role, rsvp_status });
      }
    await oauth.api.platform.event({ title: 'Somebody else’s' });
    const { body } = await oauth.api.get('/events?limit=100', key);
    const ids = (body.data as { id: number }[]).map(({ id }) => id);
    const found = await entries(await linkOf(member.id));
    expect(Object.keys(found).toSorted()).toEqual(ids.map(uidOf).toSorted());
    for (const id of ids) {
      const { online_url } = (await oauth.api.get(`/events/${id}`, key)).body as {
        online_url: string | null;
      };
      expect([id, urlOf(found[uidOf(id)]!)]).toEqual([id, online_url]);
    }
  });

  it('has start times in the event’s time zone, or in UTC during the hour that occurs twice', async () => {
    const member = await oauth.member();
    const zones = [
      ['Europe/Berlin', '2031-07-01T18:00:00Z', 'DTSTART;TZID=Europe/Berlin:20310701T200000'],
      ['Europe/Berlin', '2031-01-01T18:00:00Z', 'DTSTART;TZID=Europe/Berlin:20310101T190000'],
      ['America/New_York', '2031-07-01T18:00:00Z', 'DTSTART;TZID=America/New_York:20310701T140000'],
      ['Asia/Calcutta', '2031-07-01T18:00:00Z', 'DTSTART;TZID=Asia/Kolkata:20310701T233000'],
      ['UTC', '2031-07-01T18:00:00Z', 'DTSTART:20310701T180000Z'],
      // An hour that occurs twice: one parser uses the first occurrence, another parser the second.
      ['Europe/Berlin', '2031-10-26T00:30:00Z', 'DTSTART:20311026T003000Z'],
      ['Europe/Berlin', '2031-10-26T01:30:00Z', 'DTSTART:20311026T013000Z'],
      ['Europe/Berlin', '2031-10-26T18:00:00Z', 'DTSTART;TZID=Europe/Berlin:20311026T190000'],
    ] as const;
    const events = [];
    for (const [timezone, starts_at] of zones) {
      const event = await oauth.api.platform.event({ timezone, starts_at });
      await oauth.api.platform.participant(event, member.id);
      events.push(event);
    }
    const link = await linkOf(member.id);
    const { text } = await read(link);
    for (const [i, [, starts_at, line]] of zones.entries()) {
      const lines = linesOf(text);
      const at = lines.indexOf(`UID:${uidOf(events[i]!)}`);
      expect(lines.slice(at).find((one) => one.startsWith('DTSTART'))).toBe(line);
      expect((await entries(link))[uidOf(events[i]!)]!.start.getTime()).toBe(Date.parse(starts_at));
    }
    expect(
      text
        .match(/^TZID:.*$/gm)!
        .map((one) => one.trim())
        .toSorted(),
    ).toEqual(['TZID:America/New_York', 'TZID:Asia/Kolkata', 'TZID:Europe/Berlin']);
  });

  it('lists all-day events as dates, with DTEND on the day after the last day', async () => {
    const member = await oauth.member();
    const days = [
      ['2031-05-01T22:00:00Z', null, '20310502', '20310503'],
      ['2031-05-01T22:00:00Z', '2031-05-04T21:59:59Z', '20310502', '20310505'],
      ['2031-05-01T22:00:00Z', '2031-05-04T22:00:00Z', '20310502', '20310505'],
    ] as const;
    const events = [];
    for (const [starts_at, ends_at] of days) {
      const event = await oauth.api.platform.event({
        is_all_day: true,
        timezone: 'Europe/Berlin',
        starts_at,
        ends_at,
      });
      await oauth.api.platform.participant(event, member.id);
      events.push(event);
    }
    const lines = linesOf((await read(await linkOf(member.id))).text);
    for (const [i, [, , start, end]] of days.entries()) {
      const entry = lines.slice(lines.indexOf(`UID:${uidOf(events[i]!)}`));
      expect(entry.find((line) => line.startsWith('DTSTART'))).toBe(`DTSTART;VALUE=DATE:${start}`);
      expect(entry.find((line) => line.startsWith('DTEND'))).toBe(`DTEND;VALUE=DATE:${end}`);
    }
  });

  it('escapes the texts of an event and its organizer, so that no text starts another property', async () => {
    const organizer = await oauth.api.platform.user({
      stored_display_name: 'Ada "Countess"; L\\ovelace\r\nATTENDEE:mailto:x@example.com',
    });
    const title = `Käse, Wein; und \\ mehr 🎉${'👩‍👩‍👧‍👦ü'.repeat(20)}`;
    const { event, link } = await memberWithEvent({
      organizer_id: organizer,
      title: `${title}\r\nEND:VEVENT\r\nBEGIN:VALARM\u2028x\u0085y\u0007`,
      description: 'one\ntwo\r\nthree\rfour, five; six\\',
      location_name: 'Hall 1; left, door',
      location_address: 'Main Street 1\nback yard',
      location_city: 'Köln',
      location_country_code: 'DE',
      location_latitude: 0,
      location_longitude: 6.9602786,
      online_url: 'https://meet.example/a,b;c?d=%22"\\e f',
    });
    const { text } = await read(link);
    for (const line of text.split('\r\n')) {
      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75);
      expect(line).not.toMatch(/[\p{Cc}\u2028\ufffd]/u);
    }
    expect(text.match(/^BEGIN:/gm)).toHaveLength(2);
    expect(text).not.toMatch(/^ATTENDEE/m);
    const entry = (await entries(link))[uidOf(event)]!;
    expect(entry.summary).toBe(`${title}\nEND:VEVENT\nBEGIN:VALARM\nx\ny`);
    expect(entry.description).toBe('one\ntwo\nthree\nfour, five; six\\');
    expect(entry.location).toBe('Hall 1; left, door, Main Street 1\nback yard, Köln, DE');
    expect(entry.geo).toEqual({ lat: 0.000001, lon: 6.960279 });
    expect(urlOf(entry)).toBe('https://meet.example/a%2Cb%3Bc?d=%22%22%5Ce%20f');
    const named = entry.organizer as { params: { CN: string }; val: string };
    expect(named.val).toBe('mailto:nobody@calendar.invalid');
    expect(named.params.CN).toContain('Ada ’Countess’, L/ovelace ATTENDEE,mailto,x@example.com');
  });

  it('has an ETag, supports HEAD, and is not sent again (304) until an event changes', async () => {
    const { event, link } = await memberWithEvent();
    const first = await read(link, { 'X-Request-Id': 'mine-1' });
    expect(Object.fromEntries(first.headers)).toMatchObject({
      'content-type': 'text/calendar; charset=utf-8',
      'cache-control': 'private, no-cache',
      'x-content-type-options': 'nosniff',
      'x-request-id': 'mine-1',
      'content-length': String(Buffer.byteLength(first.text)),
    });
    const etag = first.headers.get('etag')!;
    expect(etag).toMatch(/^"[\w-]+"$/);
    const head = await read(link, {}, 'HEAD');
    expect([head.status, head.text, head.headers.get('etag')]).toEqual([200, '', etag]);
    const known = await read(link, { 'If-None-Match': etag });
    expect([known.status, known.text, known.headers.get('etag')]).toEqual([304, '', etag]);
    await oauth.query(`UPDATE events SET title = 'Another' WHERE id = $1`, [event]);
    expect((await read(link, { 'If-None-Match': etag })).status).toBe(200);
    for (const method of ['POST', 'PUT', 'DELETE']) expect((await read(link, {}, method)).status).toBe(405);
  });

  it('contains only properties of the calendar if the member has no events', async () => {
    const { text } = await read(await linkOf((await oauth.member()).id));
    expect(linesOf(text)).toEqual([
      'BEGIN:VCALENDAR',
      'VERSION:2.0',
      'PRODID:-//Public User API//Calendar//EN',
      'NAME:Events',
      'X-WR-CALNAME:Events',
      'REFRESH-INTERVAL;VALUE=DURATION:PT1H',
      'X-PUBLISHED-TTL:PT1H',
      'END:VCALENDAR',
      '',
    ]);
  });
});

postgres.it(
  'a calendar file of a member with 20,000 events contains the next 1,000 and the latest 500 past events',
  async () => {
    const member = await oauth.member();
    const organizer = await oauth.api.platform.user();
    await oauth.query(
      `INSERT INTO events (title, description, status, visibility, timezone, organizer_id, starts_at)
SELECT 'Event ' || n, repeat('word ', 300), 'scheduled', 'public', 'Europe/Berlin', $1::bigint,
date_trunc('hour', now()) + make_interval(hours => n * CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END) FROM generate_series(1, 20000) n`,
      [organizer],
    );
    await oauth.query('ANALYZE events');
    await oauth.query(
      `INSERT INTO participants (user_id, event_id, role, rsvp_status)
SELECT $1, id, 'attendee', 'going' FROM events WHERE organizer_id = $2`,
      [member.id, organizer],
    );
    const found = Object.values(await entries(await linkOf(member.id)));
    const hours = found.map(({ start }) => Math.round((start.getTime() - Date.now()) / 3_600_000));
    expect(hours.filter((hour) => hour > 0)).toHaveLength(1_000);
    expect(hours.filter((hour) => hour <= 0)).toHaveLength(500);
    expect(Math.max(...hours)).toBeLessThanOrEqual(2_001);
    expect(Math.min(...hours)).toBeGreaterThanOrEqual(-1_001);
  },
);

describe('calendar files', () => {
  it('are cached until an event, its organizer’s name or the member’s RSVP changes', async () => {
    const files = oauth.api.app.get(CalendarFiles);
    const { member, event, link } = await memberWithEvent({}, { role: 'attendee', rsvp_status: 'going' });
    let kept = await files.of(member.id);
    const changes = [
      `UPDATE events SET title = 'Another title' WHERE id = $1`,
      `UPDATE users SET stored_display_name = 'Another name' WHERE id = (SELECT organizer_id FROM events WHERE id = $1)`,
      `UPDATE participants SET rsvp_status = 'maybe' WHERE event_id = $1`,
      `UPDATE events SET starts_at = starts_at + interval '1 hour' WHERE id = $1`,
      `DELETE FROM participants WHERE event_id = $1`,
    ];
    for (const change of changes) {
      expect((await read(link)).headers.get('etag')).toBe(kept.etag);
      expect(await files.of(member.id)).toBe(kept);
      await oauth.query(change, [event]);
      const next = await files.of(member.id);
      expect([change, next.etag]).not.toEqual([change, kept.etag]);
      kept = next;
    }
  });

  it('are generated once for concurrent requests of the same member', async () => {
    const files = oauth.api.app.get(CalendarFiles);
    const { member } = await memberWithEvent();
    expect(new Set(await atOnce(20, () => files.of(member.id))).size).toBe(1);
  });
});

postgres.it(
  'ten calendar links of a member with 1,000 events, read repeatedly, cause no errors for another member and raise memory by less than half',
  async () => {
    const [busy, other] = [await oauth.member(), await oauth.member()];
    await oauth.query(
      `WITH made AS (
INSERT INTO events (title, description, status, visibility, timezone, organizer_id, starts_at)
SELECT 'Event ' || n, repeat('word ', 400), 'scheduled', 'public', 'Europe/Berlin', $1::bigint, now() + n * interval '1 hour'
FROM generate_series(1, 1000) n RETURNING id
) INSERT INTO participants (user_id, event_id, role) SELECT u.id, made.id, 'co_organizer' FROM made, unnest($2::bigint[]) u (id)`,
      [await oauth.api.platform.user(), [busy.id, other.id]],
    );
    const links = await atOnce(10, () => linkOf(busy.id));
    const [ownLink, key] = [await linkOf(other.id), await oauth.api.key(other.id)];
    const askAll = async () => {
      const answers = await Promise.all([
        read(ownLink),
        oauth.api.get('/events?q=event&limit=5', key),
        oauth.api.get('/me', key),
        oauth.browser().send('/account/apps'),
        fetch(`${oauth.issuer}/readyz`),
      ]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    };
    for (let n = 0; n < 10; n++) await askAll(); // the first requests of a process raise its memory too
    const before = process.memoryUsage().rss;
    let reading = true;
    const attack = links.map(async (link) => {
      const statuses = new Map<number, number>();
      while (reading) {
        const { status } = await read(link);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        await setTimeout(250);
      }
      return [...statuses.keys()];
    });
    for (let n = 0; n < 30; n++) await askAll();
    reading = false;
    expect(new Set((await Promise.all(attack)).flat())).toEqual(new Set([200]));
    expect(process.memoryUsage().rss).toBeLessThan(1.5 * before);
  },
);

postgres.describe('calendar links of one member', () => {
  it('are limited to ten, even if fifty are requested at the same moment', async () => {
    const { id } = await oauth.member();
    const links = oauth.api.app.get(CalendarLinks);
    const made = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) => links.create(id, `Link ${i}`, { actor: 'user' })),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
    expect(await links.list(id)).toHaveLength(10);
  });

  it('have secrets that are in no log line after 200 and 404 responses', async () => {
    const { member, link } = await memberWithEvent();
    const secret = /calendar\/([\w-]+)\.ics/.exec(link)![1]!;
    for (const LOG_FORMAT of ['json', 'pretty']) {
      const server = await ServerProcess.start({ ...oauth.api.environment, LOG_LEVEL: 'debug', LOG_FORMAT });
      const there = `${server.url}/calendar/${secret}`;
      expect((await read(`${there}.ics`)).status).toBe(200);
      for (const other of [`${there}.ICS`, `${there}`, `${there}.ics/`, `${there}x.ics`])
        expect((await read(other)).status).toBe(404);
      expect(await server.kill()).toBe(0);
      expect(server.output).toContain('/calendar/');
      expect(server.output + server.errors).not.toContain(secret);
    }
    // The server recorded the last use at its shutdown.
    expect(await oauth.api.app.get(CalendarLinks).list(member.id)).toMatchObject([
      { last_used_at: expect.any(String) },
    ]);
  });
});
