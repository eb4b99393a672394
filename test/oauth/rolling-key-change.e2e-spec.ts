import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import pg from 'pg';
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import { closeApp, createApp } from '../../src/app.js';
import { CalendarLinks } from '../../src/calendar/calendar-links.js';
import { Secrets } from '../../src/crypto/secrets.js';
import { pua } from '../support/command-line.js';
import { postgres } from '../support/database.js';
import { asksForPassword, OauthTest, PASSWORD, type Browser, type FormPage } from '../support/oauth.js';
import { RoundRobin } from '../support/round-robin.js';
import { soon } from '../support/timing.js';
import { athOf, dpopSigner } from '../support/client-kinds.js';
import { atOnce } from '../support/concurrent.js';

const OLD = Buffer.from(process.env.TEST_SECRET_KEY!, 'base64');
const NEW = Buffer.alloc(32, 'new');
const THIRD = Buffer.alloc(32, 'third');

/** The settings of two instances: SECRET_KEY, and optionally SECRET_KEY_PREVIOUS. */
type Pair = readonly [readonly Buffer[], readonly Buffer[]];

/** Every state of two instances while SECRET_KEY changes as docs/operators/operations.md describes. */
const [OLD_FIRST, NEW_FIRST] = [
  [OLD, NEW],
  [NEW, OLD],
];
const DRILL: readonly Pair[] = [
  [[OLD], [OLD]],
  [OLD_FIRST, [OLD]],
  [OLD_FIRST, OLD_FIRST],
  [NEW_FIRST, OLD_FIRST],
  [NEW_FIRST, NEW_FIRST],
  [[NEW], NEW_FIRST],
  [[NEW], [NEW]],
];

const FLOWS = 6;

