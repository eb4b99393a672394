import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import * as oauth4webapi from 'oauth4webapi';
import * as client from 'openid-client';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { Usage } from '../../src/auth/usage/usage.js';
import { ClientsService, type ClientChanges } from '../../src/clients/clients.service.js';
import { basic, clientWithSecret, ODD_SECRETS, rotate, storeSecret } from '../support/client-kinds.js';
import { pua, puaJson } from '../support/command-line.js';
import { OauthTest, REDIRECT_URI } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

/** Asks the revocation endpoint to revoke an unknown token: 200 if the client has authenticated. */
const authenticate = (form: Record<string, string>, headers: Record<string, string> = {}) =>
  oauth.post('/oauth/revoke', { token: 'x'.repeat(43), ...form }, headers);

const reasons = async (client: string) => (await oauth.details({ client })).map(({ reason }) => reason);

/** Drops cached clients without waiting for the database's notification. */
const forget = () => oauth.api.app.get(RevocationChannel).announce('all');

describe('a client with a secret', () => {
  it.each(['client_secret_basic', 'client_secret_post'] as const)(
    'signs a member in with openid-client, and refreshes its token: %s',
    async (secret_auth_method) => {
      const { id, secret } = await clientWithSecret(oauth, { secret_auth_method });
      const { username } = await oauth.member();
      const method =
        secret_auth_method === 'client_secret_basic'
          ? client.ClientSecretBasic(secret)
          : client.ClientSecretPost(secret);
      const configuration = await oauth.configuration(id, method);
      const { url, verifier } = oauth.request(id);
      const back = await oauth.browser().authorize(url, { username });
      const tokens = await client.authorizationCodeGrant(configuration, back, { pkceCodeVerifier: verifier });
      const refreshed = await client.refreshTokenGrant(configuration, tokens.refresh_token!);
      expect(await oauth.me(refreshed.access_token)).toBe(200);
    },
  );

  it('is rejected without its secret, with another client’s secret, with half a secret, or with a secret in header and body', async () => {
    const { id, secret } = await clientWithSecret(oauth);
    const other = await clientWithSecret(oauth);
    const wrong = [
      authenticate({ client_id: id }),
      authenticate({}, basic(id, '')),
      authenticate({}, basic(id, other.secret)),
      authenticate({}, basic(id, secret.slice(0, 30))),
      authenticate({ client_id: id, client_secret: `${secret} ` }),
    ];
    for (const answer of await Promise.all(wrong))
      expect([answer.status, answer.body.error]).toEqual([401, 'invalid_client']);
    const both = await authenticate({ client_id: id, client_secret: secret }, basic(id, secret));
    expect([both.status, both.body.error]).toEqual([400, 'invalid_request']);
    expect((await authenticate({}, basic(id, secret))).status).toBe(200);
  });

  it('is rejected if the client is public, even with the stored secret', async () => {
    const publicClient = await oauth.client({ profile: 'oidc' });
    await storeSecret(oauth, publicClient, 'stored-all-the-same');
    const { status, body } = await authenticate({}, basic(publicClient, 'stored-all-the-same'));
    expect([status, body.error]).toEqual([401, 'invalid_client']);
  });

  it('has its secret stored only as an HMAC: the secret is in no row, event or log', async () => {
    const { id, secret } = await clientWithSecret(oauth);
    await authenticate({}, basic(id, secret));
    const rows = await oauth.query<object>(
      `SELECT s::text FROM oauth_client_secrets s WHERE client_id = $1
UNION ALL SELECT c::text FROM oauth_clients c WHERE id = $1 UNION ALL SELECT e::text FROM auth_events e WHERE client_id = $1`,
      [id],
    );
    expect(rows.length).toBeGreaterThan(2);
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(secret).toMatch(/^pua_secret_[0-9A-Za-z]{43}$/);
  });

  it('has an empty key set, so that the previous version does not treat the client as public', async () => {
    const keysOf = (id: string) => oauth.query('SELECT jwks FROM oauth_clients WHERE id = $1', [id]);
    const { id } = await clientWithSecret(oauth);
    expect(await keysOf(id)).toEqual([{ jwks: { keys: [] } }]);
    for (const jwks of ['NULL', `'{"keys": [{}]}'`])
      await expect(
        oauth.query(`UPDATE oauth_clients SET jwks = ${jwks} WHERE id = $1`, [id]),
      ).rejects.toThrow('oauth_clients_secrets_check');
    const update = (fields: ClientChanges) =>
      oauth.api.app.get(ClientsService).update(id, () => fields, 'admin');
    expect((await update({ secret_auth_method: null })).changed).toEqual(['secret_auth_method']);
    expect(await keysOf(id)).toEqual([{ jwks: null }]);
    await update({ secret_auth_method: 'client_secret_post' });
    expect(await keysOf(id)).toEqual([{ jwks: { keys: [] } }]);
  });

  it('has at most two secrets during a replacement', async () => {
    const { id, secret: first } = await clientWithSecret(oauth);
    const second = await rotate(oauth, id);
    const statuses = async (...secrets: string[]) => {
      forget();
      return Promise.all(secrets.map(async (secret) => (await authenticate({}, basic(id, secret))).status));
    };
    expect(await statuses(first, second)).toEqual([200, 200]);
    const third = await rotate(oauth, id);
    expect(await statuses(first, second, third)).toEqual([401, 200, 200]);
    expect(await statuses(third, await rotate(oauth, id, { overlapSeconds: 0 }))).toEqual([401, 200]);
    expect(await oauth.events({ client: id, type: 'client.secret_rotated' })).not.toEqual([]);
  });

  it('is rejected with an expired secret, and the audit log names the reason', async () => {
    const { id } = await clientWithSecret(oauth);
    const secret = await rotate(oauth, id, { expiresInSeconds: 0 });
    forget();
    const { status, body } = await authenticate({}, basic(id, secret));
    expect([status, body.error]).toEqual([401, 'invalid_client']);
    expect(await reasons(id)).toContain('client_secret_expired');
  });

  it('shows when a secret was last used', async () => {
    const { id, secret } = await clientWithSecret(oauth);
    const clients = oauth.api.app.get(ClientsService);
    expect((await clients.find(id)).secrets).toMatchObject([{ last_used_at: null, expires_at: null }]);
    await authenticate({}, basic(id, secret));
    await oauth.api.app.get(Usage).flush();
    expect((await clients.find(id)).secrets).toMatchObject([
      { last_four: secret.slice(-4), last_used_at: expect.stringMatching(/^\d{4}-/) },
    ]);
  });

  it('may send ten wrong secrets per minute and address; then only this client is rejected at that address', async () => {
    const { id, secret } = await clientWithSecret(oauth);
    const other = await clientWithSecret(oauth);
    for (let i = 0; i < 10; i++)
      expect((await authenticate({}, basic(id, `${secret.slice(0, -2)}${i}x`))).status).toBe(401);
    const { status, body, headers } = await authenticate({}, basic(id, secret));
    expect([status, body.error, headers.get('retry-after')]).toEqual([429, 'temporarily_unavailable', '60']);
    expect((await authenticate({}, basic(other.id, other.secret))).status).toBe(200);
    const recorded = await reasons(id);
    expect(recorded.filter((reason) => reason === 'wrong_client_secret')).toHaveLength(1); // audited once an hour
    expect(recorded).toContain('too_many_wrong_secrets');
  });

  it('cannot use its secret from a page: a browser’s request is rejected', async () => {
    const { id, secret } = await clientWithSecret(oauth);
    const headers = { ...basic(id, secret), Origin: new URL(REDIRECT_URI).origin };
    const { status, body } = await authenticate({}, headers);
    expect([status, body.error]).toEqual([400, 'invalid_request']);
  });
});

