import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { clientWithKey, dpopKey } from '../support/client-kinds.js';
import { OauthTest, REDIRECT_URI } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

describe('FAPI 2.0', () => {
  /** Pushes a request, and signs a member in with it. */
  async function signedIn(oauthClient: Awaited<ReturnType<typeof clientWithKey>>) {
    const { id, assertion } = oauthClient;
    const { username } = await oauth.member();
    const request = oauth.request(id);
    const { body } = await oauth.post('/oauth/par', {
      ...Object.fromEntries(request.url.searchParams),
      ...(await assertion()),
    });
    const url = `/oauth/authorize?${new URLSearchParams({ client_id: id, request_uri: body.request_uri as string })}`;
    const back = await oauth.browser().authorize(url, { username });
    return {
      grant_type: 'authorization_code',
      code: back.searchParams.get('code')!,
      code_verifier: request.verifier,
      redirect_uri: REDIRECT_URI,
    };
  }

  /** The status of GET /me with an access token and a proof of a key. */
  async function meWith(accessToken: string, key: Awaited<ReturnType<typeof dpopKey>>): Promise<number> {
    const headers = await key('/api/public/me', 'GET', accessToken);
    return (
      await fetch(`${oauth.issuer}/api/public/me`, {
        headers: { Authorization: `DPoP ${accessToken}`, ...headers },
      })
    ).status;
  }

  it('issues tokens only for a DPoP key, and says so; a request without one does not consume the code', async () => {
    const fapi = await clientWithKey(oauth, { profile: 'fapi2' });
    const form = await signedIn(fapi);
    const bare = await oauth.token({ ...form, ...(await fapi.assertion()) });
    expect([bare.status, bare.body.error, bare.body.error_description]).toEqual([
      400,
      'invalid_grant',
      'DPoP proof JWT not provided',
    ]);
    const proof = await dpopKey(oauth);
    const { status, body } = await oauth.token({ ...form, ...(await fapi.assertion()) }, await proof());
    expect([status, body.token_type]).toEqual([200, 'DPoP']);
    expect(await oauth.me(body.access_token)).toBe(401); // not as Bearer
  });

  it('keeps a refresh token, bound to the client: it works repeatedly with any DPoP key, but never without one or for another client', async () => {
    const fapi = await clientWithKey(oauth, { profile: 'fapi2' });
    const [proof, other] = [await dpopKey(oauth), await dpopKey(oauth)];
    const form = await signedIn(fapi);
    const { body: first } = await oauth.token({ ...form, ...(await fapi.assertion()) }, await proof());
    const refresh = async (headers: Record<string, string>, client = fapi) =>
      oauth.token(
        {
          grant_type: 'refresh_token',
          refresh_token: first.refresh_token,
          ...(await client.assertion()),
        },
        headers,
      );
    const seen = new Set([first.access_token]);
    for (const key of [proof, proof, other]) {
      const { status, body } = await refresh(await key());
      expect([status, body.refresh_token, body.token_type]).toEqual([200, first.refresh_token, 'DPoP']);
      expect([await meWith(body.access_token, key), await oauth.me(body.access_token)]).toEqual([200, 401]);
      seen.add(body.access_token);
    }
    expect(seen.size).toBe(4);
    await oauth.age('oauth_tokens', 60); // no grace period is needed
    expect((await refresh(await proof())).status).toBe(200);
    const stranger = await clientWithKey(oauth, { profile: 'fapi2' });
    for (const [headers, client] of [
      [{}, fapi],
      [await proof(), stranger],
    ] as const) {
      const { status, body } = await refresh(headers, client);
      expect([status, body.error]).toEqual([400, 'invalid_grant']);
    }
    expect((await refresh(await proof())).status).toBe(200);
    await oauth.post('/oauth/revoke', { token: first.refresh_token, ...(await fapi.assertion()) });
    expect((await refresh(await proof())).body.error).toBe('invalid_grant');
  });

  it('refreshes ten times at once', async () => {
    const fapi = await clientWithKey(oauth, { profile: 'fapi2' });
    const proof = await dpopKey(oauth);
    const form = await signedIn(fapi);
    const { body } = await oauth.token({ ...form, ...(await fapi.assertion()) }, await proof());
    const answers = await Promise.all(
      Array.from({ length: 10 }, async () =>
        oauth.token(
          {
            grant_type: 'refresh_token',
            refresh_token: body.refresh_token,
            ...(await fapi.assertion()),
          },
          await proof(),
        ),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
  });
});
