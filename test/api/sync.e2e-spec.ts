import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { Usage } from '../../src/auth/usage/usage.js';
import { Database } from '../../src/database/database.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { RESOURCES, type Resource } from '../../src/resources/resources.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import type { SyncAnswer } from '../../src/features/sync/sync.dto.js';
import { TestApi } from '../support/api.js';
import { hold, postgres, thorough } from '../support/database.js';

type MemberChange = SyncAnswer['data'][number];

describe('GET /api/public/sync', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  const sql = <Row>(text: string, values: unknown[] = []) => api.query<Row>(text, values);
  const settled = () => api.platform.settleChanges();
  const coalesce = () => api.platform.coalesceChanges();
  const sync = async (key: string, query: Record<string, string> = {}) => {
    const response = await api.get(`/sync?${new URLSearchParams(query).toString()}`, key);
    expect([response.status, response.text]).toEqual([200, response.text]);
    return response.body as SyncAnswer;
  };
  const start = async (key: string, query: Record<string, string> = {}) => {
    await settled();
    return (await sync(key, query)).next;
  };
  /** All changes since a cursor. */
  const since = async (key: string, cursor: string, query: Record<string, string> = {}) => {
    await settled();
    const changes: MemberChange[] = [];
    for (let next = cursor; ;) {
      const answer = await sync(key, { ...query, cursor: next });
      changes.push(...answer.data);
      next = answer.next;
      if (!answer.more) return changes;
    }
  };
  const change =
    (kind: MemberChange['kind']) =>
    (resource: MemberChange['resource'], id: number): MemberChange => ({ resource, id, kind });
  const [updated, removed] = [change('updated'), change('removed')];
  const sorted = (changes: MemberChange[]) =>
    changes.map(({ resource, id, kind }) => `${resource} ${id} ${kind}`).toSorted();

  describe('starts', () => {
    it('with a cursor and no items: existing records are not changes', async () => {
      const { id, key } = await api.member();
      await api.platform.participant(await api.platform.event(), id);
      await settled();
      const answer = await sync(key);
      expect(answer).toEqual({
        data: [],
        next: expect.any(String),
        more: false,
        resources: RESOURCES,
      });
      expect(await since(key, answer.next)).toEqual([]);
    });

    it('with the resources that the credential may read', async () => {
      const { id, key } = await api.member({}, ['events:read', 'profile:write']);
      expect((await sync(key)).resources).toEqual(['events']);
      expect((await sync(key, { resources: 'profile,events' })).resources).toEqual(['events']);
      expect((await sync(key, { resources: 'profile' })).resources).toEqual([]);
      const cursor = await start(key);
      await sql(`UPDATE users SET bio = 'new' WHERE id = $1`, [id]);
      await api.platform.connection(id, await api.platform.user());
      const event = await api.platform.event();
      await api.platform.participant(event, id);
      expect(await since(key, cursor)).toEqual([updated('events', event)]);
    });
  });

  describe('reports', () => {
    /** A member with one record of each kind, and the additional records of a case. */
    const world = async () => {
      const { id, key } = await api.member();
      const organizer = await api.platform.user();
      const coOrganizer = await api.platform.user();
      const event = await api.platform.event({ organizer_id: organizer });
      await api.platform.participant(event, id);
      await api.platform.participant(event, coOrganizer, { role: 'co_organizer', rsvp_status: null });
      const peer = await api.platform.user();
      const connection = await api.platform.connection(id, peer, { met_at_event_id: event });
      const achievement = await api.platform.achievement();
      await api.platform.progress(id, achievement, { earned_at: '2024-01-01T10:00:00Z', pin_position: 1 });
      const other = await api.platform.achievement();
      await api.platform.progress(id, other, { earned_at: '2024-01-02T10:00:00Z', pin_position: 2 });
      return { id, key, organizer, coOrganizer, event, peer, connection, achievement, other };
    };
    type World = Awaited<ReturnType<typeof world>>;

    const both = 'events updated, connections updated';
    const hidden = 'events removed, connections updated';
    const answer = 'event_id = :event AND user_id = :id';
    it.each<[what: string, sql: string, changes: string]>([
      ['a new bio', `UPDATE users SET bio = 'new' WHERE id = :id`, 'profile updated'],
      [
        'a new title of an event, also in the connection of two members who met there',
        `UPDATE events SET title = 'new' WHERE id = :event`,
        both,
      ],
      ['an event that became a draft', `UPDATE events SET status = 'draft' WHERE id = :event`, hidden],
      ['a deleted event', 'UPDATE events SET deleted_at = now() WHERE id = :event', hidden],
      [
        'an event that was hidden and restored',
        `UPDATE events SET status = 'draft' WHERE id = :event; UPDATE events SET status = 'scheduled' WHERE id = :event`,
        both,
      ],
      ['another RSVP of the member', `UPDATE participants SET rsvp_status = 'maybe' WHERE ${answer}`, both],
      ['a withdrawn RSVP', `DELETE FROM participants WHERE ${answer}`, hidden],
      [
        'an RSVP withdrawn from an event that had been hidden',
        `UPDATE events SET deleted_at = now() WHERE id = :event; DELETE FROM participants WHERE ${answer}`,
        hidden,
      ],
      [
        'an organizer with another name',
        `UPDATE users SET first_name = 'new' WHERE id = :organizer`,
        'events updated',
      ],
      [
        'a co-organizer with another picture',
        `UPDATE users SET profile_picture = 'https://example.com/new' WHERE id = :coOrganizer`,
        'events updated',
      ],
      [
        'a co-organizer who left',
        'DELETE FROM participants WHERE event_id = :event AND user_id = :coOrganizer',
        both,
      ],
      [
        'a connected member with another name',
        `UPDATE users SET username = username || 'x' WHERE id = :peer`,
        'connections updated',
      ],
      [
        'a connected member who was disabled',
        'UPDATE users SET disabled_at = now() WHERE id = :peer',
        'connections removed, profile updated',
      ],
      [
        'a connected member who was disabled and enabled again',
        'UPDATE users SET disabled_at = now() WHERE id = :peer; UPDATE users SET disabled_at = NULL WHERE id = :peer',
        'connections updated, profile updated',
      ],
      ['a connected member who was erased', 'erase :peer', 'connections removed, profile updated'],
      [
        'a connection that ended',
        'DELETE FROM connections WHERE id = :connection',
        'connections removed, profile updated',
      ],
      [
        'a revoked achievement, and later pins, whose positions change',
        'DELETE FROM user_achievements WHERE user_id = :id AND achievement_id = :achievement',
        'achievements removed, other updated, profile updated',
      ],
      [
        'a renamed achievement',
        `UPDATE achievements SET name = 'new' WHERE id = :achievement`,
        'achievements updated',
      ],
    ])('%s', async (_, statements, changes) => {
      const of = await world();
      const cursor = await start(of.key);
      for (const statement of statements.split('; ')) {
        const text = statement.replaceAll(/(?<!:):(\w+)/g, (_name, name: keyof World) => String(of[name]));
        if (text.startsWith('erase ')) await eraseMembers(api.dataSource, [of.peer], { actor: 'admin' });
        else await sql(text);
      }
      const ids = {
        profile: of.id,
        events: of.event,
        connections: of.connection,
        achievements: of.achievement,
      };
      const expected = changes.split(', ').map((change) => {
        const [what, kind] = change.split(' ') as [keyof typeof ids | 'other', MemberChange['kind']];
        return what === 'other' ? updated('achievements', of.other) : { resource: what, id: ids[what], kind };
      });
      expect(sorted(await since(of.key, cursor))).toEqual(sorted(expected));
      expect(await since(of.key, await start(of.key))).toEqual([]);
    });

    it('to all affected members that a co-organizer row moved to another member, and then to another event', async () => {
      const [of, other, successor] = [await world(), await world(), await api.member()];
      const keys = [of.key, await api.key(of.coOrganizer), successor.key, other.key];
      const afterwards = async (column: string, values: number[]) => {
        const cursors = await Promise.all(keys.map((key) => start(key)));
        await sql(`UPDATE participants SET ${column} = $1 WHERE event_id = $2 AND user_id = $3`, values);
        return Promise.all(keys.map(async (key, i) => sorted(await since(key, cursors[i]!))));
      };
      const seenIn = (of: World) =>
        sorted([updated('events', of.event), updated('connections', of.connection)]);
      const [left, joined] = [removed('events', of.event), updated('events', of.event)];
      const handedOver = await afterwards('user_id', [successor.id, of.event, of.coOrganizer]);
      expect(handedOver).toEqual([seenIn(of), sorted([left]), sorted([joined]), []]);
      const moved = await afterwards('event_id', [other.event, of.event, successor.id]);
      const elsewhere = updated('events', other.event);
      expect(moved).toEqual([seenIn(of), [], sorted([left, elsewhere]), seenIn(other)]);
    });

    it('no record that the member cannot see, such as others’ drafts and disabled people', async () => {
      const { id, key } = await api.member();
      const draft = await api.platform.event({ status: 'draft' });
      const gone = await api.platform.user({ disabled_at: '2024-01-01T10:00:00Z' });
      const cursor = await start(key);
      await api.platform.participant(draft, id);
      await api.platform.connection(id, gone);
      await sql(`UPDATE events SET title = 'new' WHERE id = $1`, [draft]);
      await sql('UPDATE events SET deleted_at = now() WHERE id = $1', [draft]);
      await sql('DELETE FROM participants WHERE event_id = $1', [draft]);
      await sql(`UPDATE users SET first_name = 'new' WHERE id = $1`, [gone]);
      await sql('DELETE FROM connections WHERE user_id = $1 OR peer_id = $1', [id]);
      expect(await since(key, cursor, {})).toEqual([]);
    });

    it('a change of a draft to its organizer, and the draft’s removal', async () => {
      const { id, key } = await api.member();
      const draft = await api.platform.event({ status: 'draft', organizer_id: id });
      await api.platform.participant(draft, id, { role: 'organizer' });
      const cursor = await start(key);
      await sql(`UPDATE events SET title = 'new' WHERE id = $1`, [draft]);
      expect(await since(key, cursor)).toEqual([updated('events', draft)]);
      await sql('UPDATE events SET deleted_at = now() WHERE id = $1', [draft]);
      expect(await since(key, cursor)).toEqual([removed('events', draft)]);
    });

    it.each([
      ['users', 'id'],
      ['participants', 'user_id'],
      ['connections', 'user_id'],
      ['user_achievements', 'user_id'],
    ])('no change if rows of %s are rewritten unchanged', async (table, owner) => {
      const of = await world();
      const cursor = await start(of.key);
      const [{ same } = { same: '' }] = await sql<{ same: string }>(
        `SELECT string_agg(format('%1$I = %1$I', attname), ', ') AS same FROM pg_attribute
WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
        [table],
      );
      const rows = `UPDATE ${table} SET ${same} WHERE ${owner} = $1 RETURNING 1`;
      expect((await sql<[]>(rows, [of.id]))[0]).not.toEqual([]);
      expect(await since(of.key, cursor)).toEqual([]);
    });

    it('no change of other members’ data or of other people’s RSVPs', async () => {
      const of = await world();
      const cursor = await start(of.key);
      await world();
      await api.platform.participant(of.event, await api.platform.user());
      await api.platform.fold();
      expect(await since(of.key, cursor)).toEqual([]);
    });
  });

  describe('in pages', () => {
    thorough.it('has each record once, the last changed at the end, with 1 to 1,000 per page', async () => {
      const { id, key } = await api.member();
      const organizer = await api.platform.user();
      const events: number[] = [];
      for (let i = 0; i < 5; i++) {
        events.push(await api.platform.event({ organizer_id: organizer }));
        await api.platform.participant(events[i]!, id);
      }
      const cursor = await start(key);
      // One row in the change log reports five records.
      await sql(`UPDATE users SET first_name = 'new' WHERE id = $1`, [organizer]);
      for (const limit of ['1', '2', '5', '1000'])
        expect(await since(key, cursor, { limit })).toEqual(events.map((event) => updated('events', event)));
      await sql(`UPDATE events SET title = 'new' WHERE id = $1`, [events[1]]);
      const order = [events[0], events[2], events[3], events[4], events[1]];
      for (const limit of ['1', '3'])
        expect((await since(key, cursor, { limit })).map(({ id: event }) => event)).toEqual(order);
    });

    it('reports more changes only if there are more, even on a full page', async () => {
      const { id, key } = await api.member();
      const cursor = await start(key);
      for (let i = 0; i < 2; i++) await api.platform.participant(await api.platform.event(), id);
      await settled();
      const pages = await Promise.all(['1', '2', '3'].map((limit) => sync(key, { cursor, limit })));
      expect(pages.map(({ data, more }) => [data.length, more])).toEqual([
        [1, true],
        [2, false],
        [2, false],
      ]);
    });

    it('reports a record again if it changes between two pages', async () => {
      const { id, key } = await api.member();
      const events = [await api.platform.event(), await api.platform.event()];
      const cursor = await start(key);
      for (const event of events) await api.platform.participant(event, id);
      await settled();
      const first = await sync(key, { cursor, limit: '1' });
      expect(first).toMatchObject({ data: [updated('events', events[0]!)], more: true });
      await sql('DELETE FROM participants WHERE event_id = $1', [events[0]]);
      expect(await since(key, first.next)).toEqual([
        updated('events', events[1]!),
        removed('events', events[0]!),
      ]);
    });

    it('combines rows of repeatedly changed records, and then reports the same changes', async () => {
      const { id, key } = await api.member();
      const event = await api.platform.event();
      await api.platform.participant(event, id);
      const cursor = await start(key);
      for (let i = 0; i < 20; i++) {
        await sql(`UPDATE users SET bio = $2 WHERE id = $1`, [id, `bio ${i}`]);
        await sql(`UPDATE events SET title = $2 WHERE id = $1`, [event, `title ${i}`]);
      }
      await sql(`UPDATE events SET status = 'draft' WHERE id = $1`, [event]);
      await sql(`UPDATE events SET title = 'hidden' WHERE id = $1`, [event]);
      const before = await since(key, cursor);
      await coalesce();
      const rows = await sql<{ n: number }>(
        `SELECT count(*)::int AS n FROM changes WHERE user_id = $1 OR (user_id IS NULL AND resource = 'events' AND id = $2)
GROUP BY resource, user_id, kind`,
        [id, event],
      );
      // The server's periodic work may have processed some changes before other changes were written.
      expect(Math.max(...rows.map(({ n }) => n))).toBeLessThan(20);
      expect(await since(key, cursor)).toEqual(before);
      expect(sorted(before)).toEqual(sorted([updated('profile', id), removed('events', event)]));
    });
  });

  describe('with include=data', () => {
    const routesOf = (key: string): Partial<Record<Resource, (id: number) => Promise<string>>> => {
      const text = async (path: string) => (await api.get(path, key)).text;
      return {
        profile: () => text('/profile'),
        events: (id: number) => text(`/events/${id}`),
        achievements: (id: number) => text(`/achievements/${id}`),
        connections: async (id: number) => {
          const path = '/connections?limit=1&status=accepted,pending_sent,pending_received';
          for (let cursor = ''; ;) {
            const page = await api.get(path + cursor, key);
            const body = page.body as { data: { id: number }[]; pagination: { next_cursor: string } };
            if (body.data[0]!.id === id)
              return page.text.slice('{"data":['.length).split('],"pagination"')[0]!;
            cursor = `&cursor=${body.pagination.next_cursor}`;
          }
        },
      };
    };
    const withoutMoment = (text: string) =>
      text.replace(/"rarity_computed_at":"[^"]+"/g, '"rarity_computed_at":""');

    it('returns each record like its own route, and null for removed records', async () => {
      const { id, key } = await api.member();
      const kept = await api.platform.event({
        description: 'Zum Café: „ja“ \n 🎉',
        tags: ['a"b'],
        capacity: 3,
      });
      const left = await api.platform.event();
      await api.platform.participant(left, id);
      const cursor = await start(key);
      await api.platform.participant(kept, id, { role: 'co_organizer' });
      await sql('DELETE FROM participants WHERE event_id = $1', [left]);
      for (const status of ['accepted', 'pending'])
        await api.platform.connection(id, await api.platform.user({ username: `né${status}${id}` }), {
          status,
          met_at_event_id: kept,
        });
      const earned = await api.platform.achievement({ target: 3, is_hidden: true, criteria: 'Be there' });
      await api.platform.progress(id, earned, {
        progress: 3,
        earned_at: '2026-01-01T00:00:00Z',
        pin_position: 2,
      });
      await sql(`UPDATE users SET bio = 'neu: "x"' WHERE id = $1`, [id]);
      await api.platform.settle();
      await settled();

      const { text, body } = await api.get(`/sync?include=data&cursor=${cursor}`, key);
      const { data, ...rest } = body as SyncAnswer;
      expect(
        data
          .map(({ resource, kind }) => `${resource} ${kind}`)
          .toSorted()
          .join(),
      ).toBe(
        'achievements updated,connections updated,connections updated,events removed,events updated,profile updated',
      );
      const expected: string[] = [];
      for (const { resource, id: of, kind } of data) {
        const record = kind === 'removed' ? 'null' : await routesOf(key)[resource]!(of);
        expected.push(`{"resource":"${resource}","id":${of},"kind":"${kind}","data":${record}}`);
      }
      expect(withoutMoment(text)).toBe(
        withoutMoment(`{"data":[${expected.join()}],${JSON.stringify(rest).slice(1)}`),
      );
    });

    it('returns only data that the credential may read, and counts a use of that data', async () => {
      const { id, key } = await api.member({}, ['events:read']);
      const event = await api.platform.event();
      const cursor = await start(key, { include: 'data' });
      await api.platform.participant(event, id);
      await sql(`UPDATE users SET bio = 'new' WHERE id = $1`, [id]);
      expect(await since(key, cursor, { include: 'data' })).toMatchObject([
        { ...updated('events', event), data: { id: event, role: 'attendee' } },
      ]);
      await api.app.get(Usage).flush();
      expect(await sql('SELECT scope FROM member_usage WHERE user_id = $1', [id])).toEqual([
        { scope: 'events:read' },
      ]);
    });

    it.each([
      ['few', 0, ['read-changes']],
      ['many', 201, ['read-changes', 'read-changes-of-many']],
    ] as const)(
      'reads a page for a member with %s rows with one statement for each resource',
      async (_, rows, names) => {
        const { id, key } = await api.member();
        await sql('INSERT INTO user_totals (user_id, connections_count) VALUES ($1, $2)', [id, rows]);
        const cursor = await start(key);
        for (let i = 0; i < 3; i++) {
          await api.platform.participant(await api.platform.event(), id);
          await api.platform.connection(id, await api.platform.user());
        }
        await settled();
        const statements = jest.spyOn(api.app.get(Database), 'long');
        try {
          expect((await sync(key, { cursor, include: 'data' })).data).toHaveLength(7);
          const read = statements.mock.calls.map(([{ name }]) => name!);
          expect(read.toSorted((one, other) => (one < other ? -1 : 1))).toEqual([
            'items-connections',
            'items-whole-events:local_time',
            ...names,
          ]);
        } finally {
          statements.mockRestore();
        }
      },
    );

    it('has at most 100 changes on a page, and states that limit', async () => {
      const { key } = await api.member();
      expect((await api.get('/sync?include=data&limit=100', key)).status).toBe(200);
      for (const query of ['include=data&limit=101', 'include=', 'include=everything'])
        expect((await api.get(`/sync?${query}`, key)).body.code).toBe('invalid_parameter');
      const { body } = await api.get('/sync?include=data&limit=101', key);
      expect(body.errors).toMatchObject([{ parameter: 'limit', detail: expect.stringContaining('100') }]);
    });
  });

  describe('rejects', () => {
    it('an altered cursor, or a cursor of another member, of other resources or of a list, with 400', async () => {
      const [one, other] = [await api.member(), await api.member()];
      const { next } = await sync(one.key);
      const narrow = await api.key(one.id, ['profile:read']);
      await api.platform.participant(await api.platform.event(), one.id);
      for (const [key, cursor, query] of [
        [other.key, next, ''],
        [one.key, next, '&resources=events'],
        [narrow, next, ''],
        [one.key, `${next.slice(0, -2)}AA`, ''],
        [one.key, `${next}=`, ''],
        [one.key, 'x', ''],
        [one.key, '', ''],
      ] as const) {
        const response = await api.get(`/sync?cursor=${cursor}${query}`, key);
        expect([response.status, response.body.code]).toEqual([400, 'invalid_cursor']);
      }
      const lists = await api.get(`/events?cursor=${next}`, one.key);
      expect([lists.status, lists.body.code]).toEqual([400, 'invalid_cursor']);
    });

    it.each(['limit=0', 'limit=1001', 'resources=people', 'resources=', 'since=1', 'limit=1&limit=1'])(
      'with 400: %s',
      async (query) => {
        const { key } = await api.member();
        expect((await api.get(`/sync?${query}`, key)).status).toBe(400);
      },
    );

    /** Deletes the member's changes, as the sweeper does after 31 days. */
    const sweepChanges = async (id: number) => {
      await sql(`UPDATE changes SET changed_at = now() - interval '31 days' WHERE user_id = $1`, [id]);
      await api.app.get(Sweeper).sweep();
      expect(await sql('SELECT FROM changes WHERE user_id = $1', [id])).toEqual([]);
    };

    it('with 410 a cursor older than the retained changes', async () => {
      const { id, key } = await api.member();
      const cursor = await start(key);
      await sql(`UPDATE users SET bio = 'old' WHERE id = $1`, [id]);
      await sql(`UPDATE changes SET changed_at = now() - interval '29 days' WHERE user_id = $1`, [id]);
      await api.app.get(Sweeper).sweep();
      expect(await since(key, cursor)).toEqual([updated('profile', id)]);
      await sweepChanges(id);
      const response = await api.get(`/sync?cursor=${cursor}`, key);
      expect([response.status, response.body.code]).toEqual([410, 'cursor_expired']);
      expect(await since(key, await start(key))).toEqual([]);
    });

    it('with 410 a cursor from before a restore, also into the same cluster', async () => {
      const { id, key } = await api.member();
      const cursor = await start(key);
      await api.platform.restore();
      const response = await api.get(`/sync?cursor=${cursor}`, key);
      expect([response.status, response.body.code]).toEqual([410, 'cursor_expired']);
      const next = await start(key);
      await sql(`UPDATE users SET bio = 'after' WHERE id = $1`, [id]);
      expect(await since(key, next)).toEqual([updated('profile', id)]);
    });

    it('no cursor after a restore of a dump whose positions are above the server’s', async () => {
      const { id, key } = await api.member();
      await sql(`UPDATE change_places SET changed_in = 9000000000000 WHERE name <> 'identity'`);
      await sql(
        `INSERT INTO changes (changed_in, user_id, resource, id, kind, changed_at)
VALUES (9000000000001, $1, 'profile', $1, 'updated', now() - interval '31 days')`,
        [id],
      );
      const cursor = await start(key);
      // In one transaction, so that the server's periodic work cannot process one change before the other is written.
      await sql(`UPDATE users SET bio = '1' WHERE id = ${id}; UPDATE users SET bio = '2' WHERE id = ${id}`);
      await settled();
      await coalesce();
      await api.app.get(Sweeper).sweep();
      expect(await since(key, cursor)).toEqual([updated('profile', id)]);
      expect(await sql('SELECT FROM changes WHERE user_id = $1', [id])).toHaveLength(1);
      await sweepChanges(id);
      expect((await api.get(`/sync?cursor=${cursor}`, key)).body.code).toBe('cursor_expired');
    });
  });

  postgres.describe('with concurrent transactions', () => {
    let other: DataSource;
    beforeAll(async () => void (other = await createDataSource(api.config, 'maintenance').initialize()));
    afterAll(() => other.destroy());

    it.each(['READ COMMITTED', 'REPEATABLE READ'] as const)(
      'leaves no gap: committed changes wait for earlier transactions (%s)',
      async (isolation) => {
        const { id, key } = await api.member();
        const events = [await api.platform.event(), await api.platform.event()];
        const cursor = await start(key);
        const long = await hold(
          other,
          `INSERT INTO participants (event_id, user_id, role, rsvp_status) VALUES ($1, $2, 'attendee', 'going')`,
          [events[0], id],
          isolation,
        );
        await api.platform.participant(events[1]!, id);
        const held = await sync(key, { cursor });
        expect(held).toMatchObject({ data: [], more: false });
        await long.commit();
        const both = events.map((event) => updated('events', event));
        expect(await since(key, held.next)).toEqual(both);
        expect(await since(key, cursor)).toEqual(both);
      },
    );

    it('reports no change that was rolled back', async () => {
      const { id, key } = await api.member();
      const cursor = await start(key);
      const runner = await hold(other, `UPDATE users SET bio = 'undone' WHERE id = $1`, [id]);
      await runner.rollback();
      expect(await since(key, cursor)).toEqual([]);
    });

    it('returns a cursor before uncommitted changes, so the next request returns them after the commit', async () => {
      const { id, key } = await api.member();
      const runner = await hold(other, `UPDATE users SET bio = 'late' WHERE id = $1`, [id]);
      const { next } = await sync(key);
      expect((await api.get('/profile', key)).body).toMatchObject({ bio: null });
      await runner.commit();
      expect(await since(key, next)).toEqual([updated('profile', id)]);
    });
  });
});