/** Requests alternate between two instances. */
postgres.describe('a rolling change of SECRET_KEY', () => {
  let balancer: RoundRobin;
  let oauth: OauthTest;
  let clientId: string;
  let apps: NestExpressApplication[] = [];

  beforeAll(async () => {
    balancer = await RoundRobin.start();
    oauth = await OauthTest.start({ publicUrl: balancer.url });
    clientId = await oauth.client();
  });
  beforeEach(() => oauth.query('DELETE FROM signing_keys')); // each test begins with its own keys
  afterEach(async () => {
    await Promise.all(apps.map(closeApp));
    apps = [];
  });
  afterAll(async () => {
    await oauth.close();
    await balancer.close();
  });

  async function start(pair: Pair): Promise<void> {
    await Promise.all(apps.map(closeApp));
    apps = [];
    for (const [current, previous] of pair) {
      const app = await createApp({ ...oauth.api.config, secrets: new Secrets(current!, previous) });
      apps.push(app);
      await app.listen(0, '127.0.0.1');
    }
    balancer.targets = await Promise.all(apps.map((app) => app.getUrl()));
  }

  it('announces an API key’s new hash at most once per instance while requests alternate', async () => {
    const key = await oauth.api.key(await oauth.api.platform.user());
    const announced: (string | undefined)[] = [];
    const listener = new pg.Client(oauth.api.config.databaseUrl);
    await listener.connect();
    listener.on('notification', ({ payload }) => announced.push(payload));
    await listener.query('LISTEN revocations');
    await start([NEW_FIRST, OLD_FIRST]);
    for (let i = 0; i < 12; i++) expect((await api('/api/public/me', { 'X-API-Key': key })).status).toBe(200);
    await listener.query('SELECT'); // earlier notifications have arrived
    await listener.end();
    expect(announced.length).toBeGreaterThan(0);
    expect(announced.length).toBeLessThanOrEqual(2);
  });

  const api = (path: string, headers: Record<string, string>) =>
    fetch(`${oauth.issuer}${path}`, { headers }).then(async (answer) => ({
      status: answer.status,
      body: (await answer.json()) as { data?: unknown[]; pagination?: { next_cursor: string | null } },
    }));

  /** Runs a flow from authorization to revocation; its requests alternate between the instances. */
  async function flow(n: number): Promise<void> {
    const { username } = await oauth.member();
    const browser = oauth.browser();
    const prove = await dpopSigner();
    const htu = `${oauth.issuer}/oauth/token`;

    const request = oauth.request(clientId);
    let { url } = request;
    if (n % 2 === 0) {
      const pushed = await oauth.post('/oauth/par', Object.fromEntries(url.searchParams));
      expect(pushed.status).toBe(201);
      url = oauth.pushedUrl(clientId, pushed);
    }
    const form = request.formOf(await browser.authorize(url, { username }));
    const first = await oauth.token(form, { DPoP: await prove({ htm: 'POST', htu }) });
    expect([first.status, first.body.error]).toEqual([200, undefined]);
    const keys = createLocalJWKSet(await oauth.json<JSONWebKeySet>('/oauth/jwks'));
    await jwtVerify(first.body.id_token!, keys, { issuer: oauth.issuer, audience: clientId });

    const refresh = async (refresh_token: string, nonce: string) =>
      oauth.token(
        { grant_type: 'refresh_token', client_id: clientId, refresh_token },
        { DPoP: await prove({ htm: 'POST', htu, nonce }) },
      );
    const nonce = first.headers.get('dpop-nonce')!;
    const second = await refresh(first.body.refresh_token, nonce);
    const again = await refresh(first.body.refresh_token, nonce);
    expect([second.status, again.status]).toEqual([200, 200]);
    expect(again.body.refresh_token).toBe(second.body.refresh_token);

    const { access_token } = second.body;
    const ath = athOf(access_token);
    const headers = async (path: string, jti: string = crypto.randomUUID()) => ({
      Authorization: `DPoP ${access_token}`,
      DPoP: await prove({ htm: 'GET', htu: `${oauth.issuer}${path}`, ath, jti }),
    });
    const used = await headers('/api/public/me');
    expect((await api('/api/public/me', used)).status).toBe(200);
    expect((await api('/api/public/me', used)).status).toBe(401); // a proof is accepted once, on any instance
    expect((await api('/oauth/userinfo', await headers('/oauth/userinfo'))).status).toBe(200);

    const account = await browser.view('/account/apps');
    expect([account.status, asksForPassword(account)]).toEqual([200, false]);
    const silent = await browser.leave(oauth.request(clientId, { prompt: 'none' }).url);
    expect(silent.searchParams.has('code')).toBe(true);

    const revoked = await oauth.post('/oauth/revoke', { token: access_token, client_id: clientId });
    expect(revoked.status).toBe(200);
    // The revocation takes effect on all instances within a second.
    const me = async () => (await api('/api/public/me', await headers('/api/public/me'))).status;
    await soon(async () => (await me()) === 401);
    expect((await refresh(second.body.refresh_token, nonce)).body.error).toBe('invalid_grant');
  }

  it('completes new flows at every step, and continues flows of the previous step', async () => {
    const { id, username } = await oauth.member();
    for (let i = 0; i < DRILL.length + 2; i++)
      await oauth.api.platform.participant(await oauth.api.platform.event(), id);
    const apiKey = await oauth.api.key(id);
    const signedIn = oauth.browser();
    let refreshToken: string | undefined;
    let cursor = '';
    let code: Record<string, string> | undefined;
    let begun: { browser: Browser; page: FormPage } | undefined;

    for (const pair of DRILL) {
      await start(pair);
      await atOnce(FLOWS, flow);

      // Tokens and flows of the previous step.
      const list = await api(`/api/public/events?limit=1${cursor && `&cursor=${cursor}`}`, {
        'X-API-Key': apiKey,
      });
      expect([list.status, list.body.data!.length]).toEqual([200, 1]);
      cursor = list.body.pagination!.next_cursor!;
      if (begun) {
        const at = await begun.browser.submit(begun.page, { username, password: PASSWORD }, /sign-in$/);
        expect(at instanceof URL ? at.searchParams.has('code') : at.status === 200).toBe(true);
      }
      if (code) {
        const redeemed = await oauth.token(code);
        expect([redeemed.status, redeemed.body.error]).toEqual([200, undefined]);
      }
      if (refreshToken) {
        const refreshed = await oauth.refresh(clientId, refreshToken);
        expect([refreshed.status, refreshed.body.error]).toEqual([200, undefined]);
        expect(await oauth.me(refreshed.body.access_token)).toBe(200);
        refreshToken = refreshed.body.refresh_token;
        expect(asksForPassword(await signedIn.view('/account/apps'))).toBe(false);
      } else {
        const { body } = await oauth.token(await oauth.code(clientId, username, {}, signedIn));
        refreshToken = body.refresh_token;
      }
      code = await oauth.code(clientId, username, {}, signedIn);
      const browser = oauth.browser();
      begun = { browser, page: await browser.view(oauth.request(clientId).url) };
    }
  });

  it('counts failed sign-ins across instances', async () => {
    await start([NEW_FIRST, OLD_FIRST]);
    const { id, username } = await oauth.member();
    for (let i = 0; i < 14; i++)
      await oauth.browser().signIn(oauth.request(clientId).url, username, `wrong ${i}`);
    const details = await oauth.details({ user: id, type: 'sign_in.refused' });
    expect(details.filter(({ reason }) => reason === 'wrong_password')).toHaveLength(10);
  });

  describe('with signing keys', () => {
    const stored = () =>
      oauth.query<{ kid: string; private_jwk: Buffer }>(
        `SELECT kid, private_jwk FROM signing_keys WHERE status <> 'retired' ORDER BY kid`,
      );
    const settings = ([current, previous]: readonly Buffer[]) => ({
      ...oauth.api.environment,
      PUBLIC_URL: oauth.issuer,
      SECRET_KEY: current!.toString('base64'),
      ...(previous ? { SECRET_KEY_PREVIOUS: previous.toString('base64') } : {}),
    });
    const doctor = async (keys: readonly Buffer[]) => {
      const { stdout } = await pua(settings(keys), ['doctor', '--json']);
      const { checks } = JSON.parse(stdout) as {
        checks: { name: string; status: string; message: string }[];
      };
      return Object.fromEntries(checks.map(({ name, status, message }) => [name, `${status}: ${message}`]));
    };
    it('encrypts the signing keys under the new SECRET_KEY once, even if the instances’ settings differ; the doctor shows the state', async () => {
      await start([[NEW], [NEW]]);
      const member = await oauth.member();
      await oauth.tokens(clientId, member.username);
      await oauth.api.app.get(CalendarLinks).create(member.id, 'Phone', { actor: 'user' });
      const before = await stored();
      expect((await doctor([NEW]))['signing keys']).toBe('ok: 2, all under the current SECRET_KEY');
      expect((await doctor([THIRD, NEW]))['signing keys']).toMatch(
        /^warn: 2 of 2 still need SECRET_KEY_PREVIOUS/,
      );
      expect((await doctor([THIRD]))['signing keys']).toMatch(/^fail: 2 of 2 cannot be decrypted/);

      await start([
        [NEW, THIRD],
        [NEW, THIRD],
      ]);
      expect(await stored()).toEqual(before);
      await start([
        [THIRD, NEW],
        [THIRD, NEW],
      ]);
      const moved = await stored();
      for (const [i, { private_jwk }] of moved.entries())
        expect(private_jwk).not.toEqual(before[i]!.private_jwk);
      await start([
        [NEW, THIRD],
        [THIRD, NEW],
      ]);
      expect(await stored()).toEqual(moved);
      expect((await doctor([NEW, THIRD]))['signing keys']).toMatch(
        /^warn: 2 of 2 are already under the next SECRET_KEY/,
      );
      expect((await doctor([THIRD, NEW]))['signing keys']).toBe('ok: 2, all under the current SECRET_KEY');
      expect((await doctor([THIRD, NEW]))['sign-ins']).toMatch(
        /^warn: \d+ refresh tokens and \d+ sessions date from before/,
      );
      const inUse = async () => (await doctor([THIRD, NEW]))['calendar links'];
      expect(await inUse()).toBe('warn: 1 were not used since the change of SECRET_KEY');
      await oauth.query('UPDATE calendar_links SET last_used_at = now()');
      expect(await inUse()).toBeUndefined();
      await start([[THIRD], [THIRD]]); // no longer needs the previous key
      await flow(0);
    });
  });

  it('makes sign-ins fail and prevents a restart if the operator skips a step', async () => {
    const next = Buffer.alloc(32, 'next');
    await start([[THIRD], [next, THIRD]]); // the first instance lacks the next key
    const { username } = await oauth.member();
    // One at a time: each of several parallel sign-ins could reach only one instance.
    await expect(oauth.code(clientId, username)).rejects.toThrow();
    await expect(start([[THIRD], [next, THIRD]])).rejects.toThrow(
      /signing key .* cannot be decrypted: set SECRET_KEY_PREVIOUS .*the next one \(docs\/operators\/operations\.md\)/,
    );
  });
});
