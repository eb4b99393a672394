import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { TestApi } from './support/api.js';

interface Page {
  data: ({ id: number } & Record<string, unknown>)[];
  pagination: {
    limit: number;
    count: number;
    total: number;
    has_more: boolean;
    next_cursor: string | null;
    prev_cursor: string | null;
    sort: string;
  };
}

describe('paging', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  const memberWithEvents = async (count: number) => {
    const user = await api.platform.user();
    const ids: number[] = [];
    for (let i = 0; i < count; i++) {
      const id = await api.platform.event({
        title: `T${i % 3}`,
        starts_at: `2031-01-0${1 + (i % 4)}T00:00:00.00000${i % 2}Z`,
      });
      await api.platform.participant(id, user);
      ids.push(id);
    }
    return { user, key: await api.key(user), ids };
  };
  const page = async (path: string, key: string) => {
    const { status, body } = await api.get(path, key);
    expect([path, status]).toEqual([path, 200]);
    return body as Page;
  };
  const ids = ({ data }: Page) => data.map(({ id }) => id);

  it('says limit, count, total, has_more, cursors and sort, and links to the pages around', async () => {
    const { key } = await memberWithEvents(5);
    const { body, headers } = await api.get('/events?limit=2&sort=title', key);
    expect(body.pagination).toEqual({
      limit: 2,
      count: 2,
      total: 5,
      has_more: true,
      next_cursor: expect.any(String),
      prev_cursor: null,
      sort: 'title',
    });
    expect(headers['x-total-count']).toBe('5');
    const next = await api.get(`/events?limit=2&sort=title&cursor=${body.pagination.next_cursor}`, key);
    expect(next.body.pagination).toMatchObject({ total: 5, has_more: true, prev_cursor: expect.any(String) });
    const links = [...next.headers.link!.matchAll(/<([^>]+)>; rel="(\w+)"/g)].map(([, url, rel]) => [
      rel,
      url,
    ]);
    expect(links.map(([rel]) => rel)).toEqual(['first', 'prev', 'next']);
    const follow = async (rel: string) => {
      const url = new URL(links.find(([name]) => name === rel)![1]!);
      expect(url.origin).toBe(api.config.publicUrl);
      return ids((await api.send('GET', url.pathname + url.search, { 'X-API-Key': key })).body as Page);
    };
    expect(await follow('first')).toEqual(ids(body as Page));
    expect(await follow('prev')).toEqual(ids(body as Page));
    const last = await page(`/events?limit=2&sort=title&cursor=${next.body.pagination.next_cursor}`, key);
    expect(await follow('next')).toEqual(ids(last));
    expect(last.pagination).toMatchObject({ count: 1, has_more: false, next_cursor: null });
  });

  it('has no more after a page that is just full', async () => {
    const { key } = await memberWithEvents(2);
    expect((await page('/events?limit=2', key)).pagination).toMatchObject({
      has_more: false,
      next_cursor: null,
      prev_cursor: null,
    });
  });

  it('finds the way back from a page whose rows are gone', async () => {
    const { user, key, ids: events } = await memberWithEvents(4);
    const first = await page('/events?limit=2&sort=starts_at', key);
    const gone = events.filter((id) => !ids(first).includes(id));
    await api.dataSource.query('DELETE FROM participants WHERE user_id = $1 AND event_id = ANY ($2)', [
      user,
      gone,
    ]);
    const empty = await page(`/events?limit=2&sort=starts_at&cursor=${first.pagination.next_cursor}`, key);
    expect([empty.data, empty.pagination.has_more, empty.pagination.total]).toEqual([[], false, 2]);
    const back = await page(`/events?limit=2&sort=starts_at&cursor=${empty.pagination.prev_cursor}`, key);
    expect(ids(back)).toEqual(ids(first));
    expect(back.pagination.prev_cursor).toBeNull();
  });

  it('takes another limit with a cursor, but no other user, path, sort or filter', async () => {
    const { key, user } = await memberWithEvents(5);
    const cursor = (await page('/events?limit=2', key)).pagination.next_cursor;
    expect((await page(`/events?limit=3&cursor=${cursor}`, key)).data).toHaveLength(3);
    expect(
      (await page(`/events?sort=-starts_at&time_filter=all&cursor=${cursor}`, await api.key(user))).data,
    ).toHaveLength(3);
    const other = await memberWithEvents(3);
    for (const [path, who] of [
      [`/events?cursor=${cursor}`, other.key],
      [`/events?sort=starts_at&cursor=${cursor}`, key],
      [`/events?q=T0&cursor=${cursor}`, key],
      [`/events?time_filter=past&cursor=${cursor}`, key],
      [`/connections?cursor=${cursor}`, key],
      [`/achievements?cursor=${cursor}`, key],
      [`/achievements?action=all&cursor=${cursor}`, key],
    ] as const) {
      const { status, body } = await api.get(path, who);
      expect([path, status, body.code]).toEqual([path, 400, 'invalid_cursor']);
    }
  });

  it('refuses a cursor of which anything was altered', async () => {
    const { key } = await memberWithEvents(3);
    const cursor = (await page('/events?limit=1', key)).pagination.next_cursor!;
    const altered = [
      ...Array.from(
        cursor,
        (letter, i) => cursor.slice(0, i) + (letter === 'A' ? 'B' : 'A') + cursor.slice(i + 1),
      ),
      cursor.slice(1),
      cursor.slice(0, -1),
      `${cursor}A`,
      `${cursor}=`,
      '',
      'x',
      'null',
      '%00',
      '💙',
    ];
    for (const candidate of altered) {
      const { status, body } = await api.get(`/events?limit=1&cursor=${encodeURIComponent(candidate)}`, key);
      expect([candidate, status, body.code]).toEqual([candidate, 400, 'invalid_cursor']);
    }
  });

  describe('walks every sort of every list', () => {
    const collect = async (path: string, key: string, limit: number) => {
      const seen: Page['data'] = [];
      let cursor: string | null = null;
      let last: Page;
      do {
        last = await page(`${path}&limit=${limit}${cursor ? `&cursor=${cursor}` : ''}`, key);
        seen.push(...last.data);
        cursor = last.pagination.next_cursor;
        expect(last.pagination.has_more).toBe(cursor !== null);
      } while (cursor);
      const back: Page['data'] = [...last.data].toReversed();
      for (cursor = last.pagination.prev_cursor; cursor; cursor = last.pagination.prev_cursor) {
        last = await page(`${path}&limit=${limit}&cursor=${cursor}`, key);
        back.push(...last.data.toReversed());
      }
      expect(back.toReversed().map(({ id }) => id)).toEqual(seen.map(({ id }) => id));
      return seen;
    };
    const compare = (a: unknown, b: unknown) => {
      const [x, y] = [a, b].map((value) =>
        typeof value === 'string'
          ? [...value.toLowerCase()].map((c) => c.codePointAt(0)!.toString(16).padStart(6, '0')).join('')
          : (value as number),
      );
      return x! < y! ? -1 : x! > y! ? 1 : 0;
    };
    /** In the order that the contract says: nulls last in both directions, ties by ascending id. */
    const inOrder = (items: Page['data'], sort: string, key: (item: Page['data'][number]) => unknown) => {
      const sign = sort.startsWith('-') ? -1 : 1;
      return items.toSorted((one, other) => {
        const [a, b] = [key(one), key(other)];
        if (a === null || b === null) return Number(a === null) - Number(b === null) || one.id - other.id;
        return sign * compare(a, b) || one.id - other.id;
      });
    };
    const field = (name: string) => (item: Page['data'][number]) => item[name];

    const lists: [path: string, key: (item: Page['data'][number]) => unknown][] = [
      ...[
        'starts_at',
        '-starts_at',
        'created_at',
        '-created_at',
        'updated_at',
        '-updated_at',
        'title',
        '-title',
      ].map(
        (sort) =>
          [`/events?sort=${sort}`, field(sort.replace('-', ''))] as [string, ReturnType<typeof field>],
      ),
      ...['connected_at', '-connected_at'].map(
        (sort) =>
          [
            `/connections?status=accepted,pending_sent,pending_received&sort=${sort}`,
            field('connected_at'),
          ] as [string, ReturnType<typeof field>],
      ),
      ...['display_name', '-display_name'].map(
        (sort) =>
          [`/connections?sort=${sort}`, (item) => (item.user as { display_name: string }).display_name] as [
            string,
            ReturnType<typeof field>,
          ],
      ),
      ...['earned_at', '-earned_at', 'name', 'rarity_percentage', '-rarity_percentage'].map(
        (sort) =>
          [`/achievements?sort=${sort}`, field(sort.replace('-', ''))] as [string, ReturnType<typeof field>],
      ),
      ...['name', '-earned_at', 'rarity_percentage'].map(
        (sort) =>
          [`/achievements?action=all&sort=${sort}`, field(sort.replace('-', ''))] as [
            string,
            ReturnType<typeof field>,
          ],
      ),
      [
        '/achievements?action=all&sort=-progress',
        (item) => (item.progress as { percentage: number } | null)?.percentage ?? null,
      ],
    ];

    let user: number;
    let key: string;
    beforeAll(async () => {
      user = await api.platform.user();
      key = await api.key(user);
      const random = fc.sample(
        fc.tuple(
          fc.nat(3),
          fc.nat(3),
          fc.constantFrom('Zebra', 'äpfel', 'Apfel', 'apfel', 'É', 'ß', '💙', 'z'),
        ),
        { numRuns: 14, seed: 7 },
      );
      for (const [i, [day, month, title]] of random.entries()) {
        const when = (n: number) => `2024-0${month + 1}-0${n + 1}T00:00:00Z`;
        const event = await api.platform.event({
          title,
          starts_at: when(day),
          created_at: when(3 - day),
          updated_at: when(1),
        });
        await api.platform.participant(event, user);
        const friend = await api.platform.user({ stored_display_name: title });
        await api.platform.connection(user, friend, {
          connected_at: when(day),
          ...(i % 4 === 3 ? { status: 'pending' } : {}),
        });
        const achievement = await api.platform.achievement({
          name: title,
          target: i % 3 ? 4 : null,
          is_hidden: i % 5 === 4,
          key: null,
        });
        await api.platform.progress(user, achievement, {
          progress: day,
          ...(i % 2 ? { earned_at: when(day) } : {}),
        });
        if (i % 3 === 0) await api.platform.progress(friend, achievement, { earned_at: when(0) });
      }
    });

    it.each(lists)('%s: forth and back, in order, each row once', async (path, sortKey) => {
      const whole = (await page(`${path}&limit=100`, key)).data;
      expect(whole.length).toBeGreaterThan(5);
      expect(whole.map(({ id }) => id)).toEqual(
        inOrder(whole, /sort=([^&]+)/.exec(path)![1]!, sortKey).map(({ id }) => id),
      );
      for (const limit of [1, 3, 5]) {
        expect((await collect(path, key, limit)).map(({ id }) => id)).toEqual(whole.map(({ id }) => id));
      }
    });

    it('while rows come and go: no row twice, and none missed that was there throughout', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom('starts_at', '-starts_at', 'title', '-updated_at'),
          fc.array(fc.record({ add: fc.boolean(), day: fc.nat(8) }), { minLength: 3, maxLength: 6 }),
          async (sort, changes) => {
            const walker = await memberWithEvents(7);
            const stayed = new Set(walker.ids);
            const seen: number[] = [];
            let cursor: string | null = null;
            let step = 0;
            do {
              const next: Page = await page(
                `/events?limit=2&sort=${sort}${cursor ? `&cursor=${cursor}` : ''}`,
                walker.key,
              );
              seen.push(...ids(next));
              cursor = next.pagination.next_cursor;
              const change = changes[step++];
              if (change?.add) {
                const id = await api.platform.event({
                  title: `T${change.day}`,
                  starts_at: `2031-01-0${change.day + 1}T00:00:00Z`,
                });
                await api.platform.participant(id, walker.user);
              } else if (change) {
                const id = walker.ids[change.day % walker.ids.length]!;
                stayed.delete(id);
                await api.dataSource.query('DELETE FROM participants WHERE user_id = $1 AND event_id = $2', [
                  walker.user,
                  id,
                ]);
              }
            } while (cursor);
            expect(new Set(seen).size).toBe(seen.length);
            for (const id of stayed) expect(seen).toContain(id);
          },
        ),
        { numRuns: 12, seed: 42 },
      );
    });
  });
});
