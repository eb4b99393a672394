import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import supertest from 'supertest';
import { closeApp, createApp } from '../../src/app.js';
import { TokenKeys } from '../../src/crypto/hmac.js';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { UsersService } from '../../src/accounts/users.service.js';
import { TestApi } from '../support/api.js';
import { postgres } from '../support/database.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { eventually, soon, until } from '../support/timing.js';

postgres.describe('the API on two servers', () => {
  let api: TestApi;
  let other: NestExpressApplication;
  let channel: TcpProxy;

  beforeAll(async () => {
    api = await TestApi.start();
    channel = await TcpProxy.start(api.config.databaseUrl!);
    // Reads bypass the proxy: only revocation notifications pass through the proxy. Limits would use the proxy too, so limits are disabled.
    const rateLimits = { read: 0, write: 0, auth: 0 };
    other = await createApp({ ...api.config, databaseDirectUrl: channel.url, rateLimits });
    await other.listen(0, '127.0.0.1');
  });
  afterAll(async () => {
    await closeApp(other);
    await channel.close();
    await api.close();
  });

  const ask = async (app: NestExpressApplication, key: string) =>
    (await supertest(app.getHttpServer()).get('/api/public/me').set('X-API-Key', key)).status;
  const trusts = (app: NestExpressApplication) => () => app.get(RevocationChannel).trusted;
  /** A key that both servers have cached. */
  const knownKey = async (userId: number): Promise<{ key: string; id: string }> => {
    const key = await api.key(userId);
    for (const app of [api.app, other]) {
      await until(trusts(app));
      expect([await ask(app, key), await ask(app, key)]).toEqual([200, 200]);
    }
    return { key, id: key.split('_')[2]! };
  };

  it('rejects a revoked key on both servers within a second', async () => {
    const { key, id } = await knownKey(await api.platform.user());
    await new ApiKeysService(api.dataSource, api.config).revoke(id, 'leaked', 'admin');
    for (const app of [api.app, other]) await soon(async () => (await ask(app, key)) === 401);
  });

  it('rejects the keys of a disabled member on both servers within a second', async () => {
    const user = await api.platform.user();
    const { key } = await knownKey(user);
    await new UsersService(api.dataSource).disable(user, 'admin');
    for (const app of [api.app, other]) await soon(async () => (await ask(app, key)) === 401);
  });

  it('rejects the token of a disabled client on both servers within a second, even if the client’s id contains a colon', async () => {
    const user = await api.platform.user();
    const token = randomBytes(32).toString('base64url');
    const key = new TokenKeys(api.config.secrets).keyOf('AccessToken', token);
    const payload = { aud: `${api.config.publicUrl}/api/public`, scope: 'profile:read' };
    await api.query(
      `WITH client AS (INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes)
  VALUES ('urn:shop:web', 'Shop', 'web', '{https://shop.example/}', '{profile:read}')
), family AS (INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
  VALUES ('family', ${user}, 'urn:shop:web', $3, now() + interval '1 hour')
) INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at) VALUES ($1, 'AccessToken', 'family', $2, now() + interval '1 hour')`,
      [key, JSON.stringify(payload), JSON.stringify({ resources: { [payload.aud]: payload.scope } })],
    );
    const bearer = async (app: NestExpressApplication) =>
      (await supertest(app.getHttpServer()).get('/api/public/me').set('Authorization', `Bearer ${token}`))
        .status;
    for (const app of [api.app, other]) {
      await until(trusts(app));
      expect([await bearer(app), await bearer(app)]).toEqual([200, 200]);
    }
    await api.query(`UPDATE oauth_clients SET disabled_at = now() WHERE id = 'urn:shop:web'`);
    for (const app of [api.app, other]) await soon(async () => (await bearer(app)) === 401);
  });

  it.each(['cut', 'stall'] as const)(
    'rejects a revoked key within a second after the notification channel breaks (%s)',
    async (harm) => {
      const { key, id } = await knownKey(await api.platform.user());
      channel[harm]();
      await new ApiKeysService(api.dataSource, api.config).revoke(id, 'leaked', 'admin');
      try {
        await soon(async () => (await ask(other, key)) === 401);
        await soon(() => !trusts(other)());
        expect(await ask(other, await api.key(await api.platform.user()))).toBe(200);
      } finally {
        channel.mend();
        channel.resume();
      }
      await until(trusts(other));
    },
  );

  it('rejects a key that has expired, even if it accepted the key before', async () => {
    const user = await api.platform.user();
    let expiresInSeconds = 0.5;
    const key = await eventually(async () => {
      expiresInSeconds *= 2; // long enough for a first request, even on a busy host
      const { key: short } = await new ApiKeysService(api.dataSource, api.config).create({
        userId: user,
        name: 'short',
        scopes: ['profile:read'],
        environment: 'live',
        cidrs: [],
        expiresInSeconds,
        actor: 'admin',
      });
      return (await ask(api.app, short)) === 200 ? short : undefined;
    });
    await soon(async () => (await ask(api.app, key)) === 401);
  });
});
