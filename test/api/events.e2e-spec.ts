import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { checkTimeZones } from '../../src/operations/doctor/rows.js';
import { TestApi } from '../support/api.js';
import { itInOneWindow } from '../support/windows.js';

let api: TestApi;
beforeAll(async () => void (api = await TestApi.start()));
afterAll(() => api.close());

const SORTS = '-starts_at starts_at created_at -created_at updated_at -updated_at title -title'.split(' ');
const STATUSES = ['draft', 'scheduled', 'ongoing', 'completed', 'cancelled'];
const RELATIONS = [
  ['organizer', null],
  ['co_organizer', null],
  ['attendee', 'going'],
  ['attendee', 'maybe'],
  ['attendee', 'waitlisted'],
  ['invitee', 'pending'],
  ['invitee', 'declined'],
] as const;

type Fields = Record<string, unknown>;

/** Headers whose values differ between two equal responses. */
const OTHER = 'x-request-id date content-length ratelimit x-ratelimit-reset x-ratelimit-remaining'.split(' ');

/** An event in which the member takes part, by default as an attendee who is going. */
async function eventOf(userId: number, fields: Fields = {}, part: Fields = {}): Promise<number> {
  const id = await api.platform.event(fields);
  await api.platform.participant(id, userId, part);
  return id;
}

async function ids(key: string, query = ''): Promise<number[]> {
  const { status, body } = await api.get(`/events?limit=100${query && `&${query}`}`, key);
  expect([status, body.pagination?.total]).toEqual([200, body.data?.length]);
  return body.data.map((event: { id: number }) => event.id);
}

describe('GET /api/public/events: access', () => {
  it.each(RELATIONS)(
    'includes events of a member who is %s (%s), and drafts only for organizers and co-organizers',
    async (role, rsvp_status) => {
      const { id, key } = await api.member();
      const seen: number[] = [];
      for (const status of STATUSES) {
        const event = await eventOf(id, { status }, { role, rsvp_status });
        const visible = status !== 'draft' || role === 'organizer' || role === 'co_organizer';
        if (visible) seen.push(event);
        const detail = await api.get(`/events/${event}`, key);
        expect([status, detail.status]).toEqual([status, visible ? 200 : 404]);
        expect(detail.body.code).toBe(visible ? undefined : 'event_not_found');
      }
      expect(await ids(key)).toEqual(seen); // all start at once: by ascending id
      expect(await ids(key, `role=${role}`)).toEqual(seen);
      expect(await ids(key, 'status=draft')).toEqual(seen.length === 5 ? [seen[0]] : []);
    },
  );

  it.each(['public', 'unlisted', 'private'])(
    'requires the member’s relation to the event, even if the event is %s',
    async (visibility) => {
      const { id, key } = await api.member();
      const stranger = await api.platform.event({ visibility });
      const own = await eventOf(id, { visibility }, { role: 'invitee', rsvp_status: 'pending' });
      expect(await ids(key)).toEqual([own]);
      expect((await api.get(`/events/${own}`, key)).body.visibility).toBe(visibility);
      expect((await api.get(`/events/${stranger}`, key)).status).toBe(404);
    },
  );

  it('ends with the member’s relation to the event, and is suspended while the event is deleted or a draft', async () => {
    const { id, key } = await api.member();
    const event = await eventOf(id);
    const see = async () => [(await ids(key)).length, (await api.get(`/events/${event}`, key)).status];
    const change = (sql: string) => api.query(sql, [event]);
    await change('UPDATE events SET deleted_at = now() WHERE id = $1');
    expect(await see()).toEqual([0, 404]);
    await change('UPDATE events SET deleted_at = NULL WHERE id = $1');
    expect(await see()).toEqual([1, 200]);
    await change(`UPDATE events SET status = 'draft' WHERE id = $1`);
    expect(await see()).toEqual([0, 404]);
    await change(`UPDATE events SET status = 'scheduled' WHERE id = $1`);
    expect(await see()).toEqual([1, 200]);
    await change('DELETE FROM participants WHERE event_id = $1');
    expect(await see()).toEqual([0, 404]);
  });
});

