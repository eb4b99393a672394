import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { foldedText } from '../../src/database/sql.js';
import { TestApi } from '../support/api.js';
import { thorough } from '../support/database.js';

type Fields = Record<string, unknown>;

const TIERS = ['common', 'uncommon', 'rare', 'epic', 'legendary', 'unrated'];
const EARNED = { earned_at: '2024-03-01T10:00:00Z' };

let api: TestApi;
beforeAll(async () => void (api = await TestApi.start()));
afterAll(() => api.close());

// All members share the catalog and the number of active members, so each test starts without achievements and active members.
beforeEach(async () => {
  await api.query('DELETE FROM user_achievements');
  await api.query('DELETE FROM achievements');
  await api.query('UPDATE users SET disabled_at = now() WHERE disabled_at IS NULL');
  await api.platform.fold();
});

async function member() {
  const id = await api.platform.user();
  await api.platform.fold();
  return { id, key: await api.key(id) };
}

async function members(count: number): Promise<number[]> {
  const rows = await api.query<{ id: number }>(
    `INSERT INTO users (username) SELECT 'crowd ' || gen_random_uuid() FROM generate_series(1, $1) RETURNING id`,
    [count],
  );
  await api.platform.fold();
  return rows.map(({ id }) => id);
}

async function earn(achievement: number, users: readonly number[]): Promise<void> {
  await api.query(
    'INSERT INTO user_achievements (user_id, achievement_id, earned_at) SELECT unnest($2::bigint[]), $1, now()',
    [achievement, users],
  );
  await api.platform.fold();
}

async function earned(userId: number, fields: Fields = {}, progress: Fields = {}): Promise<number> {
  const id = await api.platform.achievement(fields);
  await api.platform.progress(userId, id, { ...EARNED, ...progress });
  await api.platform.fold();
  return id;
}

async function list(key: string, query = ''): Promise<Fields[]> {
  const { status, body } = await api.get(`/achievements?${query}`, key);
  expect([status, body.pagination?.total]).toEqual([200, body.data?.length]);
  return body.data;
}
const ids = async (key: string, query = '') => (await list(key, query)).map(({ id }) => id);
const detail = (key: string, id: number) => api.get(`/achievements?action=detail&id=${id}`, key);

describe('GET /api/public/achievements: an achievement', () => {
  it('has the same fields in the lists of earned, all and pinned achievements, and four more in the detail', async () => {
    const { id, key } = await member();
    const texts = { key: 'host', name: 'Host', description: 'D', category: 'events' };
    const fields = { ...texts, icon_url: 'https://x.example/i' };
    const achievement = await earned(
      id,
      { ...fields, points: 25, target: 3, criteria: 'Host three' },
      { progress: 2, pin_position: 4 },
    );
    const object = {
      id: achievement,
      ...fields,
      rarity: 'unrated',
      rarity_percentage: null,
      points: 25,
      is_hidden: false,
      earned: true,
      earned_at: '2024-03-01 10:00:00',
      progress: { current: 2, target: 3, percentage: 66.67 },
      is_pinned: true,
      pin_position: 1,
    };
    for (const query of ['', 'action=all', 'action=pinned']) expect(await list(key, query)).toEqual([object]);
    expect((await detail(key, achievement)).body).toEqual({
      ...object,
      criteria: 'Host three',
      earned_by_count: 1,
      eligible_users_count: 1,
      rarity_computed_at: expect.any(String),
    });
  });

  it('has null for unknown values, and no progress without a target', async () => {
    const { key } = await member();
    const id = await api.platform.achievement({ key: null, name: 'N', points: 0 });
    const texts = { key: null, description: null, icon_url: null };
    const progress = { earned: false, earned_at: null, progress: null, is_pinned: false, pin_position: null };
    const unknown = { ...texts, ...progress };
    expect(await list(key, 'action=all')).toEqual([expect.objectContaining(unknown)]);
    expect((await detail(key, id)).body).toMatchObject({ ...unknown, criteria: null, earned_by_count: 0 });
  });

  it.each([
    // current, target, percentage
    [undefined, 5, 0],
    [0, 5, 0],
    [1, 3, 33.33],
    [2, 3, 66.67],
    [1, 800, 0.13],
    [3, 800, 0.38],
    [1999, 20_000, 10], // 9.995
    [19_999, 20_000, 100], // 99.995
    [7, 5, 100],
  ])('shows a progress of %s of %s as %s percent', async (current, target, percentage) => {
    const { id, key } = await member();
    const achievement = await api.platform.achievement({ target });
    if (current !== undefined) await api.platform.progress(id, achievement, { progress: current });
    const progress = { current: current ?? 0, target, percentage };
    expect((await detail(key, achievement)).body.progress).toEqual(progress);
    expect(await list(key, 'action=all')).toEqual([expect.objectContaining({ progress })]);
  });
});

