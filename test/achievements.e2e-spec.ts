import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { TestApi } from './support/api.js';

const EARNED = { earned_at: '2024-01-01T00:00:00Z' };
type Item = Record<string, unknown> & { id: number };

describe('achievements', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterEach(async () => {
    // The catalogue and the number of active members are common to all: each test starts from none.
    await api.dataSource.query('DELETE FROM user_achievements');
    await api.dataSource.query('DELETE FROM achievements');
    await api.dataSource.query('UPDATE users SET disabled_at = now() WHERE disabled_at IS NULL');
  });
  afterAll(() => api.close());

  const member = async () => {
    const user = await api.platform.user();
    return { user, key: await api.key(user) };
  };
  /** So many active members more. */
  const crowd = async (count: number) => {
    const users: number[] = [];
    for (let i = 0; i < count; i++) users.push(await api.platform.user());
    return users;
  };
  const list = async (query: string, key: string) => {
    const { status, body } = await api.get(`/achievements${query}`, key);
    expect([query, status]).toEqual([query, 200]);
    expect(body.pagination.total).toBe(body.data.length);
    return body.data as Item[];
  };
  const ids = async (query: string, key: string) => (await list(query, key)).map(({ id }) => id);

  it('are one object in every variant', async () => {
    const { user, key } = await member();
    const id = await api.platform.achievement({
      key: 'walker',
      name: 'Wal"ker',
      description: 'Walk',
      icon_url: 'https://a.example/w.svg',
      category: 'sport',
      points: 7,
      target: 3,
      criteria: 'Walk thrice',
    });
    await api.platform.progress(user, id, { progress: 3, pin_position: 4, ...EARNED });
    const item = {
      id,
      key: 'walker',
      name: 'Wal"ker',
      description: 'Walk',
      icon_url: 'https://a.example/w.svg',
      category: 'sport',
      rarity: 'unrated',
      rarity_percentage: null,
      points: 7,
      is_hidden: false,
      earned: true,
      earned_at: '2024-01-01 00:00:00',
      progress: { current: 3, target: 3, percentage: 100 },
      is_pinned: true,
      pin_position: 1,
    };
    for (const query of ['', '?action=all', '?action=pinned']) expect(await list(query, key)).toEqual([item]);
    const { body } = await api.get(`/achievements?action=detail&id=${id}`, key);
    expect(body).toEqual({
      ...item,
      criteria: 'Walk thrice',
      earned_by_count: 1,
      eligible_users_count: 1,
      rarity_computed_at: expect.any(String),
    });
    const age = Date.now() - Date.parse(`${(body.rarity_computed_at as string).replace(' ', 'T')}Z`);
    expect(age).toBeLessThan(60_000);
    expect(age).toBeGreaterThan(-5_000);
  });

  it.each([
    [null, 5, null],
    [3, 0, { current: 0, target: 3, percentage: 0 }],
    [3, 1, { current: 1, target: 3, percentage: 33.33 }],
    [3, 2, { current: 2, target: 3, percentage: 66.67 }],
    [800, 1, { current: 1, target: 800, percentage: 0.13 }], // 0.125, half up
  ])('show progress towards target %s after %i steps as %j', async (target, progress, shown) => {
    const { user, key } = await member();
    const id = await api.platform.achievement({ target });
    if (progress) await api.platform.progress(user, id, { progress });
    expect((await api.get(`/achievements?action=detail&id=${id}`, key)).body.progress).toEqual(shown);
  });

  describe('are as rare as the share of active members who earned them', () => {
    it.each([
      [10, 5, 'common', 50],
      [11, 5, 'uncommon', 45.45],
      [10, 2, 'uncommon', 20],
      [16, 3, 'rare', 18.75],
      [20, 1, 'rare', 5],
      [21, 1, 'epic', 4.76],
      [10, 0, 'legendary', 0],
      [9, 9, 'unrated', null],
    ])('of %i active members %i: %s, %s %%', async (active, earners, rarity, percentage) => {
      const { key } = await member();
      const id = await api.platform.achievement();
      for (const user of (await crowd(active - 1)).slice(0, earners))
        await api.platform.progress(user, id, EARNED);
      if (earners === active)
        await api.platform.progress((await api.get('/me', key)).body.id as number, id, EARNED);
      const { body } = await api.get(`/achievements?action=detail&id=${id}`, key);
      expect([body.rarity, body.rarity_percentage, body.earned_by_count, body.eligible_users_count]).toEqual([
        rarity,
        percentage,
        earners,
        active,
      ]);
    });

    it('and not of disabled ones', async () => {
      const { key } = await member();
      const id = await api.platform.achievement();
      const users = await crowd(10);
      await api.platform.progress(users[0]!, id, EARNED);
      await api.dataSource.query('UPDATE users SET disabled_at = now() WHERE id = $1', [users[0]]);
      const { body } = await api.get(`/achievements?action=detail&id=${id}`, key);
      expect([body.earned_by_count, body.eligible_users_count, body.rarity]).toEqual([0, 10, 'legendary']);
    });
  });

  it('that are hidden and not earned tell nothing but category, rarity and points', async () => {
    const { user, key } = await member();
    const hidden = await api.platform.achievement({
      is_hidden: true,
      name: 'Aaa',
      description: 'x',
      icon_url: 'https://a.example',
      criteria: 'x',
      target: 3,
      points: 9,
    });
    const plain = await api.platform.achievement({ name: 'Bbb' });
    await api.platform.progress(user, hidden, { progress: 2 });
    const masked = {
      id: hidden,
      key: null,
      name: 'Hidden achievement',
      description: null,
      icon_url: null,
      progress: null,
      points: 9,
      is_hidden: true,
      earned: false,
    };
    expect(await list('?action=all&sort=name', key)).toEqual([
      expect.objectContaining({ id: plain }),
      expect.objectContaining(masked),
    ]);
    expect(await ids('?action=all&sort=-progress', key)).toEqual([hidden, plain].toSorted((a, b) => a - b));
    expect((await api.get(`/achievements?action=detail&id=${hidden}`, key)).body).toMatchObject({
      ...masked,
      criteria: null,
    });
    await api.dataSource.query('UPDATE user_achievements SET earned_at = now()');
    expect((await api.get(`/achievements?action=detail&id=${hidden}`, key)).body).toMatchObject({
      name: 'Aaa',
      criteria: 'x',
      progress: { current: 2 },
    });
  });

  it('that are retired show only to those who earned them', async () => {
    const [one, other] = [await member(), await member()];
    const id = await api.platform.achievement({ retired_at: '2024-01-01T00:00:00Z' });
    await api.platform.progress(one.user, id, EARNED);
    for (const [{ key }, seen] of [
      [one, [id]],
      [other, []],
    ] as const) {
      expect(await ids('?action=all', key)).toEqual(seen);
      expect((await api.get('/achievements?action=stats', key)).body.total).toBe(seen.length);
      expect((await api.get(`/achievements?action=detail&id=${id}`, key)).status).toBe(
        seen.length ? 200 : 404,
      );
    }
  });

  it('that were earned are filtered and sorted', async () => {
    const { user, key } = await member();
    const [a, b, c] = [
      await api.platform.achievement({ name: 'beta %', category: 'x' }),
      await api.platform.achievement({ name: 'Alpha', category: 'y' }),
      await api.platform.achievement({ name: 'ähm', category: 'z' }),
    ];
    for (const [i, id] of [a, b, c].entries())
      await api.platform.progress(user, id, { earned_at: `2024-01-0${i + 1}T00:00:00Z` });
    expect(await ids('', key)).toEqual([c, b, a]);
    expect(await ids('?sort=earned_at', key)).toEqual([a, b, c]);
    expect(await ids('?sort=name', key)).toEqual([b, a, c]);
    expect(await ids('?sort=-rarity_percentage', key)).toEqual([a, b, c]); // unrated: ties by id
    expect(await ids('?category=x,z', key)).toEqual([c, a]);
    expect(await ids('?rarity=unrated', key)).toEqual([c, b, a]);
    expect(await ids('?rarity=common,rare', key)).toEqual([]);
    expect(await ids('?earned_after=2024-01-02', key)).toEqual([c, b]);
    expect(await ids('?earned_before=2024-01-02', key)).toEqual([a]);
    expect(await ids(`?q=${encodeURIComponent('A %')}`, key)).toEqual([a]);
    expect(await ids('?action=all&earned=true', key)).toEqual([a, b, c]);
    expect(await ids('?action=all&earned=false', key)).toEqual([]);
    expect(await ids('?action=all&sort=-earned_at', key)).toEqual([c, b, a]);
  });

  it('that are pinned stand by position, closed up to 1..n', async () => {
    const { user, key } = await member();
    const made = [
      await api.platform.achievement(),
      await api.platform.achievement(),
      await api.platform.achievement(),
    ];
    for (const [i, pin_position] of [6, 2, 4].entries())
      await api.platform.progress(user, made[i]!, { pin_position, ...EARNED });
    const { body } = await api.get('/achievements?action=pinned', key);
    expect(body.data.map(({ id, pin_position }: Item) => [id, pin_position])).toEqual([
      [made[1], 1],
      [made[2], 2],
      [made[0], 3],
    ]);
    expect(body.pagination).toEqual({
      limit: 6,
      count: 3,
      total: 3,
      has_more: false,
      next_cursor: null,
      prev_cursor: null,
      sort: 'pin_position',
    });
  });

  it('add up in the statistics', async () => {
    const { user, key } = await member();
    await crowd(12);
    const made: number[] = [];
    for (const [category, points] of [
      ['b', 1],
      ['a', 2],
      ['B', 4],
      ['a', 8],
    ] as const)
      made.push(await api.platform.achievement({ category, points }));
    await api.platform.achievement({ category: 'gone', retired_at: '2024-01-01T00:00:00Z' });
    await api.platform.progress(user, made[0]!, { earned_at: '2024-01-05T00:00:00Z' });
    await api.platform.progress(user, made[1]!, EARNED);
    const { body } = await api.get('/achievements?action=stats', key);
    expect(body).toMatchObject({
      total: 4,
      earned: 2,
      completion_percentage: 50,
      points_earned: 3,
      points_total: 15,
      last_earned_at: '2024-01-05 00:00:00',
    });
    expect(body.by_category).toEqual([
      { category: 'a', total: 2, earned: 1, completion_percentage: 50 },
      { category: 'B', total: 1, earned: 0, completion_percentage: 0 },
      { category: 'b', total: 1, earned: 1, completion_percentage: 100 },
      { category: 'gone', total: 0, earned: 0, completion_percentage: 0 },
    ]);
    expect(body.by_rarity).toEqual([
      {
        rarity: 'common',
        min_percentage: 50,
        max_percentage: 100,
        total: 0,
        earned: 0,
        completion_percentage: 0,
      },
      {
        rarity: 'uncommon',
        min_percentage: 20,
        max_percentage: 50,
        total: 0,
        earned: 0,
        completion_percentage: 0,
      },
      {
        rarity: 'rare',
        min_percentage: 5,
        max_percentage: 20,
        total: 2,
        earned: 2,
        completion_percentage: 100,
      },
      { rarity: 'epic', min_percentage: 1, max_percentage: 5, total: 0, earned: 0, completion_percentage: 0 },
      {
        rarity: 'legendary',
        min_percentage: 0,
        max_percentage: 1,
        total: 2,
        earned: 0,
        completion_percentage: 0,
      },
      {
        rarity: 'unrated',
        min_percentage: null,
        max_percentage: null,
        total: 0,
        earned: 0,
        completion_percentage: 0,
      },
    ]);
    expect(body.rarest_earned).toEqual({
      id: made[0],
      name: expect.any(String),
      rarity: 'rare',
      rarity_percentage: 7.69,
    });
    expect((await api.get('/profile', key)).body.achievements_count).toBe(body.earned);
  });

  it('have statistics of nothing', async () => {
    const { key } = await member();
    expect((await api.get('/achievements?action=stats', key)).body).toMatchObject({
      total: 0,
      earned: 0,
      completion_percentage: 0,
      points_earned: 0,
      points_total: 0,
      last_earned_at: null,
      by_category: [],
      rarest_earned: null,
    });
  });

  it.each([
    ['action=', 'invalid_parameter'],
    ['action=none', 'invalid_parameter'],
    ['action=all&action=all', 'invalid_parameter'],
    ['action=detail', 'missing_parameter'],
    ['action=detail&id=', 'missing_parameter'],
    ['action=detail&id=x', 'invalid_parameter'],
    ['action=detail&id=1.5', 'invalid_parameter'],
    ['action=detail&id=1e3', 'invalid_parameter'],
    ['action=detail&id=0x10', 'invalid_parameter'],
    ['action=detail&id=99', 'achievement_not_found'],
    ['action=detail&id=0', 'achievement_not_found'],
    ['action=detail&id=-1', 'achievement_not_found'],
    ['action=detail&id=9223372036854775808', 'achievement_not_found'],
    ['action=detail&id=1&limit=5', 'unknown_parameter'],
    ['action=pinned&limit=5', 'unknown_parameter'],
    ['action=stats&sort=name', 'unknown_parameter'],
    ['action=all&q=xx', 'unknown_parameter'],
    ['action=all&earned_after=2024-01-01', 'unknown_parameter'],
    ['id=1', 'unknown_parameter'],
    ['earned=true', 'unknown_parameter'],
    ['sort=position', 'invalid_parameter'],
    ['action=all&sort=earned_at', 'invalid_parameter'],
    ['rarity=shiny', 'invalid_parameter'],
    ['category=', 'invalid_parameter'],
    ['action=all&earned=yes', 'invalid_parameter'],
  ])('refuse ?%s with %s', async (query, code) => {
    const { key } = await member();
    const { status, body } = await api.get(`/achievements?${query}`, key);
    expect([body.code, status]).toEqual([code, code === 'achievement_not_found' ? 404 : 400]);
    if (query.startsWith('action=none'))
      expect(body.errors[0].allowed).toEqual(['all', 'stats', 'detail', 'pinned']);
  });
});
