import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportJWK, generateKeyPair } from 'jose';
import { PROFILE_NAMES, PROFILES } from '../../src/clients/profiles.js';
import { parseClient } from '../../src/authorization-server/adapters/client-documents.js';
import { clientWithKey, dpopKey } from '../support/client-kinds.js';
import { atOnce } from '../support/concurrent.js';
import { OauthTest, REDIRECT_URI } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

type Profile = (typeof PROFILE_NAMES)[number];

/** Status and code of a response; `ok` for a success. */
type Said = string;

/** Pushes an authorization request, without the parameters that the fault omits or replaces. */
async function pushed(profile: Profile, parameters: Record<string, string | undefined>): Promise<Said> {
  const { id, assertion } = await clientWithKey(oauth, { profile });
  const { searchParams } = oauth.request(id, parameters).url;
  const form = { ...Object.fromEntries(searchParams), ...(await assertion()) };
  const { status, body } = await oauth.post('/oauth/par', form);
  return status === 201 ? 'ok' : `${status} ${body.error}`;
}

/** Authenticates with an assertion. */
async function asserted(profile: Profile, claims: Record<string, unknown>, alg = 'ES256'): Promise<Said> {
  const { id, assertion } = await clientWithKey(oauth, { profile }, alg);
  const form = await assertion(claims);
  const { status, body } = await oauth.post('/oauth/revoke', { ...form, client_id: id, token: 'x' });
  return status === 200 ? 'ok' : `${status} ${body.error}`;
}

/** Opens an authorization request directly. */
async function opened(profile: Profile, parameters: Record<string, string | undefined>): Promise<Said> {
  const { id } = await clientWithKey(oauth, { profile });
  const at = await oauth.browser().open(oauth.request(id, parameters).url);
  if (at instanceof URL) return at.searchParams.get('error') ?? 'ok';
  return at.status === 200 ? 'ok' : `${at.status}`;
}

/** Registers a client. */
async function registered(fields: Parameters<OauthTest['client']>[0]): Promise<Said> {
  return oauth.client(fields).then(
    () => 'ok',
    (error: Error) => error.message,
  );
}

const now = () => Math.floor(Date.now() / 1000);
const tokenEndpoint = () => `${oauth.issuer}/oauth/token`;
const { publicKey } = await generateKeyPair('ES256');
const jwks = { keys: [await exportJWK(publicKey)] };

const INVALID = '401 invalid_client';
const REQUEST = '400 invalid_request';
const AUTH = /cannot authenticate with/;
const PKCE = /only a confidential client of the profile oidc can omit PKCE/;