describe('GET /api/public/achievements: rarity', () => {
  thorough.it.each([
    // active members, earners, tier, percentage
    [9, 9, 'unrated', null],
    [10, 10, 'common', 100],
    [10, 0, 'legendary', 0],
    [200, 100, 'common', 50],
    [200, 99, 'uncommon', 49.5],
    [200, 40, 'uncommon', 20],
    [200, 39, 'rare', 19.5],
    [200, 10, 'rare', 5],
    [200, 9, 'epic', 4.5],
    [200, 2, 'epic', 1],
    [200, 1, 'legendary', 0.5],
    [800, 1, 'legendary', 0.13], // 0.125
  ])('for %s active members and %s earners is %s', async (active, earners, rarity, percentage) => {
    const { id, key } = await member();
    const achievement = await api.platform.achievement();
    await earn(achievement, [id, ...(await members(active - 1))].slice(0, earners));
    const { body } = await detail(key, achievement);
    expect(body).toMatchObject({
      rarity,
      rarity_percentage: percentage,
      earned_by_count: earners,
      eligible_users_count: active,
    });
    expect(await ids(key, `action=all&rarity=${rarity}`)).toEqual([achievement]);
    const others = TIERS.filter((tier) => tier !== rarity).join();
    expect(await ids(key, `action=all&rarity=${others}`)).toEqual([]);
  });

  it('excludes disabled members from earners and eligible members until they are enabled', async () => {
    const { id, key } = await member();
    const achievement = await api.platform.achievement();
    const [one, two, three] = await members(11);
    await earn(achievement, [id, one!, two!]);
    const numbers = async () => {
      await api.platform.fold();
      const { body } = await detail(key, achievement);
      return [body.earned_by_count, body.eligible_users_count, body.rarity_percentage];
    };
    expect(await numbers()).toEqual([3, 12, 25]);
    await api.query('UPDATE users SET disabled_at = now() WHERE id = ANY ($1)', [[one, three]]);
    expect(await numbers()).toEqual([2, 10, 20]);
    await api.query('UPDATE users SET disabled_at = NULL WHERE id = $1', [one]);
    expect(await numbers()).toEqual([3, 11, 27.27]);
  });

  it('states when the rarity was calculated, at most a minute ago', async () => {
    const { key } = await member();
    const { body } = await detail(key, await api.platform.achievement());
    const age = Date.now() - Date.parse(`${body.rarity_computed_at.replace(' ', 'T')}Z`);
    expect(age).toBeGreaterThanOrEqual(-1000);
    expect(age).toBeLessThan(61_000);
  });
});

describe('GET /api/public/achievements: a hidden achievement', () => {
  const secret = {
    key: 'zz_secret',
    name: 'AA secret',
    description: 'a secret',
    criteria: 'secret',
    is_hidden: true,
  };
  const hidden = {
    ...secret,
    icon_url: 'https://x.example/secret',
    target: 4,
    points: 7,
    category: 'secret_category',
  };

  it('is masked, except its category, rarity and points, until the member earns the achievement', async () => {
    const { id, key } = await member();
    const achievement = await api.platform.achievement({ ...hidden, category: 'social' });
    await api.platform.progress(id, achievement, { progress: 3 });
    await api.platform.fold();
    const texts = { key: null, name: 'Hidden achievement', description: null, icon_url: null };
    const masked = { ...texts, progress: null };
    const all = await api.get('/achievements?action=all', key);
    const one = await detail(key, achievement);
    const shown = { is_hidden: true, category: 'social', rarity: 'unrated', points: 7 };
    expect(all.body.data).toEqual([expect.objectContaining({ ...masked, ...shown })]);
    expect(one.body).toMatchObject({ ...masked, criteria: null, earned_by_count: 0, points: 7 });
    expect(all.text + one.text).not.toContain('secret');
    expect((await api.get('/achievements?action=stats', key)).text).not.toContain('secret');
    expect(await list(key)).toEqual([]);

    await api.query('UPDATE user_achievements SET earned_at = now() WHERE achievement_id = $1', [
      achievement,
    ]);
    const { category: _, criteria, target, ...rest } = hidden;
    const revealed = { ...rest, progress: { current: 3, target, percentage: 75 } };
    for (const query of ['', 'action=all'])
      expect(await list(key, query)).toEqual([expect.objectContaining(revealed)]);
    expect((await detail(key, achievement)).body).toMatchObject({ ...revealed, criteria });
  });

  it('is sorted by its masked name, and last by progress', async () => {
    const { id, key } = await member();
    const make = (name: string, progress: number, is_hidden = false) =>
      api.platform.achievement({ name, target: 10, is_hidden }).then(async (achievement) => {
        await api.platform.progress(id, achievement, { progress });
        return achievement;
      });
    const zebra = await make('Zebra', 1);
    const first = await make('aardvark', 9, true);
    const apple = await make('apple', 5);
    const second = await make('zz', 0, true);
    expect(await ids(key, 'action=all&sort=name')).toEqual([apple, first, second, zebra]);
    expect(await ids(key, 'action=all&sort=-progress')).toEqual([apple, zebra, first, second]);
  });

  it('is unmasked only for the member who earned the achievement', async () => {
    const [one, two] = [await member(), await member()];
    const achievement = await earned(one.id, hidden);
    expect((await detail(one.key, achievement)).body.name).toBe('AA secret');
    expect((await detail(two.key, achievement)).body.name).toBe('Hidden achievement');
  });
});

