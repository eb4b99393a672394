import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Client } from 'pg';
import { AUTH_EVENTS, boundedDetails } from '../../src/audit/audit.js';
import { AuditLog } from '../../src/audit/audit-log.js';
import { RateLimits } from '../../src/auth/rate-limits/rate-limits.js';
import { SignIn } from '../../src/accounts/sign-in/sign-in.js';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { Database } from '../../src/database/database.js';
import { Meter } from '../../src/runtime/meter.js';
import { placeOf, Rejections, maskedInput } from '../../src/authorization-server/failures/rejections.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { onPostgres, postgres, thorough } from '../support/database.js';
import { csrfOf, OauthTest, PASSWORD, REDIRECT_URI, type FormPage } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';
import { until } from '../support/timing.js';
import { itInOneWindow } from '../support/windows.js';

const DAY = 86_400;

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start({ sweepIntervalSeconds: DAY })));
afterAll(() => oauth.close());

const query = <T>(sql: string, values: unknown[] = []) => oauth.query<T>(sql, values);

thorough.describe('invalid requests', () => {
  const JUNK = 300;
  /** A new instance, since each stores only ten rejections per minute for one address. */
  let server: OauthTest;
  beforeEach(async () => {
    server = await OauthTest.start({ sweepIntervalSeconds: DAY }, oauth);
    sent.length = 0;
  });
  afterEach(() => server.close());

  const CODE = { grant_type: 'authorization_code', redirect_uri: REDIRECT_URI };
  const secret = () => randomBytes(32).toString('base64url');
  const sent: string[] = [];
  const plant = () => {
    const planted = secret();
    if (sent.length < 500) sent.push(planted);
    return planted;
  };

  const state = async () => {
    const [row] = await query<{ events: number; refusals: number; bytes: number }>(
      `SELECT (SELECT count(*)::integer FROM auth_events) AS events, (SELECT count(*)::integer FROM oauth_refusals) AS refusals,
  (SELECT COALESCE(sum(pg_column_size(r)), 0)::integer FROM oauth_refusals r) AS bytes`,
    );
    return row!;
  };
  const inParallel = async (count: number, ask: (i: number) => Promise<unknown>) => {
    let next = 0;
    const worker = async () => {
      while (next < count) await ask(next++);
    };
    await Promise.all(Array.from({ length: 20 }, worker));
  };
  const drain = async (asked: Promise<Response>) => void (await (await asked).arrayBuffer());

  it.each<[string, (clientId: string) => Promise<unknown>]>([
    [
      'an Origin of 15 KB',
      (clientId) =>
        server.token(
          { ...CODE, client_id: clientId, code: secret() },
          { Origin: `https://${plant()}${'x'.repeat(15_000)}.example` },
        ),
    ],
    ['unknown client ids', () => drain(server.browser().send(server.request(plant()).url))],
    [
      'unregistered redirect URIs',
      (clientId) => {
        const redirect_uri = `https://${plant()}.example/${plant()}?code=${plant()}#${plant()}`;
        return drain(server.browser().send(server.request(clientId, { redirect_uri }).url));
      },
    ],
    [
      'scopes and other parameters',
      (clientId) => {
        const parameters = { scope: plant(), claims: plant(), prompt: plant(), nonce: plant() };
        return drain(server.browser().send(server.request(clientId, parameters).url));
      },
    ],
    [
      'malformed codes and tokens',
      (clientId) => server.token({ ...CODE, client_id: clientId, code: plant(), code_verifier: plant() }),
    ],
    [
      'their own request ids',
      () =>
        server.token(
          { grant_type: 'refresh_token', client_id: plant(), refresh_token: plant() },
          { 'X-Request-Id': plant() },
        ),
    ],
    ['pages of nonexistent sign-ins', () => drain(server.browser().send(`/interaction/${plant()}`))],
  ])('with %s store at most 30 rejections, without any text of the requests', async (description, ask) => {
    const clientId = await oauth.client();
    const before = await state();
    await inParallel(JUNK, () => ask(clientId));
    const after = await state();
    // Once an hour, an event informs the app's developers about a request from another origin's page.
    expect(after.events).toBe(before.events + (description === 'an Origin of 15 KB' ? 1 : 0));
    expect(after.refusals).toBeLessThanOrEqual(before.refusals + 30); // limit for one address in three minutes
    expect(after.bytes / Math.max(after.refusals, 1)).toBeLessThan(600);
    const dump = JSON.stringify([
      await query('SELECT * FROM oauth_refusals'),
      await query('SELECT * FROM auth_events'),
    ]).toLowerCase();
    expect(sent.filter((planted) => dump.includes(planted.slice(0, 20).toLowerCase()))).toEqual([]);
  });

  it('with passwords for unknown usernames cause no audit event', async () => {
    const before = await state();
    const signIn = server.api.app.get(SignIn);
    await inParallel(40, (i) => signIn.attempt({ username: `nobody-${i}`, password: 'x', ip: '192.0.2.1' }));
    expect(await state()).toEqual(before);
  });

  it('from pages that send an API key record its exposure once, without the page’s path', async () => {
    const key = await oauth.api.key((await oauth.member()).id);
    const keyId = key.split('_')[2]!;
    const before = await state();
    await inParallel(JUNK, (i) =>
      drain(
        fetch(`${server.issuer}/api/public/me`, {
          headers: { 'X-API-Key': key, Origin: `https://page.example/${i}/${plant()}${'x'.repeat(12_000)}` },
        }),
      ),
    );
    expect(await state()).toEqual({ ...before, events: before.events + 1 });
    expect(await oauth.details({ key: keyId, type: 'key.exposed' })).toEqual([{}]);
    expect(await query('SELECT exposed_origin FROM api_key_usage WHERE key_id = $1', [keyId])).toEqual([
      { exposed_origin: 'https://page.example' },
    ]);
  });

  it('that name unknown apps or sessions cause no audit event', async () => {
    const { username } = await oauth.member();
    const browser = server.browser();
    const page = await browser.view('/account/apps');
    const csrf = csrfOf(await browser.press(page, { username, password: PASSWORD }));
    const before = await state();
    const post = (path: string, fields: Record<string, string> = {}) =>
      drain(browser.send(path, { method: 'POST', body: new URLSearchParams({ csrf, ...fields }) }));
    await inParallel(JUNK / 10, () => post('/account/apps/revoke', { client_id: plant() }));
    await inParallel(10, () => post(`/account/sessions/${randomBytes(32).toString('hex')}/end`));
    await post('/account/sessions/end-others');
    expect(await state()).toEqual(before);
  });
});

