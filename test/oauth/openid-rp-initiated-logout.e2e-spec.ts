import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { decodeJwt, decodeProtectedHeader, importJWK, SignJWT, type JWTPayload } from 'jose';
import { SigningKeysService } from '../../src/clients/signing-keys.service.js';
import { OauthTest, type FormPage } from '../support/oauth.js';

const BYE = 'https://app.example/bye';
const QUESTION = 'You will be signed out of this browser';

let oauth: OauthTest;
let clientId: string;
beforeAll(async () => {
  oauth = await OauthTest.start();
  clientId = await oauth.client({ post_logout_redirect_uris: [BYE] });
});
afterAll(() => oauth.close());

type SignedIn = Awaited<ReturnType<typeof signIn>>;

async function signIn() {
  const { username } = await oauth.member();
  const browser = oauth.browser();
  const { body } = await oauth.token(await oauth.code(clientId, username, { scope: 'openid' }, browser));
  return { browser, idToken: body.id_token!, refreshToken: body.refresh_token };
}

/** Requests a sign-out. @returns a page, or the external URL to which the browser is redirected */
function ask({ browser }: SignedIn, parameters: Record<string, string>, method = 'GET') {
  const form = new URLSearchParams(parameters);
  if (method === 'GET') return browser.open(`/oauth/logout?${form}`);
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  return browser.open('/oauth/logout', { method, body: String(form), headers });
}

/** Requests a sign-out, and confirms it. */
async function signOut(member: SignedIn, parameters: Record<string, string>, method?: string) {
  const page = (await ask(member, parameters, method)) as FormPage;
  expect([page.status, page.url.pathname]).toEqual([200, '/oauth/logout']);
  return member.browser.submit(page, { logout: 'yes' });
}

/** Requests a sign-out that is rejected with an error page. @returns the page */
async function rejected(member: SignedIn, parameters: Record<string, string>): Promise<FormPage> {
  const page = (await ask(member, parameters)) as FormPage;
  expect([page.status, page.html.includes('You were not signed out')]).toEqual([400, true]);
  expect(await member.browser.isSignedIn()).toBe(true);
  return page;
}

/** An ID token with other claims, signed by the server's own key. */
async function signedAgain(idToken: string, claims: JWTPayload): Promise<string> {
  const { kid, alg } = decodeProtectedHeader(idToken);
  const keys = await new SigningKeysService(oauth.dataSource, oauth.api.config).load();
  const key = await importJWK(keys.find((one) => one.kid === kid)!);
  return new SignJWT({ ...decodeJwt(idToken), ...claims })
    .setProtectedHeader({ alg: alg!, kid: kid! })
    .sign(key);
}