describe('GET /api/public/achievements: a retired achievement', () => {
  it('is visible only to members who earned the achievement', async () => {
    const [one, two] = [await member(), await member()];
    const retired = await earned(one.id, { retired_at: '2024-01-01T00:00:00Z', points: 5 });
    await api.platform.progress(two.id, retired, { progress: 3 });
    expect([await ids(one.key), await ids(one.key, 'action=all')]).toEqual([[retired], [retired]]);
    expect([await ids(two.key), await ids(two.key, 'action=all')]).toEqual([[], []]);
    expect((await detail(one.key, retired)).status).toBe(200);
    expect((await detail(two.key, retired)).body.code).toBe('achievement_not_found');
    const stats = async (key: string) => (await api.get('/achievements?action=stats', key)).body;
    expect(await stats(one.key)).toMatchObject({ total: 1, earned: 1, points_earned: 5, points_total: 5 });
    expect(await stats(two.key)).toMatchObject({ total: 0, earned: 0, points_earned: 0, points_total: 0 });
  });
});

// paging.properties.e2e-spec.ts compares each sort with an oracle.
describe('GET /api/public/achievements: filters', () => {
  it('select by earned and rarity; achievements without a rarity are sorted by id', async () => {
    const { id, key } = await member();
    const [open, own] = [await api.platform.achievement({ name: 'Z' }), await earned(id, { name: 'A' })];
    expect(await ids(key, 'action=all&sort=rarity_percentage')).toEqual([open, own]);
    expect(await ids(key, 'action=all&earned=true')).toEqual([own]);
    expect(await ids(key, 'action=all&earned=false')).toEqual([open]);
    await earn(own, (await members(9)).slice(0, 3));
    expect(await ids(key, 'rarity=rare,uncommon')).toEqual([own]);
    expect(await ids(key, 'rarity=common')).toEqual([]);
  });

  it('select by category, time and part of the name', async () => {
    const { id, key } = await member();
    const a = await earned(id, { name: '50% x', category: 'a b' }, { earned_at: '2024-04-30T23:59:59.999Z' });
    const b = await earned(id, { name: 'Füfzig', category: 'B' }, { earned_at: '2024-05-01T00:00:00Z' });
    expect(await ids(key, 'category=a%20b')).toEqual([a]);
    expect(await ids(key, 'category=b')).toEqual([]);
    expect(await ids(key, 'category=B,a%20b,none')).toEqual([b, a]);
    expect(await ids(key, 'category=B&category=a%20b,none')).toEqual([b, a]);
    expect(await ids(key, 'action=all&category=B')).toEqual([b]);
    expect(await ids(key, 'earned_after=2024-05-01')).toEqual([b]);
    expect(await ids(key, 'earned_before=2024-05-01')).toEqual([a]);
    expect(await ids(key, 'q=0%25')).toEqual([a]);
    expect(await ids(key, 'q=%C3%9CF')).toEqual([b]);
    expect(await ids(key, 'q=__')).toEqual([]);
  });
});