describe('rejections of anonymous requests', () => {
  const refusals = (errorId: string) =>
    query<Record<string, unknown>>(
      'SELECT route, error, reason, client_id, redirect_uri FROM oauth_refusals WHERE error_id = $1',
      [errorId],
    );
  thorough.it('are kept in a ring of 10,000 rows: a new rejection replaces the oldest', async () => {
    const keep = (i: number) =>
      oauth.api.app.get(Rejections).keep({
        errorId: `ring-${i}`,
        route: '/oauth/authorize',
        error: 'invalid_client',
        reason: 'unknown_client',
        ip: `192.0.2.${i}`,
      });
    await query(`SELECT setval('oauth_refusals_place', 9999)`);
    await keep(1);
    await query(`SELECT setval('oauth_refusals_place', 9999)`);
    await keep(2);
    const places = await query(`SELECT error_id, place FROM oauth_refusals WHERE error_id LIKE 'ring-%'`);
    expect(places).toEqual([{ error_id: 'ring-2', place: 0 }]);
    await expect(
      query(
        `INSERT INTO oauth_refusals (place, error_id, route, error, reason) VALUES (10000, 'x', '/', 'x', 'x')`,
      ),
    ).rejects.toThrow(/oauth_refusals_place_check/);
  });

  it('are deleted after 30 days', async () => {
    await query(`SELECT setval('oauth_refusals_place', 5000)`);
    await query(
      `INSERT INTO oauth_refusals (error_id, route, error, reason, occurred_at) VALUES
('old', '/', 'x', 'x', now() - interval '31 days'), ('recent', '/', 'x', 'x', now() - interval '29 days')`,
    );
    expect((await oauth.api.app.get(Sweeper).sweep()).oauth_refusals).toBe(1);
    expect(await refusals('recent')).toHaveLength(1);
  });

  itInOneWindow.thorough('are found by the error id in JSON and on pages, for 400 and 429', async () => {
    await using server = await OauthTest.start({ rateLimits: { read: 0, write: 0, auth: 1 } });
    const find = (errorId: unknown) => new AuditLog(server.dataSource).find({ errorId: String(errorId) }, 10);
    const errorIdOn = ({ html }: FormPage) => /error id: <code>([^<]*)</.exec(html)![1]!;
    const bad = await server.token({ grant_type: 'refresh_token', client_id: 'x'.repeat(101) });
    expect(bad.body.error).toBe('invalid_request');
    const badUrl = `/oauth/logout?logout_hint=${'x'.repeat(101)}`;
    const badPage = await server.browser().view(badUrl);
    expect(badPage.status).toBe(400);
    const limits = server.api.app.get(RateLimits, { strict: false });
    for (let i = 0; i < 100; i++) limits.countOauthRequest('127.0.0.1');
    const late = await server.token({ grant_type: 'refresh_token' });
    expect([late.status, late.body.error]).toEqual([429, 'temporarily_unavailable']);
    const latePage = await server.browser().view('/account/apps');
    expect(latePage.status).toBe(429);
    const malformed = { error: 'invalid_request', reason: 'malformed_request' };
    const tooMany = { error: 'temporarily_unavailable', reason: 'too_many_requests' };
    expect([
      ...(await find(bad.body.error_id)),
      ...(await find(errorIdOn(badPage))),
      ...(await find(late.body.error_id)),
      ...(await find(errorIdOn(latePage))),
    ]).toMatchObject([
      { type: 'token.refused', details: { ...malformed, route: '/oauth/token' } },
      { type: 'authorization.refused', details: { ...malformed, route: '/oauth/logout' } },
      { type: 'token.refused', details: { ...tooMany, route: '/oauth/token' } },
      { type: 'authorization.refused', details: { ...tooMany, route: '/account' } },
    ]);
  });

  it.each([
    ['my-app', 'my-app'],
    ['my-app-2024-production-web', 'my-app-2024-production-web'],
    ['b3f1c1de-5c38-4c5e-8f5a-0a8e6b9f2d11', 'b3f1c1de-5c38-4c5e-8f5a-0a8e6b9f2d11'],
    ['pua_live_0123456789ab_AbCdEfGhIjKlMnOpQrStUvWxYz', '***'],
    ['key:xK3vQ9-bT7_mN2pLr8wZ4cY6dF1gH5jS0aE', 'key:***'],
    ['%70%75%61%5f%6c%69%76%65%5f%30%31%32', '***'],
    ['d41d8cd98f00b204e9800998ecf8427e', '***'],
    ['two words\nand a line', 'two?words?and?a?line'],
    ['<script>alert(1)</script>', '<script>alert(1)</script>'],
    ['ä'.repeat(5000), '?'],
    ['a.'.repeat(500), 'a.'.repeat(50)],
    ['', null],
    [undefined, null],
    [['twice', 'twice'], null],
  ])('store the client id %p as %p', (given, kept) => expect(maskedInput(given, 100)).toBe(kept));

  it.each([
    ['https://app.example/callback?code=secret#token', 'https://app.example/callback'],
    ['https://user:password@app.example/callback', 'https://app.example/callback'],
    ['http://127.0.0.1:4711/callback', 'http://127.0.0.1:4711/callback'],
    ['com.example.app:/callback?code=x', 'com.example.app:/callback'],
    ['https://app.example/xK3vQ9-bT7_mN2pLr8wZ4cY6dF1gH5jS0aE/x', 'https://app.example/***/x'],
    ['data:text/html,hunter2', 'data:'],
    ['javascript:alert("hunter2")', 'javascript:'],
    ['not a uri', null],
    [undefined, null],
  ])('store the redirect URI %p as %p', (given, kept) => expect(placeOf(given)).toBe(kept));
});

