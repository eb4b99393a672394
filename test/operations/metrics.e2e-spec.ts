import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import supertest from 'supertest';
import { hashPassword } from '../../src/accounts/passwords/passwords.js';
import { METRICS } from '../../src/runtime/metrics.js';
import { PeriodicWork } from '../../src/runtime/periodic-work.js';
import { TestApi } from '../support/api.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { createTestDatabase, postgres, type TestDatabase } from '../support/database.js';
import { freePort, OauthTest, PASSWORD } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';
import { eventually } from '../support/timing.js';
import { itInOneWindow } from '../support/windows.js';

/** Value of one series; 0 if the series does not exist. */
function valueOf(text: string, series: string): number {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

describe('metrics', () => {
  let api: TestApi;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    api = await TestApi.start({ metricsPort: port });
  });
  afterAll(() => api.close());

  it('are served on a separate port, by route and status, without callers’ text', async () => {
    const key = await api.key(await api.platform.user());
    await api.get('/events/424242', key);
    await api.get('/me', 'pua_live_nonsense');
    await api.send('GET', '/api/public/made-up-by-a-caller');
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(text).toContain(
      'http_request_duration_seconds_count{method="GET",route="/api/public/events/:id",status="404"} 1',
    );
    expect(text).toContain('http_problems_total{code="invalid_credentials"} 1');
    expect(text).toMatch(/^database_pool_connections\{state="idle"\} \d+$/m);
    expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m);
    expect(text).toMatch(/^build_info\{version="\d+\.\d+\.\d+",node="v\d+\.[\d.]+"\} 1$/m);
    expect(text).toMatch(/^http_requests_under_way 0$/m);
    for (const sent of ['424242', 'made-up', key, 'nonsense', key.split('_')[2]!])
      expect(text).not.toContain(sent);
    for (const name of Object.keys(METRICS)) expect(text).toContain(`# HELP ${name} `);
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
    expect((await api.send('GET', '/metrics')).status).toBe(404);
  });

  it('show client secrets in use that expire and have no newer secret in use, and the age of the signing key', async () => {
    const value = async (name: string) =>
      valueOf(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(), name);
    const query = (sql: string) => api.query(sql);
    await query(`INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes, profile, secret_auth_method, jwks)
SELECT name, name, 'web', '{https://app.example/}', '{}', 'oidc', 'client_secret_basic', '{"keys": []}' FROM unnest('{late,unused,newer}'::text[]) name`);
    await query(`INSERT INTO oauth_client_secrets (client_id, hash, pepper_id, last_four, expires_at, last_used_at)
SELECT client_id, decode(repeat('00', 32), 'hex'), '\\x00000000', 'abcd', expires_at, used_at FROM (VALUES
  ('late', now() + interval '3 days', now()), ('late', NULL, NULL), -- not used yet
  ('unused', now() + interval '3 days', NULL),
  ('newer', now() + interval '3 days', now()), ('newer', NULL, now())) s (client_id, expires_at, used_at)`);
    expect(await value('client_secrets_expiring')).toBe(1);
    await query(`UPDATE oauth_clients SET disabled_at = now() WHERE id = 'late'`);
    expect(await value('client_secrets_expiring')).toBe(0);
    await query(
      `UPDATE signing_keys SET activated_at = now() - interval '400 days' WHERE status = 'current'`,
    );
    expect(await value('signing_key_age_seconds')).toBeGreaterThanOrEqual(400 * 86_400);
    await query(`DELETE FROM oauth_clients WHERE id IN ('late', 'unused', 'newer')`);
  });

  it('show keys in use that expire, and the oldest due message of endpoints that are not failing', async () => {
    const text = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const before = valueOf(await text(), 'api_keys_expiring');
    const expiring = async () =>
      (await api.key(await api.platform.user(), [], { expiresInSeconds: 3_600 })).split('_')[2];
    const [used] = await Promise.all([expiring(), expiring()]);
    await api.query('INSERT INTO api_key_usage (key_id, last_used_at) VALUES ($1, now())', [used]);
    expect(valueOf(await text(), 'api_keys_expiring') - before).toBe(1);
    expect(await text()).toMatch(/^webhook_oldest_due_seconds 0$/m);
    await api.query(`WITH made AS (
  INSERT INTO webhook_endpoints (id, url, types, secret, failing_since) VALUES
    ('well', 'https://app.example/', '{profile.updated}', '', NULL), ('failing', 'https://app.example/', '{profile.updated}', '', now())
  RETURNING id)
INSERT INTO webhook_deliveries (endpoint_id, user_id, type, thing_id, changed_at, due_at, leased_until)
SELECT id, 0, 'profile.updated', 1, now(), now() - make_interval(mins => CASE id WHEN 'well' THEN 5 ELSE 60 END), now() + interval '1 hour'
FROM made`);
    const oldest = valueOf(await text(), 'webhook_oldest_due_seconds');
    await api.query(`DELETE FROM webhook_endpoints`);
    expect(oldest).toBeGreaterThanOrEqual(300);
    expect(oldest).toBeLessThan(3_600);
  });

  it('have a failure label for exactly the declared kinds of periodic work', () => {
    const declared = api.app.get(PeriodicWork).declared();
    expect(declared.map(({ schedule }) => schedule.work).toSorted()).toEqual(
      METRICS.periodic_work_failures_total.labels.work,
    );
  });
});