describe('GET /api/public/achievements?action=stats', () => {
  const stats = async (key: string) => {
    const { status, body } = await api.get('/achievements?action=stats', key);
    expect(status).toBe(200);
    return body;
  };
  it('returns zeros for the totals and for every tier if there are no achievements', async () => {
    const { key } = await member();
    expect(await stats(key)).toEqual({
      total: 0,
      earned: 0,
      completion_percentage: 0,
      points_earned: 0,
      points_total: 0,
      last_earned_at: null,
      by_category: [],
      by_rarity: TIERS.map((rarity, i) => ({
        rarity,
        min_percentage: [50, 20, 5, 1, 0, null][i],
        max_percentage: [100, 50, 20, 5, 1, null][i],
        total: 0,
        earned: 0,
        completion_percentage: 0,
      })),
      rarest_earned: null,
      rarity_computed_at: expect.any(String),
    });
  });

  it('has totals for each category and tier, even if empty, that match the lists', async () => {
    const { id, key } = await member();
    const others = await members(9);
    const social = { name: 'Rare', category: 'social', points: 5 };
    const rare = await earned(id, social, { earned_at: '2024-05-01T00:00:00Z' });
    const common = await earned(id, { category: 'events', points: 3, retired_at: '2024-06-01T00:00:00Z' });
    await earn(common, others);
    await api.platform.achievement({ category: 'events', points: 2 });
    await api.platform.achievement({ category: 'events', points: 1, is_hidden: true });
    await api.platform.achievement({ category: 'Abandoned', retired_at: '2024-01-01T00:00:00Z', points: 99 });
    const body = await stats(key);
    expect(body).toMatchObject({
      total: 4,
      earned: 2,
      completion_percentage: 50,
      points_earned: 8,
      points_total: 11,
      last_earned_at: '2024-05-01 00:00:00',
      by_category: [
        { category: 'Abandoned', total: 0, earned: 0, completion_percentage: 0 },
        { category: 'events', total: 3, earned: 1, completion_percentage: 33.33 },
        { category: 'social', total: 1, earned: 1, completion_percentage: 100 },
      ],
      rarest_earned: { id: rare, name: 'Rare', rarity: 'rare', rarity_percentage: 10 },
    });
    expect(body.by_rarity.map(({ rarity, total, earned: of }: Fields) => [rarity, total, of])).toEqual([
      ['common', 1, 1],
      ['uncommon', 0, 0],
      ['rare', 1, 1],
      ['epic', 0, 0],
      ['legendary', 2, 0],
      ['unrated', 0, 0],
    ]);
    expect([(await ids(key, 'action=all')).length, (await ids(key)).length]).toEqual([4, 2]);
    expect((await api.get('/profile', await api.key(id))).body.achievements_count).toBe(2);
  });

  it('names the rarest earned achievement, and the one with the lower id of two equally rare achievements', async () => {
    const { id, key } = await member();
    const first = await earned(id, { category: 'z' });
    const second = await earned(id, { category: 'a' });
    await api.platform.achievement({ category: 'a' });
    const rarest = async () => (await stats(key)).rarest_earned;
    expect(await rarest()).toMatchObject({ id: first, rarity: 'unrated', rarity_percentage: null });
    const others = await members(9);
    expect(await rarest()).toMatchObject({ id: first, rarity: 'rare', rarity_percentage: 10 });
    await earn(first, [others[0]!]);
    expect(await rarest()).toMatchObject({ id: second, rarity: 'rare', rarity_percentage: 10 });
  });

  it('sorts categories in the order of the database', async () => {
    const { key } = await member();
    for (const category of 'Zoo éclair ﬁnd 𝔘 Ångström a"b a A ΑΣ İz Straße 10_km'.split(' '))
      await api.platform.achievement({ category });
    const sorted = await api.query<{ category: string }>(
      `SELECT category FROM achievements GROUP BY 1 ORDER BY ${foldedText('category')}, category COLLATE "C"`,
    );
    const shown = (await stats(key)).by_category.map(({ category }: Fields) => category);
    expect(shown).toEqual(sorted.map(({ category }) => category));
  });

  it('rounds shares half up to two decimals', async () => {
    const wrong = await api.query(`
      SELECT part, whole, percentage(part, whole) FROM generate_series(0, 130) part, generate_series(1, 130) whole
      WHERE percentage(part, whole)::text <> round(100.0 * part / whole, 2)::text`);
    expect(wrong).toEqual([]);
    expect(await api.query(`SELECT percentage(0, 0)::text AS share`)).toEqual([{ share: '0.00' }]);
  });
});

