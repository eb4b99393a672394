import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { batchStatement, deleteExpired, expiredRows, Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { postgres, thorough } from '../support/database.js';
import { csrfOf, OauthTest, PASSWORD, scopesOn } from '../support/oauth.js';
import { blocksOf, explain, scansOf, type Plan } from '../support/plans.js';

describe('the sweeper', () => {
  let oauth: OauthTest;
  // Only the tests sweep: a periodic sweep would delete rows that a test counts.
  beforeAll(async () => void (oauth = await OauthTest.start({ sweepIntervalSeconds: 86_400 })));
  afterAll(() => oauth.close());

  const query = <T>(sql: string, values: unknown[] = []) => oauth.query<T>(sql, values);
  const sweep = () => oauth.api.app.get(Sweeper).sweep();

  it('deletes only expired rows', async () => {
    const clientId = await oauth.client();
    const { username } = await oauth.member();
    const expireEverything = async () => {
      for (const table of ['oauth_tokens', 'oauth_sessions', 'oauth_state'] as const)
        await oauth.age(table, 200 * 86_400);
    };
    await expireEverything();
    await sweep(); // rows of other tests
    await oauth.tokens(clientId, username);
    await expireEverything();
    const alive = await oauth.tokens(clientId, username);
    expect(await sweep()).toMatchObject({
      authorization_codes: 1,
      oauth_tokens: 2,
      oauth_sessions: 1,
      oauth_grants: 1,
    });
    expect(await oauth.me(alive.access_token)).toBe(200);
    expect((await oauth.refresh(clientId, alive.refresh_token)).status).toBe(200);
    expect(Object.values(await sweep()).every((rows) => rows === 0)).toBe(true);
  });

  it('sweeps every table with an expiry column, except tables that this test lists with a reason', async () => {
    const exempt: Record<string, string> = {
      access_changes: 'a second later its rows are messages',
      api_keys: 'a key that has expired is shown as such',
      developer_requests: 'each app and each key has its latest ones, and no more',
      events: 'an event that is over stays in its members’ lists',
      oauth_consents: 'the next consent page has its answers selected',
      rate_limit_instances: 'one row',
      webhook_endpoints: 'the row outlives the secret before',
    };
    const tables = await query<{ name: string }>(
      `SELECT DISTINCT table_name AS name FROM information_schema.columns WHERE table_schema = 'public'
AND column_name ~ '(^|_)(expires|ends|ended|occurred)_at$|_until$' ORDER BY 1`,
    );
    const swept = expiredRows({ auditRetentionSeconds: 1, changesRetentionSeconds: 1 });
    const unswept = tables
      .map(({ name }) => name)
      .filter((name) => !swept.some(({ table }) => table === name));
    expect(unswept).toEqual(Object.keys(exempt));
  });

  it('keeps a grant while one of its tokens is valid, and for a minute afterwards', async () => {
    const clientId = await oauth.client();
    await oauth.tokens(clientId, (await oauth.member()).username);
    const grants = () => query(`SELECT FROM oauth_grants WHERE client_id = $1`, [clientId]);
    const expire = (model: string, ago: string) =>
      query(
        `UPDATE oauth_tokens SET expires_at = now() - interval '${ago}' WHERE model = '${model}'
AND grant_id IN (SELECT id FROM oauth_grants WHERE client_id = $1)`,
        [clientId],
      );
    await expire('AuthorizationCode', '1 hour');
    await expire('AccessToken', '1 hour');
    expect(await sweep()).toMatchObject({ authorization_codes: 1, oauth_tokens: 1, oauth_grants: 0 });
    await expire('RefreshToken', '50 seconds');
    expect(await sweep()).toMatchObject({ oauth_tokens: 0, oauth_grants: 0 });
    expect(await grants()).toHaveLength(1);
    await expire('RefreshToken', '70 seconds');
    expect(await sweep()).toMatchObject({ oauth_tokens: 1, oauth_grants: 1 });
  });

  it('does not have to delete grants without a code: the server stores a grant only with its code', async () => {
    const clientId = await oauth.client();
    const { username } = await oauth.member();
    const browser = oauth.browser();
    const signIn = await browser.view(oauth.request(clientId).url);
    const consent = await browser.press(signIn, { username, password: PASSWORD }, /sign-in$/);
    const body = new URLSearchParams({ csrf: csrfOf(consent), decision: 'allow' });
    for (const scope of scopesOn(consent.html)) body.append('scope', scope);
    const allowed = await browser.send(`${consent.url.pathname}/consent`, { method: 'POST', body });
    const grants = async () =>
      (
        await query<{ minutes: number }>(
          `SELECT round(extract(epoch FROM expires_at - created_at) / 60)::integer AS minutes FROM oauth_grants WHERE client_id = $1`,
          [clientId],
        )
      ).map(({ minutes }) => minutes);
    expect(await grants()).toEqual([]);

    const back = (await browser.open(allowed.headers.get('location')!)) as URL;
    expect(back.searchParams.has('code')).toBe(true);
    expect(await grants()).toEqual([31 * 24 * 60]);
  });

  it('keeps a sign-in block for an hour after its end, then deletes it', async () => {
    await query(
      `INSERT INTO login_throttle (key, attempts, window_ends_at, blocks) VALUES
(sha256('old'), 11, now() - interval '61 minutes', 3), (sha256('recent'), 11, now() - interval '59 minutes', 3)`,
    );
    expect((await sweep()).login_throttle).toBe(1);
    const recent = await query(`DELETE FROM login_throttle WHERE key = sha256('recent')`);
    expect(recent).toEqual([[], 1]); // a later sweep would count it
  });

  it('deletes more than one batch', async () => {
    await query(
      `INSERT INTO oauth_state (key, model, expires_at)
SELECT sha256(i::text::bytea), 'ReplayDetection', now() - interval '1 s' FROM generate_series(1, 2500) i`,
    );
    expect((await sweep()).oauth_state).toBe(2500);
  });

  thorough.it('continues after a table that fails, and records the failure and overdue rows', async () => {
    const expired = `INSERT INTO oauth_state (key, model, expires_at) VALUES (sha256('x'), 'ReplayDetection', now() - interval '1 hour')`;
    const sweeper = oauth.api.app.get(Sweeper);
    const state = () => ({ ...sweeper.sweeping.get('oauth_state')! });
    const before = state();
    await query(expired);
    await query(
      `INSERT INTO login_throttle (key, attempts, window_ends_at) VALUES (sha256('later'), 1, now() - interval '2 hours')`,
    );
    await query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''broken''; END';
CREATE TRIGGER refuse BEFORE DELETE ON oauth_state FOR EACH STATEMENT EXECUTE FUNCTION refuse()`);
    expect(await sweep()).toMatchObject({ oauth_state: 0, login_throttle: 1 });
    expect(state()).toEqual({
      ...before,
      failures: before.failures + 1,
      overdueSince: expect.any(Date),
    });
    const overdueMinutes = (Date.now() - state().overdueSince!.getTime()) / 60_000;
    expect(overdueMinutes).toBeGreaterThan(59);
    expect(overdueMinutes).toBeLessThan(119);
    await query('DROP FUNCTION refuse CASCADE');
    await sweep();
    expect(state()).toEqual({
      deleted: before.deleted + 1,
      failures: before.failures + 1,
      lastSuccessAt: expect.any(Date),
      overdueSince: undefined,
    });
  });

  postgres.it('does not wait for locked rows', async () => {
    await query(
      `INSERT INTO oauth_state (key, model, expires_at) VALUES (sha256('held'), 'ReplayDetection', now() - interval '1 s'),
(sha256('free'), 'ReplayDetection', now() - interval '1 s')`,
    );
    await oauth.dataSource.transaction(async (manager) => {
      await manager.query(`SELECT FROM oauth_state WHERE key = sha256('held') FOR UPDATE`);
      expect((await sweep()).oauth_state).toBe(1);
    });
    expect((await sweep()).oauth_state).toBe(1);
  });

  postgres.it('continues with other tables if one table is locked', async () => {
    await query(
      `INSERT INTO login_throttle (key, attempts, window_ends_at) VALUES (sha256('locked out'), 1, now() - interval '2 hours')`,
    );
    const failures = () => oauth.api.app.get(Sweeper).sweeping.get('oauth_sessions')!.failures;
    const before = failures();
    await oauth.dataSource.transaction(async (manager) => {
      await manager.query('LOCK TABLE oauth_sessions IN ACCESS EXCLUSIVE MODE');
      expect(await sweep()).toMatchObject({ oauth_sessions: 0, login_throttle: 1 });
    });
    expect(failures()).toBe(before + 1);
  });

  postgres.it('sends no revocation notification about grants that expired with their tokens', async () => {
    await oauth.tokens(await oauth.client(), (await oauth.member()).username);
    await oauth.age('oauth_tokens', 200 * 86_400);
    const listener = new Client({ connectionString: oauth.api.environment.DATABASE_URL });
    await listener.connect();
    try {
      const heard: (string | undefined)[] = [];
      listener.on('notification', ({ payload }) => heard.push(payload));
      await listener.query('LISTEN revocations');
      expect((await sweep()).oauth_grants).toBeGreaterThan(0);
      await listener.query('SELECT'); // notifications arrive before its response
      expect(heard).toEqual([]);
    } finally {
      await listener.end();
    }
  });
});

const ROWS = 100_000;
const EXPIRED = 3_000;
/** All tables except the ring of rejections, which is limited to 10,000 rows. */
const GROWING = expiredRows({ auditRetentionSeconds: 400 * 86_400, changesRetentionSeconds: 0 }).filter(
  ({ name }) => name !== 'oauth_refusals',
);

postgres.describe('the sweeper over 100,000 rows in each table', () => {
  let oauth: OauthTest;
  beforeAll(async () => {
    oauth = await OauthTest.start({ sweepIntervalSeconds: 86_400 });
    await fill(oauth);
  });
  afterAll(() => oauth.close());

  const planOf = async (statement: string, values: unknown[]) => {
    let plan: Plan | undefined;
    await oauth.dataSource
      .transaction(async (manager) => {
        await manager.query('SET LOCAL enable_bitmapscan = off'); // as PostgreSQL chooses for larger tables
        plan = await explain(manager, 'ANALYZE, BUFFERS, ', statement, values);
        throw new Error('undone');
      })
      .catch((error: Error) => {
        if (error.message !== 'undone') throw error;
      });
    return plan!;
  };

  it('finds expired rows by indexes, deletes all in one sweep, and starts batches after deleted rows', async () => {
    for (const rows of GROWING) {
      const plan = await planOf(batchStatement(rows), ['-infinity']);
      // Some pages of the table and its indexes for each of the 1,000 rows.
      expect([rows.name, scansOf(plan), blocksOf(plan) < 60_000]).toEqual([rows.name, [], true]);
    }

    expect(await oauth.api.app.get(Sweeper).sweep()).toEqual({
      ...Object.fromEntries(GROWING.map(({ name }) => [name, EXPIRED])),
      oauth_refusals: 0,
      changes: 0,
      platform_changes: 0,
    });

    // Another transaction can still see the deleted rows, so their index entries remain.
    const rows = GROWING.find(({ name }) => name === 'oauth_state')!;
    await oauth.query(
      `UPDATE oauth_state SET expires_at = now() - interval '1 day' + random() * interval '20 s'
WHERE key IN (SELECT key FROM oauth_state LIMIT 20000)`,
    );
    const reader = new Client({ connectionString: oauth.api.environment.DATABASE_URL });
    await reader.connect();
    try {
      await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await reader.query('SELECT count(*) FROM users');
      let batches = 0;
      await deleteExpired(oauth.dataSource, rows, () => ++batches < 18);
      const [{ last } = { last: '' }] = await oauth.query<{ last: string }>(
        'SELECT min(expires_at)::text AS last FROM oauth_state',
      );
      const blocks = async (from: string) => blocksOf(await planOf(batchStatement(rows), [from]));
      expect(await blocks(last)).toBeLessThan((await blocks('-infinity')) - 10_000);
    } finally {
      await reader.end();
    }
  });
});

/**
 * Fast: constraints are not checked and indexes are created afterwards, without an effect on the sweep. One transaction per statement: a
 * long transaction delays sync and webhooks in every database of the cluster, including those of other tests.
 */
async function fill({ dataSource }: OauthTest): Promise<void> {
  const tables = GROWING.map(({ table }) => table);
  const indexes = await dataSource.query<{ name: string; definition: string }[]>(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i
WHERE i.indrelid = ANY($1::regclass[]) AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`,
    [tables],
  );
  const runner = dataSource.createQueryRunner();
  try {
    await runner.query('SET session_replication_role = replica; SET maintenance_work_mem = 200000');
    for (const { name } of indexes) await runner.query(`DROP INDEX ${name}`);
    const expiry = `now() + CASE WHEN n <= ${EXPIRED} THEN interval '-1 day' ELSE interval '1 day' END`;
    const key = `decode(lpad(to_hex(n), 64, '0'), 'hex')`;
    const series = `generate_series(1, ${ROWS}) n`;
    await runner.query(`INSERT INTO users (id, username) VALUES (1, 'many')`);
    await runner.query(
      `INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) VALUES ('many', 'Many', 'web', '{https://app.example/}', '{}')`,
    );
    await runner.query(
      `INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at, access_ends_at) SELECT n::text, 1, 'many', '{}', ${expiry},
  CASE WHEN n > ${EXPIRED} AND n <= ${2 * EXPIRED} THEN now() - interval '1 day' END FROM ${series}`,
    );
    // The other grants belong to expired codes and tokens, and remain.
    await runner.query(
      `INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
SELECT ${key}, CASE WHEN n % 2 = 0 THEN 'AuthorizationCode' ELSE 'AccessToken' END, (${ROWS / 2} + n % ${ROWS / 2})::text, '{}',
  now() + CASE WHEN n <= 2 * ${EXPIRED} THEN interval '-1 day' ELSE interval '1 day' END FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO ended_refresh_tokens (key, client_id, ended_at, reason)
SELECT ${key}, 'many', now() - CASE WHEN n <= ${EXPIRED} THEN interval '31 days' ELSE interval '1 day' END, 'member' FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO oauth_sessions (uid_key, key, public_id, user_id, payload, expires_at)
SELECT ${key}, ${key}, lpad(to_hex(n), 32, '0')::uuid, 1, '', ${expiry} FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO oauth_state (key, model, expires_at) SELECT ${key}, 'ReplayDetection', ${expiry} FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO login_throttle (key, attempts, window_ends_at) SELECT ${key}, 1, ${expiry} FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO auth_events (type, actor, user_id, occurred_at)
SELECT 'token.issued', 'client', 1, now() - CASE WHEN n <= ${EXPIRED} THEN interval '401 days' ELSE interval '1 day' END FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO api_keys (id, user_id, name, environment, scopes, hash, pepper_id, last_four, no_expiry_reason)
VALUES ('many00000000', 1, 'many', 'live', '{}', ${key.replace('n', '1')}, '\\x00000000', 'many', 'many')`,
    );
    await runner.query(
      `INSERT INTO idempotent_responses (key_id, idempotency_key, body_hash, response, created_at)
SELECT 'many00000000', n::text, ${key}, '{}', now() - CASE WHEN n <= ${EXPIRED} THEN interval '25 hours' ELSE interval '1 hour' END
FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO member_usage (user_id, day, app_kind, app_id, scope, uses, last_used_at)
SELECT 1, now() - CASE WHEN n <= ${EXPIRED} THEN interval '92 days' ELSE interval '1 day' * (n % 80) END, 'client', n::text,
  'events:read', 1, now() FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO webhook_endpoints (id, url, types, secret) VALUES ('many', 'https://app.example/', '{profile.updated}', '')`,
    );
    await runner.query(
      `INSERT INTO webhook_deliveries (endpoint_id, type, user_id, thing_id, changed_at, status, ended_at)
SELECT 'many', 'profile.updated', 1, 1, now(), 'delivered', now() - CASE WHEN n <= ${EXPIRED} THEN interval '8 days' ELSE interval '1 day' END
FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO oauth_logouts (client_id, user_id, sid, ended_at)
SELECT 'many', 1, n::text, now() - CASE WHEN n <= ${EXPIRED} THEN interval '4 days' ELSE interval '1 day' END FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO oauth_client_secrets (client_id, hash, pepper_id, last_four, expires_at)
SELECT 'many', ${key}, '\\x00000000', 'many', now() + CASE WHEN n <= ${EXPIRED} THEN interval '-8 days' ELSE interval '1 day' END FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO rate_limit_counts (key, window_number, used)
SELECT n::text, extract(epoch FROM ${expiry})::bigint / 60, 1 FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO developer_request_counts (client_id, hour, method, route, status, requests)
SELECT 'many', now() - CASE WHEN n <= ${EXPIRED} THEN interval '31 days' ELSE interval '1 day' END, 'GET', n::text, 200, 1 FROM ${series}`,
    );
    await runner.query(
      `INSERT INTO notice_emails (user_id, notice, is_bulk, created_at)
SELECT 1, 'key.created', false, now() - CASE WHEN n <= ${EXPIRED} THEN interval '5 days' ELSE interval '1 day' END FROM ${series}`,
    );
    for (const { definition } of indexes) await runner.query(definition);
    await runner.query('RESET ALL');
  } finally {
    await runner.release();
  }
}
