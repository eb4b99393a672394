import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  jwtVerify,
  type JSONWebKeySet,
  type JWTPayload,
} from 'jose';
import { SigningKeysService } from '../../src/clients/signing-keys.service.js';
import { thorough } from '../support/database.js';
import {
  asksForPassword,
  OauthTest,
  PASSWORD,
  REDIRECT_URI,
  type Browser,
  type FormPage,
} from '../support/oauth.js';
import { Authenticator, memberWithPasskey, optionsFor, startWithPasskeys } from '../support/passkeys.js';
import { eventually } from '../support/timing.js';

let oauth: OauthTest;
let clientId: string;
beforeAll(async () => {
  oauth = await startWithPasskeys();
  clientId = await oauth.client();
});
afterAll(() => oauth.close());

type Parameters = Record<string, string | undefined>;

const claimsWith = (acr: object) => JSON.stringify({ id_token: { acr } });

/** Sends a request from a browser with or without a signed-in member. @returns a page, or the URL that the app receives */
const send = (browser: Browser, parameters: Parameters) =>
  browser.open(oauth.request(clientId, { scope: 'openid', state: 's', ...parameters }).url);

/** The response that the app receives: `code`, or the error. */
function answerOf(at: FormPage | URL): string {
  if (!(at instanceof URL)) throw new Error(`${at.status} at ${at.url.pathname}`);
  expect([at.origin + at.pathname, at.searchParams.get('state')]).toEqual([REDIRECT_URI, 's']);
  return at.searchParams.get('error') ?? (at.searchParams.has('code') ? 'code' : 'nothing');
}

/** The claims of the ID token, after signing in. */
async function idTokenOf(username: string, parameters: Parameters, browser = oauth.browser()) {
  const code = await oauth.code(clientId, username, { scope: 'openid', ...parameters }, browser);
  const { status, body } = await oauth.token(code);
  expect(status).toBe(200);
  const claims: JWTPayload = decodeJwt(body.id_token!);
  return { ...claims, raw: body.id_token! } as JWTPayload & { raw: string };
}

describe('a request for a recent sign-in', () => {
  it('requires a new sign-in if the last one is older than max_age, and the ID token has the new auth_time', async () => {
    const { id, username } = await oauth.member();
    const browser = oauth.browser();
    await idTokenOf(username, {}, browser);
    await oauth.ageSignIns(id, 10_000);
    const before = await idTokenOf(username, { max_age: '100000' }, browser); // needs no new sign-in
    expect(asksForPassword(await send(browser, { max_age: '5000' }))).toBe(true);
    const after = await idTokenOf(username, { max_age: '5000' }, browser);
    expect(Number(after.auth_time) - Number(before.auth_time)).toBeGreaterThanOrEqual(9_999);
    expect(answerOf(await send(browser, { max_age: '5000', prompt: 'none' }))).toBe('code');
    await oauth.ageSignIns(id, 10_000);
    expect(answerOf(await send(browser, { max_age: '5000', prompt: 'none' }))).toBe('login_required');
  });

  it('with prompt=login requires a new sign-in of a signed-in member, and the ID token has the new auth_time', async () => {
    const { id, username } = await oauth.member();
    const browser = oauth.browser();
    const first = await idTokenOf(username, {}, browser);
    await oauth.ageSignIns(id, 100);
    const second = await idTokenOf(username, { prompt: 'login' }, browser);
    expect(second.sub).toBe(first.sub);
    expect(Number(second.auth_time)).toBeGreaterThanOrEqual(Number(first.auth_time));
    expect(asksForPassword(await send(browser, { prompt: 'login' }))).toBe(true);
  });

  it('with prompt=none shows no page: the app gets a code if the member is signed in, and otherwise login_required', async () => {
    const { username } = await oauth.member();
    const browser = oauth.browser();
    expect(answerOf(await send(browser, { prompt: 'none' }))).toBe('login_required');
    await idTokenOf(username, {}, browser);
    expect(answerOf(await send(browser, { prompt: 'none' }))).toBe('code');
  });
});

describe('a request with id_token_hint', () => {
  it('with prompt=none gets a code for the signed-in member’s token, and login_required for another member’s token', async () => {
    const [ada, bob] = [await oauth.member(), await oauth.member()];
    const browser = oauth.browser();
    const { raw } = await idTokenOf(ada.username, {}, browser);
    const other = await idTokenOf(bob.username, {});
    expect(answerOf(await send(browser, { id_token_hint: raw, prompt: 'none' }))).toBe('code');
    const silent = await send(browser, { id_token_hint: other.raw, prompt: 'none' });
    expect(answerOf(silent)).toBe('login_required');
    expect(asksForPassword(await send(browser, { id_token_hint: other.raw }))).toBe(true);
  });

  it('gets invalid_request if the hint is malformed', async () => {
    const at = await send(oauth.browser(), { id_token_hint: 'x.y.z', prompt: 'none' });
    expect(answerOf(at)).toBe('invalid_request');
  });
});

