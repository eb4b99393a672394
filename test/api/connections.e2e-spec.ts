import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestApi } from '../support/api.js';

type Fields = Record<string, unknown>;

let api: TestApi;
beforeAll(async () => void (api = await TestApi.start()));
afterAll(() => api.close());

/** A connection of the member with a new person, accepted by default. */
async function connected(userId: number, fields: Fields = {}, person: Fields = {}): Promise<number> {
  return api.platform.connection(userId, await api.platform.user(person), fields);
}

async function list(key: string, query = ''): Promise<Fields[]> {
  const { status, body } = await api.get(`/connections?${query}`, key);
  expect([status, body.pagination?.total]).toEqual([200, body.data?.length]);
  return body.data;
}
const ids = async (key: string, query = '') => (await list(key, query)).map(({ id }) => id);
const count = async (key: string) => (await api.get('/profile', key)).body.connections_count;

describe('GET /api/public/connections: a connection', () => {
  it('has exactly the documented keys, and only the embedded summary of the other person', async () => {
    const { id, key } = await api.member();
    const person = {
      username: 'grace',
      first_name: 'Grace',
      last_name: 'Hopper',
      bio: 'secret bio',
      profile_picture: 'https://x.example/g.png',
    };
    const peer = await api.platform.user(person);
    const event = await api.platform.event({ title: 'Meet', location_city: 'Berlin' });
    await api.platform.participant(event, id);
    const connection = await api.platform.connection(id, peer, {
      source: 'event',
      met_at_event_id: event,
      requested_at: '2024-01-01T10:00:00.999999Z',
      connected_at: '2024-01-02T10:00:00.999999Z',
    });
    expect(await list(key)).toEqual([
      {
        id: connection,
        user: {
          id: peer,
          username: 'grace',
          display_name: 'Grace Hopper',
          profile_picture: person.profile_picture,
        },
        status: 'accepted',
        requested_at: '2024-01-01 10:00:00',
        connected_at: '2024-01-02 10:00:00',
        source: 'event',
        met_at_event: { id: event, title: 'Meet', city: 'Berlin' },
      },
    ]);
  });

  it('has null for unknown values', async () => {
    const { id, key } = await api.member();
    await connected(id, { status: 'pending' });
    expect(await list(key, 'status=pending_sent')).toEqual([
      expect.objectContaining({ connected_at: null, source: null, met_at_event: null }),
    ]);
  });

  it('shows each member the other member, and a pending request as sent or received', async () => {
    const [one, two, three] = [await api.member(), await api.member(), await api.member()];
    const accepted = await api.platform.connection(one.id, two.id);
    const pending = await api.platform.connection(one.id, three.id, { status: 'pending' });
    const sides = async (key: string) =>
      (await list(key, 'status=accepted,pending_sent,pending_received')).map((item) => [
        item.id,
        (item.user as Fields).id,
        item.status,
      ]);
    expect(await sides(one.key)).toEqual([
      [accepted, two.id, 'accepted'],
      [pending, three.id, 'pending_sent'],
    ]);
    expect(await sides(two.key)).toEqual([[accepted, one.id, 'accepted']]);
    expect(await sides(three.key)).toEqual([[pending, one.id, 'pending_received']]);
  });

  it('shows where the two met only to a member who has access to the event', async () => {
    const [one, two] = [await api.member(), await api.member()];
    const event = await api.platform.event({ title: 'Meet' });
    await api.platform.participant(event, one.id, { role: 'organizer' });
    await api.platform.participant(event, two.id);
    await api.platform.connection(one.id, two.id, { source: 'event', met_at_event_id: event });
    const met = async () => [(await list(one.key))[0]!.met_at_event, (await list(two.key))[0]!.met_at_event];
    const change = (sql: string) => api.query(sql, [event]);
    const shown = { id: event, title: 'Meet', city: null };
    expect(await met()).toEqual([shown, shown]);
    await change(`UPDATE events SET status = 'draft' WHERE id = $1`);
    expect(await met()).toEqual([shown, null]);
    await change(`UPDATE events SET status = 'completed' WHERE id = $1`);
    await change(`DELETE FROM participants WHERE event_id = $1 AND role = 'organizer'`);
    expect(await met()).toEqual([null, shown]);
    await change('UPDATE events SET deleted_at = now() WHERE id = $1');
    expect(await met()).toEqual([null, null]);
  });
});

