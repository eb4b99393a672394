import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createLocalJWKSet, decodeJwt, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { UsersService } from '../../src/accounts/users.service.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import { PublicHttps } from '../../src/runtime/public-https.js';
import { RETRY_AFTER } from '../../src/runtime/outbox.js';
import { thorough } from '../support/database.js';
import { puaJson } from '../support/command-line.js';
import { OauthTest, PASSWORD, REDIRECT_URI, type Browser } from '../support/oauth.js';
import { Receiver } from '../support/receiver.js';
import { soon, until } from '../support/timing.js';

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
const ADMIN = 'admin' as const;

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

const receivers: Receiver[] = [];
afterEach(async () => {
  await oauth.query('DELETE FROM oauth_logouts');
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
});

/** An app that gets logout notifications. */
async function toldApp(fields: Parameters<OauthTest['client']>[0] = {}) {
  const receiver = await Receiver.start();
  receivers.push(receiver);
  return { clientId: await oauth.client({ backchannel_logout_uri: receiver.url, ...fields }), receiver };
}

type SignedIn = Awaited<ReturnType<typeof signIn>>;

/** Signs in a new member, or a member in another or the same browser. */
async function signIn(clientId: string, of?: { id: number; username: string; browser?: Browser }) {
  const { id, username } = of ?? (await oauth.member());
  const browser = of?.browser ?? oauth.browser();
  const { body } = await oauth.token(await oauth.code(clientId, username, { scope: 'openid' }, browser));
  const { sid } = decodeJwt(body.id_token!);
  return { id, username, browser, tokens: body, sid: sid as string };
}

/** The logout tokens of a receiver, verified as an app must (Back-Channel Logout 1.0 §2.6). */
async function tokensAt(
  clientId: string,
  { received }: Receiver,
  algorithm = 'ES256',
): Promise<JWTPayload[]> {
  const keys = createLocalJWKSet((await (await fetch(`${oauth.issuer}/oauth/jwks`)).json()) as JSONWebKeySet);
  const options = {
    issuer: oauth.issuer,
    audience: clientId,
    typ: 'logout+jwt',
    algorithms: [algorithm],
    requiredClaims: ['iat', 'exp', 'jti', 'events'],
  };
  const forms = received.map(({ body }) => new URLSearchParams(body));
  return Promise.all(
    forms.map(async (form) => (await jwtVerify(form.get('logout_token')!, keys, options)).payload),
  );
}

const queued = () =>
  oauth.query<{ client_id: string; attempts: number; waits: boolean }>(
    'SELECT client_id, attempts, due_at > now() AS waits FROM oauth_logouts ORDER BY id',
  );

/** Resolves when no notification is pending. */
const allDone = () => until(async () => (await queued()).length === 0, 'that all notifications are done');

/** Every cause of a session's end, except the external identity provider (upstream-sign-out.e2e-spec.ts). */
const WAYS: Record<string, (member: SignedIn, clientId: string) => Promise<unknown>> = {
  'the member signs out on the account pages': async ({ browser }) =>
    browser.submit(await browser.view('/account/apps'), {}, /\/sign-out$/),
  'the member signs out because another app requests it': async ({ browser }) =>
    browser.submit(await browser.view('/oauth/logout'), { logout: 'yes' }),
  'the member ends the session on /account/sessions': async ({ browser }) =>
    browser.submit(await browser.view('/account/sessions'), {}, /^\/account\/sessions\/\w{64}\/end$/),
  'the member ends all other sessions from another browser': async ({ id, username }) => {
    const { browser } = await signIn(await oauth.client(), { id, username });
    await browser.submit(await browser.view('/account/sessions'), {}, /end-others$/);
  },
  'the member changes the password in another browser': async ({ id, username }) => {
    const { browser } = await signIn(await oauth.client(), { id, username });
    const passwords = { current_password: PASSWORD, new_password: 'another quite long password' };
    const fields = { ...passwords, end_others: 'yes' };
    await browser.submit(await browser.view('/account/security'), fields, /security\/password$/);
  },
  'another member signs in in the same browser for an app': async ({ browser }) => {
    const { username } = await oauth.member();
    await oauth.code(await oauth.client(), username, { prompt: 'login' }, browser);
  },
  'an admin sets a password': ({ id }) =>
    new UsersService(oauth.dataSource).setPassword(id, 'yet another long password', ADMIN),
  'an admin revokes all access': ({ id }) =>
    oauth.api.app.get(ConnectedApps, { strict: false }).revokeAll(id, { actor: ADMIN, ip: null }),
  'an admin disables the member': ({ id }) => new UsersService(oauth.dataSource).disable(id, ADMIN),
  'the member is erased': ({ id }) => eraseMembers(oauth.dataSource, [id], { actor: ADMIN }),
  'an admin deletes the row manually': ({ id }) =>
    oauth.query('DELETE FROM oauth_sessions WHERE user_id = $1', [id]),
};