describe('metrics of features', () => {
  let oauth: OauthTest;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    oauth = await OauthTest.start({
      metricsPort: port,
      sweepIntervalSeconds: 86_400, // only the tests sweep
      trustProxy: 1,
      rateLimits: { read: 3, write: 2, auth: 1 },
    });
  });
  afterAll(() => oauth.close());
  const scrape = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  /** The increase of `series` during `work`. */
  const added = async (series: string, work: () => Promise<unknown>) => {
    const before = valueOf(await scrape(), series);
    await work();
    return valueOf(await scrape(), series) - before;
  };

  itInOneWindow('count rejections by limit and kind of credential', async () => {
    const key = await oauth.api.key(await oauth.api.platform.user());
    const refused = (limit: string, credential: string) =>
      `rate_limit_refusals_total{limit="${limit}",credential="${credential}"}`;
    const times = async (number: number, call: () => Promise<unknown>) => {
      for (let i = 0; i < number; i++) await call();
    };
    // New addresses each time, since earlier requests count in the same window.
    const network = `2001:db8:${randomInt(65_536).toString(16)}`;
    const from = (host: string) => ({ 'X-Forwarded-For': `${network}:${host}::1` });
    expect(await added(refused('read', 'api_key'), () => times(5, () => oauth.api.get('/me', key)))).toBe(2);
    expect(
      await added(refused('write', 'api_key'), () => times(3, () => oauth.api.put('/profile', key, {}))),
    ).toBe(1);
    expect(
      await added(refused('failed_authentication', 'api_key'), () =>
        times(3, () => oauth.api.get('/me', 'pua_live_wrong', from('a'))),
      ),
    ).toBe(2);
    expect(
      await added(refused('oauth_requests', 'none'), () =>
        times(102, () => oauth.api.send('POST', '/oauth/revoke', from('b'))),
      ),
    ).toBe(2);
  });

  it('count sign-ins at the account pages by result, and count password hashes', async () => {
    // A hash with current parameters: an older hash would be upgraded, which is one more hash.
    const { username } = await oauth.member({ password_hash: await hashPassword(PASSWORD) });
    const signIn = (address: string, password: string) => async () => {
      const browser = oauth.browser();
      browser.headers['X-Forwarded-For'] = address;
      await browser.submit(await browser.view('/account/apps'), { username, password }, /\/sign-in$/);
    };
    const result = (name: string) => `sign_ins_total{result="${name}",way="account",method="password"}`;
    const hashed = 'password_hashing_duration_seconds_count';
    const before = valueOf(await scrape(), hashed);
    expect(await added(result('signed-in'), signIn('198.51.100.11', PASSWORD))).toBe(1);
    expect(await added(result('invalid'), signIn('198.51.100.12', 'wrong'))).toBe(1);
    expect(await added(result('throttled'), signIn('198.51.100.12', 'wrong'))).toBe(1);
    expect(valueOf(await scrape(), hashed) - before).toBe(2);
    expect(valueOf(await scrape(), 'password_hashing_queue{state="running"}')).toBe(0);
  });

  it('count errors of the authorization server by code', async () => {
    const clientId = await oauth.client();
    const refresh = () => oauth.refresh(clientId, 'x'.repeat(43));
    expect(await added('oauth_errors_total{error="invalid_grant"}', refresh)).toBe(1);
    expect(
      await added('oauth_errors_total{error="unsupported_grant_type"}', () =>
        oauth.token({ grant_type: 'made_up', client_id: clientId }),
      ),
    ).toBe(1);
    expect(await scrape()).not.toContain('made_up');
    // One error of each kind: on the library's page, on this server's page, and before either page.
    const browser = oauth.browser();
    const counted = (error: string, ask: () => Promise<unknown>) =>
      added(`oauth_errors_total{error="${error}"}`, ask);
    expect(await counted('invalid_client', () => browser.open('/oauth/authorize?client_id=nobody'))).toBe(1);
    expect(await counted('invalid_request', () => browser.open('/interaction/gone'))).toBe(1);
    expect(await counted('invalid_request', () => oauth.post('/account/sign-out', {}))).toBe(1);
    expect(await counted('invalid_request', () => oauth.token({ client_id: 'x'.repeat(101) }))).toBe(1);
    expect(await counted('invalid_grant', () => oauth.browser().open('/account/apps'))).toBe(0);
  });

  it('show a table’s last successful sweep, deleted rows and failures', async () => {
    const sweeper = oauth.api.app.get(Sweeper, { strict: false });
    expect(valueOf(await scrape(), 'sweeper_last_success_timestamp_seconds{rows="oauth_state"}')).toBe(0);
    await oauth.query(
      `INSERT INTO oauth_state (key, model, payload, expires_at) VALUES (decode(repeat('01', 32), 'hex'), 'ReplayDetection', NULL, now() - interval '1 day')`,
    );
    expect(await added('sweeper_deleted_rows_total{rows="oauth_state"}', () => sweeper.sweep())).toBe(1);
    const at = valueOf(await scrape(), 'sweeper_last_success_timestamp_seconds{rows="oauth_state"}');
    expect(Math.abs(at - Date.now() / 1000)).toBeLessThan(3_600);
    await oauth.query('ALTER TABLE oauth_state RENAME TO oauth_state_away');
    try {
      expect(
        await added('sweeper_failures_total{rows="oauth_state"}', () =>
          sweeper.sweep().catch(() => undefined),
        ),
      ).toBe(1);
    } finally {
      await oauth.query('ALTER TABLE oauth_state_away RENAME TO oauth_state');
    }
  });

  postgres.it('show pipelined connections and dead rows', async () => {
    const text = await scrape();
    expect(valueOf(text, 'database_pipelined_lanes')).toBe(2);
    expect(text).toMatch(/^database_pipelined_reads_under_way \d+$/m);
    expect(text).toMatch(/^database_dead_rows\{table="oauth_tokens"\} \d+$/m);
    expect(text).toMatch(/^rate_limits_shared 1$/m);
    expect(text).toMatch(/^overload_refusals_total\{reason="database_pool"\} 0$/m);
    expect(text).toMatch(/^overload_refusals_total\{reason="password_hashing"\} 0$/m);
  });
});