describe('GET /api/public/events: an item', () => {
  it('has exactly the documented keys, with null for unknown values', async () => {
    const organizer = await api.platform.user({ username: 'Ada', first_name: 'Ada', last_name: 'L.' });
    const { id, key } = await api.member();
    const event = await eventOf(id, {
      title: 'Dinner "à deux"',
      organizer_id: organizer,
      created_at: '2024-01-02T03:04:05.678901Z',
      updated_at: '2024-01-03T03:04:05.999999Z',
    });
    const { body } = await api.get('/events', key);
    expect(body.data[0]).toEqual({
      id: event,
      title: 'Dinner "à deux"',
      summary: null,
      status: 'scheduled',
      visibility: 'public',
      starts_at: '2031-05-01 18:00:00',
      ends_at: null,
      timezone: 'UTC',
      starts_at_local: '2031-05-01 18:00:00',
      ends_at_local: null,
      is_all_day: false,
      is_online: false,
      location: null,
      cover_image: null,
      organizer: { id: organizer, username: 'Ada', display_name: 'Ada L.', profile_picture: null },
      role: 'attendee',
      rsvp_status: 'going',
      attendees_count: 1,
      capacity: null,
      created_at: '2024-01-02 03:04:05',
      updated_at: '2024-01-03 03:04:05',
    });
  });

  it('shows local times in UTC if the database does not know the event’s time zone, in list and detail', async () => {
    const { id, key } = await api.member();
    const event = await eventOf(id, { starts_at: '2031-05-01T18:00:00Z', ends_at: '2031-05-01T20:00:00Z' });
    await api.query('ALTER TABLE events DROP CONSTRAINT events_timezone_check');
    await api.query(`UPDATE events SET timezone = 'Mars/Phobos' WHERE id = $1`, [event]);
    for (const path of ['/events', '/events?q=event', `/events/${event}`]) {
      const { status, body } = await api.get(path, key);
      expect([path, status]).toEqual([path, 200]);
      expect(body.data?.[0] ?? body).toMatchObject({
        timezone: 'Mars/Phobos',
        starts_at_local: '2031-05-01 18:00:00',
        ends_at_local: '2031-05-01 20:00:00',
      });
    }
    expect(await checkTimeZones(api.dataSource.manager)).toMatchObject([
      { status: 'warn', message: expect.stringMatching(/^1 events are in Mars\/Phobos, /) },
    ]);
    await api.query(`UPDATE events SET timezone = 'UTC' WHERE id = $1`, [event]);
    await api.query(
      `ALTER TABLE events ADD CONSTRAINT events_timezone_check CHECK ((timestamptz 'epoch' AT TIME ZONE timezone) IS NOT NULL)`,
    );
  });

  it.each([
    // timezone: start, and as local time; end, and as local time
    'Europe/Berlin: 2031-01-10T18:00:00Z 2031-01-10T19:00:00 2031-07-10T18:00:00Z 2031-07-10T20:00:00',
    // The night of 30 March 2031: 02:00 becomes 03:00 at 01:00 UTC.
    'Europe/Berlin: 2031-03-30T00:59:59Z 2031-03-30T01:59:59 2031-03-30T01:00:00Z 2031-03-30T03:00:00',
    'America/New_York: 2031-07-01T02:00:00Z 2031-06-30T22:00:00 2031-12-31T23:00:00Z 2031-12-31T18:00:00',
    'Asia/Kathmandu: 2031-01-01T00:00:00Z 2031-01-01T05:45:00 2031-12-31T18:15:00Z 2032-01-01T00:00:00',
  ])('shows start and end also in the event’s time zone, correct across daylight saving: %s', async (row) => {
    const { id, key } = await api.member();
    const [timezone, times] = row.split(': ') as [string, string];
    const [from, localFrom, to, localTo] = times.split(' ') as [string, string, string, string];
    const event = await eventOf(id, { timezone, starts_at: from, ends_at: to });
    const shown = (time: string) => time.replace('T', ' ').replace('Z', '');
    for (const item of [
      (await api.get('/events', key)).body.data[0],
      (await api.get(`/events/${event}`, key)).body,
    ])
      expect(item).toMatchObject({
        timezone,
        starts_at: shown(from),
        starts_at_local: shown(localFrom),
        ends_at_local: shown(localTo),
      });
  });

  it('has a location if any part of the location is known, such as the address', async () => {
    const { id, key } = await api.member();
    await eventOf(id, { location_city: 'Oslo', location_country_code: 'NO' });
    await eventOf(id, { location_address: 'Main Street 1' });
    const { body } = await api.get('/events', key);
    expect(body.data.map((event: Fields) => event.location)).toEqual([
      { name: null, city: 'Oslo', country_code: 'NO' },
      { name: null, city: null, country_code: null },
    ]);
  });

  it('counts only people who are going as attendees', async () => {
    const { id, key } = await api.member();
    const event = await eventOf(id, {}, { role: 'organizer' });
    for (const [role, rsvp_status] of RELATIONS)
      await api.platform.participant(event, await api.platform.user(), { role, rsvp_status });
    await api.platform.participant(event, await api.platform.user());
    expect((await api.get('/events', key)).body.data[0].attendees_count).toBe(2);
  });
});