/** Fault → its cause, and the response for each profile. A RegExp matches an error at registration. */
type Fault = [
  fault: string,
  cause: (profile: Profile) => Promise<Said>,
  answers: Readonly<Record<Profile, Said | RegExp>>,
];
const every = (said: Said | RegExp): Fault[2] => ({ oauth21: said, oidc: said, fapi2: said });
const FAULTS: readonly Fault[] = [
  [
    'no client authentication',
    (profile) => registered({ profile }),
    { oauth21: 'ok', oidc: 'ok', fapi2: AUTH },
  ],
  [
    'a secret in the header',
    (profile) => registered({ profile, secret_auth_method: 'client_secret_basic' }),
    { oauth21: AUTH, oidc: 'ok', fapi2: AUTH },
  ],
  [
    'a secret in the body',
    (profile) => registered({ profile, secret_auth_method: 'client_secret_post' }),
    { oauth21: AUTH, oidc: 'ok', fapi2: AUTH },
  ],
  [
    'PKCE optional, with keys',
    (profile) => registered({ profile, pkce: 'optional', jwks }),
    { oauth21: PKCE, oidc: 'ok', fapi2: PKCE },
  ],
  [
    'PKCE off, with keys',
    (profile) => registered({ profile, pkce: 'off', jwks }),
    { oauth21: PKCE, oidc: 'ok', fapi2: PKCE },
  ],
  [
    'PKCE off, public',
    (profile) => registered({ profile, pkce: 'off' }),
    { oauth21: PKCE, oidc: PKCE, fapi2: AUTH },
  ],
  [
    'ID tokens in RS256',
    (profile) => registered({ profile, jwks, id_token_signed_response_alg: 'RS256' }),
    { oauth21: 'ok', oidc: 'ok', fapi2: /not signed with RS256/ },
  ],
  [
    'no PKCE, with a nonce',
    (profile) => pushed(profile, { code_challenge: undefined, code_challenge_method: undefined, nonce: 'n' }),
    every(REQUEST),
  ],
  ['PKCE with plain', (profile) => pushed(profile, { code_challenge_method: 'plain' }), every(REQUEST)],
  ['a request that is pushed', (profile) => pushed(profile, {}), every('ok')],
  [
    'a request that is not pushed',
    (profile) => opened(profile, {}),
    { oauth21: 'ok', oidc: 'ok', fapi2: 'invalid_request' },
  ],
  [
    'form_post',
    (profile) => pushed(profile, { response_mode: 'form_post' }),
    { oauth21: REQUEST, oidc: 'ok', fapi2: REQUEST },
  ],
  ['fragment', (profile) => pushed(profile, { response_mode: 'fragment' }), every(REQUEST)],
  ['an assertion for the issuer', (profile) => asserted(profile, {}), every('ok')],
  [
    'an assertion for the token endpoint',
    (profile) => asserted(profile, { aud: tokenEndpoint() }),
    { oauth21: 'ok', oidc: 'ok', fapi2: INVALID },
  ],
  [
    'an assertion for several audiences',
    (profile) => asserted(profile, { aud: [oauth.issuer, 'https://other.example'] }),
    every(INVALID),
  ],
  ...['ES256', 'PS256', 'EdDSA'].map((alg): Fault => [
    `an assertion in ${alg}`,
    (profile) => asserted(profile, {}, alg),
    every('ok'),
  ]),
  [
    'an assertion in RS256',
    (profile) => asserted(profile, {}, 'RS256'),
    { oauth21: 'ok', oidc: 'ok', fapi2: INVALID },
  ],
  [
    'an iat and nbf 8 s ahead',
    (profile) => asserted(profile, { iat: now() + 8, nbf: now() + 8 }),
    every('ok'),
  ],
  [
    'an nbf 70 s ahead',
    (profile) => asserted(profile, { nbf: now() + 70, exp: now() + 120 }),
    every(INVALID),
  ],
  [
    'an iat 70 s ahead',
    (profile) => asserted(profile, { iat: now() + 70, exp: now() + 120 }),
    every(INVALID),
  ],
];

describe.each(PROFILE_NAMES)('a client of the profile %s', (profile) => {
  it.each(FAULTS)('gets the response that its profile defines: %s', async (_fault, cause, answers) => {
    const answer = answers[profile];
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

describe('a client document', () => {
  const id = 'https://app.example/client.json';
  const document = { client_id: id, redirect_uris: [REDIRECT_URI] };
  const both = { require_pushed_authorization_requests: true, dpop_bound_access_tokens: true };

  it('determines the client’s profile by its metadata', () => {
    const keys = { token_endpoint_auth_method: 'private_key_jwt', jwks };
    expect(parseClient(id, { ...document, ...keys, ...both }, true).profile).toBe('fapi2');
    expect(parseClient(id, { ...document, ...keys }, true).profile).toBe('oauth21');
    expect(() => parseClient(id, { ...document, ...both }, true)).toThrow('cannot authenticate with none');
    expect(() =>
      parseClient(id, { ...document, token_endpoint_auth_method: 'client_secret_basic' }, true),
    ).toThrow('must be none or private_key_jwt');
  });
});

describe('discovery', () => {
  it('lists the authentication methods, response modes and assertion algorithms of all profiles', async () => {
    const metadata = await oauth.json<Record<string, string[]>>('/.well-known/openid-configuration');
    for (const profile of PROFILE_NAMES) {
      const { authMethods, responseModes, assertionAlgorithms } = PROFILES[profile];
      for (const place of ['token', 'revocation', 'introspection']) {
        expect(metadata[`${place}_endpoint_auth_methods_supported`]).toEqual(
          expect.arrayContaining([...authMethods]),
        );
        expect(metadata[`${place}_endpoint_auth_methods_supported`]).not.toContain('client_secret_jwt');
      }
      expect(metadata.response_modes_supported).toEqual(expect.arrayContaining([...responseModes]));
      expect(metadata.token_endpoint_auth_signing_alg_values_supported).toEqual(
        expect.arrayContaining([...assertionAlgorithms]),
      );
    }
    expect(metadata).not.toHaveProperty('require_pushed_authorization_requests');
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
