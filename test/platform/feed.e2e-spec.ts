import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { CredentialCache } from '../../src/auth/credential-cache.js';
import { Database } from '../../src/database/database.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { ImportSet } from '../../src/import/import-set.js';
import { settle } from '../../src/import/settled-lines.js';
import { readFeedLine } from '../../src/import/sources.js';
import { createStaging, Staging } from '../../src/import/staging.js';
import { TestApi } from '../support/api.js';
import { atOnce } from '../support/concurrent.js';
import { hold, lockWaits, postgres, thorough } from '../support/database.js';
import { eventually, until } from '../support/timing.js';

const put = (type: string, record: object, version?: number) => ({
  type,
  op: 'put',
  record,
  ...(version === undefined ? {} : { version }),
});
const drop = (type: string, record: object, version?: number) => ({
  ...put(type, record, version),
  op: 'delete',
});
const user = (id: number, fields: object = {}) => put('users', { id, username: `fed${id}`, ...fields });
const event = (id: number, organizer_id: number, fields: object = {}) =>
  put('events', {
    id,
    title: `Fed ${id}`,
    status: 'scheduled',
    visibility: 'public',
    starts_at: '2031-05-01 18:00:00',
    timezone: 'Europe/Vienna',
    organizer_id,
    ...fields,
  });
const participant = (event_id: number, user_id: number, rsvp_status = 'going') =>
  put('participants', { event_id, user_id, role: 'attendee', rsvp_status });

