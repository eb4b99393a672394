import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ALL_PLATFORM_SCOPES } from '../../src/auth/scopes.js';
import type { KeyDetails } from '../../src/auth/api-keys/api-keys.service.js';
import { TestApi } from '../support/api.js';
import { pua, puaJson } from '../support/command-line.js';
import { soon } from '../support/timing.js';
import { itInOneWindow } from '../support/windows.js';

type Key = KeyDetails & { key: string };

describe('a platform key', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  const create = (...args: string[]) => puaJson<Key>(api.environment, ['keys', 'create', ...args]);

  it('is created without a member, and can be listed, rotated, revoked and audited', async () => {
    const made = await create('--platform', '--name', 'feed', '--scopes', 'platform:write');
    expect(made).toMatchObject({
      user_id: null,
      username: null,
      name: 'feed',
      scopes: ['platform:write'],
      status: 'active',
    });
    expect((await api.feed(made.key, [])).status).toBe(200);
    const listed = await puaJson<{ data: KeyDetails[] }>(api.environment, ['keys', 'list', '--platform']);
    expect(listed.data).toContainEqual(expect.objectContaining({ id: made.id }));
    expect(listed.data.every(({ user_id }) => user_id === null)).toBe(true);
    const { stdout } = await pua(api.environment, ['keys', 'list']);
    expect(stdout).toMatch(new RegExp(`${made.id} +platform +feed`));
    const next = await puaJson<Key>(api.environment, ['keys', 'rotate', made.id, '--overlap', '0s']);
    expect((await api.feed(next.key, [])).status).toBe(200);
    await soon(async () => (await api.feed(made.key, [])).body.code === 'invalid_credentials');
    await puaJson(api.environment, ['keys', 'revoke', next.id, '--reason', 'over']);
    const trail = await api.query<{ type: string }>(
      'SELECT type FROM auth_events WHERE key_id = ANY ($1) AND user_id IS NULL ORDER BY id',
      [[made.id, next.id]],
    );
    expect(trail.map(({ type }) => type)).toEqual(['key.created', 'key.rotated', 'key.revoked']);
  });

  it.each([
    [['--platform', '--scopes', 'profile:read'], /platform:read and platform:write are only for --platform/],
    [
      ['--platform', '--scopes', 'platform:read,events:read'],
      /are only for --platform, all other scopes only for --user/,
    ],
    [['--platform', '--scopes', ''], /a key of the platform needs at least one scope/],
    [
      ['--user', '1', '--scopes', 'platform:write'],
      /are only for --platform, all other scopes only for --user/,
    ],
    [['--scopes', 'profile:read'], /name a member with --user, or use --platform/],
    [['--user', '1', '--platform', '--scopes', 'platform:read'], /cannot be used with/],
  ])('is not created with the options %j: a usage error', async (args, message) => {
    const { code, stderr } = await pua(api.environment, ['keys', 'create', '--name', 'x', ...args]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) });
  });

  it('has only platform scopes, and a member’s key has none: a database constraint rejects violations', async () => {
    const user = await api.platform.user();
    const insert = (owner: number | null, scopes: string) =>
      api.query(
        `INSERT INTO api_keys (id, user_id, name, environment, scopes, hash, pepper_id, last_four, no_expiry_reason)
VALUES (substr(md5(random()::text), 1, 12), $1, 'x', 'live', $2, decode(repeat('00', 32), 'hex'), decode('00000000', 'hex'), 'abcd', 'x')`,
        [owner, scopes],
      );
    for (const [owner, scopes] of [
      [null, '{}'],
      [null, '{profile:read}'],
      [null, '{platform:read,profile:read}'],
      [user, '{platform:read}'],
    ] as const)
      await expect(insert(owner, scopes)).rejects.toThrow('api_keys_owner_check');
    await insert(null, '{platform:read}');
  });

  it('is rejected on GET of eight member routes and on PUT /profile, with all its scopes', async () => {
    const key = await api.platformKey(ALL_PLATFORM_SCOPES);
    const paths = '/me /profile /events /events/1 /connections /achievements /sync /credential'.split(' ');
    for (const path of paths) {
      const { status, body } = await api.get(path, key);
      expect([path, status, body.code]).toEqual([path, 403, 'wrong_credential_kind']);
    }
    expect((await api.put('/profile', key, { bio: 'x' })).body.code).toBe('wrong_credential_kind');
    expect((await api.get('/problems', key)).status).toBe(200);
  });

  it('with platform:write is required for POST /api/platform/records', async () => {
    const member = await api.feed(await api.key(await api.platform.user()), []);
    expect([member.status, member.body.code]).toEqual([403, 'wrong_credential_kind']);
    expect((await api.send('POST', '/api/platform/records')).body.code).toBe('missing_credentials');
    const reader = await api.feed(await api.platformKey(['platform:read']), []);
    expect(reader.body).toMatchObject({
      code: 'insufficient_scope',
      required_scope: 'platform:write',
      granted_scopes: ['platform:read'],
    });
  });

  it('is rejected in a browser, and its exposure is recorded', async () => {
    const key = await api.platformKey();
    const { body } = await api.feed(key, [], { Origin: 'https://app.example' });
    expect(body.code).toBe('api_key_in_browser');
    const [, , id] = key.split('_');
    const [event] = await api.query<{ user_id: null }>(
      `SELECT user_id FROM auth_events WHERE type = 'key.exposed' AND key_id = $1`,
      [id],
    );
    expect(event).toEqual({ user_id: null });
  });

  itInOneWindow.thorough('has a separate limit, RATE_LIMIT_PLATFORM', async () => {
    await using limited = await TestApi.start({ platformRateLimit: 2 });
    const key = await limited.platformKey();
    expect((await limited.feed(key, [])).headers.ratelimit).toMatch(/^"platform";r=1;t=\d+$/);
    await limited.feed(key, []);
    expect((await limited.feed(key, [])).body.code).toBe('rate_limited');
    expect((await limited.feed(await limited.platformKey(), [])).status).toBe(200);
  });

  describe('GET /api/platform/openapi.json', () => {
    it('describes only routes under /api/platform', async () => {
      const { body } = await api.send('GET', '/api/platform/openapi.json');
      expect(body.openapi).toBe('3.1.0');
      expect(Object.keys(body.paths)).toEqual(
        expect.arrayContaining(['/api/platform/openapi.json', '/api/platform/records']),
      );
      expect(Object.keys(body.paths).filter((path) => !path.startsWith('/api/platform/'))).toEqual([]);
      expect(body.paths['/api/platform/records'].post).toMatchObject({
        security: [{ api_key: [] }],
        'x-required-scope': 'platform:write',
        requestBody: {
          content: {
            'application/x-ndjson': { schema: { allOf: [{ $ref: '#/components/schemas/FeedLine' }] } },
          },
        },
      });
      const open = (await api.send('GET', '/api/public/openapi.json')).body;
      expect(JSON.stringify(open)).not.toContain('FeedLine');
    });
  });

  it('gets problem responses for a wrong path, method and parameter under /api/platform', async () => {
    const key = await api.platformKey();
    const send = (method: string, path: string) => api.send(method, path, { 'X-API-Key': key });
    expect((await send('GET', '/api/platform/nowhere')).body.code).toBe('not_found');
    expect((await send('GET', '/api/platform/records')).body.code).toBe('method_not_allowed');
    expect((await send('POST', '/api/platform/records?x=1')).body.code).toBe('unknown_parameter');
    expect((await send('GET', '/api/platform')).headers['content-type']).toMatch(/problem\+json/);
  });
});
