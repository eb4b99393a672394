import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { TestApi } from '../support/api.js';
import { onPostgres, thorough } from '../support/database.js';

type Value = string | number | null;

/** A row in the oracle: its value for each sort of the list. */
interface Row {
  readonly id: number;
  readonly values: Readonly<Record<string, Value>>;
}

/** A list of one member, to which rows are added and from which they are removed. */
interface World {
  readonly key: string;
  add(draw: Draw): Promise<Row>;
  remove(row: Row): Promise<void>;
}

/** Few values each, so that many rows tie. */
const TEXTS = [
  ...'alpha ALPHA alpha_2 alpha% Zeta zeta Ärger ärger éclair Éclair Ωmega ωmega ΣΑΣ σας σασ İd 日本'.split(
    ' ',
  ),
  'Alpha 2',
  '～ is U+FF5E, before all of plane 1',
  '😀 is U+1F600',
  '"quoted" \\ and\nbroken',
];
const MOMENTS = [
  '2026-03-01T10:00:00.000000Z',
  '2026-03-01T10:00:00.000001Z',
  '2026-03-01T10:00:00.999999Z',
  '2026-03-01T10:00:01.000000Z',
  '1999-12-31T23:59:59.500000Z',
  '2040-01-01T00:00:00.000000Z',
];
const moment = fc.constantFrom(...MOMENTS);
const draw = fc.record({
  text: fc.constantFrom(...TEXTS),
  moments: fc.tuple(moment, moment, moment),
  level: fc.nat({ max: 3 }),
  flags: fc.tuple(fc.boolean(), fc.boolean()),
});
type Draw = typeof draw extends fc.Arbitrary<infer D> ? D : never;

/** The order of the contract: lower-cased code points, null last in both directions, ties by ascending id. */
function oracle(sort: string): (a: Row, b: Row) => number {
  const [name, sign] = sort.startsWith('-') ? [sort.slice(1), -1] : [sort, 1];
  return (a, b) => {
    const [left, right] = [a.values[name!]!, b.values[name!]!];
    if (left === null || right === null) {
      return Number(left === null) - Number(right === null) || a.id - b.id;
    }
    return Number(sign) * compareValues(left, right) || a.id - b.id;
  };
}

function compareValues(a: string | number, b: string | number): number {
  if (typeof a === 'number' || typeof b === 'number') return Number(a) - Number(b);
  const [left, right] = [a, b].map((text) => Array.from(text.toLowerCase(), (c) => c.codePointAt(0)!));
  for (let i = 0; i < Math.min(left!.length, right!.length); i++) {
    if (left![i] !== right![i]) return left![i]! - right![i]!;
  }
  return left!.length - right!.length;
}

