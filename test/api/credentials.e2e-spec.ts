import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Usage } from '../../src/auth/usage/usage.js';
import { ApiKeysService, type NewKey } from '../../src/auth/api-keys/api-keys.service.js';
import { makeKey } from '../../src/auth/api-keys/api-key-format.js';
import { Secrets } from '../../src/crypto/secrets.js';
import { Database } from '../../src/database/database.js';
import { ALL_SCOPES } from '../../src/auth/scopes.js';
import { createApp } from '../../src/app.js';
import { PeriodicWork } from '../../src/runtime/periodic-work.js';
import supertest from 'supertest';
import { endApp, TestApi } from '../support/api.js';
import { Client } from '../support/raw-client.js';

describe('API credentials', () => {
  let api: TestApi;
  let keys: ApiKeysService;
  beforeAll(async () => {
    api = await TestApi.start();
    keys = new ApiKeysService(api.dataSource, api.config);
  });
  afterAll(() => api.close());

  const newKey = async ({ userId = 0, ...fields }: Partial<NewKey> = {}) => {
    const owner = userId || (await api.platform.user());
    const key = await api.key(owner, ALL_SCOPES, { name: 'partner', actor: 'admin', ...fields });
    return { userId: owner, key, id: key.split('_')[2]! };
  };

  describe('in the headers', () => {
    it('get 401 missing_credentials if they are missing, with a challenge that has no error attribute', async () => {
      const { status, headers, body } = await api.send('GET', '/api/public/me');
      expect([status, body.code]).toEqual([401, 'missing_credentials']);
      expect(headers['www-authenticate']).toBe(
        `Bearer realm="public-user-api", resource_metadata="${api.config.publicUrl}/.well-known/oauth-protected-resource/api/public"`,
      );
    });

    it.each(['Basic dXNlcjpwYXNz', 'Bearer', 'Bearer '])(
      'count as missing if the header is Authorization: %s',
      async (authorization) => {
        expect((await api.send('GET', '/api/public/me', { Authorization: authorization })).body.code).toBe(
          'missing_credentials',
        );
      },
    );

    it('with an unknown token get 401 invalid_credentials with error="invalid_token"', async () => {
      const { status, headers, body } = await api.send('GET', '/api/public/me', {
        Authorization: 'Bearer nonsense',
      });
      expect([status, body.code]).toEqual([401, 'invalid_credentials']);
      expect(headers['www-authenticate']).toContain('error="invalid_token"');
    });

    it('with both a key and a token get 400 ambiguous_credentials', async () => {
      const { key } = await newKey();
      const { status, body } = await api.get('/me', key, { Authorization: 'Bearer x' });
      expect([status, body.code]).toEqual([400, 'ambiguous_credentials']);
    });

    it.each(['X-API-Key', 'Authorization'])('with %s twice get 400 ambiguous_credentials', async (name) => {
      const { key } = await newKey();
      const header = `${name}: ${name === 'Authorization' ? 'Bearer x' : key}\r\n`;
      const head = `GET /api/public/me HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`;
      const answer = await Client.ask(api.url, `${head}${header}${header}\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toContain('"code":"ambiguous_credentials"');
    });

    it.each(['access_token', 'api_key', 'key', 'token'])('do not include the query’s %s', async (name) => {
      const { key } = await newKey();
      expect((await api.send('GET', `/api/public/me?${name}=${key}`)).body.code).toBe('missing_credentials');
      expect((await api.get(`/me?${name}=x`, key)).body.code).toBe('unknown_parameter');
    });
  });

  describe('an API key', () => {
    it('gets its scopes and the required scope in the response headers, even with a 404', async () => {
      const { key } = await newKey({ scopes: ['events:read', 'profile:read'] });
      const allowed = await api.get('/me', key);
      expect(allowed.headers).toMatchObject({
        'x-oauth-scopes': 'events:read, profile:read',
        'x-accepted-oauth-scopes': 'profile:read',
      });
      const notFound = await api.get('/events/1', key);
      expect(notFound.headers).toMatchObject({
        'x-oauth-scopes': 'events:read, profile:read',
        'x-accepted-oauth-scopes': 'events:read',
      });
    });

    it('without the required scope gets 403 insufficient_scope, which names that scope and the granted scopes', async () => {
      const { key } = await newKey({ scopes: ['events:read'] });
      const { status, headers, body } = await api.get('/connections', key);
      expect([status, body.code, body.required_scope, body.granted_scopes]).toEqual([
        403,
        'insufficient_scope',
        'connections:read',
        ['events:read'],
      ]);
      expect(headers['www-authenticate']).toContain('error="insufficient_scope", scope="connections:read"');
      expect(headers['x-oauth-scopes']).toBe('events:read');
    });

    it('that is invalid, expired or revoked, or whose member is disabled, gets the same 401', async () => {
      const { key } = await newKey();
      const revoked = await newKey();
      await keys.revoke(revoked.id, 'leaked', 'admin');
      const expired = await newKey();
      await api.query(`UPDATE api_keys SET expires_at = now() - interval '1 s' WHERE id = $1`, [expired.id]);
      const orphan = await newKey();
      await api.query('UPDATE users SET disabled_at = now() WHERE id = $1', [orphan.userId]);
      const wrongSecret = makeKey('live');
      const { id } = await newKey();
      await api.query('UPDATE api_keys SET id = $2 WHERE id = $1', [id, wrongSecret.id]);
      const stored = [revoked, expired, orphan].map((one) => one.key);
      const wrongEnvironment = key.replace('_live_', '_test_');
      const others = [makeKey('live').key, wrongSecret.key, wrongEnvironment, `${key}x`, 'x', 'pua_live_'];
      const refused = [...stored, ...others];
      const answers = await Promise.all(refused.map((candidate) => api.get('/me', candidate)));
      const bodies = answers.map(({ status, body }) => ({ status, ...body, request_id: '' }));
      expect(bodies[0]).toMatchObject({ status: 401, code: 'invalid_credentials' });
      for (const body of bodies) expect(body).toEqual(bodies[0]);
      expect(answers[0]!.headers['www-authenticate']).not.toContain('error=');
    });

    it('with a wrong checksum is rejected without a database query', async () => {
      const { key } = await newKey();
      const read = jest.spyOn(api.app.get(Database), 'read');
      const last = key.at(-1) === '0' ? '1' : '0';
      expect((await api.get('/me', key.slice(0, -1) + last)).status).toBe(401);
      expect(read).not.toHaveBeenCalled();
      read.mockRestore();
    });

    it('limited to an IP range is rejected if only X-Forwarded-For is in the range and no proxy is trusted', async () => {
      const { key } = await newKey({ cidrs: ['192.0.2.0/24'] });
      expect((await api.get('/me', key, { 'X-Forwarded-For': '192.0.2.7' })).body.code).toBe(
        'ip_not_allowed',
      );
    });

    it.each(['Origin', 'Sec-Fetch-Site'])(
      'used in a browser (%s) is rejected, and its exposure is recorded once',
      async (header) => {
        const { key, id } = await newKey();
        for (const value of ['https://app.example', 'cross-site']) {
          const { status, body } = await api.get('/me', key, { [header]: value });
          expect([status, body.code]).toEqual([403, 'api_key_in_browser']);
        }
        const usage = await api.query<object>(
          'SELECT exposed_at, exposed_origin FROM api_key_usage WHERE key_id = $1',
          [id],
        );
        expect(usage).toEqual([{ exposed_at: expect.any(Date), exposed_origin: 'https://app.example' }]);
        const trail = await api.query<object>(
          `SELECT type FROM auth_events WHERE key_id = $1 AND type = 'key.exposed'`,
          [id],
        );
        expect(trail).toHaveLength(1);
      },
    );

    it('is accepted if Sec-Fetch-Mode is the only browser header', async () => {
      const { key } = await newKey();
      expect((await api.get('/me', key, { 'Sec-Fetch-Mode': 'cors' })).status).toBe(200);
    });

    it('for the test environment is rejected in production', async () => {
      const { key } = await newKey({ environment: 'test' });
      expect((await api.get('/me', key)).status).toBe(200);
      const app = await createApp({ ...api.config, production: true });
      await app.init();
      try {
        expect(
          (await supertest(app.getHttpServer()).get('/api/public/me').set('X-API-Key', key)).status,
        ).toBe(401);
      } finally {
        await endApp(app);
      }
    });

    it('has its number of uses and its last use recorded by a flush', async () => {
      const { key, id } = await newKey();
      await api.get('/me', key);
      await api.get('/me', key);
      await api.app.get(Usage).flush();
      const [row] = await api.query<object>(
        'SELECT uses_count, last_used_at FROM api_key_usage WHERE key_id = $1',
        [id],
      );
      expect(row).toEqual({ uses_count: 2, last_used_at: expect.any(Date) });
    });

    it('has its use recorded even if other entries of the batch are invalid', async () => {
      const { keys } = api.app.get(Usage);
      const [first, bad, last] = [await newKey(), await newKey(), await newKey()];
      keys.count(first.id, '192.0.2.1');
      keys.count('goneSince000', '192.0.2.1');
      keys.count(bad.id, 'unknown, 192.0.2.1');
      keys.count('\0', undefined);
      keys.count(last.id, '2001:db8::1');
      keys.count(last.id, '2001:db8::1');
      await keys.flush();
      const written = () =>
        api.query<{ key_id: string; uses_count: number }>(
          'SELECT key_id, uses_count FROM api_key_usage WHERE key_id = ANY($1) ORDER BY uses_count',
          [[first.id, bad.id, last.id]],
        );
      const expected = [
        { key_id: first.id, uses_count: 1 },
        { key_id: last.id, uses_count: 2 },
      ];
      expect(await written()).toEqual(expected);
      await keys.flush(); // no pending use remains
      expect(await written()).toEqual(expected);
    });

    it('is accepted under the previous SECRET_KEY, and hashed again under the current SECRET_KEY when used', async () => {
      const before = Buffer.from(process.env.TEST_SECRET_KEY!, 'base64');
      const after = Buffer.alloc(32, 'new');
      await api.app.get(PeriodicWork).beforeApplicationShutdown(); // otherwise periodic work would create signing keys
      const { key } = await newKey();
      const ask = async (secrets: Secrets) => {
        // Signing keys are also encrypted under SECRET_KEY; each application here creates new keys.
        await api.query('DELETE FROM signing_keys');
        const app = await createApp({ ...api.config, secrets });
        await app.init();
        const { status } = await supertest(app.getHttpServer()).get('/api/public/me').set('X-API-Key', key);
        await endApp(app); // writes pending uses
        return status;
      };
      expect(await ask(new Secrets(after))).toBe(401);
      expect(await ask(new Secrets(after, before))).toBe(200);
      expect(await ask(new Secrets(after))).toBe(200);
      await api.query('DELETE FROM signing_keys'); // other instances have the previous secret
    });

    it('allows access to its owner’s profile and event, but not to another member’s event', async () => {
      const one = await newKey();
      const two = await newKey();
      const event = await api.platform.event();
      await api.platform.participant(event, two.userId);
      expect((await api.get(`/events/${event}`, two.key)).status).toBe(200);
      expect((await api.get(`/events/${event}`, one.key)).body.code).toBe('event_not_found');
      expect((await api.get('/me', one.key)).body.id).toBe(one.userId);
    });
  });

  describe('GET /api/public/credential', () => {
    it('shows the key’s details, and for three endpoints whether the key can call them', async () => {
      const { userId, key, id } = await newKey({ scopes: ['events:read'] });
      const { body, headers } = await api.get('/credential', key);
      expect(body).toMatchObject({
        type: 'api_key',
        user_id: userId,
        scopes: ['events:read'],
        client_id: null,
        key_id: id,
      });
      expect(body.expires_at).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
      for (const [method, path, scope, allowed] of [
        ['GET', '/api/public/events/{id}', 'events:read', true],
        ['PUT', '/api/public/profile', 'profile:write', false],
        ['GET', '/api/public/credential', null, true],
      ])
        expect(body.endpoints).toContainEqual({ method, path, scope, allowed });
      expect([headers['x-oauth-scopes'], headers['x-accepted-oauth-scopes']]).toEqual(['events:read', '']);
    });

    it('shows null as expires_at for a key that never expires', async () => {
      const { key } = await newKey({ expiresInSeconds: undefined, noExpiryReason: 'a printer' } as never);
      expect((await api.get('/credential', key)).body.expires_at).toBeNull();
    });
  });
});