describe('a secret in a URL', () => {
  it.each([
    ['POST', '/oauth/token'],
    ['POST', '/oauth/par'],
    ['GET', '/oauth/authorize'],
    ['GET', '/oauth/logout'],
  ])('is rejected even if correct, and audited without the secret: %s %s', async (method, path) => {
    const { id, secret } = await clientWithSecret(oauth);
    const query = new URLSearchParams({ client_id: id, client_secret: secret });
    const response = await fetch(`${oauth.issuer}${path}?${query}`, {
      method,
      redirect: 'manual',
      ...(method === 'POST' ? { body: new URLSearchParams({ grant_type: 'authorization_code' }) } : {}),
    });
    expect(response.status).toBe(400);
    const text = await response.text();
    expect(text).toContain('client_secret must not be sent in a URL');
    expect(text).not.toContain(secret);
    const events = await oauth.events({ client: id });
    const [event] = events.filter(({ details }) => details.reason === 'secret_in_url');
    expect(event?.type).toBe(path === '/oauth/token' ? 'token.refused' : 'authorization.refused');
    const kept = await oauth.query<object>('SELECT r::text FROM oauth_refusals r');
    expect(JSON.stringify([kept, events])).not.toContain(secret);
  });

  it('does not result from a posted form: the server responds 400 without a redirect', async () => {
    const { id: client_id, secret: client_secret } = await clientWithSecret(oauth);
    const { status, headers } = await oauth.post('/oauth/authorize', { client_id, client_secret });
    expect([status, headers.get('location')]).toEqual([400, null]);
  });

  it('of an unknown client is not audited, so that anonymous clients cannot fill the audit log', async () => {
    const made = `made-up-${Date.now()}`;
    await fetch(`${oauth.issuer}/oauth/authorize?client_id=${made}&client_secret=x`);
    expect(await oauth.events({ client: made })).toEqual([]);
  });
});

