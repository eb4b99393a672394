import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { TestApi } from '../support/api.js';
import { isThorough, lockWaits, postgres, thorough } from '../support/database.js';
import { until } from '../support/timing.js';

describe('the profile', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  describe('GET /api/public/me', () => {
    it('returns six fields, with null for unknown values', async () => {
      const { id: user, key } = await api.member({ username: 'alan', first_name: 'Alan', last_name: '' });
      expect((await api.get('/me', key)).body).toEqual({
        id: user,
        username: 'alan',
        first_name: 'Alan',
        last_name: '',
        display_name: 'Alan',
        profile_picture: null,
      });
    });
  });

  describe('GET /api/public/profile', () => {
    it('returns exactly eight fields, with times in UTC without fractions of a second', async () => {
      const { id: user, key } = await api.member({
        username: 'ada',
        bio: 'x',
        created_at: '2020-02-03T04:05:06.789+01:00',
      });
      const { status, body } = await api.get('/profile', key);
      expect(status).toBe(200);
      expect(body).toEqual({
        id: user,
        username: 'ada',
        display_name: 'ada',
        bio: 'x',
        profile_picture: null,
        created_at: '2020-02-03 03:05:06',
        achievements_count: 0,
        connections_count: 0,
      });
    });

    it.each([
      [
        'the stored name',
        { stored_display_name: 'The Countess', first_name: 'Ada', last_name: 'Lovelace' },
        'The Countess',
      ],
      ['first and last name', { first_name: 'Ada', last_name: 'Lovelace' }, 'Ada Lovelace'],
      ['the only existing name', { last_name: 'Lovelace' }, 'Lovelace'],
      ['the username if the names are empty', { username: 'empty', first_name: '', last_name: '' }, 'empty'],
      ['the username if the stored name is empty', { username: 'blank', stored_display_name: ' ' }, 'blank'],
    ])('shows as display name %s', async (_, fields, shown) => {
      const { key } = await api.member(fields);
      expect((await api.get('/profile', key)).body.display_name).toBe(shown);
    });

    it('counts the same connections and achievements as their default lists', async () => {
      const { id: user, key } = await api.member();
      const friend = await api.platform.user();
      const disabled = await api.platform.user();
      await api.platform.connection(user, friend);
      await api.platform.connection(disabled, user);
      await api.platform.connection(user, await api.platform.user(), { status: 'pending' });
      await api.platform.progress(user, await api.platform.achievement(), {
        earned_at: '2024-01-01T00:00:00Z',
      });
      await api.platform.progress(user, await api.platform.achievement({ target: 3 }), { progress: 1 });
      await api.query('UPDATE users SET disabled_at = now() WHERE id = $1', [disabled]);
      const { body } = await api.get('/profile', key);
      expect([body.connections_count, body.achievements_count]).toEqual([1, 1]);
      expect((await api.get('/connections', key)).body.pagination.total).toBe(1);
      expect((await api.get('/achievements', key)).body.pagination.total).toBe(1);
    });
  });

  describe('PUT /api/public/profile', () => {
    it('changes only the included fields, and returns seven fields with the new values', async () => {
      const { id: user, key } = await api.member({ username: 'grace', first_name: 'Grace', bio: 'before' });
      const { status, body } = await api.put('/profile', key, { last_name: 'Hopper', bio: 'after' });
      expect(status).toBe(200);
      expect(body).toEqual({
        message: 'Profile updated.',
        profile: {
          id: user,
          username: 'grace',
          first_name: 'Grace',
          last_name: 'Hopper',
          display_name: 'Grace Hopper',
          bio: 'after',
          profile_picture: null,
        },
      });
      expect((await api.get('/profile', key)).body).toMatchObject({
        display_name: 'Grace Hopper',
        bio: 'after',
      });
    });

    it('changes nothing for an empty object', async () => {
      const { key } = await api.member({ bio: 'same' });
      const before = await api.get('/profile', key);
      const { status, headers } = await api.put('/profile', key, {});
      expect([status, headers.etag]).toEqual([200, before.headers.etag]);
      expect((await api.get('/profile', key)).body).toEqual(before.body);
    });

    it.each(['first_name', 'last_name', 'bio'])('stores an empty %s as an empty text', async (field) => {
      const { key } = await api.member({ [field]: 'x' });
      expect((await api.put('/profile', key, { [field]: '' })).body.profile[field]).toBe('');
    });

    it.each(['first_name', 'last_name', 'bio', 'profile_picture'])('clears %s with null', async (field) => {
      const { key } = await api.member({
        [field]: field === 'profile_picture' ? 'https://a.example/b.png' : 'x',
      });
      expect((await api.put('/profile', key, { [field]: null })).body.profile[field]).toBeNull();
    });

    it.each([
      ['first_name', 100],
      ['last_name', 100],
      ['bio', 500],
    ])('accepts %s of %i code points outside the BMP, and rejects a longer value', async (field, max) => {
      const { key } = await api.member();
      const longest = '💙'.repeat(max);
      expect((await api.put('/profile', key, { [field]: longest })).body.profile[field]).toBe(longest);
      const { status, body } = await api.put('/profile', key, { [field]: `${longest}x` });
      expect([status, body.code]).toEqual([422, 'validation_failed']);
      expect(body.errors).toEqual([
        expect.objectContaining({ pointer: `#/${field}`, field, code: 'too_long', max, actual: max + 1 }),
      ]);
    });

    it.each([
      'https://example.com',
      'http://example.com/a.png?size=1#top',
      'HTTPS://EXAMPLE.COM/A',
      'https://münchen.example/ü',
      'http://127.0.0.1:8080/x',
      'https://[::1]/x',
      `https://example.com/${'a'.repeat(2028)}`,
    ])('accepts the picture URL %s', async (profile_picture) => {
      const { key } = await api.member();
      expect((await api.put('/profile', key, { profile_picture })).body.profile?.profile_picture).toBe(
        profile_picture,
      );
    });

    it.each([
      '',
      'http:evil.com',
      'https:/evil.com',
      'https:///evil.com',
      'ftp://example.com',
      'javascript:alert(1)',
      '//example.com/a',
      'example.com',
      'https://user:password@example.com',
      'https://user@example.com',
      'https://@example.com',
      'https://exa mple.com',
      ' https://example.com',
      'https://example.com/\n',
      'https:\\\\example.com',
      'https://example.com\\@evil.com',
      'https://',
      'http://example.com:99999',
    ])('rejects the picture URL %j', async (profile_picture) => {
      const { key } = await api.member();
      const { status, body } = await api.put('/profile', key, { profile_picture });
      expect([status, body.errors?.[0]?.code]).toEqual([422, 'invalid_url']);
    });

    it('rejects a picture URL of more than 2048 characters', async () => {
      const { key } = await api.member();
      const { body } = await api.put('/profile', key, {
        profile_picture: `https://example.com/${'a'.repeat(2029)}`,
      });
      expect(body.errors[0]).toMatchObject({ code: 'too_long', max: 2048, actual: 2049 });
    });

    it.each([1, 1.5, true, [], {}, ['x']])('rejects %j as text with invalid_type', async (value) => {
      const { key } = await api.member();
      const { status, body } = await api.put('/profile', key, { bio: value, first_name: value });
      expect(status).toBe(422);
      expect(body.errors.map(({ field, code }: Record<string, string>) => [field, code])).toEqual([
        ['bio', 'invalid_type'],
        ['first_name', 'invalid_type'],
      ]);
    });

    it.each(['id', 'username', 'display_name', 'created_at', 'achievements_count', 'connections_count'])(
      'rejects %s as read_only_field',
      async (field) => {
        const { key } = await api.member();
        expect((await api.put('/profile', key, { [field]: 'x' })).body.errors[0]).toMatchObject({
          field,
          code: 'read_only_field',
        });
      },
    );

    it.each(['nickname', '__proto__', 'constructor', 'toString', 'password_hash', 'a/b~c', ''])(
      'rejects %j as unknown_field',
      async (field) => {
        const { key } = await api.member();
        const { status, body } = await api.put('/profile', key, `{${JSON.stringify(field)}: "x"}`);
        expect([status, body.errors]).toEqual([
          422,
          [expect.objectContaining({ field, code: 'unknown_field' })],
        ]);
      },
    );

    it.each(['"a\\u0000b"', '"\\ud800"', '"\\udc00x"'])('rejects unstorable text: %s', async (text) => {
      const { key } = await api.member();
      const { status, body } = await api.put('/profile', key, `{"bio": ${text}, "profile_picture": ${text}}`);
      expect([status, body.errors.map((error: { code: string }) => error.code)]).toEqual([
        422,
        ['invalid_characters', 'invalid_characters'],
      ]);
    });

    it('reports the errors of five fields in one response, and saves nothing', async () => {
      const { key } = await api.member({ bio: 'kept' });
      const { status, body } = await api.put('/profile', key, {
        bio: 'new',
        first_name: 7,
        last_name: 'x'.repeat(101),
        profile_picture: 'nowhere',
        id: 1,
        nickname: 'x',
      });
      expect(status).toBe(422);
      expect(body.errors.map(({ pointer, code }: Record<string, string>) => [pointer, code])).toEqual([
        ['#/first_name', 'invalid_type'],
        ['#/last_name', 'too_long'],
        ['#/profile_picture', 'invalid_url'],
        ['#/id', 'read_only_field'],
        ['#/nickname', 'unknown_field'],
      ]);
      expect(body.detail).toBe(
        '5 fields are invalid. The first three: first_name must be a string or null. last_name must have at most 100 characters. profile_picture must be an absolute http or https URL without user and password.',
      );
      expect(body.errors[4].detail).toBe(
        'nickname is not a field here; the fields are first_name, last_name, bio, profile_picture.',
      );
      expect((await api.get('/profile', key)).body.bio).toBe('kept');
    });

    it('lists up to 32 errors, and returns a single error for more fields', async () => {
      const { key } = await api.member();
      const fields = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, 1]));
      expect((await api.put('/profile', key, fields(32))).body.errors).toHaveLength(32);
      expect((await api.put('/profile', key, fields(33))).body.errors).toEqual([
        expect.objectContaining({ pointer: '#', code: 'too_many_fields' }),
      ]);
    });

    it('checks up to 8 levels, and returns one error for deeper bodies', async () => {
      const { key } = await api.member();
      const nested = (depth: number): unknown => (depth === 1 ? {} : { bio: nested(depth - 1) });
      expect((await api.put('/profile', key, nested(8))).body.errors[0].code).toBe('invalid_type');
      expect((await api.put('/profile', key, nested(9))).body.errors).toEqual([
        expect.objectContaining({ pointer: '#', code: 'too_deep' }),
      ]);
      const deepest = `${'{"bio":'.repeat(2_000)}1${'}'.repeat(2_000)}`;
      expect((await api.put('/profile', key, deepest)).body.errors[0].code).toBe('too_deep');
    });

    it.each(['', ' ', '{', '[]', '"x"', 'null', '1', 'undefined', '{"bio": NaN}', '{"bio": "x",}'])(
      'responds 400 invalid_json to the body %j',
      async (body) => {
        const { key } = await api.member();
        const answer = await api.put('/profile', key, body);
        expect([answer.status, answer.body.code]).toEqual([400, 'invalid_json']);
      },
    );

    it.each([
      ['text/plain', 415],
      ['application/x-www-form-urlencoded', 415],
      ['application/merge-patch+json', 415],
      ['application/json; charset=utf-16', 415],
      ['application/json; charset=utf-8', 200],
      ['application/json;charset="UTF-8"', 200],
      ['Application/JSON', 200],
    ])('responds to a body of the content type %s with %s', async (type, status) => {
      const { key } = await api.member();
      expect((await api.put('/profile', key, '{}', { 'Content-Type': type })).status).toBe(status);
    });

    it('accepts a body of 16,384 bytes, and rejects one more byte as payload_too_large, also in text/plain', async () => {
      const { key } = await api.member();
      const body = (bytes: number) => `{"bio": "x"${' '.repeat(bytes - 12)}}`;
      expect((await api.put('/profile', key, body(16_384))).status).toBe(200);
      expect((await api.put('/profile', key, body(16_385))).body.code).toBe('payload_too_large');
      expect((await api.put('/profile', key, body(16_385), { 'Content-Type': 'text/plain' })).body.code).toBe(
        'payload_too_large',
      );
    });

    it('returns a new ETag, which the next GET returns too', async () => {
      const { key } = await api.member();
      const first = await api.get('/profile', key);
      const put = await api.put('/profile', key, { bio: 'changed' });
      expect(put.headers.etag).not.toBe(first.headers.etag);
      expect((await api.get('/profile', key)).headers.etag).toBe(put.headers.etag);
    });

    it('compares If-Match strongly with the ETag, and otherwise responds 412 with the ETag and saves nothing', async () => {
      const { key } = await api.member({ bio: 'kept' });
      const { etag } = (await api.get('/profile', key)).headers;
      const put = (ifMatch: string) => api.put('/profile', key, { bio: 'x' }, { 'If-Match': ifMatch });
      for (const other of [`W/${etag}`, '"other"', 'garbage']) {
        const { status, headers, body } = await put(other);
        expect([status, body.code, headers.etag]).toEqual([412, 'precondition_failed', etag]);
      }
      expect((await api.get('/profile', key)).body.bio).toBe('kept');
      expect((await put(`"other", ${etag}`)).status).toBe(200);
      expect((await put(etag!)).status).toBe(412);
      expect((await put('*')).status).toBe(200);
    });

    it('rejects the ETag of another member, and an ETag from before a restore', async () => {
      const [{ id: user, key }, other] = [
        await api.member({ first_name: 'Ann' }),
        await api.member({ first_name: 'Ann' }),
      ];
      const tagOf = async (of: string) => (await api.get('/profile', of)).headers.etag!;
      const put = async (ifMatch: string) =>
        (await api.put('/profile', key, { bio: 'x' }, { 'If-Match': ifMatch })).status;
      expect(await put(await tagOf(other.key))).toBe(412);
      await api.put('/profile', key, { bio: 'lost in the restore' });
      const lost = await tagOf(key);
      // The new change has the version of the lost change, but other values.
      await api.query(`UPDATE users SET bio = 'written after the restore' WHERE id = ${user};
UPDATE users SET version = version - 1 WHERE id = ${user}`);
      expect(await put(lost)).toBe(412);
      expect(await put(await tagOf(key))).toBe(200);
    });

    it('accepts an ETag that is older than the member’s latest connection', async () => {
      const { id: user, key } = await api.member();
      const { etag } = (await api.get('/profile', key)).headers;
      await api.platform.connection(user, await api.platform.user());
      expect((await api.get('/profile', key)).headers.etag).not.toBe(etag);
      expect((await api.put('/profile', key, { bio: 'x' }, { 'If-Match': etag! })).status).toBe(200);
    });

    it('accepts one of four concurrent writers with the same ETag', async () => {
      const { key } = await api.member();
      const { etag } = (await api.get('/profile', key)).headers;
      const answers = await Promise.all(
        ['a', 'b', 'c', 'd'].map((bio) => api.put('/profile', key, { bio }, { 'If-Match': etag! })),
      );
      expect(answers.map(({ status }) => String(status)).toSorted()).toEqual(['200', '412', '412', '412']);
    });

    thorough.it('responds 200 or 422 to random bodies, and returns accepted values unchanged', async () => {
      const { key } = await api.member();
      const text = fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: 'grapheme' }),
        fc.constantFrom('\0', '\ud800', '💙'.repeat(99)),
      );
      const value = fc.oneof(
        text,
        fc.jsonValue({ maxDepth: 4 }),
        fc.webUrl(),
        fc.constantFrom(null, 1e308, -0),
      );
      const name = fc.oneof(
        fc.constantFrom('first_name', 'last_name', 'bio', 'profile_picture', '__proto__', 'id'),
        fc.string(),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(fc.tuple(name, value), { maxLength: 6 }), async (fields) => {
          const body = `{${fields.map(([field, content]) => `${JSON.stringify(field)}: ${JSON.stringify(content)}`).join(', ')}}`;
          const { status, body: answer } = await api.put('/profile', key, body);
          expect([200, 422]).toContain(status);
          if (status === 200) expect(answer.profile).toMatchObject(JSON.parse(body) as object);
        }),
        { numRuns: isThorough ? 150 : 40 },
      );
    });
  });
});

