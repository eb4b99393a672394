import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportJWK, generateKeyPair } from 'jose';
import { PROFILE_NAMES } from '../../src/clients/profiles.js';
import { clientWithKey, dpopKey } from '../support/client-kinds.js';
import { atOnce } from '../support/concurrent.js';
import { OauthTest } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

type Profile = (typeof PROFILE_NAMES)[number];

/** Status and code of a response; `ok` for a success. */
type Said = string;

type Cause = (profile: Profile) => Promise<Said>;

/** Pushes an authorization request, without the parameters that the fault omits or replaces. */
const pushing =
  (parameters: Record<string, string | undefined>): Cause =>
  async (profile) => {
    const { id, assertion } = await clientWithKey(oauth, { profile });
    const { searchParams } = oauth.request(id, parameters).url;
    const form = { ...Object.fromEntries(searchParams), ...(await assertion()) };
    const { status, body } = await oauth.post('/oauth/par', form);
    return status === 201 ? 'ok' : `${status} ${body.error}`;
  };

/** Authenticates with an assertion. */
const asserting =
  (claimsOf: () => Record<string, unknown>, alg = 'ES256'): Cause =>
  async (profile) => {
    const { id, assertion } = await clientWithKey(oauth, { profile }, alg);
    const form = { ...(await assertion(claimsOf())), client_id: id, token: 'x' };
    const { status, body } = await oauth.post('/oauth/revoke', form);
    return status === 200 ? 'ok' : `${status} ${body.error}`;
  };

/** Opens an authorization request directly. */
async function opening(profile: Profile): Promise<Said> {
  const { id } = await clientWithKey(oauth, { profile });
  const at = await oauth.browser().open(oauth.request(id).url);
  if (at instanceof URL) return at.searchParams.get('error') ?? 'ok';
  return at.status === 200 ? 'ok' : `${at.status}`;
}

/** Registers a client. */
const registering =
  (fields: Parameters<OauthTest['client']>[0]): Cause =>
  async (profile) =>
    oauth.client({ profile, ...fields }).then(
      () => 'ok',
      (error: Error) => error.message,
    );

const now = () => Math.floor(Date.now() / 1000);
const tokenEndpoint = () => `${oauth.issuer}/oauth/token`;
const { publicKey } = await generateKeyPair('ES256');
const jwks = { keys: [await exportJWK(publicKey)] };

const INVALID = '401 invalid_client';
const REQUEST = '400 invalid_request';
const AUTH = /cannot authenticate with/;
const UNSIGNED = /not signed with RS256/;
const PKCE = /only a confidential client of the profile oidc can omit PKCE/;

/** A fault, its cause, and the responses for oauth21, oidc and fapi2. A RegExp matches an error at registration. */
type Fault = [fault: string, cause: Cause, oauth21: Said | RegExp, oidc: Said | RegExp, fapi2: Said | RegExp];
const withoutPkce = { code_challenge: undefined, code_challenge_method: undefined };
const others = () => ({ aud: [oauth.issuer, 'https://other.example'] });
const FAULTS: readonly Fault[] = [
  ['no client authentication', registering({}), 'ok', 'ok', AUTH],
  ['a secret in the header', registering({ secret_auth_method: 'client_secret_basic' }), AUTH, 'ok', AUTH],
  ['a secret in the body', registering({ secret_auth_method: 'client_secret_post' }), AUTH, 'ok', AUTH],
  ['PKCE optional, with keys', registering({ pkce: 'optional', jwks }), PKCE, 'ok', PKCE],
  ['PKCE off, with keys', registering({ pkce: 'off', jwks }), PKCE, 'ok', PKCE],
  ['PKCE off, public', registering({ pkce: 'off' }), PKCE, PKCE, AUTH],
  ['ID tokens in RS256', registering({ jwks, id_token_signed_response_alg: 'RS256' }), 'ok', 'ok', UNSIGNED],
  ['no PKCE, with a nonce', pushing({ ...withoutPkce, nonce: 'n' }), REQUEST, REQUEST, REQUEST],
  ['PKCE with plain', pushing({ code_challenge_method: 'plain' }), REQUEST, REQUEST, REQUEST],
  ['a request that is pushed', pushing({}), 'ok', 'ok', 'ok'],
  ['a request that is not pushed', opening, 'ok', 'ok', 'invalid_request'],
  ['form_post', pushing({ response_mode: 'form_post' }), REQUEST, 'ok', REQUEST],
  ['fragment', pushing({ response_mode: 'fragment' }), REQUEST, REQUEST, REQUEST],
  ['an assertion for the token endpoint', asserting(() => ({ aud: tokenEndpoint() })), 'ok', 'ok', INVALID],
  ['an assertion for several audiences', asserting(others), INVALID, INVALID, INVALID],
  ['an assertion in ES256 for the issuer', asserting(() => ({})), 'ok', 'ok', 'ok'],
  ['an assertion in PS256', asserting(() => ({}), 'PS256'), 'ok', 'ok', 'ok'],
  ['an assertion in EdDSA', asserting(() => ({}), 'EdDSA'), 'ok', 'ok', 'ok'],
  ['an assertion in RS256', asserting(() => ({}), 'RS256'), 'ok', 'ok', INVALID],
  ['an iat and nbf 8 s ahead', asserting(() => ({ iat: now() + 8, nbf: now() + 8 })), 'ok', 'ok', 'ok'],
  ['an nbf 70 s ahead', asserting(() => ({ nbf: now() + 70, exp: now() + 120 })), INVALID, INVALID, INVALID],
  ['an iat 70 s ahead', asserting(() => ({ iat: now() + 70, exp: now() + 120 })), INVALID, INVALID, INVALID],
];