describe('GET /api/public/achievements?action=pinned', () => {
  it('returns the pinned achievements in order, and closes gaps between positions', async () => {
    const { id, key } = await member();
    const last = await earned(id, {}, { pin_position: 6 });
    const first = await earned(id, {}, { pin_position: 2 });
    const middle = await earned(id, { retired_at: '2024-01-01T00:00:00Z' }, { pin_position: 5 });
    await earned(id);
    const { body, headers } = await api.get('/achievements?action=pinned', key);
    const places = (data: Fields[]) => data.map((item) => [item.id, item.is_pinned, item.pin_position]);
    expect(places(body.data)).toEqual([
      [first, true, 1],
      [middle, true, 2],
      [last, true, 3],
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
    expect(headers['x-total-count']).toBe('3');
    expect((await detail(key, last)).body.pin_position).toBe(3);
    await api.query('UPDATE user_achievements SET pin_position = NULL WHERE achievement_id = $1', [first]);
    expect(places(await list(key, 'action=pinned'))).toEqual([
      [middle, true, 1],
      [last, true, 2],
    ]);
  });
});

describe('GET /api/public/achievements: parameters', () => {
  const ACTIONS = ['all', 'stats', 'detail', 'pinned'];

  it.each(['', 'All', 'earned', 'list', 'all,stats', 'constructor', '__proto__'])(
    'rejects the action "%s" and names the allowed actions',
    async (action) => {
      const { key } = await member();
      const { status, body } = await api.get(`/achievements?action=${action}`, key);
      expect([status, body.code]).toEqual([400, 'invalid_parameter']);
      expect(body.errors).toEqual([
        expect.objectContaining({ parameter: 'action', code: 'invalid_parameter', allowed: ACTIONS }),
      ]);
    },
  );

  it.each([
    ['id=1', 'id'],
    ['earned=true', 'earned'],
    ['action=all&q=ab', 'q'],
    ['action=all&earned_after=2024-01-01', 'earned_after'],
    ['action=all&id=1', 'id'],
    ['action=stats&limit=5', 'limit'],
    ['action=stats&category=a', 'category'],
    ['action=detail&id=1&limit=5', 'limit'],
    ['action=detail&id=1&sort=name', 'sort'],
    ['action=pinned&limit=6', 'limit'],
    ['action=pinned&cursor=x', 'cursor'],
    ['action=pinned&sort=name', 'sort'],
  ])('rejects parameters of another action: %s', async (query, parameter) => {
    const { key } = await member();
    const { status, body } = await api.get(`/achievements?${query}`, key);
    expect([status, body.code]).toEqual([400, 'unknown_parameter']);
    expect(body.errors).toEqual([expect.objectContaining({ parameter, code: 'unknown_parameter' })]);
  });

  it.each([
    ['sort=position', 'sort', ['-earned_at', 'earned_at', 'name', 'rarity_percentage', '-rarity_percentage']],
    [
      'action=all&sort=earned_at',
      'sort',
      ['position', 'name', '-earned_at', 'rarity_percentage', '-progress'],
    ],
    ['rarity=mythic', 'rarity', TIERS],
    ['action=all&rarity=common,', 'rarity', TIERS],
    ['action=all&earned=yes', 'earned', ['true', 'false']],
    ['category=', 'category', undefined],
    ['category=a,,b', 'category', undefined],
    ['category=a&category=', 'category', undefined],
    [`category=${Array.from({ length: 51 }, (_, i) => i).join('&category=')}`, 'category', undefined],
    ['earned_after=now', 'earned_after', undefined],
    ['q=a', 'q', undefined],
    [`q=${'a'.repeat(51)}`, 'q', undefined],
    ['action=all&action=all', 'action', undefined],
    ['action=detail&id=1&id=1', 'id', undefined],
  ])('rejects invalid and repeated values: %s', async (query, parameter, allowed) => {
    const { key } = await member();
    const { status, body } = await api.get(`/achievements?${query}`, key);
    expect([status, body.code]).toEqual([400, 'invalid_parameter']);
    const errors = body.errors.map((error: Fields) => [error.parameter, error.allowed]);
    expect(errors).toEqual([[parameter, allowed]]);
  });

  it.each([
    ['', 400, 'missing_parameter'],
    ['&id=', 400, 'missing_parameter'],
    ['&id=abc', 400, 'invalid_parameter'],
    ['&id=1.0', 400, 'invalid_parameter'],
    ['&id=1e3', 400, 'invalid_parameter'],
    ['&id=0x1', 400, 'invalid_parameter'],
    ['&id=%201', 400, 'invalid_parameter'],
    ['&id=%D9%A1', 400, 'invalid_parameter'],
    ['&id=0', 404, 'achievement_not_found'],
    ['&id=-1', 404, 'achievement_not_found'],
    ['&id=999999999', 404, 'achievement_not_found'],
    ['&id=9007199254740991', 404, 'achievement_not_found'],
    ['&id=9007199254740992', 404, 'achievement_not_found'],
    ['&id=9223372036854775808', 404, 'achievement_not_found'],
    [`&id=-${'9'.repeat(100)}`, 404, 'achievement_not_found'],
  ])('responds to action=detail%s with %s %s', async (query, status, code) => {
    const { key } = await member();
    const answer = await api.get(`/achievements?action=detail${query}`, key);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    if (status === 400) expect(answer.body.errors[0].parameter).toBe('id');
  });
});

// The next two suites are last: later tests would have to disable the thousands of members.
describe('GET /api/public/achievements/earned, /all, /stats, /pinned and /{id}', () => {
  /** The path of each view, and the query that selects the view. */
  const views = (id: number): [path: string, query: string][] => [
    ['/earned?', ''],
    ['/earned?sort=name&limit=1&', 'sort=name&limit=1&'],
    ['/all?', 'action=all&'],
    ['/all?sort=-progress&earned=true&limit=1&', 'action=all&sort=-progress&earned=true&limit=1&'],
    ['/stats?', 'action=stats&'],
    ['/pinned?', 'action=pinned&'],
    [`/${id}?`, `action=detail&id=${id}&`],
  ];

  it('respond like the corresponding action, apart from rarity_computed_at, with the same ETag, links and cursors', async () => {
    const { id, key } = await member();
    const achievement = await earned(id, {}, { pin_position: 1 });
    await earned(id);
    for (const [path, query] of views(achievement)) {
      const own = await api.get(`/achievements${path}`, key);
      const selected = await api.get(`/achievements?${query}`, key);
      // If a half minute ends in between, the time of the rarity changes, and the ETag.
      const isMoved = own.body.rarity_computed_at !== selected.body.rarity_computed_at;
      const shown = ({ status, text, headers }: typeof own) => [
        status,
        text.replace(/"rarity_computed_at":"[^"]+"/, ''),
        isMoved || headers.etag,
        headers.link,
      ];
      expect([path, ...shown(own)]).toEqual([path, ...shown(selected)]);
      expect(own.status).toBe(200);
      const { next_cursor: next } = own.body.pagination ?? {};
      if (!next) continue;
      const [there, here] = [
        await api.get(`/achievements${path}cursor=${next}`, key),
        await api.get(`/achievements?${query}cursor=${next}`, key),
      ];
      expect([there.status, there.text]).toEqual([200, here.text]);
    }
  });

  it('reject an action parameter, and callers without the scope', async () => {
    const { id, key } = await member();
    const other = await api.key(id, ['events:read']);
    for (const [path] of views(await api.platform.achievement())) {
      const { status, body } = await api.get(`/achievements${path}action=all`, key);
      expect([path, status, body.code]).toEqual([path, 400, 'unknown_parameter']);
      expect((await api.get(`/achievements${path}`, other)).body.code).toBe('insufficient_scope');
    }
  });

  it.each(['0', '-1', 'abc', '1.0', '0x1', '01', '9000000000000001', '9'.repeat(400), 'ALL'])(
    'respond 404 if the path has no valid id: %s',
    async (written) => {
      const { key } = await member();
      await api.platform.achievement({ id: 1 });
      const { status, body } = await api.get(`/achievements/${written}`, key);
      expect([status, body.code]).toEqual([404, 'achievement_not_found']);
    },
  );
});

thorough.describe('GET /api/public/achievements: rarity among thousands of members', () => {
  it('selects the tier by the unrounded percentage', async () => {
    const { id, key } = await member();
    const crowd = [id, ...(await members(4000))];
    for (const [earners, rarity, shown] of [
      [800, 'rare', 20], // 19.995…
      [200, 'epic', 5], // 4.998…
      [40, 'legendary', 1], // 0.9997…
    ] as const) {
      const achievement = await api.platform.achievement();
      await earn(achievement, crowd.slice(0, earners));
      const { body } = await detail(key, achievement);
      expect([body.rarity, body.rarity_percentage]).toEqual([rarity, shown]);
    }
  });
});
