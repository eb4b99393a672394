import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Response } from 'supertest';
import { Database } from '../../src/database/database.js';
import { TestApi } from '../support/api.js';
import { thorough } from '../support/database.js';
import { explain, stepsOf } from '../support/plans.js';

interface Pagination {
  limit: number;
  count: number;
  total: number;
  has_more: boolean;
  next_cursor: string | null;
  prev_cursor: string | null;
  sort: string;
}

describe('paging', () => {
  let api: TestApi;
  /** A member with seven items in every list. */
  let user: number;
  let key: string;
  beforeAll(async () => {
    api = await TestApi.start();
    user = await api.platform.user();
    key = await api.key(user);
    for (let n = 0; n < 7; n++) {
      await api.platform.participant(await api.platform.event({ title: `Event ${n}` }), user);
      await api.platform.connection(user, await api.platform.user());
      const achievement = await api.platform.achievement();
      await api.platform.progress(user, achievement, { earned_at: `2025-01-0${n + 1}T00:00:00Z` });
    }
  });
  afterAll(() => api.close());

  const idsOf = ({ body }: Response) => (body.data as { id: number }[]).map(({ id }) => id);
  const pageOf = ({ body }: Response) => body.pagination as Pagination;
  const links = ({ headers }: Response): Record<string, string> =>
    Object.fromEntries(
      Array.from(headers.link!.matchAll(/<([^>]+)>; rel="(\w+)"/g), ([, url, rel]) => [rel!, url!]),
    );
  /** A separate member who is going to this many events; ids are in the order of the list. */
  const goingTo = async (count: number) => {
    const member = await api.platform.user();
    const ids: number[] = [];
    for (let n = 0; n < count; n++) {
      const id = await api.platform.event({ organizer_id: user });
      await api.platform.participant(id, member);
      ids.push(id);
    }
    const memberKey = await api.key(member);
    return {
      ids,
      read: (query: string) => api.get(`/events${query}`, memberKey),
      leave: (gone: number[]) => api.query('DELETE FROM participants WHERE event_id = ANY ($1)', [gone]),
    };
  };

  it.each([
    [200, 0],
    [201, 1],
  ])(
    'reads two pages of %i filtered rows forward and one backward, with %i long statements per page',
    async (rows, longOnes) => {
      const member = await api.platform.user();
      await api.query(
        `WITH made AS (
        INSERT INTO events (title, status, visibility, starts_at, timezone, organizer_id)
          SELECT 'Numbered ' || lpad(n::text, 3, '0'), 'scheduled', 'public', '2026-01-01', 'UTC', $1
          FROM generate_series(1, $3) n RETURNING id
      ) INSERT INTO participants (user_id, event_id, role, rsvp_status) SELECT $2, id, 'attendee', 'going' FROM made`,
        [user, member, rows],
      );
      const memberKey = await api.key(member);
      const long = jest.spyOn(api.app.get(Database), 'long');
      const read = (query: string) => api.get(`/events?q=numbered&sort=title&limit=100${query}`, memberKey);
      const titlesOf = ({ body }: Response) => (body.data as { title: string }[]).map(({ title }) => title);
      const first = await read('');
      const second = await read(`&cursor=${pageOf(first).next_cursor}`);
      const back = await read(`&cursor=${pageOf(second).prev_cursor}`);
      expect(long).toHaveBeenCalledTimes(3 * longOnes);
      long.mockRestore();
      const all = Array.from({ length: rows }, (_, n) => `Numbered ${String(n + 1).padStart(3, '0')}`);
      expect([first, second, back].map(titlesOf)).toEqual([
        all.slice(0, 100),
        all.slice(100, 200),
        all.slice(0, 100),
      ]);
      expect([first, second, back].map((page) => pageOf(page).has_more)).toEqual([true, rows > 200, true]);
      expect([first, second, back].map((page) => pageOf(page).total)).toEqual([rows, rows, rows]);
    },
  );

  const lists = [
    ['/events', '-starts_at'],
    ['/connections', '-connected_at'],
    ['/achievements', '-earned_at'],
    ['/achievements?action=all', 'position'],
  ] as const;
  const withQuery = (path: string, query: string) => `${path}${path.includes('?') ? '&' : '?'}${query}`;

  describe.each(lists)('%s', (path, sort) => {
    const onlyPage = { limit: 20, has_more: false, next_cursor: null, prev_cursor: null, sort };

    it('returns data and seven page fields, with a default limit of 20', async () => {
      const { status, body } = await api.get(path, key);
      expect(status).toBe(200);
      expect(Object.keys(body)).toEqual(['data', 'pagination']);
      expect(body.data).toHaveLength(7);
      expect(body.pagination).toEqual({ ...onlyPage, count: 7, total: 7 });
    });

    // All members share the catalog.
    if (!path.endsWith('all'))
      it('returns an empty list to a member without items', async () => {
        const answer = await api.get(path, await api.key(await api.platform.user()));
        expect(answer.body).toEqual({ data: [], pagination: { ...onlyPage, count: 0, total: 0 } });
        expect(answer.headers['x-total-count']).toBe('0');
      });

    it('returns the complete list page by page, and the same pages backward', async () => {
      const whole = idsOf(await api.get(path, key));
      const pages = [await api.get(withQuery(path, 'limit=3'), key)];
      while (pageOf(pages.at(-1)!).next_cursor !== null) {
        pages.push(
          await api.get(withQuery(path, `limit=3&cursor=${pageOf(pages.at(-1)!).next_cursor}`), key),
        );
      }
      expect(pages.map(idsOf)).toEqual([whole.slice(0, 3), whole.slice(3, 6), whole.slice(6)]);
      expect(pages.map((page) => [pageOf(page).count, pageOf(page).total, pageOf(page).has_more])).toEqual([
        [3, 7, true],
        [3, 7, true],
        [1, 7, false],
      ]);
      const back = [pages.at(-1)!];
      while (pageOf(back[0]!).prev_cursor !== null) {
        back.unshift(await api.get(withQuery(path, `limit=3&cursor=${pageOf(back[0]!).prev_cursor}`), key));
      }
      expect(back.map(idsOf)).toEqual(pages.map(idsOf));
      expect(back.map((page) => pageOf(page).has_more)).toEqual([true, true, false]);
    });

    it('links to the first, previous and next page with absolute URLs', async () => {
      const follow = async (url: string) => {
        expect(url.startsWith(`${api.config.publicUrl}/api/public/`)).toBe(true);
        return api.send('GET', url.slice(api.config.publicUrl.length), { 'X-API-Key': key });
      };
      const first = await api.get(withQuery(path, 'limit=3'), key);
      expect(Object.keys(links(first))).toEqual(['first', 'next']);
      const second = await follow(links(first).next!);
      expect(Object.keys(links(second)).toSorted()).toEqual(['first', 'next', 'prev']);
      const third = await follow(links(second).next!);
      expect(Object.keys(links(third)).toSorted()).toEqual(['first', 'prev']);
      expect(idsOf(await follow(links(third).prev!))).toEqual(idsOf(second));
      expect(idsOf(await follow(links(third).first!))).toEqual(idsOf(first));
      expect(pageOf(third).limit).toBe(3);
    });

    it.each([1, 100])('accepts limit=%d', async (limit) => {
      const page = await api.get(withQuery(path, `limit=${limit}`), key);
      expect([pageOf(page).limit, pageOf(page).count]).toEqual([limit, Math.min(limit, 7)]);
    });

    it.each(['0', '101', '-1', '1.0', '1e1', '', ' 5', '0x5', '٥', '99999999999999999999'])(
      'rejects limit=%s instead of clamping it',
      async (limit) => {
        const { status, body } = await api.get(withQuery(path, `limit=${encodeURIComponent(limit)}`), key);
        expect([status, body.code]).toEqual([400, 'invalid_parameter']);
        expect(body.errors).toEqual([expect.objectContaining({ parameter: 'limit' })]);
      },
    );

    it('also returns the total in X-Total-Count, for HEAD and GET', async () => {
      const url = `/api/public${withQuery(path, 'limit=2')}`;
      const get = await api.send('GET', url, { 'X-API-Key': key });
      const head = await api.send('HEAD', url, { 'X-API-Key': key });
      expect(get.headers['x-total-count']).toBe('7');
      expect([head.status, head.headers['x-total-count'], head.headers.link]).toEqual([
        200,
        '7',
        get.headers.link,
      ]);
    });
  });

  it('counts in the total only rows that match the filters', async () => {
    const page = await api.get('/events?q=event%205', key);
    expect([pageOf(page).total, page.headers['x-total-count']]).toEqual([1, '1']);
  });

  it('keeps the filters and the sort in its next link', async () => {
    const page = await api.get('/events?limit=2&status=scheduled,cancelled&q=Event&sort=title', key);
    const query = new URL(links(page).next!).searchParams;
    expect(Object.fromEntries(query)).toEqual({
      limit: '2',
      status: 'scheduled,cancelled',
      q: 'Event',
      sort: 'title',
      time_filter: 'all',
      cursor: pageOf(page).next_cursor,
    });
  });

  describe('states exactly whether there are more rows', () => {
    it('when the page ends with the last row', async () => {
      const { ids, read } = await goingTo(2);
      expect(pageOf(await read('?limit=2'))).toMatchObject({ has_more: false, next_cursor: null });
      const first = await read('?limit=1');
      expect(pageOf(first)).toMatchObject({ has_more: true, prev_cursor: null });
      const last = await read(`?limit=1&cursor=${pageOf(first).next_cursor}`);
      expect(idsOf(last)).toEqual([ids[1]]);
      expect(pageOf(last)).toMatchObject({ has_more: false, next_cursor: null });
    });

    it('on an empty page after all rows, whose prev_cursor returns the rows', async () => {
      const { ids, read, leave } = await goingTo(4);
      const cursor = pageOf(await read('?limit=2')).next_cursor;
      await leave([ids[2]!, ids[3]!]);
      const empty = await read(`?limit=2&cursor=${cursor}`);
      expect(empty.body.data).toEqual([]);
      expect(pageOf(empty)).toMatchObject({ count: 0, total: 2, has_more: false, next_cursor: null });
      const back = await read(`?limit=2&cursor=${pageOf(empty).prev_cursor}`);
      expect(idsOf(back)).toEqual([ids[0], ids[1]]);
      expect(pageOf(back)).toMatchObject({ has_more: false, prev_cursor: null });
    });

    it('on an empty page before all rows, whose next_cursor returns the rows', async () => {
      const { ids, read, leave } = await goingTo(4);
      const second = await read(`?limit=2&cursor=${pageOf(await read('?limit=2')).next_cursor}`);
      await leave([ids[0]!, ids[1]!]);
      const empty = await read(`?limit=2&cursor=${pageOf(second).prev_cursor}`);
      expect(pageOf(empty)).toMatchObject({ count: 0, total: 2, has_more: true, prev_cursor: null });
      expect(idsOf(await read(`?limit=2&cursor=${pageOf(empty).next_cursor}`))).toEqual([ids[2], ids[3]]);
    });
  });

  it('can change its direction and limit between pages', async () => {
    const { ids, read } = await goingTo(7);
    const second = await read(`?limit=1&cursor=${pageOf(await read('?limit=5')).next_cursor}`);
    expect(idsOf(second)).toEqual([ids[5]]);
    const back = await read(`?limit=2&cursor=${pageOf(second).prev_cursor}`);
    expect(idsOf(back)).toEqual([ids[3], ids[4]]);
    expect(pageOf(back)).toMatchObject({ limit: 2, count: 2, has_more: true });
    expect(idsOf(await read(`?limit=100&cursor=${pageOf(back).next_cursor}`))).toEqual([ids[5], ids[6]]);
  });

  describe('rejects with 400 invalid_cursor a cursor', () => {
    const cursorOf = async (path: string, of = key) => {
      const cursor = pageOf(await api.get(withQuery(path, 'limit=2'), of)).next_cursor;
      expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
      return cursor!;
    };
    const isRefused = async (path: string, cursor: string, by = key) => {
      const { status, body } = await api.get(withQuery(path, `limit=2&cursor=${cursor}`), by);
      expect([path, cursor, status, body.code]).toEqual([path, cursor, 400, 'invalid_cursor']);
      expect(body.errors).toEqual([expect.objectContaining({ parameter: 'cursor', code: 'invalid_cursor' })]);
    };

    thorough.it('with any one character altered, even if it decodes to the same bytes', async () => {
      const cursor = await cursorOf('/connections');
      for (let i = 0; i < cursor.length; i++) {
        const other = cursor[i] === 'B' ? 'C' : 'B';
        await isRefused('/connections', cursor.slice(0, i) + other + cursor.slice(i + 1));
      }
      const forms = [`${cursor}=`, `${cursor}A`, `%20${cursor}`, `${cursor}%0A`, cursor + cursor];
      for (const form of [...forms, cursor.slice(0, -1), cursor.slice(1)])
        await isRefused('/connections', form);
    });

    it.each(['', 'x', 'null', '0', 'W10', '%00', '%F0%9F%98%80'])('never issued: %s', async (cursor) => {
      await isRefused('/events', cursor);
    });

    it('that is longer than any valid cursor', async () => {
      await isRefused('/events', 'A'.repeat(4000));
    });

    it('of another member', async () => {
      const other = await api.platform.user();
      await api.platform.connection(other, await api.platform.user());
      await isRefused('/connections', await cursorOf('/connections'), await api.key(other));
    });

    it('of another path or variant with the same sort', async () => {
      await isRefused('/achievements?action=all&sort=name', await cursorOf('/achievements?sort=name'));
      await isRefused(
        '/achievements?sort=-earned_at',
        await cursorOf('/achievements?action=all&sort=-earned_at'),
      );
      await isRefused('/connections', await cursorOf('/events'));
      await isRefused('/achievements', await cursorOf('/connections'));
    });

    it('of another sort', async () => {
      await isRefused('/events?sort=starts_at', await cursorOf('/events'));
      await isRefused('/events?sort=-title', await cursorOf('/events?sort=title'));
      await isRefused('/events', await cursorOf('/events?sort=created_at'));
    });

    it.each([
      ['more filters', '/events', '/events?q=event'],
      ['fewer filters', '/events?q=event', '/events'],
      ['another q', '/events?q=event', '/events?q=Event%20'],
      ['another list', '/events?status=scheduled', '/events?status=scheduled,ongoing'],
      ['another time', '/events?starts_after=2001-01-01', '/events?starts_after=2001-01-02'],
      ['another flag', '/events?is_online=false', '/events?is_online=true'],
      ['another status', '/connections', '/connections?status=accepted,pending_sent'],
      ['another category', '/achievements?category=events', '/achievements?category=events,other'],
      ['another earned', '/achievements?action=all&earned=true', '/achievements?action=all&earned=false'],
    ])('used with %s', async (_, made, used) => {
      await isRefused(used, await cursorOf(made));
    });
  });

  describe('accepts a cursor', () => {
    it('with explicit defaults', async () => {
      const cursor = pageOf(await api.get('/events?limit=2', key)).next_cursor;
      const query = `sort=-starts_at&time_filter=all&cursor=${cursor}`;
      expect(pageOf(await api.get(`/events?${query}`, key)).count).toBe(5);
    });

    it('with another limit and another parameter order', async () => {
      const whole = idsOf(await api.get('/events?sort=title&q=event', key));
      const cursor = pageOf(await api.get('/events?sort=title&q=event&limit=2', key)).next_cursor;
      expect(idsOf(await api.get(`/events?cursor=${cursor}&limit=4&q=event&sort=title`, key))).toEqual(
        whole.slice(2, 6),
      );
    });

    it('from another key of the same member', async () => {
      const cursor = pageOf(await api.get('/events?limit=2', key)).next_cursor;
      expect((await api.get(`/events?cursor=${cursor}`, await api.key(user))).status).toBe(200);
    });
  });

  describe('paging of an unfiltered list', () => {
    interface Sent {
      readonly by: 'read' | 'rows' | 'long';
      readonly name: string | undefined;
      readonly text: string;
      readonly values: unknown[];
    }
    /** The statement that reads a page, and the connection that it uses. */
    const sentFor = async (path: string, credential: string): Promise<Sent> => {
      const database = api.app.get(Database);
      const ways = (['read', 'rows', 'long'] as const).map((by) => ({ by, spy: jest.spyOn(database, by) }));
      expect((await api.get(path, credential)).status).toBe(200);
      const sent = ways.flatMap(({ by, spy }) =>
        spy.mock.calls.map(([statement, values]) => ({
          by,
          ...(typeof statement === 'string' ? { name: undefined, text: statement } : statement),
          values,
        })),
      );
      for (const { spy } of ways) spy.mockRestore();
      return sent.find(({ text }) => text.includes('near_key')) as Sent;
    };

    it.each(lists.map(([path]) => path))(
      'uses a prepared statement, and no connection for long queries: %s',
      async (path) => {
        const first = await sentFor(path, key);
        const { next_cursor: cursor } = pageOf(await api.get(withQuery(path, 'limit=1'), key));
        const next = await sentFor(withQuery(path, `limit=1&cursor=${cursor}`), key);
        expect([first.by, next.by]).toEqual(['read', 'read']);
        expect(new Set([first.name, next.name, undefined]).size).toBe(3);
      },
    );

    it.each(['-starts_at', 'starts_at'])('reads at most two extra rows: %s', async (sort) => {
      const member = await api.platform.user();
      await api.query(
        `WITH made AS (
  INSERT INTO events (title, status, visibility, starts_at, timezone, organizer_id)
  SELECT 'One of many', 'scheduled', 'public', '2031-01-01'::timestamptz + n * interval '1 hour', 'UTC', $2
  FROM generate_series(1, 1000) n RETURNING id
) INSERT INTO participants (event_id, user_id, role, rsvp_status) SELECT id, $1, 'attendee', 'going' FROM made`,
        [member, user],
      );
      await api.query('ANALYZE participants, events');
      const { text, values } = await sentFor(`/events?limit=5&sort=${sort}`, await api.key(member));
      const steps = stepsOf(await explain(api.dataSource, 'ANALYZE, ', text, values));
      const most = Math.max(...steps.map((step) => step['Actual Rows']!));
      expect(most).toBeLessThanOrEqual(5 + 2); // an incremental sort reads one more row
    });
  });
});