describe('POST /api/platform/records', () => {
  let api: TestApi;
  let key: string;
  let last = 1_000_000;
  beforeAll(async () => {
    api = await TestApi.start();
    key = await api.platformKey(['platform:write']);
  });
  afterAll(() => api.close());

  const id = () => ++last;
  const feed = (lines: readonly unknown[], headers: Record<string, string> = {}) =>
    api.feed(key, lines, headers);
  const rows = <Row>(sql: string, values: unknown[] = []) => api.query<Row>(sql, values);
  const revoke = async (secret: string) => {
    await new ApiKeysService(api.dataSource, api.config).revoke(secret.split('_')[2]!, 'leaked', 'admin');
    await until(() => api.app.get(CredentialCache).find('api_key', secret) === undefined);
  };
  const none = { created: 0, updated: 0, deleted: 0, unchanged: 0, stale: 0 };
  const counts = (received: number, some = {}) => ({ ...none, received, ...some });
  /** The position and fault of each bad line. */
  const faultsOf = (body: { errors: Record<string, unknown>[] }) =>
    body.errors.map(({ line, pointer, code }) => [line, pointer, code]);
  const bio = async (member: number) =>
    (await rows<{ bio: string | null }>('SELECT bio FROM users WHERE id = $1', [member]))[0]?.bio;
  const everything = async () => {
    await api.platform.settle();
    return rows(`SELECT (SELECT json_agg(t ORDER BY id) FROM users t) AS users, (SELECT json_agg(t ORDER BY id) FROM events t) AS events,
  (SELECT json_agg(t ORDER BY user_id, event_id) FROM participants t) AS participants,
  (SELECT json_agg(t ORDER BY user_id, peer_id) FROM connections t) AS connections,
  (SELECT json_agg(t ORDER BY id) FROM achievements t) AS achievements,
  (SELECT json_agg(t ORDER BY user_id, achievement_id) FROM user_achievements t) AS progress,
  (SELECT json_agg(t ORDER BY type, user_id, id) FROM record_versions t) AS versions,
  (SELECT count(*) FROM idempotent_responses) AS responses`);
  };

  it('writes records of all six types, which the member can then read through the API', async () => {
    const [one, other, night, badge] = [id(), id(), id(), id()];
    const lines = [
      user(one, { first_name: 'Ada' }),
      user(other),
      event(night, other),
      participant(night, one),
      put('connections', {
        id: id(),
        requester_id: one,
        addressee_id: other,
        status: 'accepted',
        connected_at: '2024-01-01 10:00:00',
      }),
      put('achievements', { id: badge, name: 'Fed', category: 'events' }),
      put('user_achievements', { user_id: one, achievement_id: badge, earned_at: '2024-01-01 10:00:00' }),
    ];
    const { status, body } = await feed(lines);
    expect([status, body]).toEqual([200, counts(7, { created: 7 })]);
    const member = await api.key(one);
    expect((await api.get('/me', member)).body).toMatchObject({ first_name: 'Ada' });
    expect((await api.get('/profile', member)).body).toMatchObject({
      connections_count: 1,
      achievements_count: 1,
    });
    expect((await api.get('/events', member)).body.data).toEqual([expect.objectContaining({ id: night })]);
    expect((await feed(lines)).body).toEqual(counts(7, { unchanged: 7 }));
  });

  it('distinguishes two participants whose member and event ids are swapped', async () => {
    const [one, other] = [id(), id()];
    const lines = [
      user(one),
      user(other),
      event(one, one),
      event(other, other),
      participant(one, other),
      participant(other, one),
    ];
    expect((await feed(lines)).body).toEqual(counts(6, { created: 6 }));
  });

  it('processes its lines in order: the last line about a record applies', async () => {
    const [one, night] = [id(), id()];
    const { body } = await feed([
      user(one, { bio: 'first' }),
      event(night, one),
      participant(night, one),
      user(one, { bio: 'second' }),
      drop('participants', { event_id: night, user_id: one }),
      participant(night, one, 'maybe'),
      user(one, { bio: 'third' }),
    ]);
    expect(body).toEqual(counts(7, { created: 3, stale: 4 }));
    expect(await bio(one)).toBe('third');
    expect(await rows('SELECT rsvp_status FROM participants WHERE user_id = $1', [one])).toEqual([
      { rsvp_status: 'maybe' },
    ]);
  });

  it('applies the last of many lines about one record, even if puts and deletes alternate', async () => {
    const [one, night, pair, other] = [id(), id(), id(), id()];
    const times = Array.from({ length: 1_000 }, (_, i) => i);
    const connection = { id: pair, requester_id: one, addressee_id: other, status: 'pending' };
    const { status, body } = await feed([
      user(other),
      ...times.map((i) => put('users', { id: one, username: `fed${one}`, bio: `${i}` }, i)),
      ...times.map((i) => event(night, one, { title: `Title ${i}` })),
      ...times.flatMap((i) => [
        put('participants', { event_id: night, user_id: one, role: 'attendee', rsvp_status: 'going' }, 2 * i),
        drop('participants', { event_id: night, user_id: one }, 2 * i + 1),
      ]),
      ...times.slice(501).flatMap(() => [put('connections', connection), drop('connections', { id: pair })]),
    ]);
    expect([status, body.received]).toEqual([200, 4_999]);
    expect(
      await rows(
        `SELECT u.bio, e.title, (SELECT count(*) FROM participants WHERE user_id = u.id) AS answers,
  (SELECT count(*) FROM connections WHERE user_id = u.id) AS connections,
  (SELECT array_agg(version ORDER BY type) FROM record_versions WHERE $1 IN (user_id, id)) AS versions
FROM users u JOIN events e ON e.organizer_id = u.id WHERE u.id = $1`,
        [one],
      ),
    ).toEqual([{ bio: '999', title: 'Title 999', answers: 0, connections: 0, versions: [1_999, 999] }]);
  });

  it('names a bad line even if a later line replaces it', async () => {
    const [one, night] = [id(), id()];
    const before = await everything();
    const { status, body } = await feed([
      user(one),
      event(night, one, { timezone: 'Mars/Base' }),
      event(night, 999_999_999),
      event(night, one, { title: 5 }),
      event(night, one),
      put('participants', { event_id: 999_999_999, user_id: one, role: 'attendee', rsvp_status: 'going' }),
      drop('participants', { event_id: 999_999_999, user_id: one }),
    ]);
    expect([status, faultsOf(body).map(([line, pointer]) => [line, pointer])]).toEqual([
      422,
      [
        [2, '#/record/timezone'],
        [3, '#/record/organizer_id'],
        [4, '#/record/title'],
        [6, '#/record/event_id'],
      ],
    ]);
    expect(await everything()).toEqual(before);
  });

  thorough.it('keeps a member’s field if a later line about the member omits the field', async () => {
    const one = id();
    await feed([
      user(one, { email: `${one}@example.com`, external_id: `x${one}`, created_at: '2020-01-01 00:00:00' }),
      user(one, { external_id: null }),
    ]);
    expect(
      await rows('SELECT email, external_id, created_at::date::text AS created FROM users WHERE id = $1', [
        one,
      ]),
    ).toEqual([{ email: `${one}@example.com`, external_id: null, created: '2020-01-01' }]);
  });

  thorough.it('deletes records that an earlier line of the same feed created', async () => {
    const [one, other, night, badge] = [id(), id(), id(), id()];
    const { status, body } = await feed([
      user(one),
      user(other),
      event(night, one),
      participant(night, other),
      put('achievements', { id: badge, name: 'Fed', category: 'events' }),
      drop('achievements', { id: badge }),
      drop('events', { id: night }),
      drop('users', { id: one }),
    ]);
    expect([status, body]).toEqual([200, counts(8, { created: 5, deleted: 3 })]);
    expect(
      await rows(
        `SELECT (SELECT erased_at IS NOT NULL FROM users WHERE id = $1) AS erased, (SELECT deleted_at IS NOT NULL FROM events WHERE id = $2) AS deleted,
  (SELECT retired_at IS NOT NULL FROM achievements WHERE id = $3) AS retired`,
        [one, night, badge],
      ),
    ).toEqual([{ erased: true, deleted: true, retired: true }]);
  });

  thorough.it('accepts a username, and a connection’s id, that an earlier line frees', async () => {
    const [one, other, third, pair, next] = [id(), id(), id(), id(), id()];
    const connect = (of: number, addressee_id: number) =>
      put('connections', { id: of, requester_id: one, addressee_id, status: 'pending' });
    await feed([
      put('users', { id: other, username: `Free${one}` }),
      user(one),
      user(third),
      connect(pair, third),
    ]);
    const { status, body } = await feed([
      drop('connections', { id: pair }),
      connect(next, third),
      drop('connections', { requester_id: third, addressee_id: one }),
      connect(pair, third),
      drop('users', { id: other }),
      put('users', { id: one, username: `free${one}` }),
    ]);
    expect([status, body]).toEqual([200, counts(6, { created: 1, updated: 1, deleted: 2, stale: 2 })]);
    expect(
      await rows(
        'SELECT username, (SELECT id FROM connections WHERE user_id = $1) AS pair FROM users WHERE id = $1',
        [one],
      ),
    ).toEqual([{ username: `free${one}`, pair }]);
  });

  thorough.it('deletes by identifying fields, and counts deleted records as unchanged', async () => {
    const [one, other, night, badge, pair] = [id(), id(), id(), id(), id()];
    await feed([
      user(one),
      user(other),
      event(night, other),
      participant(night, one),
      put('connections', { id: pair, requester_id: one, addressee_id: other, status: 'pending' }),
      put('achievements', { id: badge, name: 'Fed', category: 'events' }),
      put('user_achievements', { user_id: one, achievement_id: badge, progress: 1 }),
    ]);
    const lines = [
      drop('participants', { event_id: night, user_id: one }),
      drop('connections', { id: pair }),
      drop('user_achievements', { user_id: one, achievement_id: badge }),
      drop('events', { id: night }),
      drop('achievements', { id: badge }),
    ];
    expect((await feed(lines)).body).toEqual(counts(5, { deleted: 5 }));
    expect((await feed(lines)).body).toEqual(counts(5, { unchanged: 5 }));
    expect(
      await rows(
        `SELECT (SELECT count(*) FROM participants WHERE user_id = $1) AS answers,
  (SELECT count(*) FROM connections WHERE id = $2) AS sides, (SELECT count(*) FROM user_achievements WHERE user_id = $1) AS progress,
  (SELECT deleted_at IS NOT NULL FROM events WHERE id = $3) AS deleted`,
        [one, pair, night],
      ),
    ).toEqual([{ answers: 0, sides: 0, progress: 0, deleted: true }]);
  });

  it('erases a deleted member’s data and keys permanently, and the audit log names the platform key', async () => {
    const [one, other, night] = [id(), id(), id()];
    const mark = `Erased${one}q`;
    await feed([
      put('users', { id: one, username: mark, bio: mark }, 5),
      user(other),
      event(night, other),
      put('participants', { event_id: night, user_id: one, role: 'attendee', rsvp_status: 'going' }, 5),
      put('connections', { id: id(), requester_id: one, addressee_id: other, status: 'pending' }),
    ]);
    const member = await api.key(one);
    expect((await feed([participant(night, one, 'maybe'), drop('users', { id: one }, 6)])).body).toEqual(
      counts(2, { updated: 1, deleted: 1 }),
    );
    expect((await api.get('/me', member)).status).toBe(401);
    expect(
      await rows(
        `SELECT username, bio, (SELECT count(*) FROM participants WHERE user_id = $1) AS answers,
  (SELECT count(*) FROM connections WHERE peer_id = $1) AS sides, (SELECT count(*) FROM api_keys WHERE user_id = $1) AS keys,
  (SELECT count(*) FROM record_versions WHERE user_id = $1) AS versions FROM users WHERE id = $1`,
        [one],
      ),
    ).toEqual([{ username: `erased-${one}`, bio: null, answers: 0, sides: 0, keys: 0, versions: 0 }]);
    expect(
      await rows(`SELECT actor, key_id FROM auth_events WHERE type = 'user.erased' AND user_id = $1`, [one]),
    ).toEqual([{ actor: 'client', key_id: key.split('_')[2] }]);
    expect((await feed([drop('users', { id: one })])).body).toEqual(counts(1, { unchanged: 1 }));
    expect((await feed([put('users', { id: one, username: mark }, 5)])).body).toEqual(
      counts(1, { stale: 1 }),
    );
    const back = await feed([user(one), participant(night, one)]);
    expect(back.body.errors.map(({ line, code }: { line: number; code: string }) => [line, code])).toEqual([
      [1, 'member_erased'],
      [2, 'member_erased'],
    ]);
  });

  it('rejects a feed whose key is revoked while the feed waits for a database connection', async () => {
    const revoked = await api.platformKey(['platform:write']);
    const database = api.app.get(Database);
    const background = database.background.bind(database);
    const turn = jest.spyOn(database, 'background').mockImplementationOnce(async (use) => {
      await revoke(revoked);
      return background(use);
    });
    const member = id();
    const { status, body } = await api.feed(revoked, [user(member)]);
    turn.mockRestore();
    expect([status, body.code]).toEqual([401, 'invalid_credentials']);
    expect(await rows('SELECT FROM users WHERE id = $1', [member])).toEqual([]);
  });

  it('accepts a feed even if each check of its key reads the database', async () => {
    const find = jest.spyOn(api.app.get(CredentialCache), 'find').mockReturnValue(undefined);
    const { status } = await feed([user(id())]);
    find.mockRestore();
    expect(status).toBe(200);
  });

  it('rejects a body that does not match its Content-Encoding', async () => {
    const { status, body } = await feed([user(id())], { 'Content-Encoding': 'gzip' });
    expect({ status, ...body }).toMatchObject({
      status: 400,
      code: 'invalid_json',
      detail: 'The request body does not match Content-Encoding.',
    });
  });

  thorough.it('rejects a participant line about a member whom an earlier line erases', async () => {
    const one = id();
    await feed([user(one)]);
    const { status, body } = await feed([
      drop('users', { id: one }),
      event(id(), one),
      participant(last, one),
    ]);
    expect([status, body.errors[0].code, body.errors[0].line]).toEqual([422, 'member_erased', 3]);
  });

  describe('with a version', () => {
    it('ignores a line as stale if its version is not higher than the stored version', async () => {
      const one = id();
      const versioned = (text: string, version: number) =>
        put('users', { id: one, username: `fed${one}`, bio: text }, version);
      expect((await feed([versioned('two', 2)])).body).toEqual(counts(1, { created: 1 }));
      expect((await feed([versioned('one', 1), versioned('again', 2)])).body).toEqual(
        counts(2, { stale: 2 }),
      );
      expect(await bio(one)).toBe('two');
      expect((await feed([versioned('three', 3)])).body).toEqual(counts(1, { updated: 1 }));
      expect((await feed([versioned('three', 4)])).body).toEqual(counts(1, { unchanged: 1 }));
      expect((await feed([versioned('late', 4)])).body).toEqual(counts(1, { stale: 1 }));
      expect(await bio(one)).toBe('three');
    });

    thorough.it('does not restore a deleted record for a lower version', async () => {
      const [one, night] = [id(), id()];
      await feed([user(one), event(night, one)]);
      const answer = { event_id: night, user_id: one, role: 'attendee', rsvp_status: 'going' };
      await feed([put('participants', answer, 1)]);
      await feed([drop('participants', { event_id: night, user_id: one }, 3)]);
      expect((await feed([put('participants', answer, 2)])).body).toEqual(counts(1, { stale: 1 }));
      expect((await feed([put('participants', answer, 4)])).body).toEqual(counts(1, { created: 1 }));
    });

    thorough.it('stores no version if it rejects the feed', async () => {
      const one = id();
      expect((await feed([put('users', { id: one, username: 'x' }, 7), { type: 'x' }])).status).toBe(422);
      expect((await feed([put('users', { id: one, username: `fed${one}` }, 7)])).body).toEqual(
        counts(1, { created: 1 }),
      );
    });

    thorough.it('requires the id of a connection', async () => {
      const { body } = await feed([drop('connections', { requester_id: 1, addressee_id: 2 }, 1)]);
      const detail = 'record: must contain id if the line has a version';
      expect(body.errors).toEqual([{ line: 1, pointer: '#/record', code: 'missing', detail }]);
    });
  });

  describe('with an Idempotency-Key', () => {
    it('repeats its first response to the same body, without repeating the work', async () => {
      const one = id();
      const headers = { 'Idempotency-Key': `feed-${one}` };
      const first = await feed([user(one, { bio: 'fed' })], headers);
      expect(first.body).toEqual(counts(1, { created: 1 }));
      await feed([user(one, { bio: 'changed since' })]);
      const again = await feed([user(one, { bio: 'fed' })], headers);
      expect([again.status, again.text]).toEqual([200, first.text]);
      expect(await bio(one)).toBe('changed since');
    });

    thorough.it('responds 409 to another body, but accepts it from another API key', async () => {
      const one = id();
      const headers = { 'Idempotency-Key': `feed-${one}` };
      await feed([user(one)], headers);
      const { status, body } = await feed([user(one, { bio: 'x' })], headers);
      expect([status, body.code]).toEqual([409, 'idempotency_conflict']);
      const other = await api.feed(await api.platformKey(), [user(one, { bio: 'x' })], headers);
      expect(other.body).toEqual(counts(1, { updated: 1 }));
    });

    thorough.it('accepts a corrected feed with the Idempotency-Key of the rejected feed', async () => {
      const one = id();
      const headers = { 'Idempotency-Key': `feed-${one}` };
      expect((await feed(['nonsense'], headers)).status).toBe(422);
      expect((await feed([user(one)], headers)).body).toEqual(counts(1, { created: 1 }));
    });

    it('does not store the body, and accepts another body after 25 hours', async () => {
      const one = id();
      const headers = { 'Idempotency-Key': `feed-${one}` };
      await feed([user(one, { bio: `Secret${one}` })], headers);
      const stored = await rows<{ row: string }>(
        'SELECT r::text AS row FROM idempotent_responses r WHERE idempotency_key = $1',
        [`feed-${one}`],
      );
      expect(stored).toHaveLength(1);
      expect(stored[0]!.row).not.toContain(`Secret${one}`);
      await rows(
        `UPDATE idempotent_responses SET created_at = now() - interval '25 hours' WHERE idempotency_key = $1`,
        [`feed-${one}`],
      );
      expect((await feed([user(one, { bio: 'next day' })], headers)).body).toEqual(counts(1, { updated: 1 }));
    });

    thorough.it.each(['', ' ', 'a b', 'x'.repeat(201), 'naïve'])('rejects the key %j', async (value) => {
      const { status, body } = await feed([], { 'Idempotency-Key': value });
      expect([status, body.errors?.[0].parameter]).toEqual([400, 'Idempotency-Key']);
    });
  });

  describe('with invalid or extreme input', () => {
    it('names each bad line with its number, field and error code, and changes nothing', async () => {
      const before = await everything();
      const [one, night] = [id(), id()];
      const { status, body } = await feed([
        user(one),
        'nonsense',
        '[]',
        { type: 'badges', record: {} },
        { type: 'users', op: 'drop', record: { id: 1 }, x: 1 },
        { type: 'users' },
        put('users', { id: one, username: '' }, -1),
        put('users', { id: 0, username: 'a', bio: 5, hobby: 'x' }),
        event(night, 999_999_999),
        event(id(), one, { location: { city: 'x'.repeat(201) }, capacity: -1 }),
        put('participants', { event_id: night, user_id: one, role: 'attendee' }),
        put('connections', { id: 1, requester_id: one, addressee_id: one, status: 'pending' }),
      ]);
      expect([status, body.code]).toEqual([422, 'validation_failed']);
      expect(body.detail).toMatch(
        /^11 lines are invalid. The first three: Line 2: [^.]+. Line 3: [^.]+. Line 4: type: must be one of users, [^.]+.$/,
      );
      expect(faultsOf(body)).toEqual([
        [2, '#', 'invalid_line'],
        [3, '#', 'invalid_type'],
        [4, '#/type', 'invalid_value'],
        [5, '#/x', 'unknown_field'],
        [6, '#/record', 'missing'],
        [7, '#/version', 'invalid_value'],
        [8, '#/record/hobby', 'unknown_field'],
        [9, '#/record/organizer_id', 'unknown_reference'],
        [10, '#/record/location/city', 'invalid_length'],
        [11, '#/record/rsvp_status', 'inconsistent'],
        [12, '#/record/addressee_id', 'inconsistent'],
      ]);
      expect(body.errors[6].detail).toBe(
        'record.hobby: is not a field here; record.id: must be an integer from 1 to 9000000000000000; record.bio: must be a string',
      );
      expect(await everything()).toEqual(before);
    });

    it.each(['9999-12-31 00:00:00', '0001-01-01 23:59:59', '9999-12-31T23:59:59.999999Z'])(
      'names each line with a time that not every time zone can show: %s',
      async (time) => {
        const one = id();
        const connection = { id: id(), requester_id: one, addressee_id: one + 1, status: 'accepted' };
        const { status, body } = await feed([
          user(one, { created_at: time }),
          event(id(), one, { starts_at: time }),
          event(id(), one, { ends_at: time }),
          put('connections', { ...connection, connected_at: time }),
        ]);
        expect([status, faultsOf(body)]).toEqual([
          422,
          ['created_at', 'starts_at', 'ends_at', 'connected_at'].map((field, i) => [
            i + 1,
            `#/record/${field}`,
            'invalid_value',
          ]),
        ]);
      },
    );

    it('accepts the first and last time that every time zone can show, and the API shows both', async () => {
      const one = id();
      const [first, last] = [
        event(id(), one, { starts_at: '0001-01-02 00:00:00', timezone: 'Pacific/Honolulu' }),
        event(id(), one, { starts_at: '9999-12-30 23:59:59', timezone: 'Pacific/Kiritimati' }),
      ];
      const answers = [first, last].map(({ record }) => participant((record as { id: number }).id, one));
      expect((await feed([user(one), first, last, ...answers])).body).toEqual(counts(5, { created: 5 }));
      const { body } = await api.get('/events?sort=starts_at', await api.key(one));
      expect(body.data.map((shown: Record<string, unknown>) => shown.starts_at_local)).toEqual([
        '0001-01-01 13:28:34',
        '9999-12-31 13:59:59',
      ]);
    });

    it('responds 422 and names the line that violates a database constraint', async () => {
      await rows(`ALTER TABLE connections ADD CONSTRAINT no_search CHECK (source <> 'search')`);
      const [one, other, third] = [id(), id(), id()];
      const connect = (addressee_id: number, source: string) =>
        put('connections', { id: id(), requester_id: one, addressee_id, status: 'pending', source });
      const { status, body } = await feed([
        user(one),
        user(other),
        user(third),
        connect(other, 'event'),
        connect(third, 'search'),
      ]);
      await rows('ALTER TABLE connections DROP CONSTRAINT no_search');
      const detail = 'record: violates the database rule no_search';
      expect([status, body.errors]).toEqual([
        422,
        [{ line: 5, pointer: '#/record', code: 'invalid_value', detail }],
      ]);
      expect(await bio(one)).toBeUndefined();
    });

    it('returns the code and pointer of one error if a line has several errors', async () => {
      const [one, other, gone] = [id(), id(), id()];
      await feed([user(one), user(other), user(gone)]);
      await feed([drop('users', { id: gone })]);
      const { body } = await feed([
        put('connections', { id: id(), requester_id: gone, addressee_id: 999_999_999, status: 'pending' }),
        put('participants', { event_id: 999_999_999, user_id: gone, role: 'attendee', rsvp_status: 'going' }),
        put('users', { id: gone, username: `fed${other}` }),
      ]);
      expect(faultsOf(body)).toEqual([
        [1, '#/record/addressee_id', 'unknown_reference'],
        [2, '#/record/event_id', 'unknown_reference'],
        [3, '#/record/id', 'member_erased'],
      ]);
      expect(body.errors[0].detail).toMatch(/^addressee_id: .*; requester_id: the member \d+ was erased$/);
    });

    thorough.it('names only the first 100 of 150 bad lines', async () => {
      const { body } = await feed(Array.from({ length: 150 }, () => 'nonsense'));
      expect(body.errors.map(({ line }: { line: number }) => line)).toEqual(
        Array.from({ length: 100 }, (_, i) => i + 1),
      );
      expect(body.detail).toMatch(/^150 lines are invalid. The first three: Line 1: /);
    });

    it.each(['application/json', 'text/plain', 'application/x-ndjson; charset=latin1', undefined])(
      'responds 415 if the Content-Type is %s',
      async (type) => {
        const headers = { 'X-API-Key': key, ...(type === undefined ? {} : { 'Content-Type': type }) };
        const { status, body } = await api.send('POST', '/api/platform/records', headers, Buffer.from('{}'));
        expect([status, body.code]).toEqual([415, 'unsupported_media_type']);
      },
    );

    thorough.it('rejects more than 5,000 lines, and more than 8 MB after decompression', async () => {
      const lines = Array.from({ length: 5_001 }, () => '{}');
      expect((await feed(lines)).body.code).toBe('payload_too_large');
      expect((await feed(lines.slice(1))).body.detail).toMatch(/^5000 lines/);
      const large = Buffer.alloc(8 * 1024 * 1024 + 1, 10);
      const send = (body: Buffer, more = {}) => {
        const headers = { 'X-API-Key': key, 'Content-Type': 'application/x-ndjson', ...more };
        return api.send('POST', '/api/platform/records', headers, body);
      };
      const packed = await send(gzipSync(large), { 'Content-Encoding': 'gzip' });
      expect(packed.body.code).toBe('payload_too_large');
      expect((await send(large.subarray(1))).body).toEqual(counts(0));
    });

    thorough.it('responds 422 to random malformed lines, and changes nothing', async () => {
      const before = await everything();
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.json(), nonsense()), { maxLength: 20 }),
          async (lines) => {
            // One line is always bad; other lines may be valid by chance.
            const { status } = await feed([...lines, 'nonsense']);
            expect(status).toBe(422);
          },
        ),
        { numRuns: 60 },
      );
      expect(await everything()).toEqual(before);
    });
  });

  postgres.describe('concurrent with other feeds', () => {
    const waiting = (count: number) =>
      until(async () => (await lockWaits(api.dataSource, 'import_')).length === count);

    it('is rolled back when its caller disconnects while the feed waits for a row lock', async () => {
      const one = id();
      await feed([user(one)]);
      const holder = await hold(api.dataSource, 'SELECT FROM users WHERE id = $1 FOR UPDATE', [one]);
      const caller = new AbortController();
      const sent = fetch(`${api.url}/api/platform/records`, {
        method: 'POST',
        headers: {
          'X-API-Key': key,
          'Content-Type': 'application/x-ndjson',
          'Idempotency-Key': `left-${one}`,
        },
        body: JSON.stringify(user(one, { bio: 'too late' })),
        signal: caller.signal,
      }).catch(() => 'left');
      await waiting(1);
      caller.abort();
      expect(await sent).toBe('left');
      await waiting(0);
      await holder.rollback();
      expect(await bio(one)).toBeNull();
      expect(
        await rows('SELECT FROM idempotent_responses WHERE idempotency_key = $1', [`left-${one}`]),
      ).toEqual([]);
      expect((await feed([user(one, { bio: 'in time' })])).status).toBe(200);
    });

    it('is rolled back if its key is revoked while the feed waits for a row lock', async () => {
      const one = id();
      await feed([user(one)]);
      const revoked = await api.platformKey(['platform:write']);
      const holder = await hold(api.dataSource, 'SELECT FROM users WHERE id = $1 FOR UPDATE', [one]);
      const sent = api.feed(revoked, [user(one, { bio: 'too late' })]);
      await waiting(1);
      await revoke(revoked);
      await holder.rollback();
      const { status, body } = await sent;
      expect([status, body.code, await bio(one)]).toEqual([401, 'invalid_credentials', null]);
    });

    it('reuses its session’s prepared statements and staging tables if it has few lines', async () => {
      const [one, night] = [id(), id()];
      await feed([user(one), event(night, one)]);
      const dataSource = await api.app.get(Database).background('feeding');
      const session = async () => {
        const [row] = await dataSource.query<{ tables: number; prepared: number; used: number }[]>(
          `SELECT (SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relname LIKE 'import%' AND relkind = 'r') AS tables,
  count(*) AS prepared, max(generic_plans + custom_plans) AS used FROM pg_prepared_statements WHERE name LIKE 'statement-%'`,
        );
        return row!;
      };
      // The pool keeps a session for a second.
      await until(async () => {
        for (let i = 0; i < 5; i++) await feed([event(night, one, { title: `Night ${i}` })]);
        const { tables, prepared, used } = await session();
        return tables > 0 && prepared > 0 && used >= 5;
      });
      const longer = Array.from({ length: 101 }, () => user(id()));
      expect((await feed(longer)).body).toMatchObject({ created: 101 });
      // The server deletes the staged rows of an earlier feed, whether the feed was written or rejected.
      for (const lines of [[user(one, { bio: 'a' })], [user(one, { bio: 5 })], [user(one, { bio: 'a' })]])
        await feed(lines);
      expect((await feed([user(one, { bio: 'a' }), user(id())])).body).toMatchObject(
        counts(2, { created: 1, unchanged: 1 }),
      );
    });

    it('keeps the highest version after twenty feeds of the same records in different orders', async () => {
      const ids = Array.from({ length: 30 }, id);
      const night = id();
      await feed([...ids.map((one) => user(one)), event(night, ids[0]!)]);
      const shuffled = (seed: number) => ids.toSorted((a, b) => ((a * seed) % 31) - ((b * seed) % 31));
      // After five attempts with conflicts, a 503 asks the caller to send the feed again.
      const feedAll = async (lines: readonly unknown[]) => {
        for (;;) {
          const { status } = await feed(lines);
          if (status !== 503) return status;
        }
      };
      const statuses = await atOnce(20, (i) =>
        feedAll(
          shuffled(i + 2).flatMap((one) => [
            put('users', { id: one, username: `fed${one}`, bio: `of ${i}` }, i + 1),
            participant(night, one, i % 2 ? 'going' : 'maybe'),
            ...(i % 5 === 4 ? [event(night, ids[0]!, { starts_at: `2031-05-01 1${i % 10}:00:00` })] : []),
          ]),
        ),
      );
      expect(statuses).toEqual(statuses.map(() => 200));
      const bios = await rows<{ bio: string }>('SELECT DISTINCT bio FROM users WHERE id = ANY ($1)', [ids]);
      expect(bios).toEqual([{ bio: 'of 19' }]);
    });

    it('does not deadlock with feeds of connected members', async () => {
      const ids = Array.from({ length: 40 }, id);
      await feed(ids.map((one) => user(one)));
      const shuffled = (seed: number) => ids.toSorted((a, b) => ((a * seed) % 41) - ((b * seed) % 41));
      const renamed = (round: number) =>
        shuffled(round + 2).map((one) =>
          user(one, {
            username: `fed${one}-${round}`,
            bio: `of ${round}`,
            disabled_at: round % 2 ? '2024-01-01 00:00:00' : null,
          }),
        );
      const connected = (round: number) => {
        const order = shuffled(round + 7);
        return order.map((one, i) => {
          const other = order[(i + 1 + (round % 5)) % order.length]!;
          const pair = { requester_id: Math.min(one, other), addressee_id: Math.max(one, other) };
          const accepted = { id: id(), status: 'accepted', connected_at: `2024-01-01 10:00:${10 + round}` };
          return round % 3 === 2 ? drop('connections', pair) : put('connections', { ...pair, ...accepted });
        });
      };
      /** In one attempt, which fails if the database aborts it as a deadlock victim. */
      const once = (lines: readonly unknown[]): Promise<number> => {
        const runner = api.dataSource.createQueryRunner();
        return runner.manager
          .transaction(async (manager) => {
            await createStaging(manager);
            const read = lines.map((line, i) => readFeedLine({ number: i + 1, text: JSON.stringify(line) }));
            const staging = new Staging(manager);
            const settled = await settle(staging, read);
            const set = new ImportSet(staging, [{ name: 'feed' }], { feedBy: { actor: 'admin' } });
            return (await set.run([{ position: 0, lines: settled.lines }], undefined)) ? 200 : 422;
          })
          .finally(() => runner.release());
      };
      const overHttp = async (lines: readonly unknown[]) => (await feed(lines)).status;
      const send = async (by: typeof once, lines: (round: number) => readonly unknown[], rounds: number) => {
        const statuses: number[] = [];
        for (let round = 0; round < rounds; round++) statuses.push(await by(lines(round)));
        return statuses;
      };
      const other = (round: number) => renamed(round + 3).toReversed();
      const statuses = [
        ...(await Promise.all([send(once, renamed, 30), send(once, other, 30), send(once, connected, 40)])),
        ...(await Promise.all([send(overHttp, renamed, 10), send(overHttp, connected, 10)])),
      ].flat();
      expect(statuses.filter((status) => status !== 200)).toEqual([]);
    });

    it('writes an import’s pending changes of a member first, so that the feed’s later change applies', async () => {
      const one = id();
      await feed([user(one)]);
      const record = {
        id: one,
        username: `fed${one}`,
        bio: 'imported',
        first_name: 'Ada',
        says_email: true,
        email: 'ada@x.example',
      };
      await rows('INSERT INTO pending_members VALUES ($1, false, $2)', [one, JSON.stringify(record)]);
      expect((await feed([user(one, { bio: 'fed' })])).status).toBe(200);
      await eventually(async () => (await rows('SELECT FROM pending_members')).length === 0 || undefined);
      expect(await rows('SELECT bio, email FROM users WHERE id = $1', [one])).toEqual([
        { bio: 'fed', email: 'ada@x.example' },
      ]);
    });

    it('sent eight times at once with one Idempotency-Key gets equal responses, and is processed once', async () => {
      const one = id();
      const headers = { 'Idempotency-Key': `feed-${one}` };
      const answers = await atOnce(8, () => feed([user(one)], headers));
      for (const { status, body } of answers)
        expect([status, body]).toEqual([200, counts(1, { created: 1 })]);
    });

    it('keeps the higher of two concurrent versions of a record that has no stored version', async () => {
      const one = id();
      await feed([user(one)]);
      const versioned = (bio: string, version: number) =>
        put('users', { id: one, username: `fed${one}`, bio }, version);
      // Without the lock timeout of 3 s, after which the later feed would get 503 while the test is slow.
      const patient = await createDataSource(api.config, 'maintenance').initialize();
      const database = api.app.get(Database);
      const background = database.background.bind(database);
      const feeding = jest
        .spyOn(database, 'background')
        .mockImplementation((use) => (use === 'feeding' ? Promise.resolve(patient) : background(use)));
      const holder = await hold(api.dataSource, 'SELECT FROM users WHERE id = $1 FOR UPDATE', [one]);
      // The later feed has written its version, and waits for the member; the earlier feed, which saw no version, waits for the later feed.
      const later = feed([versioned('later', 2)]);
      await waiting(1);
      const earlier = feed([versioned('earliest', 0), versioned('earlier', 1)]);
      await waiting(2);
      await holder.rollback();
      expect([(await later).body, (await earlier).body]).toEqual([
        counts(1, { updated: 1 }),
        counts(2, { stale: 2 }),
      ]);
      expect(await bio(one)).toBe('later');
      feeding.mockRestore();
      await patient.destroy();
    });

    it('responds 503 if a row is locked for too long, and 200 after the lock ends', async () => {
      const one = id();
      await feed([user(one)]);
      const holder = await hold(api.dataSource, 'UPDATE users SET bio = $2 WHERE id = $1', [one, 'held']);
      const { status, body } = await feed([user(one, { bio: 'fed' })]);
      await holder.rollback();
      expect([status, body.code]).toEqual([503, 'temporarily_unavailable']);
      expect((await feed([user(one, { bio: 'fed' })])).status).toBe(200);
    });
  });
});

/** Random lines in the form of feed lines. */
function nonsense(): fc.Arbitrary<string> {
  const value = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom('\0', '\ud800', 1e300, -0, 9e15, '2031-13-45', null, []),
  );
  const field = fc.constantFrom(
    ...'id username bio event_id user_id role starts_at location deleted __proto__ constructor \0'.split(' '),
  );
  return fc
    .record({
      type: fc.oneof(
        fc.constantFrom(...'users events participants connections achievements user_achievements'.split(' ')),
        value,
      ),
      op: fc.constantFrom('put', 'delete', 'drop', null),
      record: fc.oneof(fc.dictionary(field, value), value),
      version: fc.oneof(fc.integer(), value),
    })
    .map((line) => JSON.stringify(line));
}
