import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestApi } from './support/api.js';

describe('connections', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  const member = async () => {
    const user = await api.platform.user();
    return { user, key: await api.key(user) };
  };
  const idsOf = async (path: string, key: string) => {
    const { status, body } = await api.get(path, key);
    expect([path, status, body.pagination?.total]).toEqual([path, 200, body.data?.length]);
    return body.data.map(({ id }: { id: number }) => id) as number[];
  };

  it('show the card of the other person, from either side, and nothing more', async () => {
    const { user, key } = await member();
    const other = await api.platform.user({
      username: 'otto',
      first_name: 'Otto',
      bio: 'secret',
      profile_picture: 'https://a.example/o.png',
    });
    const id = await api.platform.connection(other, user, {
      source: 'invite',
      requested_at: '2024-01-01T10:00:00Z',
      connected_at: '2024-02-01T10:00:00Z',
    });
    expect((await api.get('/connections', key)).body.data).toEqual([
      {
        id,
        user: {
          id: other,
          username: 'otto',
          display_name: 'Otto',
          profile_picture: 'https://a.example/o.png',
        },
        status: 'accepted',
        requested_at: '2024-01-01 10:00:00',
        connected_at: '2024-02-01 10:00:00',
        source: 'invite',
        met_at_event: null,
      },
    ]);
    expect((await api.get('/connections', await api.key(other))).body.data[0].user.id).toBe(user);
  });

  it('are accepted ones unless others are asked for, each from its own side', async () => {
    const { user, key } = await member();
    const accepted = await api.platform.connection(user, await api.platform.user());
    const sent = await api.platform.connection(user, await api.platform.user(), { status: 'pending' });
    const received = await api.platform.connection(await api.platform.user(), user, { status: 'pending' });
    expect(await idsOf('/connections', key)).toEqual([accepted]);
    expect(await idsOf('/connections?status=pending_sent', key)).toEqual([sent]);
    expect(await idsOf('/connections?status=pending_received', key)).toEqual([received]);
    expect(await idsOf('/connections?status=accepted,pending_sent,pending_received', key)).toEqual([
      accepted,
      sent,
      received,
    ]);
    expect(
      await idsOf('/connections?status=accepted,pending_sent,pending_received&sort=connected_at', key),
    ).toEqual([accepted, sent, received]);
  });

  it('name the event where they met only to who has access to it', async () => {
    const { user, key } = await member();
    const event = await api.platform.event({ title: 'Meetup' });
    const other = await api.platform.user();
    await api.platform.participant(event, other);
    await api.platform.connection(user, other, { met_at_event_id: event, source: 'event' });
    const met = async (asker: string) =>
      (await api.get('/connections', asker)).body.data[0].met_at_event as object;
    expect(await met(key)).toBeNull();
    expect(await met(await api.key(other))).toEqual({ id: event, title: 'Meetup' });
    await api.platform.participant(event, user);
    expect(await met(key)).toEqual({ id: event, title: 'Meetup' });
    await api.dataSource.query(`UPDATE events SET status = 'draft' WHERE id = $1`, [event]);
    expect(await met(key)).toBeNull();
  });

  it('leave list and count together when the other is disabled, and come back', async () => {
    const { user, key } = await member();
    const other = await api.platform.user();
    const id = await api.platform.connection(user, other);
    const both = async () => [
      await idsOf('/connections', key),
      (await api.get('/profile', key)).body.connections_count as number,
    ];
    expect(await both()).toEqual([[id], 1]);
    await api.dataSource.query('UPDATE users SET disabled_at = now() WHERE id = $1', [other]);
    expect(await both()).toEqual([[], 0]);
    await api.dataSource.query('UPDATE users SET disabled_at = NULL WHERE id = $1', [other]);
    expect(await both()).toEqual([[id], 1]);
  });

  it('are filtered by q, source and time, and sorted', async () => {
    const { user, key } = await member();
    const people = [
      { username: 'zed_1', first_name: 'ähnlich', source: 'event', connected_at: '2024-01-01T00:00:00Z' },
      { username: 'amy', first_name: 'Zora', source: 'search', connected_at: '2024-01-02T00:00:00Z' },
      {
        username: 'bob',
        stored_display_name: 'Bob 100%',
        source: null,
        connected_at: '2024-01-03T00:00:00Z',
      },
    ];
    const ids: number[] = [];
    for (const { source, connected_at, ...fields } of people) {
      ids.push(
        await api.platform.connection(user, await api.platform.user(fields), { source, connected_at }),
      );
    }
    const [zed, amy, bob] = ids;
    expect(await idsOf('/connections', key)).toEqual([bob, amy, zed]);
    expect(await idsOf('/connections?sort=connected_at', key)).toEqual([zed, amy, bob]);
    expect(await idsOf('/connections?sort=display_name', key)).toEqual([bob, amy, zed]);
    expect(await idsOf('/connections?sort=-display_name', key)).toEqual([zed, amy, bob]);
    expect(await idsOf('/connections?q=D_', key)).toEqual([zed]);
    expect(await idsOf(`/connections?q=${encodeURIComponent('Ähn')}`, key)).toEqual([zed]);
    expect(await idsOf(`/connections?q=${encodeURIComponent('0%')}`, key)).toEqual([bob]);
    expect(await idsOf('/connections?source=event,search', key)).toEqual([amy, zed]);
    expect(await idsOf('/connections?connected_after=2024-01-02', key)).toEqual([bob, amy]);
    expect(await idsOf('/connections?connected_before=2024-01-02', key)).toEqual([zed]);
  });

  it.each([
    'status=declined',
    'source=phone',
    'q=x',
    `q=${'x'.repeat(51)}`,
    'sort=title',
    'connected_after=x',
    'limit=0',
    'status=accepted&status=accepted',
  ])('refuse ?%s with 400 invalid_parameter', async (query) => {
    const { key } = await member();
    expect((await api.get(`/connections?${query}`, key)).body.code).toBe('invalid_parameter');
  });
});
