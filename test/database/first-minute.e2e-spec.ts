import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { startPostgres } from '../../bin/postgres.mjs';
import { CalendarLinks } from '../../src/calendar/calendar-links.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { migrate } from '../../src/database/schema/migrate.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { postgres, testConfig } from '../support/database.js';
import * as imported from '../support/import-files.js';
import { CALLS } from '../support/member-calls.js';
import { OauthTest, PASSWORD, type FormPage, type TokenBody } from '../support/oauth.js';
import { stepsOf, type Plan } from '../support/plans.js';
import { eventually } from '../support/timing.js';

type Cluster = Awaited<ReturnType<typeof startPostgres>>;

/** Logs every executed plan with the rows that it read, including plans of triggers and foreign keys. */
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: 100,
  shared_buffers: '128MB',
  autovacuum: 'off',
  logging_collector: 'on',
  log_filename: 'log',
  log_line_prefix: '|%d %a|',
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': 0,
  'auto_explain.log_format': 'json',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_nested_statements': 'on',
};

/** A table with this many rows grows with the platform; other tables have at most a hundred rows. */
const MANY = 5_000;
/** Maximum rows of such a table that one step of a plan may read: some rows of one member or batch. */
const MAX_CHECKED = 2_000;
/** PostgreSQL plans each batch of usage rows with the table's size: it scans the table only while a scan costs less. */
const BATCH = /jsonb_to_recordset/;
/** Without statistics, PostgreSQL sorts all unread changes instead of reading them in order. */
const UNREAD = /FROM platform_changes WHERE \(changed_in, sequence\) > \(\$1, \$2\)/;
const ROWS = 6_000;
/** So many that PostgreSQL looks up 1,200 records of a feed by index instead of scanning the table. */
const ROWS_FOR_A_FEED = 20_000;
/** Number of members when statistics were taken, so that two records are a quarter of all. */
const FEW = 8;