postgres.it('PUT /profile retries after lock timeouts, for 2 s or until its key is revoked', async () => {
  const deadlines = { connect: 10_000, lock: 300, statement: 10_000, answer: 15_000 };
  const api = await TestApi.start({ databaseDeadlines: deadlines });
  const now = jest.spyOn(performance, 'now');
  try {
    const { id: member, key } = await api.member();
    const holder = api.dataSource.createQueryRunner();
    const held = async () => {
      await holder.startTransaction();
      await holder.query('UPDATE users SET first_name = $2 WHERE id = $1', [member, 'Imported']);
    };
    await held();
    now.mockReturnValue(performance.now()); // the clock stops, so the update retries without a limit
    const put = api.put('/profile', key, { bio: 'new' });
    const waits = new Set<string>();
    await until(async () => {
      for (const { since } of await lockWaits(api.dataSource, 'UPDATE users')) waits.add(since);
      return waits.size >= 3;
    });
    await holder.commitTransaction();
    const { status, body } = await put;
    now.mockRestore();
    expect([status, body.profile]).toEqual([
      200,
      expect.objectContaining({ first_name: 'Imported', bio: 'new' }),
    ]);

    await held();
    const tooLong = await api.put('/profile', key, { bio: 'too late' });
    expect([tooLong.status, tooLong.headers['retry-after']]).toEqual([503, '1']);

    now.mockReturnValue(performance.now());
    const revoked = api.put('/profile', key, { bio: 'too late' });
    await until(async () => (await lockWaits(api.dataSource, 'UPDATE users')).length > 0);
    await new ApiKeysService(api.dataSource, api.config).revoke(key.split('_')[2]!, 'leaked', 'admin');
    now.mockRestore();
    expect(await revoked).toMatchObject({ status: 401, body: { code: 'invalid_credentials' } });
    await holder.rollbackTransaction();
    await holder.release();
  } finally {
    now.mockRestore();
    await api.close();
  }
});