describe('GET /api/public/events/{id}', () => {
  it('has the keys and values of the list item, and additional keys', async () => {
    const { id, key } = await api.member();
    const event = await eventOf(
      id,
      {
        summary: 'S',
        description: 'D\n"d"',
        tags: ['b', 'a'],
        status: 'cancelled',
        ends_at: '2031-05-01T20:00:00Z',
        timezone: 'Asia/Tokyo',
        location_name: 'Hall',
        location_address: 'Street 1',
        location_latitude: -33.5,
        location_longitude: 151.25,
        capacity: 10,
        cancelled_at: '2030-01-01T00:00:00.9Z',
        cancellation_reason: 'Rain',
      },
      { responded_at: '2030-02-01T00:00:00Z', checked_in_at: '2031-05-01T18:01:02Z' },
    );
    const item = (await api.get('/events', key)).body.data[0];
    const { body } = await api.get(`/events/${event}`, key);
    expect(body).toEqual({
      ...item,
      location: { ...item.location, address: 'Street 1', latitude: -33.5, longitude: 151.25 },
      description: 'D\n"d"',
      tags: ['b', 'a'],
      online_url: null,
      spots_left: 9,
      responded_at: '2030-02-01 00:00:00',
      checked_in_at: '2031-05-01 18:01:02',
      co_organizers: [],
      cancelled_at: '2030-01-01 00:00:00',
      cancellation_reason: 'Rain',
    });
  });

  it('has null for unknown values, and empty lists of tags and co-organizers', async () => {
    const { id, key } = await api.member();
    const event = await eventOf(id);
    expect((await api.get(`/events/${event}`, key)).body).toMatchObject({
      location: null,
      description: null,
      tags: [],
      online_url: null,
      spots_left: null,
      responded_at: null,
      checked_in_at: null,
      co_organizers: [],
      cancelled_at: null,
      cancellation_reason: null,
    });
  });

  it.each(RELATIONS)(
    'shows the online URL only to organizers and people who are going: %s (%s)',
    async (role, rsvp_status) => {
      const { id, key } = await api.member();
      const url = 'https://meet.example/secret';
      const event = await eventOf(id, { is_online: true, online_url: url }, { role, rsvp_status });
      const shown = role === 'organizer' || role === 'co_organizer' || rsvp_status === 'going';
      const { body, text } = await api.get(`/events/${event}`, key);
      expect([body.online_url, text.includes('secret')]).toEqual([shown ? url : null, shown]);
      expect((await api.get('/events', key)).text).not.toContain('secret');
    },
  );

  it.each([
    [null, null],
    [0, 0],
    [1, 0],
    [2, 0],
    [3, 1],
  ])('with capacity %s and two guests has spots_left %s', async (capacity, left) => {
    const { id, key } = await api.member();
    const event = await eventOf(id, { capacity });
    await api.platform.participant(event, await api.platform.user());
    expect((await api.get(`/events/${event}`, key)).body).toMatchObject({ capacity, spots_left: left });
  });

  it('shows the co-organizers as embedded summaries', async () => {
    const { id, key } = await api.member();
    const event = await eventOf(id);
    const first = await api.platform.user({ username: 'co_one', profile_picture: 'https://x.example/1.png' });
    const second = await api.platform.user({ username: 'co_two', stored_display_name: 'Two' });
    await api.platform.participant(event, second, { role: 'co_organizer' });
    await api.platform.participant(event, first, { role: 'co_organizer' });
    expect((await api.get(`/events/${event}`, key)).body.co_organizers).toEqual([
      { id: first, username: 'co_one', display_name: 'co_one', profile_picture: 'https://x.example/1.png' },
      { id: second, username: 'co_two', display_name: 'Two', profile_picture: null },
    ]);
  });
});

