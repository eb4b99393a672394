import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pua, puaJson } from '../support/command-line.js';
import { thorough } from '../support/database.js';
import { OauthTest, REDIRECT_URI } from '../support/oauth.js';
import { eventually } from '../support/timing.js';

const CREATE = ['clients', 'create', '--name', 'App', '--type', 'web', '--redirect-uri', REDIRECT_URI];

describe('the command-line program pua', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start()));
  afterAll(() => oauth.close());

  const run = (...parameters: string[]) => pua(oauth.api.environment, parameters);
  const json = <Result = Record<string, unknown>>(...parameters: string[]) =>
    puaJson<Result>(oauth.api.environment, parameters);

  it('registers a client that signs members in, and disables and enables the client', async () => {
    const { stdout } = await run(...CREATE);
    const clientId = stdout.trim();
    const { username } = await oauth.member();
    const { access_token } = await oauth.tokens(clientId, username);
    expect(await json('clients', 'show', clientId)).toMatchObject({ name: 'App', live_grants_count: 1 });
    expect((await run('clients', 'list')).stdout).toContain(clientId);
    await run('clients', 'disable', clientId);
    await oauth.rejectedSoon(access_token);
    await run('clients', 'enable', clientId);
    expect(await oauth.me(access_token)).toBe(200);
  });

  it('prints the sign-in URL on stderr after it registers a client', async () => {
    const environment = { ...oauth.api.environment, PUBLIC_URL: oauth.issuer };
    const { stdout, stderr } = await pua(environment, [...CREATE, '--scopes', 'profile:read']);
    const url = new URL(/^Send members to (\S+)\n$/.exec(stderr)![1]!);
    expect([url.origin, url.pathname]).toEqual([oauth.issuer, '/oauth/authorize']);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      response_type: 'code',
      client_id: stdout.trim(),
      redirect_uri: REDIRECT_URI,
      scope: 'profile:read',
      state: 'STATE',
      code_challenge: 'CHALLENGE',
      code_challenge_method: 'S256',
    });
  });

  it('registers a client for assistants, which redirects to their callback URLs but not to similar URLs', async () => {
    const command = ['clients', 'create', '--name', 'Helper', '--assistant'];
    const { client_id } = await json<{ client_id: string }>(...command);
    const browser = oauth.browser();
    const { username } = await oauth.member();
    const at = async (redirect_uri: string) =>
      (await browser.view(oauth.request(client_id, { redirect_uri }).url)).status;
    for (const port of ['http://localhost:3334', 'http://127.0.0.1:6274'])
      expect(await at(`${port}/oauth/callback`)).toBe(200);
    const cursor = 'cursor://anysphere.cursor-mcp/oauth/callback';
    for (const other of [`${cursor}/`, 'cursor://evil/oauth/callback', 'http://localhost:3334/oauth'])
      expect([other, await at(other)]).toEqual([other, 400]);
    const { url } = oauth.request(client_id, { redirect_uri: cursor });
    expect((await browser.authorize(url, { username })).href).toMatch(/^cursor:.*[?&]code=/);
    expect((await browser.view(url)).html).toContain('name="decision"'); // the consent page appears every time
    const unproven = oauth.request(client_id, { redirect_uri: cursor, code_challenge: undefined });
    expect((await browser.leave(unproven.url)).searchParams.get('error')).toBe('invalid_request');
  });

  it('changes a client’s settings; sign-ins then accept only the new redirect URI', async () => {
    const clientId = await oauth.client({ name: 'Before', redirect_uris: [REDIRECT_URI] });
    const { username } = await oauth.member();
    const other = 'https://other.example/callback';
    const update = (...options: string[]) => json('clients', 'update', clientId, ...options);
    const redirects = ['--add-redirect-uri', other, '--remove-redirect-uri', REDIRECT_URI];
    const origin = ['--add-origin', 'https://other.example'];
    const bye = ['--add-post-logout-redirect-uri', 'https://other.example/'];
    expect(await update('--name', 'After', ...redirects, ...origin, ...bye)).toMatchObject({
      name: 'After',
      redirect_uris: [other],
      allowed_origins: ['https://other.example'],
      post_logout_redirect_uris: ['https://other.example/'],
    });
    const page = ['--client-uri', 'https://other.example/', '--policy-uri', 'https://other.example/policy'];
    expect(await update(...page, '--id-token-alg', 'RS256')).toMatchObject({
      client_uri: 'https://other.example/',
      policy_uri: 'https://other.example/policy',
      id_token_signed_response_alg: 'RS256',
    });
    expect(await update('--policy-uri', '')).toMatchObject({ policy_uri: null });
    // The server responds 503 for about a second, until it has loaded the keys of a new algorithm.
    const signIn = () => oauth.tokens(clientId, username, { redirect_uri: other });
    const tokens = () =>
      signIn().catch((error: Error) => {
        if (!error.message.startsWith('503')) throw error;
        return undefined;
      });
    expect(await eventually(tokens)).toMatchObject({ token_type: 'Bearer' });
    await expect(oauth.tokens(clientId, username)).rejects.toThrow();
    const [details] = await oauth.details({ client: clientId, type: 'client.updated' });
    expect(details).toMatchObject({
      changed: ['name', 'redirect_uris', 'post_logout_redirect_uris', 'allowed_origins'],
      redirect_uris: [other],
    });
  });

  it('sets the longest access of an app, and shows the setting', async () => {
    const { client_id: id } = await json<{ client_id: string }>(...CREATE, '--longest-access', '30');
    expect(await json('clients', 'show', id)).toMatchObject({ longest_access: '30' });
    const longer = ['clients', 'update', id, '--longest-access', 'unlimited'];
    expect(await json(...longer)).toMatchObject({ longest_access: 'unlimited' });
    expect((await run('clients', 'show', id)).stdout).toMatch(/^longest_access +unlimited$/m);
  });

  thorough.it('removes a scope from a client, and ends only the grants that include the scope', async () => {
    const { username, clientId } = await oauth.memberAndClient();
    const both = await oauth.tokens(clientId, username, { scope: 'profile:read events:read' });
    const one = await oauth.tokens(clientId, username, { scope: 'profile:read' });
    const { code, stderr } = await run('clients', 'update', clientId, '--remove-scopes', 'events:read');
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: '1 grant that included a removed scope has ended\n',
    });
    await oauth.rejectedSoon(both.access_token);
    expect(await oauth.me(one.access_token)).toBe(200);
    expect(await json('clients', 'show', clientId)).toMatchObject({
      scopes: expect.not.arrayContaining(['events:read']),
    });
  });

  thorough.it('rejects an invalid change of a client, and explains why', async () => {
    const clientId = await oauth.client({ redirect_uris: [REDIRECT_URI] });
    const update = (...args: string[]) => run('clients', 'update', clientId, ...args);
    const refusals: [string[], number, RegExp][] = [
      [['--remove-redirect-uri', REDIRECT_URI], 1, /at least one redirect URI is required/],
      [['--remove-redirect-uri', 'https://nobody.example/'], 1, /is not registered: nothing was changed/],
      [['--add-redirect-uri', 'http://app.example/cb'], 1, /must be https/],
      [['--add-scopes', 'admin'], 2, /There is no scope admin/],
      [[], 2, /nothing to change/],
    ];
    for (const [args, status, message] of refusals) {
      const { code, stderr } = await update(...args);
      expect([code, stderr]).toEqual([status, expect.stringMatching(message)]);
    }
    expect((await update('--add-redirect-uri', REDIRECT_URI)).stderr).toBe(
      `${clientId} already has these values: nothing changed\n`,
    );
    expect((await run('clients', 'update', 'nobody', '--name', 'x')).stderr).toMatch(
      /There is no client nobody/,
    );
  });

  it('deletes a client and revokes its access, only with --yes', async () => {
    const clientId = await oauth.client({ name: 'Gone' });
    const { username } = await oauth.member();
    const { access_token, refresh_token } = await oauth.tokens(clientId, username);
    const { code, stderr } = await run('clients', 'delete', clientId);
    expect(code).toBe(2);
    expect(stderr).toContain(
      `--yes is missing. Gone (${clientId}) would be deleted permanently, and 1 grants`,
    );
    expect(await oauth.me(access_token)).toBe(200);
    expect(await json('clients', 'delete', clientId, '--yes')).toEqual({
      client_id: clientId,
      deleted: true,
      grants: 1,
    });
    await oauth.rejectedSoon(access_token);
    expect((await oauth.refresh(clientId, refresh_token)).status).toBeGreaterThanOrEqual(400);
    expect((await run('clients', 'delete', clientId, '--yes')).code).toBe(1);
    expect(await json('audit', '--type', 'client.deleted', '--client', clientId)).toMatchObject({
      data: [{ details: { name: 'Gone', grants: 1 } }],
    });
  });

  it('lists a member’s sessions and apps, then ends the sessions and revokes the apps’ access', async () => {
    const { id, username, clientId } = await oauth.memberAndClient();
    const { access_token, refresh_token } = await oauth.tokens(clientId, username);
    const outstanding = await oauth.code(clientId, username);
    expect(await json('users', 'sessions', username)).toMatchObject({
      sessions: [{}, {}],
      apps: [{ client_id: clientId }],
    });
    expect(await json('users', 'revoke-access', username)).toEqual({ id, username, grants: 2, sessions: 2 });
    await oauth.rejectedSoon(access_token);
    expect((await oauth.refresh(clientId, refresh_token)).status).toBe(400);
    expect((await oauth.token(outstanding)).status).toBe(400);
    expect(await json('users', 'sessions', username)).toMatchObject({ sessions: [], apps: [] });
  });

  thorough.it('revokes only the access of the client in --client', async () => {
    const { username } = await oauth.member();
    const [one, two] = [await oauth.client(), await oauth.client()];
    const [ended, kept] = [await oauth.tokens(one, username), await oauth.tokens(two, username)];
    expect(await json('users', 'revoke-access', username, '--client', one)).toMatchObject({
      grants: 1,
      sessions: 0,
    });
    await oauth.rejectedSoon(ended.access_token);
    expect(await oauth.me(kept.access_token)).toBe(200);
  });

  it('rotates the signing keys', async () => {
    type Keys = { data: { kid: string; status: string }[] };
    const { data: before } = await json<Keys>('signing-keys', 'list');
    const { data: after } = await json<Keys>('signing-keys', 'rotate');
    const kid = (keys: typeof before, status: string) => keys.find((key) => key.status === status)!.kid;
    expect(kid(after, 'current')).toBe(kid(before, 'next'));
    expect(kid(after, 'previous')).toBe(kid(before, 'current'));
    expect(JSON.stringify(after)).not.toContain('private');
  });
});
