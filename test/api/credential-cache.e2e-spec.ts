import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { CredentialCache } from '../../src/auth/credential-cache.js';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { ClientCache } from '../../src/authorization-server/adapters/client-cache.js';
import { OauthDatabase } from '../../src/authorization-server/requests/oauth-database.js';
import { ASSISTANTS_PATH } from '../../src/http/pipeline/api-headers.js';
import type { ApiAdapter } from '../../src/http/pipeline/api.adapter.js';
import { dpopKey } from '../support/client-kinds.js';
import { onPostgres, postgres } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import { soon, until } from '../support/timing.js';

/** On PostgreSQL the server caches credentials. With the embedded database it queries each credential, with the same results. */
let oauth: OauthTest;
beforeAll(async () => {
  oauth = await OauthTest.start({ assistants: true });
  await trusted();
});
afterAll(() => oauth.close());

/** Waits until LISTEN is connected, if notifications are used. */
async function trusted(): Promise<void> {
  await until(() => !onPostgres || oauth.api.app.get(RevocationChannel).trusted);
}

/** Sends a credential in one header, with additional headers. */
async function ask(path: string, headers: Record<string, string>, method = 'GET'): Promise<number> {
  const body = method === 'PUT' ? { body: JSON.stringify({ bio: 'stolen' }) } : {};
  const response = await fetch(new URL(path, oauth.issuer), {
    method,
    headers: { ...headers, ...(method === 'PUT' ? { 'Content-Type': 'application/json' } : {}) },
    ...body,
  });
  await response.arrayBuffer();
  return response.status;
}

const ME = '/api/public/me';
const PROFILE = '/api/public/profile';
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const asKey = (token: string) => ({ 'X-API-Key': token });

/** A token bound to a key (RFC 9449), and a function that uses the token. */
async function boundToken(): Promise<{
  token: string;
  withProof: (path: string) => Promise<Record<string, string>>;
}> {
  const prove = await dpopKey(oauth);
  const form = await oauth.code(await oauth.client(), (await oauth.member()).username);
  const { body } = await oauth.token(form, await prove());
  const token = body.access_token;
  return {
    token,
    withProof: async (path) => ({ Authorization: `DPoP ${token}`, ...(await prove(path, 'GET', token)) }),
  };
}

describe('the kind of a credential', () => {
  it('is checked: a DPoP-bound token without its proof is rejected as a Bearer token and as a key', async () => {
    const { token, withProof } = await boundToken();
    for (let round = 0; round < 3; round++) {
      expect(await ask(ME, bearer(token))).toBe(401);
      expect(await ask(ME, asKey(token))).toBe(401);
      expect(await ask(PROFILE, asKey(token), 'PUT')).toBe(401);
      expect(await ask('/oauth/userinfo', bearer(token))).toBe(401);
      expect(await ask('/oauth/userinfo', asKey(token))).toBe(401);
    }
    expect(await ask(ME, await withProof(ME))).toBe(200);
    expect(await ask(ME, asKey(token))).toBe(401);
    expect(await ask('/oauth/userinfo', bearer(token))).toBe(401);
  });

  it('is checked for a token sent as a key, even if it was just accepted as a token', async () => {
    const { access_token } = await oauth.tokens(await oauth.client(), (await oauth.member()).username);
    for (let round = 0; round < 3; round++) {
      expect(await ask(ME, bearer(access_token))).toBe(200);
      expect(await ask(ME, asKey(access_token))).toBe(401);
      expect(await ask(PROFILE, asKey(access_token), 'PUT')).toBe(401);
      expect(await ask(ME, { Authorization: `DPoP ${access_token}` })).toBe(401);
    }
  });

  it('is checked for a key sent as a token, even if it was just accepted as a key', async () => {
    const key = await oauth.api.key((await oauth.member()).id);
    for (let round = 0; round < 3; round++) {
      expect(await ask(ME, asKey(key))).toBe(200);
      expect(await ask(ME, bearer(key))).toBe(401);
      expect(await ask('/oauth/userinfo', bearer(key))).toBe(401);
      expect(await ask('/oauth/userinfo', asKey(key))).toBe(401);
    }
  });
});

describe('the API', () => {
  /** Revokes a key for every later request. */
  const revoke = async (key: string) => {
    const keyId = key.split('_')[2]!;
    await new ApiKeysService(oauth.dataSource, oauth.api.config).revoke(keyId, 'leaked', 'admin');
    await until(() => oauth.api.app.get(CredentialCache).find('api_key', key) === undefined);
  };
  /** Sends a request, revokes its key while the server waits for the second half of the body, and sends the second half. */
  const revokedBeforeBodyEnds = async (method: string, path: string, key: string, body: string) => {
    const { connections } = (oauth.api.app.getHttpAdapter() as ApiAdapter).entryPoint;
    const type = path === FEED ? 'application/x-ndjson' : 'application/json';
    const headers = { ...asKey(key), 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) };
    const answered = Promise.withResolvers<number>();
    const sent = request(new URL(path, oauth.issuer), { method, headers }, (response) => {
      response.resume().on('end', () => answered.resolve(response.statusCode!));
    }).on('error', answered.reject);
    sent.write(body.slice(0, 5));
    await until(() => connections.state().unfinished === 1);
    await revoke(key);
    sent.end(body.slice(5));
    return answered.promise;
  };
  const bioOf = async (id: number) => {
    const [row] = await oauth.query<{ bio: string | null }>('SELECT bio FROM users WHERE id = $1', [id]);
    return row!.bio;
  };
  const FEED = '/api/platform/records';
  const message = (id: number, name: string, values: object = {}) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: values },
  });

  it.each([
    ['a profile update', 'PUT', PROFILE, '{"bio":"stolen"}'],
    ['a tool call', 'POST', ASSISTANTS_PATH, JSON.stringify(message(1, 'update_profile', { bio: 'stolen' }))],
    ['a feed', 'POST', FEED, ''],
  ])('rejects %s whose body ends after its key was revoked', async (_, method, path, body) => {
    const { id, username } = await oauth.member();
    const key = await (path === FEED ? oauth.api.platformKey() : oauth.api.key(id));
    const line = `${JSON.stringify({ type: 'users', op: 'put', record: { id, username, bio: 'stolen' } })}\n`;
    expect(await revokedBeforeBodyEnds(method, path, key, body || line)).toBe(401);
    expect(await bioOf(id)).toBeNull();
  });
});