describe('an app with a back-channel logout URI', () => {
  it('gets one session id per browser, even after a refresh; another app gets another id, or none without a logout URI', async () => {
    const { clientId } = await toldApp();
    const member = await signIn(clientId);
    expect(member.sid).toMatch(/^[\w-]{20,}$/);
    const again = await signIn(clientId, member);
    const elsewhere = await signIn(clientId, { id: member.id, username: member.username });
    expect([again.sid, elsewhere.sid === member.sid]).toEqual([member.sid, false]);
    const { body } = await oauth.refresh(clientId, member.tokens.refresh_token);
    expect(decodeJwt(body.id_token!).sid).toBe(member.sid);
    const there = await signIn((await toldApp()).clientId, member);
    expect(there.sid).not.toBe(member.sid); // so that two apps cannot recognize the same session
    expect((await signIn(await oauth.client(), member)).sid).toBeUndefined();
  });

  it.each(Object.keys(WAYS))('is notified when %s', async (way) => {
    const { clientId, receiver } = await toldApp();
    const member = await signIn(clientId);
    const before = Math.floor(Date.now() / 1000);
    await WAYS[way]!(member, clientId);
    await soon(() => receiver.received.length === 1);
    const [{ headers }] = receiver.received as [(typeof receiver.received)[0]];
    expect(headers['content-type']).toBe('application/x-www-form-urlencoded');
    const [claims] = await tokensAt(clientId, receiver);
    const { iat, exp, jti, ...rest } = claims!;
    expect(rest).toEqual({
      iss: oauth.issuer,
      aud: clientId,
      sub: String(member.id),
      sid: member.sid,
      events: { [EVENT]: {} },
    });
    expect(jti).toMatch(/./);
    expect(iat).toBeGreaterThanOrEqual(before);
    expect(exp! - iat!).toBeLessThanOrEqual(120);
    await allDone();
    expect(receiver.received).toHaveLength(1);
  });

  it('and another app each get one notification per session', async () => {
    const [one, two] = [await toldApp(), await toldApp()];
    const member = await signIn(one.clientId);
    const there = await signIn(two.clientId, member);
    const elsewhere = await signIn(one.clientId, { id: member.id, username: member.username });
    await WAYS['an admin disables the member']!(member, '');
    await Promise.all([one.receiver.untilReceived(2), two.receiver.untilReceived(1)]);
    const sids = async ({ clientId, receiver }: typeof one) =>
      (await tokensAt(clientId, receiver)).map(({ sid }) => sid as string).sort();
    expect(await sids(one)).toEqual([member.sid, elsewhere.sid].sort());
    expect(await sids(two)).toEqual([there.sid]);
  });

  it('is the only app notified if the member signs out of that app only', async () => {
    const [one, two] = [await toldApp(), await toldApp()];
    const member = await signIn(one.clientId);
    await signIn(two.clientId, member);
    const url = `/oauth/logout?id_token_hint=${member.tokens.id_token}`;
    await member.browser.submit(await member.browser.view(url), {}); // without `logout`: the member stays signed in
    await one.receiver.untilReceived(1);
    expect((await tokensAt(one.clientId, one.receiver))[0]!.sid).toBe(member.sid);
    const silent = oauth.request(two.clientId, { scope: 'openid', prompt: 'none' }).url;
    expect((await member.browser.leave(silent)).searchParams.has('code')).toBe(true);
    expect((await signIn(one.clientId, member)).sid).not.toBe(member.sid);
    await allDone();
    expect(two.receiver.received).toEqual([]);
  });

  it('is not notified when the session gets a new id or expires', async () => {
    const { clientId, receiver } = await toldApp();
    const member = await signIn(clientId);
    for (const prompt of ['login', 'consent', undefined])
      await oauth.code(clientId, member.username, { scope: 'openid', prompt }, member.browser);
    expect(await queued()).toEqual([]);
    await oauth.query(`UPDATE oauth_sessions SET expires_at = now() WHERE user_id = $1`, [member.id]);
    await oauth.query('DELETE FROM oauth_sessions WHERE user_id = $1', [member.id]); // as the sweeper does
    expect([await queued(), receiver.received]).toEqual([[], []]);
  });

  it('causes no notification while it is disabled, like an app without a URI', async () => {
    const { clientId } = await toldApp();
    const member = await signIn(clientId);
    await signIn(await oauth.client(), member);
    await oauth.query('UPDATE oauth_clients SET disabled_at = now() WHERE id = $1', [clientId]);
    await WAYS['an admin disables the member']!(member, '');
    expect(await queued()).toEqual([]);
  });

  it('that never responds delays neither other apps nor its own other notifications', async () => {
    const [slow, quick] = [await toldApp(), await toldApp()];
    slow.receiver.respond = () => undefined; // never
    const members = await Promise.all([1, 2, 3].map(() => signIn(slow.clientId)));
    for (const member of members) await WAYS['an admin disables the member']!(member, '');
    await slow.receiver.until(() => slow.receiver.underWay === 3);
    const member = await signIn(quick.clientId);
    await WAYS['the member signs out on the account pages']!(member, '');
    await quick.receiver.untilReceived(1);
    expect((await queued()).filter(({ client_id }) => client_id === slow.clientId)).toHaveLength(3);
  });

  it('that responds with 503 is notified again, with a new token for the same session', async () => {
    const { clientId, receiver } = await toldApp();
    receiver.respond = (_, response) =>
      void response.writeHead(receiver.received.length === 1 ? 503 : 200).end();
    const member = await signIn(clientId);
    await WAYS['the member signs out on the account pages']!(member, '');
    await receiver.untilReceived(1);
    await until(async () => {
      // Before the server records the outcome, due_at is later: the time at which the claim expires.
      await oauth.query(
        `UPDATE oauth_logouts SET due_at = now() WHERE due_at > now() AND due_at <= now() + interval '6 seconds'`,
      );
      return receiver.received.length === 2;
    }, 'the next attempt');
    const [first, second] = await tokensAt(clientId, receiver);
    expect([first!.sid, second!.sid, first!.jti === second!.jti]).toEqual([member.sid, member.sid, false]);
    await allDone();
  });

  it.each([
    ['7200', 7_200],
    ['999999', 36_000],
  ])('that responds with 503 and Retry-After: %s is notified again %d s later', async (value, seconds) => {
    const { clientId, receiver } = await toldApp();
    receiver.respond = (_, response) => void response.writeHead(503, { 'Retry-After': value }).end();
    await WAYS['the member signs out on the account pages']!(await signIn(clientId), '');
    await until(async () => {
      const [logout] = await oauth.query<{ wait: number }>(
        'SELECT extract(epoch FROM due_at - now())::int AS wait FROM oauth_logouts WHERE client_id = $1',
        [clientId],
      );
      return logout!.wait > seconds - 600 && logout!.wait <= seconds;
    }, 'the delayed attempt');
    await oauth.query('DELETE FROM oauth_logouts WHERE client_id = $1', [clientId]);
  });

  it('that responds with 410 loses its logout URI, and an audit event records the loss', async () => {
    const { clientId, receiver } = await toldApp();
    receiver.respond = (_, response) => void response.writeHead(410).end();
    const member = await signIn(clientId);
    await WAYS['the member signs out on the account pages']!(member, '');
    await receiver.untilReceived(1);
    await allDone();
    const uri = 'SELECT backchannel_logout_uri AS uri FROM oauth_clients WHERE id = $1';
    expect(await oauth.query(uri, [clientId])).toEqual([{ uri: null }]);
    expect(await oauth.events({ client: clientId, type: 'client.updated' })).toMatchObject([
      { actor: 'system', details: { changed: ['backchannel_logout_uri'], reason: 'gone' } },
    ]);
  });

  it('is notified at a new URI that was registered while the old URI responded with 410', async () => {
    const { clientId, receiver } = await toldApp();
    const { receiver: next } = await toldApp();
    const update = 'UPDATE oauth_clients SET backchannel_logout_uri = $2 WHERE id = $1';
    receiver.respond = (_, response) =>
      void oauth.query(update, [clientId, next.url]).then(() => response.writeHead(410).end());
    const member = await signIn(clientId);
    await WAYS['the member signs out on the account pages']!(member, '');
    await next.untilReceived(1);
    await allDone();
  });

  it('gets no further attempts after the last scheduled attempt fails', async () => {
    const { clientId, receiver } = await toldApp();
    receiver.respond = (_, response) => void response.writeHead(302, { Location: receiver.url }).end();
    const member = await signIn(clientId);
    await oauth.query(
      `INSERT INTO oauth_logouts (client_id, user_id, sid, attempts) VALUES ($1, $2, $3, $4)`,
      [clientId, member.id, member.sid, RETRY_AFTER.length],
    );
    await receiver.untilReceived(1);
    await allDone();
    expect(receiver.received).toHaveLength(1); // the server follows no redirect
  });

  it('gets no connection if its host name resolves to a private address', async () => {
    const https = oauth.api.app.get(PublicHttps, { strict: false });
    const lookUp = https.lookUp;
    const asked: string[] = [];
    https.lookUp = async (name) => (asked.push(name), [{ address: '10.0.0.1', family: 4 }]);
    const clientId = await oauth.client({ backchannel_logout_uri: 'https://inside.example/hooks' });
    const member = await signIn(clientId);
    await WAYS['the member signs out on the account pages']!(member, '');
    await until(async () => asked.length === 1 && (await queued())[0]?.waits === true, 'the attempt');
    https.lookUp = lookUp;
    const [row] = await queued();
    expect([row, asked]).toEqual([{ client_id: clientId, attempts: 1, waits: true }, ['inside.example']]);
  });

  thorough.it('gets logout tokens signed with its ID token algorithm', async () => {
    const { clientId, receiver } = await toldApp({ id_token_signed_response_alg: 'RS256' });
    const url = oauth.request(clientId, { scope: 'openid' }).url;
    await until(async () => (await fetch(url, { redirect: 'manual' })).status !== 503, 'the keys');
    const member = await signIn(clientId);
    await WAYS['the member signs out on the account pages']!(member, '');
    await receiver.untilReceived(1);
    expect((await tokensAt(clientId, receiver, 'RS256'))[0]!.sid).toBe(member.sid);
  });
});