describe('an app that signs its member out (RP-Initiated Logout 1.0)', () => {
  it.each(['GET', 'POST'])(
    'by %s gets the browser back at its registered URL with the state; the session ends, and the app keeps its access',
    async (method) => {
      const member = await signIn();
      const parameters = { id_token_hint: member.idToken, post_logout_redirect_uri: BYE, state: 'a b&ä' };
      const back = (await signOut(member, parameters, method)) as URL;
      expect([back.origin + back.pathname, [...back.searchParams]]).toEqual([BYE, [['state', 'a b&ä']]]);
      expect(await member.browser.isSignedIn()).toBe(false);
      expect((await oauth.refresh(clientId, member.refreshToken)).status).toBe(200);
    },
  );

  it('may identify itself by client_id only', async () => {
    const member = await signIn();
    const parameters = { client_id: clientId, post_logout_redirect_uri: BYE, state: 's' };
    const back = (await signOut(member, parameters)) as URL;
    expect([back.href, await member.browser.isSignedIn()]).toEqual([`${BYE}?state=s`, false]);
  });

  it.each([
    ['without a return URL', (idToken: string) => ({ id_token_hint: idToken })],
    ['without any parameter', () => ({})],
    ['with only state', () => ({ state: 's' })],
    ['with a return URL, but without a client', () => ({ post_logout_redirect_uri: BYE, state: 's' })],
  ] as [string, (idToken: string) => Record<string, string>][])(
    '%s leaves the member on a page that confirms the sign-out',
    async (_, parametersFor) => {
      const member = await signIn();
      const page = (await signOut(member, parametersFor(member.idToken))) as FormPage;
      expect([page.status, page.url.pathname]).toEqual([200, '/oauth/logout/success']);
      expect(page.html).toContain('You are signed out');
      expect(await member.browser.isSignedIn()).toBe(false);
    },
  );

  it('may send an expired ID token; without a state in the request, the redirect has none', async () => {
    const member = await signIn();
    const seconds = Math.floor(Date.now() / 1000) - 86_400;
    const id_token_hint = await signedAgain(member.idToken, { iat: seconds, exp: seconds + 600 });
    const back = (await signOut(member, { id_token_hint, post_logout_redirect_uri: BYE })) as URL;
    expect([back.href, await member.browser.isSignedIn()]).toEqual([BYE, false]);
  });

  it.each(['another member', 'another browser'])(
    'signs no member out without confirmation if the ID token belongs to %s',
    async (whose) => {
      const [member, other] = [await signIn(), await signIn()];
      const { sub } = decodeJwt(member.idToken);
      const id_token_hint =
        whose === 'another member' ? other.idToken : await signedAgain(other.idToken, { sub: sub! });
      const page = (await ask(member, { id_token_hint, post_logout_redirect_uri: BYE })) as FormPage;
      expect([page.status, await member.browser.isSignedIn(), await other.browser.isSignedIn()]).toEqual([
        200,
        true,
        true,
      ]);
      const back = await member.browser.submitAndLeave(page, {}); // the member stays signed in
      expect([back.href, await member.browser.isSignedIn()]).toEqual([BYE, true]);
    },
  );

  it('without parameters requires the member’s confirmation, and the member may stay signed in', async () => {
    const member = await signIn();
    const page = (await ask(member, {})) as FormPage;
    expect(page.html).toContain(QUESTION);
    const stayed = await member.browser.press(page, {});
    expect([stayed.url.pathname, await member.browser.isSignedIn()]).toEqual(['/account/apps', true]);
  });

  it.each([
    `${BYE}?foo=bar`,
    `${BYE}/`,
    `${BYE}#`,
    'https://app.example/',
    'https://app.example/BYE',
    'https://app.example:443/bye',
    'http://app.example/bye',
    'https://app.example.evil.example/bye',
    'https://evil.example/bye',
    'javascript:alert(1)',
    'bye',
  ])('gets an error page if the return URL does not match exactly: %s', async (target) => {
    const member = await signIn();
    const parameters = { id_token_hint: member.idToken, post_logout_redirect_uri: target, state: 's' };
    expect((await rejected(member, parameters)).html).not.toContain('name="xsrf"');
  });

  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  it.each<[string, (token: string) => string | Promise<string>]>([
    ['whose signature was changed', (token) => token.replace(/.{8}$/, 'AAAAAAAA')],
    [
      'whose claims were changed',
      (token) => token.replace(/\..*\./, `.${encoded({ ...decodeJwt(token), sub: '1' })}.`),
    ],
    ['without a signature', (token) => `${encoded({ alg: 'none' })}.${token.split('.')[1]}.`],
    [
      'that the app signed with its own secret',
      (token) =>
        new SignJWT({ ...decodeJwt(token), iss: clientId, aud: oauth.issuer })
          .setProtectedHeader({ alg: 'HS256' })
          .sign(randomBytes(32)),
    ],
    ['of another server', (token) => signedAgain(token, { iss: 'https://other.example' })],
    ['for an unknown app', (token) => signedAgain(token, { aud: 'nobody' })],
    ['that is malformed', () => 'x.y.z'],
    ['that consists only of dots', () => '..'],
  ])('gets an error page if it sends an ID token %s, and the member stays signed in', async (_, changed) => {
    const member = await signIn();
    const parameters = { id_token_hint: await changed(member.idToken), post_logout_redirect_uri: BYE };
    const page = await rejected(member, parameters);
    expect(page.html).toContain('The id_token_hint is not an ID token of this server.');
  });

  it('gets an error page if the ID token does not match client_id, or the app is unknown', async () => {
    const member = await signIn();
    const other = await oauth.client({ post_logout_redirect_uris: [BYE] });
    for (const parameters of [
      { client_id: other, id_token_hint: member.idToken },
      { client_id: 'nobody' },
    ] as Record<string, string>[])
      await rejected(member, { ...parameters, post_logout_redirect_uri: BYE });
  });
});