describe('a request with an unsupported parameter or value', () => {
  it.each([
    { display: 'page' },
    { display: 'popup' },
    { display: 'wap' },
    { display: 'nonsense' },
    { ui_locales: 'se' },
    { ui_locales: 'xx-YY not_a_locale' },
    { claims_locales: 'se' },
    { login_hint: 'nobody@example.com' },
    { acr_values: 'gold silver' },
    { extra: 'foobar' },
    { claims: JSON.stringify({ userinfo: { name: { essential: true } }, id_token: { picture: null } }) },
    { claims: claimsWith({ value: 'gold' }) },
    { claims: claimsWith({ essential: true }) },
  ] as Parameters[])('is treated like a request without it: %j', async (wish) => {
    const { id, username } = await oauth.member({ stored_display_name: 'Ada' });
    const claims = await idTokenOf(username, wish);
    expect(claims).toMatchObject({ sub: String(id), amr: ['pwd'] });
    for (const claim of ['name', 'picture', 'acr']) expect(claims).not.toHaveProperty(claim);
  });

  it('can be avoided: discovery lists the supported acr values, and states that the claims parameter is not supported', async () => {
    expect(await oauth.json('/.well-known/openid-configuration')).toMatchObject({
      acr_values_supported: ['phr', 'phrh'],
      claims_parameter_supported: false,
    });
  });
});

describe('a request for an authentication class', () => {
  /** Every class in the metadata. */
  const CLASSES = 'phr phrh';

  it('by acr_values is only a preference: a member without a passkey signs in once, with the password', async () => {
    const { username } = await oauth.member();
    const browser = oauth.browser();
    const claims = await idTokenOf(username, { acr_values: CLASSES }, browser);
    expect([claims.amr, claims.acr]).toEqual([['pwd'], undefined]);
    expect(answerOf(await send(browser, { acr_values: CLASSES, prompt: 'none' }))).toBe('code');
  });

  it.each([
    ['an unsupported class', { essential: true, value: 'gold' }],
    ['one of several unsupported classes', { essential: true, values: ['gold', 'silver'] }],
  ])('for %s as an essential claim is rejected before the sign-in', async (_, acr) => {
    const at = await send(oauth.browser(), { claims: claimsWith(acr) });
    expect(answerOf(at)).toBe('unmet_authentication_requirements');
  });

  it.each([{ value: 'phr' }, { values: ['phr', 'phrh'] }])(
    'as an essential claim is rejected at the sign-in and afterwards if the member has no passkey: %j',
    async (wanted) => {
      const { username } = await oauth.member();
      const claims = claimsWith({ essential: true, ...wanted });
      const browser = oauth.browser();
      const page = (await send(browser, { claims })) as FormPage;
      const back = await browser.submit(page, { username, password: PASSWORD }, /sign-in$/);
      expect(answerOf(back)).toBe('unmet_authentication_requirements');
      for (const prompt of [undefined, 'none'])
        expect(answerOf(await send(browser, { claims, prompt }))).toBe('unmet_authentication_requirements');
    },
  );

  it.each([
    ['acr_values', { acr_values: 'phrh' }],
    ['acr_values with an unknown class', { acr_values: 'gold phr' }],
    ['an essential claim', { claims: claimsWith({ essential: true, values: ['phrh'] }) }],
  ])(
    'by %s requires a passkey of a member who has one, even after the password; the ID token states its class',
    async (_, parameters: Parameters) => {
      const { username, authenticator } = await memberWithPasskey(oauth);
      const browser = oauth.browser();
      const { url, redeem } = oauth.request(clientId, { scope: 'openid', ...parameters });
      const page = await browser.signIn(url, username);
      expect(page.html).toContain('The app asks you to sign in with a passkey.');
      expect(asksForPassword(page)).toBe(false);
      const fields = { username, password: PASSWORD };
      expect((await browser.post(page, `${page.url.pathname}/sign-in`, fields)).status).toBe(400);
      expect(answerOf(await send(browser, { ...parameters, prompt: 'none' }))).toBe('login_required');
      const credential = authenticator.prove(await optionsFor(browser, page));
      const consent = await browser.press(page, { credential }, /\/passkey$/);
      const { body } = await redeem(await browser.allow(consent));
      expect(decodeJwt(body.id_token!)).toMatchObject({ acr: 'phrh', amr: ['pop', 'user'] });
      expect(answerOf(await send(browser, { ...parameters, prompt: 'none' }))).toBe('code');
    },
  );

  thorough.it(
    'by acr_values, unlike by an essential claim, accepts another class if the member has no passkey of the requested class',
    async () => {
      const synced = new Authenticator(oauth.issuer, 0, { eligible: true, done: true });
      const { username } = await memberWithPasskey(oauth, synced);
      const browser = oauth.browser();
      const page = (await send(browser, {})) as FormPage;
      const credential = synced.prove(await optionsFor(browser, page));
      const consent = await browser.press(page, { credential }, /\/passkey$/);
      expect(answerOf(await browser.allow(consent))).toBe('code');
      expect(answerOf(await send(browser, { acr_values: 'phrh' }))).toBe('code');
      const claims = claimsWith({ essential: true, value: 'phrh' });
      expect(answerOf(await send(browser, { claims }))).toBe('unmet_authentication_requirements');
      expect((await idTokenOf(username, { acr_values: 'phrh' }, browser)).acr).toBe('phr');
    },
  );

  it('that is pushed with an unsupported essential class gets unmet_authentication_requirements after the push', async () => {
    const claims = claimsWith({ essential: true, value: 'gold' });
    const { url } = oauth.request(clientId, { scope: 'openid', state: 's', claims });
    const pushed = await oauth.post('/oauth/par', Object.fromEntries(url.searchParams));
    expect(pushed.status).toBe(201);
    const at = await oauth.browser().open(oauth.pushedUrl(clientId, pushed));
    expect(answerOf(at)).toBe('unmet_authentication_requirements');
  });

  it.each([
    'x',
    '[]',
    'null',
    '"acr"',
    '{"id_token":[]}',
    '{"id_token":{"acr":"phr"}}',
    '{"id_token":{"acr":{"essential":true,"values":[1]}}}',
    `{"id_token":{"acr":{"essential":true,"value":{"a":"b"}}}}`,
    '['.repeat(1000),
  ])('in malformed claims gets invalid_request, or a page if claims is null: %s', async (claims) => {
    const expected = claims === 'null' ? 'page' : 'invalid_request';
    const at = await send(oauth.browser(), { claims });
    expect(at instanceof URL ? answerOf(at) : 'page').toBe(expected);
  });
});