describe('the back-channel logout URI of an app', () => {
  it('is registered, changed and removed by commands', async () => {
    const run = (...args: string[]) =>
      puaJson<{ client_id: string; backchannel_logout_uri: string | null }>(oauth.api.environment, [
        'clients',
        ...args,
      ]);
    const app = ['create', '--name', 'App', '--type', 'web', '--redirect-uri', REDIRECT_URI];
    const uri = 'https://app.example/logout?tenant=1';
    const created = await run(...app, '--backchannel-logout-uri', uri);
    expect(created.backchannel_logout_uri).toBe(uri);
    for (const next of ['https://app.example/bye', '']) {
      const updated = await run('update', created.client_id, '--backchannel-logout-uri', next);
      expect(updated.backchannel_logout_uri).toBe(next || null);
    }
  });

  it.each([
    'http://app.example/logout',
    'https://10.0.0.1/logout',
    'https://[::1]/logout#fragment',
    'https://user@app.example/',
    'app.example/logout',
    'javascript:alert(1)',
    `https://app.example/${'a'.repeat(2000)}`,
  ])('is rejected if it cannot receive logout messages: %s', async (uri) => {
    await expect(oauth.client({ backchannel_logout_uri: uri })).rejects.toThrow(
      /cannot receive logout messages.*https URL/,
    );
  });
});
