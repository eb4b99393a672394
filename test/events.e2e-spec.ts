import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestApi } from './support/api.js';

describe('events', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  const member = async () => {
    const user = await api.platform.user();
    return { user, key: await api.key(user) };
  };
  /** A member with one event for each of `events`, going to all of them; ids in the same order. */
  const memberOf = async (events: Record<string, unknown>[]) => {
    const { user, key } = await member();
    const ids: number[] = [];
    for (const { role, rsvp_status, ...fields } of events) {
      const id = await api.platform.event(fields);
      await api.platform.participant(id, user, {
        ...(role ? { role } : {}),
        ...(rsvp_status ? { rsvp_status } : {}),
      });
      ids.push(id);
    }
    return { user, key, ids };
  };
  const idsOf = async (path: string, key: string) => {
    const { status, body } = await api.get(path, key);
    expect([path, status]).toEqual([path, 200]);
    expect(body.pagination.total).toBe(body.data.length);
    return body.data.map(({ id }: { id: number }) => id) as number[];
  };

  describe('are seen', () => {
    const everyStatus = ['draft', 'scheduled', 'ongoing', 'completed', 'cancelled'];
    it.each([
      ['organizer', null, everyStatus],
      ['co_organizer', null, everyStatus],
      ['attendee', 'going', everyStatus.slice(1)],
      ['attendee', 'maybe', everyStatus.slice(1)],
      ['attendee', 'waitlisted', everyStatus.slice(1)],
      ['invitee', 'pending', everyStatus.slice(1)],
      ['invitee', 'declined', everyStatus.slice(1)],
    ])('by %s %s in these states alone: %j', async (role, rsvp_status, seen) => {
      const { key, ids } = await memberOf(everyStatus.map((status) => ({ status, role, rsvp_status })));
      const visible = ids.filter((_, i) => seen.includes(everyStatus[i]!));
      expect((await idsOf('/events', key)).toSorted()).toEqual(visible.toSorted());
      for (const [i, id] of ids.entries()) {
        expect((await api.get(`/events/${id}`, key)).status).toBe(seen.includes(everyStatus[i]!) ? 200 : 404);
      }
    });

    it('by nobody without a relation, public or not, and by nobody when they are deleted', async () => {
      const { key } = await member();
      const publicEvent = await api.platform.event({ visibility: 'public' });
      expect((await api.get(`/events/${publicEvent}`, key)).status).toBe(404);
      const { key: organizer, ids } = await memberOf([
        { role: 'organizer', deleted_at: '2024-01-01T00:00:00Z' },
      ]);
      expect(await idsOf('/events', organizer)).toEqual([]);
      expect((await api.get(`/events/${ids[0]}`, organizer)).status).toBe(404);
    });

    it('in total as the state changes', async () => {
      const { key, ids } = await memberOf([{ status: 'draft' }, {}, {}]);
      expect(await idsOf('/events', key)).toHaveLength(2);
      await api.dataSource.query(`UPDATE events SET status = 'scheduled' WHERE id = $1`, [ids[0]]);
      expect(await idsOf('/events', key)).toHaveLength(3);
      await api.dataSource.query('UPDATE events SET deleted_at = now() WHERE id = ANY ($1)', [ids]);
      expect(await idsOf('/events', key)).toEqual([]);
    });
  });

  it('are listed with these keys', async () => {
    const organizer = await api.platform.user({
      username: 'host',
      first_name: 'Ho"st',
      profile_picture: 'https://a.example/h.png',
    });
    const { user, key } = await member();
    const id = await api.platform.event({
      organizer_id: organizer,
      title: 'Käse "Night"\n\\',
      summary: 'Fondue',
      visibility: 'unlisted',
      starts_at: '2031-03-30T00:30:00.999Z',
      ends_at: '2031-03-30T01:30:00Z',
      timezone: 'Europe/Berlin',
      location_name: 'Hall',
      location_country_code: 'DE',
      cover_image: 'https://a.example/c.png',
      capacity: 5,
      created_at: '2031-01-01T00:00:00Z',
      updated_at: '2031-01-02T00:00:00Z',
    });
    await api.platform.participant(id, user);
    await api.platform.participant(id, await api.platform.user(), { rsvp_status: 'maybe' });
    const item = {
      id,
      title: 'Käse "Night"\n\\',
      summary: 'Fondue',
      status: 'scheduled',
      visibility: 'unlisted',
      starts_at: '2031-03-30 00:30:00',
      ends_at: '2031-03-30 01:30:00',
      timezone: 'Europe/Berlin',
      starts_at_local: '2031-03-30 01:30:00',
      ends_at_local: '2031-03-30 03:30:00', // summer time began in between
      is_all_day: false,
      is_online: false,
      location: { name: 'Hall', city: null, country_code: 'DE' },
      cover_image: 'https://a.example/c.png',
      organizer: {
        id: organizer,
        username: 'host',
        display_name: 'Ho"st',
        profile_picture: 'https://a.example/h.png',
      },
      role: 'attendee',
      rsvp_status: 'going',
      attendees_count: 1,
      capacity: 5,
      created_at: '2031-01-01 00:00:00',
      updated_at: '2031-01-02 00:00:00',
    };
    expect((await api.get('/events', key)).body.data).toEqual([item]);
    const { body } = await api.get(`/events/${id}`, key);
    expect(body).toMatchObject({
      ...item,
      location: { ...item.location, address: null, latitude: null, longitude: null },
    });
  });

  it('have a detail with these keys more', async () => {
    const { user, key } = await member();
    const helper = await api.platform.user({ username: 'helper' });
    const id = await api.platform.event({
      description: 'Long',
      tags: ['a', 'b"c'],
      location_address: '1 Street',
      location_latitude: 46.87,
      location_longitude: -114,
      online_url: 'https://meet.example/1',
      capacity: 1,
      status: 'cancelled',
      cancelled_at: '2031-01-03T00:00:00Z',
      cancellation_reason: 'Rain',
    });
    await api.platform.participant(id, user, {
      responded_at: '2031-01-01T00:00:00Z',
      checked_in_at: '2031-01-02T00:00:00Z',
    });
    await api.platform.participant(id, helper, { role: 'co_organizer' });
    const { body } = await api.get(`/events/${id}`, key);
    expect(body).toMatchObject({
      description: 'Long',
      tags: ['a', 'b"c'],
      location: {
        name: null,
        city: null,
        country_code: null,
        address: '1 Street',
        latitude: 46.87,
        longitude: -114,
      },
      online_url: 'https://meet.example/1',
      spots_left: 0,
      responded_at: '2031-01-01 00:00:00',
      checked_in_at: '2031-01-02 00:00:00',
      co_organizers: [{ id: helper, username: 'helper', display_name: 'helper', profile_picture: null }],
      cancelled_at: '2031-01-03 00:00:00',
      cancellation_reason: 'Rain',
    });
    await api.platform.participant(id, await api.platform.user());
    expect((await api.get(`/events/${id}`, key)).body.spots_left).toBe(0);
  });

  it.each([
    ['organizer', null, true],
    ['co_organizer', null, true],
    ['attendee', 'going', true],
    ['attendee', 'maybe', false],
    ['attendee', 'waitlisted', false],
    ['invitee', 'pending', false],
    ['invitee', 'declined', false],
  ])('show online_url to %s %s: %s', async (role, rsvp_status, shown) => {
    const { key, ids } = await memberOf([
      { role, rsvp_status, online_url: 'https://meet.example/1', is_online: true },
    ]);
    expect((await api.get(`/events/${ids[0]}`, key)).body.online_url).toBe(
      shown ? 'https://meet.example/1' : null,
    );
  });

  it('have spots_left null without a capacity, and location null without a place', async () => {
    const { key, ids } = await memberOf([{}]);
    expect((await api.get(`/events/${ids[0]}`, key)).body).toMatchObject({
      spots_left: null,
      location: null,
      ends_at_local: null,
    });
  });

  it('are 404 without a word, whatever the reason', async () => {
    const { key } = await member();
    const foreign = await api.platform.event();
    const deleted = await memberOf([{ deleted_at: '2024-01-01T00:00:00Z' }]);
    const ids = [
      foreign,
      999_999,
      0,
      -1,
      'abc',
      '9223372036854775808',
      '007',
      '1e3',
      '%zz',
      '%00',
      '1.5',
      '٣',
    ].map((id) => (typeof id === 'string' && !/^%/.test(id) ? encodeURIComponent(id) : id));
    const answers = [
      await api.get(`/events/${deleted.ids[0]}`, deleted.key),
      ...(await Promise.all(ids.map((id) => api.get(`/events/${id}`, key, { 'If-None-Match': '*' })))),
    ];
    for (const { status, body, headers } of answers) {
      expect([status, { ...body, instance: '', request_id: '' }]).toEqual([
        404,
        { ...answers[0]!.body, instance: '', request_id: '' },
      ]);
      expect(headers.etag).toBeUndefined();
      expect(Object.keys(headers).toSorted()).toEqual(Object.keys(answers[0]!.headers).toSorted());
    }
  });

  describe('are filtered by', () => {
    const times = {
      upcoming: { starts_at: '2090-01-01T00:00:00Z', ends_at: '2090-01-02T00:00:00Z' },
      upcomingOpen: { starts_at: '2090-01-01T00:00:00Z' },
      ongoing: { starts_at: '2020-01-01T00:00:00Z', ends_at: '2090-01-01T00:00:00Z' },
      past: { starts_at: '2020-01-01T00:00:00Z', ends_at: '2020-01-02T00:00:00Z' },
      pastOpen: { starts_at: '2020-01-01T00:00:00Z' },
    };

    it('time_filter: every event is in exactly one of upcoming, ongoing and past', async () => {
      const { key, ids } = await memberOf(Object.values(times));
      const [upcoming, upcomingOpen, ongoing, past, pastOpen] = ids;
      expect(await idsOf('/events?time_filter=upcoming', key)).toEqual([upcoming, upcomingOpen]);
      expect(await idsOf('/events?time_filter=ongoing', key)).toEqual([ongoing]);
      expect(await idsOf('/events?time_filter=past', key)).toEqual([past, pastOpen]);
      expect(await idsOf('/events?time_filter=all', key)).toHaveLength(5);
    });

    it('starts_after, which includes its bound, and starts_before, which does not', async () => {
      const { key, ids } = await memberOf([
        { starts_at: '2031-01-01T00:00:00Z' },
        { starts_at: '2031-01-02T00:00:00Z' },
      ]);
      for (const form of [
        '2031-01-02',
        '2031-01-02%2000:00:00',
        '2031-01-02T00:00:00Z',
        '2031-01-02T02:00:00.000%2B02:00',
      ]) {
        expect(await idsOf(`/events?starts_after=${form}`, key)).toEqual([ids[1]]);
        expect(await idsOf(`/events?starts_before=${form}`, key)).toEqual([ids[0]]);
      }
    });

    it('status, role, rsvp_status and is_online', async () => {
      const { key, ids } = await memberOf([
        { status: 'cancelled', is_online: true },
        { rsvp_status: 'maybe' },
        { role: 'organizer' },
        { role: 'invitee', rsvp_status: 'pending' },
      ]);
      expect(await idsOf('/events?status=cancelled', key)).toEqual([ids[0]]);
      expect(await idsOf('/events?status=cancelled,scheduled', key)).toHaveLength(4);
      expect(await idsOf('/events?role=organizer,invitee', key)).toEqual([ids[2], ids[3]]);
      expect(await idsOf('/events?rsvp_status=maybe', key)).toEqual([ids[1]]);
      expect(await idsOf('/events?is_online=true', key)).toEqual([ids[0]]);
      expect(await idsOf('/events?is_online=false', key)).toHaveLength(3);
    });

    it('q: a substring of the title in any case, % and _ literal', async () => {
      const { key, ids } = await memberOf([
        { title: '100% ÄPFEL_x' },
        { title: '100 Birnen' },
        { title: 'ΣΊΣΥΦΟΣ' },
      ]);
      expect(await idsOf(`/events?q=${encodeURIComponent('0%')}`, key)).toEqual([ids[0]]);
      expect(await idsOf('/events?q=_x', key)).toEqual([ids[0]]);
      expect(await idsOf(`/events?q=${encodeURIComponent('äpf')}`, key)).toEqual([ids[0]]);
      expect(await idsOf(`/events?q=${encodeURIComponent('σίσυ')}`, key)).toEqual([ids[2]]);
      expect(await idsOf('/events?q=BIRN', key)).toEqual([ids[1]]);
    });

    it('updated_since, which includes its bound', async () => {
      const { key, ids } = await memberOf([
        { updated_at: '2031-01-01T00:00:00Z' },
        { updated_at: '2031-01-02T00:00:00Z' },
      ]);
      expect(await idsOf('/events?updated_since=2031-01-02', key)).toEqual([ids[1]]);
    });
  });

  it.each([
    'limit=0',
    'limit=101',
    'limit=',
    'limit=1.5',
    'limit=+5',
    'limit=5&limit=5',
    'sort=',
    'sort=id',
    'sort=-title,title',
    'time_filter=now',
    'starts_after=yesterday',
    'starts_after=2031-02-30',
    'starts_after=2031-13-01',
    'starts_after=2031-01-01T25:00:00Z',
    'starts_after=1',
    'status=open',
    'status=',
    'status=draft,',
    'role=guest',
    'rsvp_status=yes',
    'is_online=1',
    'is_online=TRUE',
    'q=x',
    `q=${'x'.repeat(101)}`,
    'q=a%00b',
    'updated_since=',
  ])('refuse ?%s with 400 invalid_parameter', async (query) => {
    const { key } = await member();
    const { status, body } = await api.get(`/events?${query}`, key);
    expect([status, body.code, body.errors[0].parameter]).toEqual([
      400,
      'invalid_parameter',
      query.split('=')[0],
    ]);
  });
});