describe('a secret with characters that form encoding changes (RFC 6749 §2.3.1)', () => {
  it.each(ODD_SECRETS)('is accepted in header and body from libraries and fetch: %s', async (secret) => {
    const { id } = await clientWithSecret(oauth);
    await storeSecret(oauth, id, secret);
    const as = { issuer: oauth.issuer, revocation_endpoint: `${oauth.issuer}/oauth/revoke` };
    const insecure = { [oauth4webapi.allowInsecureRequests]: true };
    const of = { client_id: id };
    for (const method of [oauth4webapi.ClientSecretBasic, oauth4webapi.ClientSecretPost])
      expect((await oauth4webapi.revocationRequest(as, of, method(secret), 'x', insecure)).status).toBe(200);
    for (const method of [client.ClientSecretBasic, client.ClientSecretPost]) {
      const configuration = new client.Configuration(as, id, {}, method(secret));
      client.allowInsecureRequests(configuration);
      await expect(client.tokenRevocation(configuration, 'x')).resolves.toBeUndefined();
    }
    // The header is encoded as by Go’s url.QueryEscape, the body as a form.
    expect((await authenticate({}, basic(id, secret))).status).toBe(200);
    expect((await authenticate({ client_id: id, client_secret: secret })).status).toBe(200);
  });

  it.each(['%zz', 'a%', '%C3', '%00'])('gets invalid_request if encoded incorrectly: %s', async (half) => {
    const { id } = await clientWithSecret(oauth);
    const Authorization = `Basic ${Buffer.from(`${id}:${half}`).toString('base64')}`;
    const { status, body } = await authenticate({}, { Authorization });
    expect([status, body.error]).toEqual([400, 'invalid_request']);
  });
});

describe('the command pua clients', () => {
  const run = (...parameters: string[]) => pua(oauth.api.environment, parameters);
  const json = (...parameters: string[]) =>
    puaJson<Record<string, unknown>>(oauth.api.environment, parameters);
  const create = ['clients', 'create', '--name', 'App', '--type', 'web', '--redirect-uri', REDIRECT_URI];

  it('creates a client with a secret, and shows the complete secret only once', async () => {
    const { stdout } = await run(...create, '--profile', 'oidc', '--auth', 'client_secret_basic');
    const [id, secret] = stdout.trim().split('\n') as [string, string];
    expect((await authenticate({}, basic(id, secret))).status).toBe(200);
    const shown = await json('clients', 'show', id);
    expect(shown).toMatchObject({
      profile: 'oidc',
      pkce: 'required',
      token_endpoint_auth_method: 'client_secret_basic',
      secrets: [{ last_four: secret.slice(-4), expires_at: null }],
    });
    expect(JSON.stringify(shown)).not.toContain(secret);
    expect((await run('clients', 'show', id)).stdout).toContain(`…${secret.slice(-4)} until replaced`);
  });

  it('rotates a secret: stdout has only the new secret, and both secrets are valid', async () => {
    const { id, secret } = await clientWithSecret(oauth);
    const { stdout } = await run('clients', 'rotate-secret', id, '--overlap', '1h', '--expires', '30d');
    forget();
    for (const one of [secret, stdout.trim()])
      expect((await authenticate({}, basic(id, one))).status).toBe(200);
    expect((await json('clients', 'show', id)).secrets).toMatchObject([
      { expires_at: expect.any(String) },
      { expires_at: expect.any(String) },
    ]);
  });

  it('removes a client’s secrets if its authentication method changes to none', async () => {
    const { id, secret } = await clientWithSecret(oauth);
    expect(await json('clients', 'update', id, '--auth', 'none')).toMatchObject({
      token_endpoint_auth_method: 'none',
      secrets: [],
    });
    await json('clients', 'update', id, '--auth', 'client_secret_post');
    forget();
    expect((await authenticate({}, basic(id, secret))).status).toBe(401);
  });

  it.each([
    [['--pkce', 'optional'], 'only a confidential client of the profile oidc can omit PKCE'],
    [['--auth', 'private_key_jwt'], '--auth private_key_jwt requires --jwks-file'],
    [
      ['--profile', 'oidc', '--auth', 'client_secret_basic', '--origin', 'https://app.example'],
      'a page cannot',
    ],
    [['--auth', 'client_secret_jwt'], 'client_secret_jwt'],
    [['--redirect-uri', 'http://app.example/cb'], 'must be https'],
  ])('rejects %j, and names the violated rule', async (options, why) => {
    const { code, stderr } = await run(...create, ...options);
    expect(code).not.toBe(0);
    expect(stderr).toContain(why);
  });

  it('creates no secret for a native app, and keeps a client’s secret method if a change is rejected', async () => {
    const redirect_uris = ['com.example.app:/cb'];
    const native = await oauth.client({ type: 'native', redirect_uris, profile: 'oidc' });
    const { id } = await clientWithSecret(oauth);
    for (const [why, ...command] of [
      ['cannot keep a secret', 'update', native, '--auth', 'client_secret_basic'],
      ['--jwks-file', 'update', id, '--auth', 'private_key_jwt'],
      ['cannot authenticate', 'update', id, '--profile', 'oauth21'],
      ['has no secret', 'rotate-secret', native],
    ] as const)
      expect((await run('clients', ...command)).stderr).toContain(why);
    expect(await json('clients', 'show', id)).toMatchObject({
      token_endpoint_auth_method: 'client_secret_basic',
    });
  });
});