/** Data of a few months in every table that grows. Each row is correct, so triggers do not copy or check it. */
const rowsOf = (from: number, to: number) =>
  `
  INSERT INTO users (id, username, is_disabled, folded_username, folded_name, display_name, card)
    SELECT 1000 + n, 'loaded' || n, false, 'loaded' || n, 'loaded' || n, 'Loaded', '{}' FROM generate_series($FROM, $TO) n;
  INSERT INTO events (id, title, status, visibility, starts_at, timezone, organizer_id, is_draft, is_deleted)
    SELECT 1000 + n, 'Event ' || n, 'scheduled', 'public', '2026-01-01'::timestamptz + n * interval '1 hour', 'UTC', 1000 + n, false, false
    FROM generate_series($FROM, $TO) n;
  INSERT INTO participants (user_id, event_id, role, rsvp_status, starts_at, event_is_draft, event_is_deleted)
    SELECT 1001 + (n * 7 + k) % $TO, 1000 + n, 'attendee', 'going', '2026-01-01'::timestamptz + n * interval '1 hour', false, false
    FROM generate_series($FROM, $TO) n, generate_series(1, 3) k;
  INSERT INTO connections (user_id, id, peer_id, status, connected_at, peer_is_disabled, peer_name, peer_username)
    SELECT s.a, 1000 + n, s.b, 'accepted', now() - n * interval '1 second', false, 'loaded', 'loaded'
    FROM generate_series($FROM, $TO) n, LATERAL (VALUES (1000 + n, 1001 + n % $TO), (1001 + n % $TO, 1000 + n)) s (a, b);
  INSERT INTO user_achievements (user_id, achievement_id, progress, earned_at, user_is_disabled)
    SELECT 1000 + n, a.id, 10, now(), false FROM generate_series($FROM, $TO) n, (SELECT id FROM achievements LIMIT 3) a;
  INSERT INTO user_totals (user_id, events_count, connections_count, achievements_count, is_delta)
    SELECT 1000 + n, 3, 2, 3, false FROM generate_series($FROM, $TO) n;
  INSERT INTO event_totals (event_id, attendees_count, is_delta) SELECT 1000 + n, 3, false FROM generate_series($FROM, $TO) n;
  INSERT INTO changes (user_id, resource, id, kind) SELECT 1000 + n, 'events', n, 'updated' FROM generate_series($FROM, $TO) n;
  INSERT INTO changes (resource, id, kind) SELECT r, 1000 + n, 'removed' FROM generate_series($FROM, $TO) n, unnest('{people,events}'::text[]) r;
  INSERT INTO platform_changes (type, user_id) SELECT 'profile.updated', 1000 + n FROM generate_series($FROM, $TO) n;
  INSERT INTO record_versions (type, user_id, id, version) SELECT 'users', 0, 1000 + n, 1 FROM generate_series($FROM, $TO) n;
  INSERT INTO api_keys (id, user_id, name, environment, scopes, hash, pepper_id, last_four, expires_at)
    SELECT lpad(n::text, 12, 'x'), 1000 + n, 'key', 'live', '{}', sha256(n::text::bytea), '\\x00000000', 'last', now() + interval '30 days'
    FROM generate_series($FROM, $TO) n;
  INSERT INTO api_key_usage (key_id, last_used_at, uses_count) SELECT lpad(n::text, 12, 'x'), now(), 1 FROM generate_series($FROM, $TO) n;
  INSERT INTO member_usage (user_id, day, app_kind, app_id, scope, uses, last_used_at)
    SELECT 1000 + n, current_date, 'client', 'loaded', 'events:read', 1, now() FROM generate_series($FROM, $TO) n;
  INSERT INTO idempotent_responses (key_id, idempotency_key, body_hash, response)
    SELECT lpad(n::text, 12, 'x'), n::text, sha256(n::text::bytea), '{}' FROM generate_series($FROM, $TO) n;
  INSERT INTO calendar_links (user_id, slot, name, key) SELECT 1000 + n, 1, 'Phone', sha256(n::text::bytea) FROM generate_series($FROM, $TO) n;
  INSERT INTO passkeys (user_id, credential_id, user_handle, public_key, sign_count, backup_eligible, backed_up, name)
    SELECT 1000 + n, sha256(n::text::bytea), '\\x01', '\\x01', 0, false, false, 'Key' FROM generate_series($FROM, $TO) n;
  INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes)
    SELECT 'loaded' || n, 'Loaded', 'web', '{https://app.example/}', '{}' FROM generate_series($FROM, $TO) n;
  INSERT INTO oauth_consents (user_id, client_id, granted, rejected) SELECT 1000 + n, 'loaded' || n, '{}', '{}' FROM generate_series($FROM, $TO) n;
  INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
    SELECT 'loaded' || n, 1000 + n, 'loaded' || n, '{}', now() + interval '1 day' FROM generate_series($FROM, $TO) n;
  INSERT INTO oauth_grant_usage (grant_id, last_used_at) SELECT 'loaded' || n, now() FROM generate_series($FROM, $TO) n;
  INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
    SELECT sha256((n || m)::bytea), m, 'loaded' || n, '{}', now() + interval '1 day'
    FROM generate_series($FROM, $TO) n, unnest('{AuthorizationCode,AccessToken,RefreshToken}'::text[]) m;
  INSERT INTO oauth_sessions (uid_key, key, user_id, payload, expires_at)
    SELECT sha256(n::text::bytea), sha256(n::text::bytea), 1000 + n, '', now() + interval '1 day' FROM generate_series($FROM, $TO) n;
  INSERT INTO oauth_state (key, model, expires_at, user_id)
    SELECT sha256(n::text::bytea), 'Interaction', now() + interval '1 day', 1000 + n FROM generate_series($FROM, $TO) n;
  INSERT INTO login_throttle (key, attempts, window_ends_at) SELECT sha256(n::text::bytea), 1, now() + interval '1 day' FROM generate_series($FROM, $TO) n;
  INSERT INTO auth_events (type, actor, user_id) SELECT 'token.issued', 'client', 1000 + n FROM generate_series($FROM, $TO) n;
  INSERT INTO developer_requests (client_id, occurred_at, method, route, status)
    SELECT 'loaded' || n % 200, now(), 'GET', '/', 200 FROM generate_series($FROM, $TO) n;
  INSERT INTO webhook_deliveries (endpoint_id, type, user_id, thing_id, changed_at, status, ended_at)
    SELECT (SELECT min(id) FROM webhook_endpoints WHERE disabled_at IS NULL), 'profile.updated', 1000 + n, 1000 + n, now(), 'delivered', now()
    FROM generate_series($FROM, $TO) n;
  INSERT INTO webhook_deliveries (endpoint_id, type, user_id, thing_id, changed_at, attempts, due_at)
    SELECT e.id, 'profile.updated', 1000 + n, 1000 + n, now(), 3, now() + interval '1 day'
    FROM generate_series($FROM, $TO) n, webhook_endpoints e WHERE e.disabled_at IS NULL;
  INSERT INTO webhook_endpoints (id, url, types, secret, disabled_at, disabled_because)
    VALUES ('off', 'https://off.example/', '{profile.updated}', '', now(), 'failing') ON CONFLICT DO NOTHING;
  INSERT INTO webhook_deliveries (endpoint_id, type, user_id, thing_id, changed_at)
    SELECT 'off', 'profile.updated', 1000 + n, 1000 + n, now() FROM generate_series($FROM, $TO) n`
    .replaceAll('$FROM', String(from))
    .replaceAll('$TO', String(to))
    .split(';\n');