describe('GET /api/public/connections', () => {
  it('lists accepted connections by default, or connections with the requested statuses', async () => {
    const { id, key } = await api.member();
    const accepted = await connected(id);
    const sent = await connected(id, { status: 'pending' });
    const received = await api.platform.connection(await api.platform.user(), id, { status: 'pending' });
    expect(await ids(key)).toEqual([accepted]);
    expect(await ids(key, 'status=accepted')).toEqual([accepted]);
    expect(await ids(key, 'status=pending_sent')).toEqual([sent]);
    expect(await ids(key, 'status=pending_received')).toEqual([received]);
    expect(await ids(key, 'status=pending_received,pending_sent')).toEqual([sent, received]);
    expect(await ids(key, 'status=pending_received,accepted,accepted')).toEqual([accepted, received]);
    expect(await count(key)).toBe(1);
  });

  it('hides disabled people until they are enabled, also in the totals of the list and the profile', async () => {
    const { id, key } = await api.member();
    const [friend, asked] = [await api.platform.user(), await api.platform.user()];
    const stays = await connected(id);
    const leaves = await api.platform.connection(id, friend);
    const pending = await api.platform.connection(asked, id, { status: 'pending' });
    const all = 'status=accepted,pending_received';
    const see = async () => [await ids(key), await count(key), await ids(key, all)];
    const set = (value: string) =>
      api.query(`UPDATE users SET disabled_at = ${value} WHERE id = ANY ($1)`, [[friend, asked]]);
    expect(await see()).toEqual([[stays, leaves], 2, [stays, leaves, pending]]);
    await set('now()');
    expect(await see()).toEqual([[stays], 1, [stays]]);
    await set('NULL');
    expect(await see()).toEqual([[stays, leaves], 2, [stays, leaves, pending]]);
  });

  it('searches username and display name ignoring case, with % and _ as literals', async () => {
    const { id, key } = await api.member();
    const ann = await connected(id, {}, { username: 'ann_lee', stored_display_name: 'Änne 100%' });
    const bob = await connected(id, {}, { username: 'annXlee', stored_display_name: 'Bob', bio: 'Änne' });
    const by = (q: string) => ids(key, `q=${encodeURIComponent(q)}`);
    expect(await by('LEE')).toEqual([ann, bob]);
    expect(await by('n_l')).toEqual([ann]);
    expect(await by('0%')).toEqual([ann]);
    expect(await by('äNN')).toEqual([ann]);
    expect(await by('BOB')).toEqual([bob]);
    expect(await by('%%')).toEqual([]);
    expect(await ids(key, 'q=lee&status=pending_sent')).toEqual([]);
  });

  it('searches only this member’s connections', async () => {
    const [one, two] = [await api.member(), await api.member()];
    await connected(two.id, {}, { username: 'only_of_two' });
    expect(await ids(one.key, 'q=only_of_two')).toEqual([]);
    expect(await ids(two.key, 'q=only_of_two')).toHaveLength(1);
  });

  it('filters by source, by connected_after including its bound, and by connected_before excluding it', async () => {
    const { id, key } = await api.member();
    const a = await connected(id, { source: 'event', connected_at: '2024-04-30T23:59:59.999999Z' });
    const b = await connected(id, { source: 'import', connected_at: '2024-05-01T00:00:00Z' });
    const c = await connected(id, { status: 'pending', source: 'event' });
    expect(await ids(key, 'source=event')).toEqual([a]);
    expect(await ids(key, 'source=import,event')).toEqual([b, a]);
    expect(await ids(key, 'source=import&source=event,import')).toEqual([b, a]);
    expect(await ids(key, 'source=invite,search')).toEqual([]);
    expect(await ids(key, 'connected_after=2024-05-01')).toEqual([b]);
    expect(await ids(key, 'connected_before=2024-05-01%2000:00:00')).toEqual([a]);
    expect(await ids(key, 'source=event&status=accepted,pending_sent')).toEqual([a, c]);
    expect(await ids(key, 'connected_after=2024-01-01&status=pending_sent')).toEqual([]);
  });

  it.each([
    ['status=blocked', 'status', ['accepted', 'pending_sent', 'pending_received']],
    ['status=', 'status', ['accepted', 'pending_sent', 'pending_received']],
    ['source=null', 'source', ['event', 'search', 'invite', 'import']],
    ['sort=username', 'sort', ['-connected_at', 'connected_at', 'display_name', '-display_name']],
    ['connected_after=2024-13-01', 'connected_after', undefined],
    ['connected_before=', 'connected_before', undefined],
    ['status=accepted&status=blocked', 'status', ['accepted', 'pending_sent', 'pending_received']],
    ['q=a', 'q', undefined],
    [`q=${'a'.repeat(51)}`, 'q', undefined],
  ])('rejects "%s"', async (query, parameter, allowed) => {
    const { key } = await api.member();
    const { status, body } = await api.get(`/connections?${query}`, key);
    expect([status, body.code]).toEqual([400, 'invalid_parameter']);
    const errors = body.errors.map((error: Fields) => [error.parameter, error.allowed]);
    expect(errors).toEqual([[parameter, allowed]]);
  });
});

describe('GET /api/public/connections: people met at an event', () => {
  it('are found by event and by the event’s city ignoring case, if the member has access to the event', async () => {
    const { id, key } = await api.member();
    const event = async (city: string | null, role?: string) => {
      const of = await api.platform.event({ location_city: city });
      if (role) await api.platform.participant(of, id);
      return of;
    };
    const [berlin, other, unseen] = [
      await event('Berlin', 'attendee'),
      await event(null, 'attendee'),
      await event('Berlin'),
    ];
    const [met, pending, , , elsewhere] = [
      await connected(id, { met_at_event_id: berlin }),
      await connected(id, { met_at_event_id: berlin, status: 'pending' }),
      await connected(id, { met_at_event_id: unseen }),
      await connected(id),
      await connected(id, { met_at_event_id: other }),
    ];
    const all = 'status=accepted,pending_sent';
    expect(await ids(key, 'met_in_city=bERLIN')).toEqual([met]);
    expect(new Set(await ids(key, `met_in_city=Berlin&${all}`))).toEqual(new Set([met, pending]));
    expect(await ids(key, `met_at_event=${berlin}`)).toEqual([met]);
    expect(await ids(key, `met_at_event=${other}`)).toEqual([elsewhere]);
    for (const none of [
      `met_at_event=${unseen}`,
      'met_at_event=9000000000000000',
      'met_in_city=Ber',
      'met_in_city=%25',
    ])
      expect([none, await ids(key, none)]).toEqual([none, []]);
    for (const wrong of ['met_at_event=x', 'met_at_event=0', 'met_in_city=', 'met_in_city=%00'])
      expect([wrong, (await api.get(`/connections?${wrong}`, key)).status]).toEqual([wrong, 400]);
  });
});