// Many processes, so not in every `npm test`.
postgres.describe('metrics of several processes', () => {
  let database: TestDatabase;
  let server: ServerProcess;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    database = await createTestDatabase();
    server = await ServerProcess.start({ ...database.environment, WORKERS: '2', METRICS_PORT: String(port) });
    await fromProcesses(2);
  });
  afterAll(async () => {
    await server.kill('SIGTERM');
    await database.drop();
  });

  const scrape = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const SERVED =
    'http_request_duration_seconds_count{method="GET",route="/api/public/problems",status="200"}';
  const ANSWERING = 'server_processes{state="answering"}';
  const SILENT = 'server_processes{state="silent"}';
  /** Uses a separate connection for each request, so that all processes get some requests. */
  const call = async (times: number) => {
    for (let i = 0; i < times; i++)
      expect((await supertest(server.url).get('/api/public/problems')).status).toBe(200);
  };
  const workers = () =>
    readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').trim().split(' ').map(Number);
  /** A scrape to which this many processes respond in time: of another process it may contain earlier values. */
  const fromProcesses = (count: number, check: (text: string) => void = () => undefined) =>
    eventually(async () => {
      const text = await scrape();
      check(text);
      return valueOf(text, ANSWERING) === count ? text : undefined;
    });

  it('form one registry: each scrape returns the sum over all processes', async () => {
    const before = valueOf(await fromProcesses(2), SERVED);
    await call(20);
    const text = await fromProcesses(2);
    expect(valueOf(text, SERVED)).toBe(before + 20);
    expect(valueOf(text, SILENT)).toBe(0);
    expect(text.match(/^build_info/gm)).toHaveLength(1);
    for (let i = 1; i <= 5; i++) {
      await call(3);
      expect(valueOf(await fromProcesses(2), SERVED)).toBe(before + 20 + 3 * i);
    }
  });

  it('are served while a process hangs, and do not decrease', async () => {
    const before = valueOf(await fromProcesses(2), SERVED);
    const [hanging] = workers();
    process.kill(hanging!, 'SIGSTOP');
    try {
      const text = await fromProcesses(1);
      expect(valueOf(text, SERVED)).toBe(before);
      expect(valueOf(text, SILENT)).toBe(1);
    } finally {
      process.kill(hanging!, 'SIGCONT');
    }
    await fromProcesses(2);
  });

  it('keep the counts of a process that was killed and replaced', async () => {
    const before = valueOf(await fromProcesses(2), SERVED);
    process.kill(workers()[0]!, 'SIGKILL');
    const text = await fromProcesses(2, (now) => expect(valueOf(now, SERVED)).toBe(before));
    expect(valueOf(text, SILENT)).toBe(0);
    await call(4);
    expect(valueOf(await fromProcesses(2), SERVED)).toBe(before + 4);
  });

  it('require a free METRICS_PORT: otherwise the server does not start, and its error names the port', async () => {
    await expect(
      ServerProcess.start({ ...database.environment, METRICS_PORT: String(port) }),
    ).rejects.toThrow(`METRICS_PORT ${port} on 127.0.0.1 cannot be used (EADDRINUSE): set another port`);
  });
});