describe.each(PROFILE_NAMES)('a client of the profile %s', (profile) => {
  it.each(FAULTS)('gets the response that its profile defines: %s', async (_fault, cause, ...answers) => {
    const answer = answers[['oauth21', 'oidc', 'fapi2'].indexOf(profile)]!;
    const said = await cause(profile);
    if (typeof answer === 'string') expect(said).toBe(answer);
    else expect(said).toMatch(answer);
  });
});

describe('an error caused by a client’s profile', () => {
  it('names the rule in the response to a signed client assertion', async () => {
    const { assertion } = await clientWithKey(oauth, { profile: 'fapi2' });
    const { body } = await oauth.post('/oauth/revoke', {
      ...(await assertion({ aud: tokenEndpoint() })),
      token: 'x',
    });
    expect(body.error_description).toBe(
      'the profile of the client requires the issuer as the only audience of a client_assertion',
    );
  });

  it('names the rule in the redirect of a request that is not pushed', async () => {
    const { id } = await clientWithKey(oauth, { profile: 'fapi2' });
    const back = await oauth.browser().leave(oauth.request(id).url);
    expect(back.searchParams.get('error_description')).toBe('Pushed Authorization Request must be used');
  });
});

describe('FAPI 2.0', () => {
  type Fapi = Awaited<ReturnType<typeof clientWithKey>>;

  /** Pushes a request, and signs a member in with it. */
  async function signedIn({ id, assertion }: Fapi) {
    const { username } = await oauth.member();
    const request = oauth.request(id);
    const form = { ...Object.fromEntries(request.url.searchParams), ...(await assertion()) };
    const pushed = await oauth.post('/oauth/par', form);
    return request.formOf(await oauth.browser().authorize(oauth.pushedUrl(id, pushed), { username }));
  }

  /** The status of GET /me with an access token and a proof of a key. */
  async function meWith(accessToken: string, key: Awaited<ReturnType<typeof dpopKey>>): Promise<number> {
    const proof = await key('/api/public/me', 'GET', accessToken);
    const headers = { Authorization: `DPoP ${accessToken}`, ...proof };
    return (await fetch(`${oauth.issuer}/api/public/me`, { headers })).status;
  }

  /** Sends a refresh token with the client's assertion. */
  const refreshAs = async (client: Fapi, refresh_token: string, headers: Record<string, string>) =>
    oauth.token({ grant_type: 'refresh_token', refresh_token, ...(await client.assertion()) }, headers);

  it('issues tokens only with a DPoP proof; a request without a proof gets an error with the rule, and consumes no code', async () => {
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
    expect(await oauth.me(body.access_token)).toBe(401); // not accepted as Bearer
  });

  it('accepts a refresh token repeatedly with any DPoP key, but never without a proof or for another client', async () => {
    const fapi = await clientWithKey(oauth, { profile: 'fapi2' });
    const [proof, other] = [await dpopKey(oauth), await dpopKey(oauth)];
    const form = await signedIn(fapi);
    const { body: first } = await oauth.token({ ...form, ...(await fapi.assertion()) }, await proof());
    const refresh = (headers: Record<string, string>, client = fapi) =>
      refreshAs(client, first.refresh_token, headers);
    const seen = new Set([first.access_token]);
    for (const key of [proof, proof, other]) {
      const { status, body } = await refresh(await key());
      expect([status, body.refresh_token, body.token_type]).toEqual([200, first.refresh_token, 'DPoP']);
      expect([await meWith(body.access_token, key), await oauth.me(body.access_token)]).toEqual([200, 401]);
      seen.add(body.access_token);
    }
    expect(seen.size).toBe(4);
    await oauth.age('oauth_tokens', 60); // longer than a grace period, which does not apply here
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

  it('accepts ten concurrent refreshes with the same token', async () => {
    const fapi = await clientWithKey(oauth, { profile: 'fapi2' });
    const proof = await dpopKey(oauth);
    const form = await signedIn(fapi);
    const { body } = await oauth.token({ ...form, ...(await fapi.assertion()) }, await proof());
    const answers = await atOnce(10, async () => refreshAs(fapi, body.refresh_token, await proof()));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
  });
});