postgres.describe('a cached credential', () => {
  const answers = (key: string, status: number) => soon(async () => (await ask(ME, asKey(key))) === status);
  const rememberedKey = async (): Promise<{ key: string; id: string; userId: number }> => {
    const { id: userId } = await oauth.member();
    const key = await oauth.api.key(userId);
    await until(async () => {
      expect(await ask(ME, asKey(key))).toBe(200);
      return oauth.api.app.get(CredentialCache).find('api_key', key) !== undefined;
    });
    return { key, id: key.split('_')[2]!, userId };
  };
  const sql = (text: string, values: unknown[] = []) => oauth.dataSource.query<unknown>(text, values);

  it('is queried again after 30 seconds, even without a notification', async () => {
    const clock = jest.spyOn(performance, 'now');
    try {
      await trusted();
      const now = performance.now();
      clock.mockReturnValue(now); // the clock stops, so that the channel stays trusted and the entry valid
      const { key, id } = await rememberedKey();
      await sql('ALTER TABLE api_keys DISABLE TRIGGER USER');
      await sql(`UPDATE api_keys SET revoked_at = now(), revocation_reason = 'silent' WHERE id = $1`, [id]);
      await sql('ALTER TABLE api_keys ENABLE TRIGGER USER');
      for (const trigger of ['api_keys_announce_update', 'api_keys_announce_delete', 'announce_truncate'])
        await sql(`ALTER TABLE api_keys ENABLE ALWAYS TRIGGER ${trigger}`);
      expect(await ask(ME, asKey(key))).toBe(200);
      clock.mockReturnValue(now + 30_001);
      await trusted();
      expect(await ask(ME, asKey(key))).toBe(401);
    } finally {
      clock.mockRestore();
    }
  });

  it.each([
    [
      'a writer with session_replication_role = replica revokes the key',
      `UPDATE api_keys SET revoked_at = now(), revocation_reason = 'x' WHERE id = $1`,
    ],
    [
      'a writer with session_replication_role = replica disables the member',
      'UPDATE users SET disabled_at = now() WHERE id = (SELECT user_id FROM api_keys WHERE id = $1)',
    ],
  ])('is dropped when %s', async (_, statement) => {
    const { key, id } = await rememberedKey();
    await oauth.dataSource.transaction(async (manager) => {
      await manager.query('SET LOCAL session_replication_role = replica');
      await manager.query(statement, [id]);
    });
    await answers(key, 401);
  });

  it('is rejected after a replica-role writer disables its member; the member’s sessions and grants are deleted', async () => {
    const { id, username } = await oauth.member();
    const browser = oauth.browser();
    const { body } = await oauth.token(await oauth.code(await oauth.client(), username, {}, browser));
    for (let i = 0; i < 2; i++) expect(await oauth.me(body.access_token)).toBe(200);
    await oauth.dataSource.transaction(async (manager) => {
      await manager.query('SET LOCAL session_replication_role = replica');
      await manager.query('UPDATE users SET disabled_at = now() WHERE id = $1', [id]);
    });
    await soon(async () => (await oauth.me(body.access_token)) === 401);
    const left = await oauth.query<unknown>(
      `SELECT 1 FROM oauth_sessions WHERE user_id = $1 UNION ALL SELECT 1 FROM oauth_grants WHERE user_id = $1
`,
      [id],
    );
    expect(left).toEqual([]);
  });

  it('is dropped when its table is emptied', async () => {
    const { key } = await rememberedKey();
    await sql('TRUNCATE api_keys CASCADE');
    await answers(key, 401);
    const { access_token } = await oauth.tokens(await oauth.client(), (await oauth.member()).username);
    for (let i = 0; i < 2; i++) expect(await oauth.me(access_token)).toBe(200);
    await sql('TRUNCATE oauth_tokens');
    await soon(async () => (await oauth.me(access_token)) === 401);
  });

  it('is not kept for a client that is disabled while the server queries the client', async () => {
    const clients = oauth.api.app.get(ClientCache);
    const id = await oauth.client();
    const channel = oauth.api.app.get(RevocationChannel);
    const heard = new Promise<void>((resolve) =>
      channel.onRevocation((revocation) => {
        if (revocation !== 'all' && revocation.kind === 'client' && revocation.id === id) resolve();
      }),
    );
    const database = oauth.api.app.get(OauthDatabase);
    const read = database.read.bind(database);
    const disabling = jest.spyOn(database, 'read').mockImplementationOnce(async (statement, values) => {
      const rows = await read(statement, values);
      await sql('UPDATE oauth_clients SET disabled_at = now() WHERE id = $1', [id]);
      await heard;
      return rows as never;
    });
    const enabled = await clients.find(id, new Set(['ES256']));
    disabling.mockRestore();
    expect(enabled).toMatchObject({ client_id: id }); // the response to the query that began before the client was disabled
    expect(await clients.find(id, new Set(['ES256']))).toBeUndefined();
  });
});