describe('GET /api/public/events: filtering', () => {
  it('by time_filter divides seven events into upcoming, ongoing and past', async () => {
    const { id, key } = await api.member();
    const hours = (n: number) => new Date(Date.now() + n * 3_600_000).toISOString();
    const make = (starts_at: string, ends_at: string | null) => eventOf(id, { starts_at, ends_at });
    const upcoming = [await make(hours(5), null), await make(hours(5), hours(6))];
    const ongoing = [await make(hours(-5), hours(5)), await make(hours(-500), hours(500))];
    const past: number[] = [];
    const start = hours(-5);
    for (const end of [null, hours(-4), start]) past.push(await make(start, end));
    for (const [filter, events] of Object.entries({ upcoming, ongoing, past }))
      expect([filter, new Set(await ids(key, `time_filter=${filter}`))]).toEqual([filter, new Set(events)]);
    expect(await ids(key, 'time_filter=all')).toEqual(await ids(key));
    expect(await ids(key)).toHaveLength(7);
  });

  it('by q finds part of the title ignoring case, with % _ and \\ as literals', async () => {
    const { id, key } = await api.member();
    const ascii = ['100% Rust', '100 Rust', 'snake_case', 'snakeXcase', 'back\\slash'];
    for (const title of [...ascii, 'Ünïcode ÉTÉ', 'ΣΊΣΥΦΟΣ']) await eventOf(id, { title });
    const found = async (q: string) => {
      const { body } = await api.get(`/events?q=${encodeURIComponent(q)}`, key);
      return body.data.map((event: { title: string }) => event.title);
    };
    expect(await found('rust')).toEqual(['100% Rust', '100 Rust']);
    expect(await found('0%')).toEqual(['100% Rust']);
    expect(await found('%%')).toEqual([]);
    expect(await found('E_C')).toEqual(['snake_case']);
    expect(await found('__')).toEqual([]);
    expect(await found('k\\s')).toEqual(['back\\slash']);
    expect(await found('ünÏCODE été')).toEqual(['Ünïcode ÉTÉ']);
    expect(await found('σίσυ')).toEqual(['ΣΊΣΥΦΟΣ']);
    expect(await found("'; DROP TABLE events; --")).toEqual([]);
  });

  it('by starts_after includes its bound, by starts_before excludes it, in five time formats', async () => {
    const { id, key } = await api.member();
    const make = (starts_at: string) => eventOf(id, { starts_at });
    const before = await make('2031-05-01T23:59:59.999999Z');
    const at = await make('2031-05-02T00:00:00Z');
    const times = ['', ' 00:00:00', 'T00:00:00Z', 'T00:00:00.000Z', 'T02:00:00+02:00'];
    for (const form of times.map((time) => encodeURIComponent(`2031-05-02${time}`))) {
      expect([form, await ids(key, `starts_after=${form}`)]).toEqual([form, [at]]);
      expect([form, await ids(key, `starts_before=${form}`)]).toEqual([form, [before]]);
    }
    expect(await ids(key, 'starts_after=2031-05-02&starts_before=2031-05-02')).toEqual([]);
  });

  it('by city and country ignores case', async () => {
    const { id, key } = await api.member();
    const berlin = await eventOf(id, { location_city: 'Berlin', location_country_code: 'DE' });
    const koeln = await eventOf(id, { location_city: 'KÖLN', location_country_code: 'DE' });
    await eventOf(id, { location_city: 'Paris', location_country_code: 'FR' });
    await eventOf(id);
    expect(await ids(key, 'city=berlin')).toEqual([berlin]);
    expect(await ids(key, 'city=k%C3%B6ln&country_code=de')).toEqual([koeln]);
    expect(new Set(await ids(key, 'country_code=DE'))).toEqual(new Set([berlin, koeln]));
    for (const none of ['city=Ber', 'city=%25', 'city=Paris&country_code=DE', 'country_code=XX'])
      expect([none, await ids(key, none)]).toEqual([none, []]);
    for (const wrong of ['country_code=DEU', 'country_code=', 'city=', 'city=%00'])
      expect([wrong, (await api.get(`/events?${wrong}`, key)).status]).toEqual([wrong, 400]);
  });

  it('by updated_since includes its bound', async () => {
    const { id, key } = await api.member();
    await eventOf(id, { updated_at: '2024-05-01T11:59:59.999999Z' });
    const at = await eventOf(id, { updated_at: '2024-05-01T12:00:00Z' });
    expect(await ids(key, 'updated_since=2024-05-01T12:00:00Z')).toEqual([at]);
  });

  it('by status, role and rsvp_status accepts two values each, and combines with is_online and q', async () => {
    const { id, key } = await api.member();
    const online = await eventOf(id, { is_online: true, status: 'ongoing' });
    const maybe = await eventOf(id, { status: 'completed' }, { rsvp_status: 'maybe' });
    const own = await eventOf(id, { status: 'draft' }, { role: 'organizer' });
    const invited = await eventOf(id, {}, { role: 'invitee', rsvp_status: 'pending' });
    expect(await ids(key, 'status=ongoing,draft')).toEqual([online, own]);
    expect(await ids(key, 'role=organizer,invitee')).toEqual([own, invited]);
    expect(await ids(key, 'rsvp_status=maybe,pending')).toEqual([maybe, invited]);
    expect(await ids(key, 'is_online=true')).toEqual([online]);
    expect(await ids(key, 'is_online=false')).toEqual([maybe, own, invited]);
    expect(await ids(key, 'is_online=true&status=ongoing&role=attendee&rsvp_status=going&q=event')).toEqual([
      online,
    ]);
    expect(await ids(key, 'is_online=true&status=completed')).toEqual([]);
  });

  it('accepts list values separated by commas, repeated or both, and in another order', async () => {
    const { id, key } = await api.member();
    for (const status of ['draft', 'ongoing', 'completed', 'cancelled'])
      await eventOf(id, { status }, { role: 'organizer' });
    const canonical = await api.get('/events?status=draft,ongoing,completed&limit=1', key);
    expect(canonical.body.pagination.total).toBe(3);
    for (const query of [
      'status=draft&status=ongoing&status=completed',
      'status=completed&status=draft,ongoing',
      'status=ongoing,draft&status=draft&status=completed,ongoing',
    ]) {
      const answer = await api.get(`/events?${query}&limit=1`, key);
      expect([query, answer.body]).toEqual([query, canonical.body]);
      expect([query, answer.headers.link]).toEqual([query, canonical.headers.link]);
      const { next_cursor: cursor } = canonical.body.pagination;
      const next = await api.get(`/events?${query}&limit=1&cursor=${cursor}`, key);
      expect([query, next.status]).toEqual([query, 200]);
    }
  });

  it.each([
    ['sort=ends_at', 'sort', SORTS],
    ['sort=-Title', 'sort', expect.any(Array)],
    ['time_filter=now', 'time_filter', ['all', 'upcoming', 'ongoing', 'past']],
    ['status=scheduled,gone', 'status', STATUSES],
    ['sort=', 'sort', expect.any(Array)],
    ['sort=-title,title', 'sort', expect.any(Array)],
    ['status=', 'status', STATUSES],
    ['status=draft,', 'status', STATUSES],
    ['role=guest', 'role', ['organizer', 'co_organizer', 'attendee', 'invitee']],
    ['rsvp_status=null', 'rsvp_status', ['going', 'maybe', 'waitlisted', 'pending', 'declined']],
    ['is_online=1', 'is_online', expect.anything()],
    ['is_online=TRUE', 'is_online', expect.anything()],
    ['starts_after=yesterday', 'starts_after', undefined],
    ['starts_after=2031-02-30', 'starts_after', undefined],
    ['starts_before=2031-05-01T25:00:00Z', 'starts_before', undefined],
    ['starts_before=', 'starts_before', undefined],
    ['updated_since=1700000000', 'updated_since', undefined],
    ['q=a', 'q', undefined],
    [`q=${'a'.repeat(101)}`, 'q', undefined],
    ['q=%00%00', 'q', undefined],
  ])('rejects "%s"', async (query, parameter, allowed) => {
    const { key } = await api.member();
    const { status, body } = await api.get(`/events?${query}`, key);
    expect([status, body.code]).toEqual([400, 'invalid_parameter']);
    expect(body.errors).toHaveLength(1);
    expect(body.errors[0].parameter).toBe(parameter);
    if (allowed !== undefined) expect(body.errors[0].allowed).toEqual(allowed);
  });

  it('accepts a q of 100 emoji and rejects one emoji, since the limits count code points', async () => {
    const { key } = await api.member();
    expect(await ids(key, `q=${encodeURIComponent('😀'.repeat(100))}`)).toEqual([]);
    expect((await api.get(`/events?q=${encodeURIComponent('😀')}`, key)).status).toBe(400);
  });
});