postgres.describe('the first minute of a new database', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pua-first-minute-'));
  let cluster: Cluster;
  /** Connection for statements of the test, whose plans are irrelevant. */
  let admin: pg.Client;
  /** Resources of a test, to be released after it. */
  const open: { end: () => Promise<unknown> }[] = [];

  beforeAll(async () => {
    cluster = await startPostgres(folder, SETTINGS);
    admin = await connect('postgres');
    await admin.query('CREATE DATABASE template_pua');
    const dataSource = await createDataSource(configOf('template_pua'), 'maintenance').initialize();
    await migrate(dataSource);
    await dataSource.destroy();
  });
  afterEach(async () => {
    for (const one of open.splice(0)) await one.end();
  });
  afterAll(async () => {
    await admin.end();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const urlOf = (database: string) => cluster.url.replace(/\/postgres$/, `/${database}`);
  const environmentOf = (database: string) => ({
    NODE_ENV: 'test',
    SECRET_KEY: process.env.TEST_SECRET_KEY!,
    LOG_LEVEL: 'silent',
    DATABASE_URL: urlOf(database),
  });
  const configOf = (database: string) => testConfig(environmentOf(database));
  const connect = async (database: string) => {
    const client = new pg.Client({ connectionString: urlOf(database), application_name: 'aside' });
    await client.connect();
    await client.query('SET auto_explain.log_min_duration = -1');
    return client;
  };

  /** Requests of members, an app and a platform that use every feature, more than five times: then PostgreSQL keeps plans. */
  class Users {
    #version = Date.now();
    #cursor: string | undefined;
    private constructor(
      readonly oauth: OauthTest,
      readonly member: { id: number; username: string },
      readonly key: string,
      readonly platformKey: string,
      readonly clientId: string,
      readonly calendar: string,
      readonly event: number,
      readonly achievement: number,
    ) {}

    static async of(oauth: OauthTest): Promise<Users> {
      const { api } = oauth;
      const member = await oauth.member();
      let event = 0;
      const others = [(await oauth.member()).id, (await oauth.member()).id];
      for (const other of others) {
        await api.platform.connection(member.id, other);
        event = await api.platform.event({ organizer_id: other });
        await api.platform.participant(event, member.id);
      }
      const achievement = await api.platform.achievement({ key: member.username });
      await api.platform.progress(member.id, achievement, { earned_at: '2026-01-01T00:00:00Z' });
      const calendar = await api.app.get(CalendarLinks).create(member.id, 'Phone', { actor: 'user' });
      const key = await api.key(member.id);
      await new WebhooksService(oauth.dataSource, api.config).create({
        url: 'https://app.example/hooks',
        types: ['profile.updated'],
        actor: 'admin',
      });
      return new Users(
        oauth,
        member,
        key,
        await api.platformKey(),
        await oauth.client(),
        calendar,
        event,
        achievement,
      );
    }

    /** @param times more than five: then PostgreSQL keeps plans */
    async useEverything(times = 6): Promise<void> {
      for (const call of CALLS) {
        const path = call
          .replace(/(?<=\/events\/)\d+/, `${this.event}`)
          .replace(/(?<=id=)\d+/, `${this.achievement}`);
        for (let time = 0; time < 2; time++)
          expect((await this.oauth.api.get(path, this.key)).status).toBe(200);
      }
      for (let time = 0; time < times; time++) await this.#useAll();
      expect(await this.oauth.api.app.get(Sweeper).sweep()).toBeDefined();
    }

    async #useAll(): Promise<void> {
      const { oauth, key, platformKey, clientId, member } = this;
      const { api } = oauth;
      const profile = { bio: `Today ${++this.#version}`, first_name: `Ada ${this.#version}` };
      expect((await api.put('/profile', key, profile)).status).toBe(200);
      const { body } = await api.get('/sync', key);
      this.#cursor ??= (body as { next: string }).next;
      expect((await api.get(`/sync?cursor=${this.#cursor}`, key)).status).toBe(200);
      expect((await fetch(this.calendar)).status).toBe(200);
      await this.#feed();
      const changes = await api.send('GET', '/api/platform/changes', { 'X-API-Key': platformKey });
      expect(changes.status).toBe(200);

      const browser = oauth.browser();
      const granted = await oauth.token(await oauth.code(clientId, member.username, {}, browser));
      expect(granted.status).toBe(200);
      const again = await oauth.token(await oauth.code(clientId, member.username, {}, browser));
      let tokens: TokenBody = again.body;
      expect(await oauth.me(tokens.access_token)).toBe(200);
      tokens = (await oauth.refresh(clientId, tokens.refresh_token)).body;
      const headers = { Authorization: `Bearer ${tokens.access_token}` };
      expect((await fetch(new URL('/oauth/userinfo', oauth.issuer), { headers })).status).toBeLessThan(500);
      await oauth.post('/oauth/revoke', { client_id: clientId, token: tokens.refresh_token });
      const wrong = await browser.open(oauth.request(clientId, { prompt: 'login' }).url);
      await browser.submit(wrong as FormPage, { username: member.username, password: 'wrong' }, /\/sign-in$/);

      const atAccount = oauth.browser();
      const signIn = await atAccount.view('/account/apps');
      await atAccount.submit(signIn, { username: member.username, password: PASSWORD });
      for (const page of ['', '/apps', '/sessions', '/activity', '/keys', '/security', '/calendar'])
        expect(await atAccount.open(`/account${page}`)).toMatchObject({ status: 200 });
      for (const page of ['', '/requests'])
        expect(await atAccount.open(`/developer${page}`)).toMatchObject({ status: 200 });
    }

    async #feed(): Promise<void> {
      const version = ++this.#version;
      const [event, user] = [900_000_000 + (version % 1_000_000), 900_000_000 + (version % 1_000_000)];
      const put = (type: string, record: object) => ({ type, op: 'put', record, version });
      const lines = [
        put('users', imported.user(user, { username: `fed${user}` })),
        put('events', imported.event(event, { organizer_id: user, starts_at: '2031-05-01 18:00:00' })),
        put('participants', imported.participant(event, this.member.id)),
        put('participants', imported.participant(event, this.member.id, { rsvp_status: 'maybe' })),
        put('connections', imported.connection(user, user, this.member.id, { source: 'search' })),
        put('user_achievements', { user_id: user, achievement_id: 1, progress: 1 }),
      ];
      const { status, body } = await this.oauth.api.feed(this.platformKey, lines, {
        'Idempotency-Key': `k${version}`,
      });
      expect([status, JSON.stringify(body)]).toEqual([200, expect.not.stringContaining('"failed":[{')]);
    }
  }

  let marks = 0;
  /** Bytes of the log that have been read. */
  let done = 0;
  /** Statements and plans that the program has run since the last call. */
  async function plansDuring(
    database: string,
    work: () => Promise<void>,
  ): Promise<{ text: string; plan: Plan }[]> {
    const log = () => readFileSync(join(folder, 'data/log/log')).subarray(done);
    const mark = async () => {
      const text = `mark ${++marks}`;
      await admin.query(`DO $$ BEGIN RAISE LOG '${text}'; END $$`);
      const written = await eventually(() => {
        const bytes = log();
        const end = bytes.indexOf(text);
        return Promise.resolve(end === -1 ? undefined : bytes.subarray(0, end));
      });
      done += written.length;
      return written;
    };
    await mark();
    await work();
    const entries = (await mark()).toString().split(`\n|${database} public-user-api`).slice(1);
    return entries.flatMap((entry) => {
      const json = /plan:\n((?:\t.*\n?)+)/.exec(entry)?.[1];
      if (!json) return [];
      const { 'Query Text': text, Plan: plan } = JSON.parse(json.replaceAll(/^\t/gm, '')) as {
        'Query Text': string;
        Plan: Plan;
      };
      return [{ text, plan }];
    });
  }

  /** Statements that scan a growing table sequentially, or read too many of its rows. */
  function faultsOf(plans: readonly { text: string; plan: Plan }[], growing: ReadonlySet<string>): string[] {
    const faults = new Set<string>();
    for (const { text, plan } of plans.filter(({ text: sql }) => !BATCH.test(sql) && !UNREAD.test(sql)))
      for (const node of stepsOf(plan)) {
        const table = node['Relation Name'];
        if (!table || !growing.has(table) || !node['Actual Loops']) continue;
        const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
        const read = node['Actual Loops'] * (node['Actual Rows']! + removed);
        if (node['Node Type'] === 'Seq Scan' || read > MAX_CHECKED)
          faults.add(
            `${node['Node Type']} ${node['Index Name'] ?? ''} of ${table}, ${read} rows: ${text.replaceAll(/\s+/g, ' ').slice(0, 300)}`,
          );
      }
    return [...faults];
  }

  async function load(aside: pg.Client, from: number, to: number): Promise<void> {
    await aside.query('SET session_replication_role = replica');
    for (const statement of rowsOf(from, to)) await aside.query(statement);
    await aside.query('RESET session_replication_role');
  }

  const STATES = {
    none: async () => undefined,
    'of empty tables': async (aside: pg.Client) => void (await aside.query('VACUUM ANALYZE')),
    'of only one member': async (aside: pg.Client, users: Users) => {
      await users.useEverything();
      await aside.query('VACUUM ANALYZE');
    },
    'of a few members': async (aside: pg.Client) => {
      await load(aside, 1, FEW);
      await aside.query('VACUUM ANALYZE');
    },
  };

  it.each(Object.entries(STATES))(
    'uses no sequential scan of a growing table, in old and new sessions (statistics: %s)',
    async (_, prepare) => {
      const database = `first_${++marks}`;
      await admin.query(`CREATE DATABASE ${database} TEMPLATE template_pua`);
      const aside = await connect(database);
      open.push(aside);
      const start = async () => {
        const beside = { api: { environment: environmentOf(database) } };
        const oauth = await OauthTest.start({ sweepIntervalSeconds: 86_400, developerConsole: true }, beside);
        open.push({ end: () => oauth.close() });
        return Users.of(oauth);
      };
      let users = await start();
      await prepare(aside, users);
      await users.useEverything(); // now PostgreSQL reuses plans
      await load(aside, FEW + 1, ROWS);
      const counts = await aside.query<{ table: string; rows: number }>(`
      SELECT relname AS table, (xpath('/row/c/text()', query_to_xml('SELECT count(*) AS c FROM ' || oid::regclass, false, true, '')))[1]::text::int AS rows
      FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`);
      const growing = new Set(counts.rows.filter(({ rows }) => rows >= MANY).map(({ table }) => table));
      expect(growing.size).toBeGreaterThan(20);

      // PostgreSQL still plans many rows for members who had nearly all rows at ANALYZE, but not for new members.
      users = await Users.of(users.oauth);
      const old = await plansDuring(database, () => users.useEverything(2)); // sessions keep their plans
      users = await start();
      const fresh = await plansDuring(database, () => users.useEverything());
      expect(old.length).toBeGreaterThan(300);
      expect({ old: faultsOf(old, growing), fresh: faultsOf(fresh, growing) }).toEqual({
        old: [],
        fresh: [],
      });
    },
  );

  it('uses no sequential scan of the fed tables for a feed with 1,200 lines', async () => {
    const database = `first_${++marks}`;
    await admin.query(`CREATE DATABASE ${database} TEMPLATE template_pua`);
    const aside = await connect(database);
    open.push(aside);
    const oauth = await OauthTest.start({}, { api: { environment: environmentOf(database) } });
    open.push({ end: () => oauth.close() });
    const { platformKey } = await Users.of(oauth);
    await load(aside, 1, ROWS_FOR_A_FEED);
    await aside.query('VACUUM ANALYZE');
    const put = (type: string, record: object) => ({ type, op: 'put', record, version: 2 });
    const lines = Array.from({ length: 300 }, (_, n) => [
      put('users', { id: 1_000_000 + n, username: `fed${n}` }),
      put('users', { id: 1_001 + n, username: `loaded${n + 1}`, bio: 'Fed' }),
      put('participants', imported.participant(5_000 + n, 1_000_000 + n)),
      put('connections', imported.connection(1_000_000 + n, 1_000_000 + n, 2_000 + n)),
    ]).flat();

    const plans = await plansDuring(database, async () => {
      expect(await oauth.api.feed(platformKey, lines)).toMatchObject({
        status: 200,
        body: { created: 900, updated: 300 },
      });
    });

    expect(plans.length).toBeGreaterThan(50);
    expect(
      faultsOf(plans, new Set(['users', 'events', 'participants', 'connections', 'record_versions'])),
    ).toEqual([]);
  });
});