thorough.describe('paging', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  const sql = (text: string, values: unknown[]) => api.dataSource.query<unknown>(text, values);

  const events = async (): Promise<World> => {
    const user = await api.platform.user();
    return {
      key: await api.key(user),
      async add({ text, moments: [starts_at, created_at, updated_at], level }) {
        const fields = { title: text, starts_at, created_at, updated_at };
        const id = await api.platform.event({ ...fields, organizer_id: user });
        const role = ['organizer', 'co_organizer', 'attendee', 'attendee'][level]!;
        await api.platform.participant(id, user, { role });
        return { id, values: fields };
      },
      async remove({ id }) {
        if (id % 2) await sql('DELETE FROM participants WHERE event_id = $1', [id]);
        else await sql('UPDATE events SET deleted_at = now() WHERE id = $1', [id]);
      },
    };
  };

  const connections = (pending: boolean) => async (): Promise<World> => {
    const user = await api.platform.user();
    return {
      key: await api.key(user),
      async add({ text, moments: [connected_at], level, flags: [sent] }) {
        const peer = await api.platform.user({ stored_display_name: text });
        const status = pending && level === 0 ? 'pending' : 'accepted';
        const [from, to] = sent ? [user, peer] : [peer, user];
        const id = await api.platform.connection(from, to, { status, connected_at });
        const values = {
          connected_at: status === 'accepted' ? connected_at : null,
          display_name: text,
        };
        return { id, values };
      },
      async remove({ id }) {
        if (id % 2) await sql('DELETE FROM connections WHERE id = $1', [id]);
        else
          await sql(
            'UPDATE users SET disabled_at = now() WHERE id IN (SELECT peer_id FROM connections WHERE id = $1) AND id <> $2',
            [id, user],
          );
      },
    };
  };

  /** All members share the catalog, which starts empty each time. */
  const achievements = (all: boolean) => async (): Promise<World> => {
    await sql('DELETE FROM user_achievements', []);
    await sql('DELETE FROM achievements', []);
    const user = await api.platform.user();
    return {
      key: await api.key(user),
      async add({ text, moments: [earned_at], level, flags: [is_hidden, hasTarget] }) {
        const target = hasTarget ? 3 : null;
        const id = await api.platform.achievement({ name: text, is_hidden, target, position: level });
        const earned = !all || earned_at < '2026';
        await api.platform.progress(user, id, { progress: level, earned_at: earned ? earned_at : null });
        await sql(
          'INSERT INTO user_achievements (user_id, achievement_id, earned_at) SELECT id, $1, now() FROM users WHERE id = ANY ($2)',
          [id, others.slice(0, level)],
        );
        await api.platform.fold();
        const masked = is_hidden && !earned;
        const values = {
          name: masked ? 'Hidden achievement' : text,
          position: level,
          earned_at: earned ? earned_at : null,
          rarity_percentage: level + Number(earned), // number of members who earned it; the same number are eligible for each achievement
          progress: target === null || masked ? null : level,
        };
        return { id, values };
      },
      async remove({ id }) {
        await sql('DELETE FROM user_achievements WHERE achievement_id = $1 AND ($2 OR user_id = $3)', [
          id,
          all,
          user,
        ]);
        if (all && id % 2) await sql('DELETE FROM achievements WHERE id = $1', [id]);
        else if (all) await sql('UPDATE achievements SET retired_at = now() WHERE id = $1', [id]);
        await api.platform.fold();
      },
    };
  };
  const others: number[] = [];
  beforeAll(async () => {
    for (let n = 0; n < 12; n++) others.push(await api.platform.user());
  });

  const lists: [path: string, sorts: string[], world: () => Promise<World>][] = [
    [
      '/events?',
      'starts_at -starts_at created_at -created_at updated_at -updated_at title -title'.split(' '),
      events,
    ],
    ['/connections?', ['connected_at', '-connected_at', 'display_name', '-display_name'], connections(false)],
    [
      '/connections?status=accepted,pending_sent,pending_received&',
      ['connected_at', '-connected_at', 'display_name', '-display_name'],
      connections(true),
    ],
    [
      '/achievements?',
      ['earned_at', '-earned_at', 'name', 'rarity_percentage', '-rarity_percentage'],
      achievements(false),
    ],
    [
      '/achievements?action=all&',
      ['position', 'name', '-earned_at', 'rarity_percentage', '-progress'],
      achievements(true),
    ],
  ];

  /** A change of the list between two pages: a row is added or removed. */
  const happening = fc.oneof(
    draw.map((come) => ({ come, go: undefined })),
    fc.nat({ max: 30 }).map((go) => ({ come: undefined, go })),
  );

  for (const [path, sorts, makeWorld] of lists) {
    it.each(sorts)(
      `${path}sort=%s returns exactly the rows beyond the cursor, each once, despite changes between pages`,
      async (sort) => {
        const compare = oracle(sort);
        await fc.assert(
          fc.asyncProperty(
            fc.array(draw, { maxLength: 9 }),
            fc.integer({ min: 1, max: 4 }),
            fc.array(happening, { maxLength: 10 }),
            async (initial, limit, happenings) => {
              const world = await makeWorld();
              let rows: Row[] = [];
              for (const one of initial) rows.push(await world.add(one));
              const pending = [...happenings];
              const happen = async () => {
                const next = pending.shift();
                if (next?.come) rows.push(await world.add(next.come));
                const gone = next?.go === undefined ? undefined : rows[next.go % rows.length];
                if (gone) {
                  await world.remove(gone);
                  rows = rows.filter((row) => row !== gone);
                }
              };

              const read = async (cursor: string | null) => {
                const query = `limit=${limit}&sort=${sort}${cursor === null ? '' : `&cursor=${cursor}`}`;
                const { body } = await api.get(`${path}${query}`, world.key);
                return body as {
                  data: { id: number }[];
                  pagination: {
                    total: number;
                    count: number;
                    has_more: boolean;
                    next_cursor: string | null;
                    prev_cursor: string | null;
                  };
                };
              };
              /** Reads to the end in one direction, and compares every page with the oracle. */
              const walk = async (direction: 'next' | 'prev', from: { cursor: string | null; gap?: Gap }) => {
                let stayed = rows.filter((row) => lies(row, from.gap, direction));
                const seen: number[] = [];
                let { cursor, gap } = from;
                for (;;) {
                  const { data, pagination } = await read(cursor);
                  const sorted = rows.toSorted(compare);
                  const beyond = sorted.filter((row) => lies(row, gap, direction));
                  const expected = direction === 'next' ? beyond.slice(0, limit) : beyond.slice(-limit);
                  const ids = data.map(({ id }) => id);
                  expect(ids).toEqual(expected.map(({ id }) => id));
                  seen.push(...ids);
                  const start: Gap | undefined = expected[0] ? [expected[0], -1] : gap;
                  const end: Gap | undefined = expected.at(-1) ? [expected.at(-1)!, 1] : gap;
                  const after = sorted.some((row) => end && lies(row, end, 'next'));
                  const before = sorted.some((row) => start && lies(row, start, 'prev'));
                  expect({ ...pagination, next: pagination.next_cursor !== null }).toMatchObject({
                    limit,
                    sort,
                    count: ids.length,
                    total: rows.length,
                    has_more: after,
                    next: after,
                  });
                  expect(pagination.prev_cursor !== null).toBe(before);
                  const onward = direction === 'next' ? pagination.next_cursor : pagination.prev_cursor;
                  if (onward === null) {
                    expect(new Set(seen).size).toBe(seen.length);
                    for (const { id } of stayed) expect(seen).toContain(id);
                    return { cursor: pagination.prev_cursor, ...(start ? { gap: start } : {}) };
                  }
                  cursor = onward;
                  gap = direction === 'next' ? end : start;
                  await happen();
                  stayed = stayed.filter((row) => rows.includes(row));
                }
              };
              /** A position between rows: directly before (-1) or after (1) an existing or former row. */
              type Gap = [row: Row, side: -1 | 1];
              const lies = (row: Row, gap: Gap | undefined, direction: 'next' | 'prev') => {
                if (!gap) return true;
                const side = row.id === gap[0].id ? -gap[1] : compare(row, gap[0]);
                return direction === 'next' ? side > 0 : side < 0;
              };

              const end = await walk('next', { cursor: null });
              if (end.cursor !== null) await walk('prev', end);
            },
          ),
          { numRuns: onPostgres ? 6 : 2, endOnFailure: true },
        );
      },
    );
  }
});