describe('GET /api/public/events/{id}: the 404 response', () => {
  itInOneWindow('is the same for inaccessible, draft, deleted, unknown and malformed ids', async () => {
    const { id, key } = await api.member();
    const foreign = await api.platform.event();
    const draft = await eventOf(id, { status: 'draft' });
    const deleted = await eventOf(id, { deleted_at: '2024-01-01T00:00:00Z' });
    const own = await eventOf(id);
    const etag = (await api.get(`/events/${own}`, key)).headers.etag!;
    const answers = [];
    const malformed = `00${own} ${own}.0 +${own} %20${own} 1e0 %zz %00 007 %F0%9F %D9%A3 abc`.split(' ');
    const numbers = [foreign, draft, deleted, 999_999_999, 0, -1, '9223372036854775808', '9007199254740992'];
    for (const shape of [...numbers, ...malformed]) {
      const path = `/events/${shape}`;
      for (const ifNoneMatch of ['"other"', '*', etag]) {
        const answer = await api.get(path, key, { 'If-None-Match': ifNoneMatch });
        const { request_id, instance, ...body } = answer.body;
        expect([request_id, instance]).toEqual([answer.headers['x-request-id'], `/api/public${path}`]);
        const names = Object.keys(answer.headers);
        const used = answer.headers['x-ratelimit-remaining'];
        const headers = { ...answer.headers };
        for (const name of OTHER) delete headers[name];
        answers.push({ status: answer.status, body, headers, names, used });
      }
    }
    const [first] = answers;
    expect([first!.status, first!.body.code]).toEqual([404, 'event_not_found']);
    expect(first!.headers).not.toHaveProperty('etag');
    answers.forEach(({ used, ...answer }, i) => {
      const { used: before, ...expected } = first!;
      expect(answer).toEqual(expected);
      expect(Number(used)).toBe(Number(before) - i); // each counts toward the limit
    });
  });
});