describe('an audit event', () => {
  const insert = (details: string, at = 'now()') =>
    query<{ id: number }>(
      `INSERT INTO auth_events (type, actor, details, occurred_at) VALUES ('user.created', 'system', $1::jsonb, ${at}) RETURNING id`,
      [details],
    );

  it('is rejected by the database if larger than 2,000 bytes', async () => {
    const large = JSON.stringify({ name: 'x'.repeat(2_000) });
    await expect(insert(large)).rejects.toThrow(/auth_events_size_check/);
  });

  thorough.it('is accepted with random details, since the server shortens them', async () => {
    const value = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 3_000 }),
      fc.array(fc.string({ unit: 'binary', maxLength: 300 }), { maxLength: 50 }),
      fc.double(),
      fc.jsonValue({ maxDepth: 4 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string({ maxLength: 5 }), value, { maxKeys: 6 }), async (details) => {
        await insert(boundedDetails(details));
      }),
      { numRuns: 200 },
    );
    const large = { name: '"\\'.repeat(5_000), scopes: Array.from({ length: 500 }, () => 1e300) };
    expect(await insert(boundedDetails(large))).toHaveLength(1);
  });

  it('keeps short details completely, and shortens long details', () => {
    expect(JSON.parse(boundedDetails({ reason: 'é'.repeat(400), scopes: ['a', 'b'] }))).toEqual({
      reason: 'é'.repeat(400),
      scopes: ['a', 'b'],
    });
    const uris = Array.from({ length: 30 }, (_, i) => `https://app.example/${i}`);
    expect(JSON.parse(boundedDetails({ redirect_uris: uris }))).toEqual({
      redirect_uris: [...uris.slice(0, 9), 'and 21 more'],
    });
  });

  it('rejects UPDATE and TRUNCATE; rejects DELETE for a week, even if session_replication_role is replica', async () => {
    const [young] = await insert('{}', `now() - interval '6 days 23 hours'`);
    const [old] = await insert('{}', `now() - interval '7 days 1 hour'`);
    await expect(query('UPDATE auth_events SET details = details WHERE id = $1', [old!.id])).rejects.toThrow(
      /UPDATE is refused/,
    );
    await expect(query('TRUNCATE auth_events')).rejects.toThrow(/TRUNCATE is refused/);
    const remove = (id: number) => query('DELETE FROM auth_events WHERE id = $1', [id]);
    await expect(remove(young!.id)).rejects.toThrow(/DELETE is refused; .* 7 days old/);
    await oauth.dataSource
      .transaction(async (manager) => {
        await manager.query('SET LOCAL session_replication_role = replica');
        const removed = manager.query('DELETE FROM auth_events WHERE id = $1', [young!.id]);
        await expect(removed).rejects.toThrow(/7 days/);
        throw new Error('undone');
      })
      .catch(() => undefined);
    await remove(old!.id);
    expect(await query('SELECT id FROM auth_events WHERE id = ANY($1)', [[young!.id, old!.id]])).toEqual([
      { id: young!.id },
    ]);
  });

  it('cannot be changed by an erasure that its own transaction undoes', async () => {
    const { id } = await oauth.member();
    const statements = [
      ['UPDATE users SET erased_at = NULL WHERE id = $1', /stays erased/],
      ["UPDATE users SET erased_at = erased_at - interval '1 s' WHERE id = $1", /stays erased/],
      ['DELETE FROM users WHERE id = $1', /stays erased/],
    ] as const;
    for (const [statement, refusal] of statements) {
      const undone = oauth.dataSource.transaction(async (manager) => {
        await eraseMembers(manager, [id], { actor: 'admin' });
        if (onPostgres) await manager.query('SET LOCAL session_replication_role = replica');
        await manager.query(statement, [id]);
      });
      await expect(undone).rejects.toThrow(refusal);
    }
    expect(await query('SELECT erased_at FROM users WHERE id = $1', [id])).toEqual([{ erased_at: null }]);
    await oauth.dataSource.transaction((manager) => eraseMembers(manager, [id], { actor: 'admin' }));
    await query('UPDATE users SET erased_at = erased_at, bio = NULL WHERE id = $1', [id]);
  });

  postgres.it('cannot be changed, or deleted within a week, by the server’s database role', async () => {
    const role = `server_${randomBytes(4).toString('hex')}`;
    await query(`CREATE ROLE ${role} LOGIN;
GRANT ${role} TO CURRENT_USER;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${role}`);
    const url = new URL(oauth.api.environment.DATABASE_URL!);
    url.username = role;
    const client = new Client({ connectionString: url.href });
    const server = await ServerProcess.start({
      ...oauth.api.environment,
      DATABASE_URL: url.href,
      NODE_ENV: 'production',
      PUBLIC_URL: 'http://localhost:3000',
      SWEEP_INTERVAL: '1',
      RATE_LIMIT_AUTH: '0', // earlier requests have used up the address's limit for this minute
    });
    try {
      // On a busy host, a production server may respond 503, or give up storing a rejection.
      const ask = (path: string, headers: Record<string, string> = {}) =>
        fetch(server.url + path, { headers });
      await until(async () => (await ask('/readyz')).status === 200);
      const key = await oauth.api.key((await oauth.member()).id);
      await until(async () => (await ask('/api/public/me', { 'X-API-Key': key })).status === 200);
      await until(async () => {
        await ask('/oauth/authorize?client_id=by-the-role');
        return (await query(`SELECT FROM oauth_refusals WHERE client_id = 'by-the-role'`)).length > 0;
      });

      await client.connect();
      for (const attack of [
        'ALTER TABLE auth_events DISABLE TRIGGER ALL',
        'SET session_replication_role = replica',
        'TRUNCATE auth_events',
        'UPDATE auth_events SET user_id = NULL',
        'DELETE FROM auth_events',
      ])
        await expect(client.query(attack)).rejects.toThrow(/must be owner|permission denied|refused/);
    } finally {
      await client.end();
      await server.kill();
      await query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });

  it('is deleted only when it is older than AUDIT_RETENTION, and never if that setting is 0', async () => {
    const sweeperOf = async (auditRetentionSeconds: number) =>
      new Sweeper(
        { ...oauth.api.config, auditRetentionSeconds },
        oauth.api.app.get(Database),
        { warn: () => undefined } as never,
        new Meter(),
      );
    await query(
      `INSERT INTO auth_events (type, actor, occurred_at) SELECT 'user.created', 'system', now() - days * interval '1 day' FROM unnest(ARRAY[399, 401]) days`,
    );
    expect(await (await sweeperOf(0)).sweep()).not.toHaveProperty('auth_events');
    const sweeper = await sweeperOf(400 * DAY);
    expect((await sweeper.sweep()).auth_events).toBe(1);
    expect((await sweeper.sweep()).auth_events).toBe(0);
  });

  it('is inserted in src only by audit/audit.ts, and src uses every event type', () => {
    const source = readdirSync('src', { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.endsWith('audit/audit.ts'))
      .map((path) => readFileSync(`src/${path}`, 'utf8'));
    expect(source.filter((text) => /INTO auth_events|insert\(AuthEvent/.test(text))).toEqual([]);
    const used = source.join('\n');
    expect(Object.keys(AUTH_EVENTS).filter((type) => !used.includes(`'${type}'`))).toEqual([]);
  });
});