it('a key rotation between code and token keeps the old key’s signatures valid, and publishes the new key before its first use', async () => {
  const keySet = async () => {
    const response = await fetch(`${oauth.issuer}/oauth/jwks`);
    expect(response.headers.get('cache-control')).toBe('public, max-age=60');
    expect(response.headers.get('content-type')).toMatch(/^application\/jwk-set\+json/);
    return (await response.json()) as JSONWebKeySet;
  };
  const { username } = await oauth.member();
  const browser = oauth.browser();
  const published = await keySet();
  const code = await oauth.code(clientId, username, { scope: 'openid' }, browser);
  const { raw: before } = await idTokenOf(username, {}, browser);
  await new SigningKeysService(oauth.dataSource, oauth.api.config).rotate();

  const { body } = await oauth.token(code); // the code is older than the rotation
  expect(body.id_token).toBeDefined();
  const after = await eventually(async () => {
    const { raw } = await idTokenOf(username, {}, browser);
    return decodeProtectedHeader(raw).kid === decodeProtectedHeader(before).kid ? undefined : raw;
  });
  const both = await keySet();
  for (const key of both.keys) {
    expect(key).toMatchObject({ kid: expect.stringMatching(/^[\w-]{43}$/), use: 'sig', alg: 'ES256' });
    expect(key).not.toHaveProperty('d');
  }
  expect(new Set(both.keys.map(({ kid }) => kid)).size).toBe(both.keys.length);
  const options = { issuer: oauth.issuer, audience: clientId };
  // Clients that fetched the keys before or after the rotation verify both.
  for (const keys of [published, both])
    for (const token of [before, after, body.id_token!])
      await jwtVerify(token, createLocalJWKSet(keys), options);
  expect(answerOf(await send(browser, { id_token_hint: before, prompt: 'none' }))).toBe('code');
  expect((await browser.view(`/oauth/logout?id_token_hint=${before}`)).status).toBe(200);
  const refreshed = await oauth.refresh(clientId, body.refresh_token);
  await jwtVerify(refreshed.body.id_token!, createLocalJWKSet(both), options);
});
