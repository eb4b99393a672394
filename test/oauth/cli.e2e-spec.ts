import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pua, puaJson } from '../support/command-line.js';
import { OauthTest, REDIRECT_URI } from '../support/oauth.js';
import { latestFor } from '../support/timing.js';

describe('pua', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start()));
  afterAll(() => oauth.close());

  const run = (...parameters: string[]) => pua(oauth.api.environment, parameters);
  const json = (...parameters: string[]) =>
    puaJson<Record<string, unknown>>(oauth.api.environment, parameters);

  async function refusedSoon(token: string): Promise<void> {
    const deadline = latestFor(1_000);
    while ((await oauth.me(token)) !== 401)
      if (performance.now() > deadline) throw new Error('the token was not refused within a second');
  }

  it('registers a client that signs members in, disables and enables it', async () => {
    const { stdout } = await run(
      'clients',
      'create',
      '--name',
      'App',
      '--type',
      'web',
      '--redirect-uri',
      REDIRECT_URI,
    );
    const clientId = stdout.trim();
    const { username } = await oauth.member();
    const { access_token } = await oauth.tokens(clientId, username);
    expect(await json('clients', 'show', clientId)).toMatchObject({ name: 'App', live_grants_count: 1 });
    await run('clients', 'disable', clientId);
    await refusedSoon(access_token);
    await run('clients', 'enable', clientId);
    expect(await oauth.me(access_token)).toBe(200);
  }, 30_000);

  it('says why a client cannot be registered', async () => {
    const parameters = ['--name', 'x', '--type', 'web', '--redirect-uri', 'http://app.example/cb'];
    const { code, stdout, stderr } = await run('clients', 'create', ...parameters);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('must be https');
  });

  it('shows where a member is signed in, and ends it all', async () => {
    const { id, username } = await oauth.member();
    const clientId = await oauth.client();
    const { access_token, refresh_token } = await oauth.tokens(clientId, username);
    const outstanding = await oauth.code(clientId, username);
    expect(await json('users', 'sessions', username)).toMatchObject({
      sessions: [{}, {}],
      apps: [{ client_id: clientId }],
    });
    expect(await json('users', 'revoke-access', username)).toEqual({ id, username, grants: 2, sessions: 2 });
    await refusedSoon(access_token);
    expect((await oauth.refresh(clientId, refresh_token)).status).toBe(400);
    expect((await oauth.token(outstanding)).status).toBe(400);
    expect(await json('users', 'sessions', username)).toMatchObject({ sessions: [], apps: [] });
  }, 30_000);

  it('ends the access of one client alone where one is named', async () => {
    const { username } = await oauth.member();
    const [one, two] = [await oauth.client(), await oauth.client()];
    const [ended, kept] = [await oauth.tokens(one, username), await oauth.tokens(two, username)];
    expect(await json('users', 'revoke-access', username, '--client', one)).toMatchObject({
      grants: 1,
      sessions: 0,
    });
    await refusedSoon(ended.access_token);
    expect(await oauth.me(kept.access_token)).toBe(200);
  }, 30_000);

  it('rotates the signing keys', async () => {
    const before = (await json('signing-keys', 'list')).data as { kid: string; status: string }[];
    const after = (await json('signing-keys', 'rotate')).data as { kid: string; status: string }[];
    const kid = (keys: typeof before, status: string) => keys.find((key) => key.status === status)!.kid;
    expect(kid(after, 'current')).toBe(kid(before, 'next'));
    expect(kid(after, 'previous')).toBe(kid(before, 'current'));
    expect(JSON.stringify(after)).not.toContain('private');
  });
});
