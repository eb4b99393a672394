import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { TokenKeys } from '../../src/crypto/hmac.js';
import { dpopKey } from '../support/client-kinds.js';
import { atOnce } from '../support/concurrent.js';
import { hold, postgres, waitingForLock } from '../support/database.js';
import type { TestApi } from '../support/api.js';
import { OauthTest, type Answer } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';
import { soon, until } from '../support/timing.js';

postgres.describe('two servers on one database', () => {
  let oauth: OauthTest;
  let servers: TestApi[];
  let clientId: string;
  let username: string;

  beforeAll(async () => {
    oauth = await OauthTest.start();
    // Long deadlines prevent a 503, which would not show whether the server has redeemed the code.
    const another = () => OauthTest.start({ publicUrl: oauth.issuer }, oauth);
    servers = [(await another()).api, (await another()).api];
    clientId = await oauth.client();
    ({ username } = await oauth.member());
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.close()));
    await oauth.close();
  });

  const spread = (count: number, send: (origin: string, index: number) => Promise<Answer>) =>
    atOnce(count, (i) => send(servers[i % servers.length]!.url, i));
  const successes = (answers: Answer[]) => answers.filter(({ status }) => status === 200);

  it('redeem a code once for 20 concurrent requests, in each of 30 rounds, and then revoke its tokens', async () => {
    const browser = oauth.browser();
    for (let round = 0; round < 30; round++) {
      const form = await oauth.code(clientId, username, {}, browser);
      const answers = await spread(20, (origin) => oauth.token(form, {}, origin));
      const [won, ...others] = successes(answers);
      expect([others, await oauth.me(won!.body.access_token)]).toEqual([[], 401]);
      expect(answers.filter(({ body }) => body.error === 'invalid_grant')).toHaveLength(19);
    }
  });

  it('return the same new tokens to 20 parallel refreshes with one token', async () => {
    for (let round = 0; round < 10; round++) {
      const { refresh_token } = await oauth.tokens(clientId, username);
      const answers = await spread(20, (origin) => oauth.refresh(clientId, refresh_token, {}, origin));
      expect(successes(answers)).toHaveLength(20);
      expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1);
      expect(new Set(answers.map(({ body }) => body.access_token)).size).toBe(1);
      const next = await oauth.refresh(clientId, answers[0]!.body.refresh_token, {}, servers[1]!.url);
      expect(next.status).toBe(200);
    }
  });

  it('accept a DPoP proof once', async () => {
    const proof = await dpopKey(oauth);
    const browser = oauth.browser();
    for (let round = 0; round < 5; round++) {
      const codes: Record<string, string>[] = [];
      while (codes.length < 8) codes.push(await oauth.code(clientId, username, {}, browser));
      const headers = await proof();
      const answers = await spread(8, (origin, i) => oauth.token(codes[i]!, headers, origin));
      expect(successes(answers)).toHaveLength(1);
    }
  });

  it('revoke a token family on both servers after reuse, and keep another device’s tokens', async () => {
    const device = await oauth.tokens(clientId, username);
    const other = await oauth.tokens(clientId, username);
    const { body } = await oauth.refresh(clientId, device.refresh_token, {}, servers[0]!.url);
    for (const { url } of servers) expect(await oauth.me(body.access_token, url)).toBe(200);
    await oauth.age('oauth_tokens', 11);
    expect((await oauth.refresh(clientId, device.refresh_token, {}, servers[1]!.url)).status).toBe(400);
    for (const { url } of servers) {
      await soon(async () => (await oauth.me(body.access_token, url)) === 401);
      expect(await oauth.me(other.access_token, url)).toBe(200);
    }
  });

  it('leave no valid token without a grant when a revocation races an exchange or a refresh', async () => {
    for (let round = 0; round < 15; round++) {
      const { access_token, refresh_token } = await oauth.tokens(clientId, username);
      const [revoked, refreshed] = await Promise.all([
        oauth.post('/oauth/revoke', { token: access_token, client_id: clientId }, {}, servers[0]!.url),
        oauth.refresh(clientId, refresh_token, {}, servers[1]!.url),
      ]);
      expect(revoked.status).toBe(200);
      expect([200, 400]).toContain(refreshed.status);
      if (refreshed.status === 200) {
        expect(await oauth.me(refreshed.body.access_token)).toBe(401);
        expect((await oauth.refresh(clientId, refreshed.body.refresh_token)).status).toBe(400);
      }
    }
    for (let round = 0; round < 15; round++) {
      const one = await oauth.member();
      const form = await oauth.code(clientId, one.username);
      const [, exchanged] = await Promise.all([
        oauth.query('DELETE FROM oauth_grants WHERE user_id = $1', [one.id]),
        oauth.token(form, {}, servers[round % 2]!.url),
      ]);
      if (exchanged.status === 200) expect(await oauth.me(exchanged.body.access_token)).toBe(401);
    }
  });

  it('report the new end of access in the response or by webhook if the member changes it during the code exchange', async () => {
    const { id: endpoint } = await new WebhooksService(oauth.dataSource, oauth.api.config).create({
      url: 'http://127.0.0.1:9/hooks',
      types: ['access.changed'],
      clientId,
      actor: 'admin',
    });
    for (let round = 0; round < 15; round++) {
      const one = await oauth.member();
      const form = await oauth.code(clientId, one.username);
      const access = new ConnectedApps(oauth.dataSource);
      const [changed, { status, body }] = await Promise.all([
        access.changeEnd(one.id, clientId, '180', { actor: 'user', ip: null }),
        oauth.token(form, {}, servers[round % 2]!.url),
      ]);
      expect([changed, status]).toEqual([true, 200]);
      await until(async () => (await oauth.query('SELECT FROM access_changes')).length === 0);
      const [told] = await oauth.query<{ days: number }>(
        `SELECT EXTRACT(epoch FROM (details->>'access_ends_at')::timestamp AT TIME ZONE 'UTC' - now())::float8 / 86400 AS days FROM webhook_deliveries
WHERE endpoint_id = $1 AND user_id = $2`,
        [endpoint, one.id],
      );
      expect(told?.days ?? (body.refresh_token_expires_in as number) / 86_400).toBeCloseTo(180, 1);
      for (const type of ['access.changed', 'token.issued'])
        expect(await oauth.events({ user: one.id, type })).toHaveLength(1);
    }
  });

  it.each(['code', 'refresh token'])(
    'return the end of access that the member chose just before the app redeems the %s',
    async (kind) => {
      for (const [days, end] of [
        [180, expect.closeTo(180, 1)],
        [null, NaN],
      ] as const) {
        const one = await oauth.member();
        const form = await oauth.code(clientId, one.username);
        const { refresh_token } = kind === 'code' ? {} : (await oauth.token(form)).body;
        const change = `UPDATE oauth_grants SET access_ends_at = now() + make_interval(days => $2) WHERE user_id = $1`;
        const changing = await hold(oauth.dataSource, change, [one.id, days]);
        const redeeming = refresh_token ? oauth.refresh(clientId, refresh_token) : oauth.token(form);
        await waitingForLock(oauth.dataSource, 'FROM oauth_grants');
        await changing.commit();
        const { status, body } = await redeeming;
        expect([status, Number(body.refresh_token_expires_in) / 86_400]).toEqual([200, end]);
      }
    },
  );

  it('store one of two concurrent consents: the member gets one notice, and each grant has its own end', async () => {
    for (let round = 0; round < 5; round++) {
      const one = await oauth.member();
      const durations = ['30', '180'];
      await Promise.all(
        durations.map((duration, n) => {
          const { url } = oauth.request(clientId, { prompt: 'consent' });
          return oauth.browser(servers[n]!.url).authorize(url, { username: one.username, duration });
        }),
      );
      const [found] = await oauth.query<Record<string, unknown>>(
        `SELECT (SELECT array_agg(round(EXTRACT(epoch FROM access_ends_at - now()) / 86400)::text ORDER BY access_ends_at)
    FROM oauth_grants WHERE user_id = $1) AS ends,
  (SELECT duration = round(EXTRACT(epoch FROM access_ends_at - now()) / 86400)::text FROM oauth_consents WHERE user_id = $1) AS matches,
  (SELECT array_agg(details->>'duration' ORDER BY details->>'duration' DESC) FROM auth_events
    WHERE user_id = $1 AND type = 'consent.granted') AS chosen,
  (SELECT count(*)::integer FROM platform_changes WHERE user_id = $1 AND notice = 'consent.granted') AS notices`,
        [one.id],
      );
      expect(found).toEqual({ ends: durations, matches: true, chosen: durations, notices: 1 });
    }
  });

  const isUsedUp = async (refreshToken: string) => {
    const [row] = await oauth.query<{ used: boolean }>(
      'SELECT consumed_at IS NOT NULL AS used FROM oauth_tokens WHERE key = ANY($1)',
      [new TokenKeys(oauth.api.config.secrets).keysOf('RefreshToken', refreshToken)],
    );
    return row!.used;
  };

  it('accept the retry of a refresh during which another server was killed', async () => {
    for (let round = 0; round < 5; round++) {
      const victim = await ServerProcess.start({ ...oauth.api.environment, PUBLIC_URL: oauth.issuer });
      const { refresh_token } = await oauth.tokens(clientId, username);
      // Each round kills the server at another moment: before or during the response, or when the token is consumed.
      let isOver = false;
      const lost = oauth
        .refresh(clientId, refresh_token, {}, victim.url)
        .catch(() => undefined)
        .finally(() => (isOver = true));
      if (round < 3) await new Promise((resolve) => setTimeout(resolve, round * 4));
      else while (!isOver && !(await isUsedUp(refresh_token)));
      await victim.kill('SIGKILL');
      await lost;
      const retry = await oauth.refresh(clientId, refresh_token, {}, servers[0]!.url);
      expect(retry.status).toBe(200);
      expect(await oauth.me(retry.body.access_token, servers[1]!.url)).toBe(200);
    }
  });
});
