import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { Database } from '../../src/database/database.js';
import { repairCopiesAndTotals } from '../../src/operations/doctor/totals.js';
import { CLAIM } from '../../src/webhooks/webhook-deliveries.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { TestApi } from '../support/api.js';
import { asSuperuser, postgres } from '../support/database.js';
import { CALLS } from '../support/member-calls.js';
import { blocksOf, explain, scansOf, stepsOf, type Plan } from '../support/plans.js';

const LOADED = ['users', 'events', 'participants', 'connections', 'achievements', 'user_achievements'];
/** Tables that grow with the platform. The catalog of achievements is read completely if the response contains all of it. */
const GROWING = [...LOADED, 'user_totals', 'event_totals', 'api_keys'].filter(
  (table) => table !== 'achievements',
);
const USERS = 200_000;
/** Ids of members with: hundreds of rows in each table; 20,000 events; 100,000 connections; about forty rows in each table. */
const [USUAL, MANY_EVENTS, MANY_CONNECTIONS, LIKE_MOST] = [7, 8, 9, 6];
/** Maximum rows of a member that the short statement of a filtered list reads. */
const FEW = 200;

postgres.describe('query plans over 200,000 members', () => {
  let api: TestApi;
  let key: string;
  let manyEvents: string;
  let manyConnections: string;
  const statements: { text: string; values: unknown[] }[] = [];

  beforeAll(async () => {
    api = await TestApi.start();
    // Each row is correct, so the checks, copies and counts of triggers would only take time.
    await asSuperuser(api, async (superuser) => {
      for (const table of LOADED) await superuser.query(`ALTER TABLE ${table} DISABLE TRIGGER ALL`);
    });
    for (const table of ['users', 'events'])
      await api.query(`ALTER TABLE ${table} ENABLE TRIGGER ${table}_derive`);
    // One statement per transaction: a long transaction delays sync and webhooks in every database of the cluster, including other tests'.
    for (const load of `
      INSERT INTO users (id, username) SELECT n, 'member' || n FROM generate_series(1, ${USERS}) n;
      INSERT INTO events (id, title, status, visibility, starts_at, timezone, organizer_id)
        SELECT n, 'Event ' || n, 'scheduled', 'public', '2026-01-01'::timestamptz + n * interval '1 hour', 'UTC', 1 + n % ${USERS}
        FROM generate_series(1, 100000) n;
      INSERT INTO participants (user_id, event_id, role, rsvp_status, starts_at, event_is_draft, event_is_deleted)
        SELECT p.user_id, e.id, 'attendee', p.answer, e.starts_at, false, false FROM events e, LATERAL (
          SELECT 1 + (e.id * 7 + k) % ${USERS}, 'going' FROM generate_series(1, 2) k
          UNION ALL SELECT ${USUAL}, 'maybe' WHERE e.id <= 300 UNION ALL SELECT ${LIKE_MOST}, 'maybe' WHERE e.id <= 40
          UNION ALL SELECT ${MANY_EVENTS}, 'maybe' WHERE e.id % 5 = 0
        ) p (user_id, answer) ON CONFLICT DO NOTHING;
      INSERT INTO connections (user_id, id, peer_id, status, connected_at, peer_is_disabled, peer_name, peer_username)
        SELECT s.user_id, pairs.id, u.id, 'accepted', now() - pairs.id * interval '1 second', false, u.folded_name, u.folded_username
        FROM (SELECT row_number() OVER () AS id, a, b FROM (
            SELECT a, 1 + (a - 1 + k) % 200000 FROM generate_series(10, 120000) a, generate_series(1, 2) k
            UNION ALL SELECT ${USUAL}, k FROM generate_series(1000, 1200) k
            UNION ALL SELECT ${LIKE_MOST}, k FROM generate_series(2000, 2040) k
            UNION ALL SELECT ${MANY_CONNECTIONS}, k FROM generate_series(50001, 150000) k) pairs (a, b)) pairs,
          LATERAL (VALUES (a, b), (b, a)) s (user_id, peer_id) JOIN users u ON u.id = s.peer_id;
      INSERT INTO achievements (id, name, category, target) SELECT n, 'Achievement ' || n, 'events', 10 FROM generate_series(1, 100) n;
      INSERT INTO user_achievements (user_id, achievement_id, progress, earned_at, user_is_disabled)
        SELECT u, 1 + (u + k) % 100, 10, now(), false FROM generate_series(1, 20000) u, generate_series(1, 6) k;
    `.split(';\n'))
      await api.query(load);
    await asSuperuser(api, async (superuser) => {
      for (const table of LOADED) await superuser.query(`ALTER TABLE ${table} ENABLE TRIGGER ALL`);
    });
    await repairCopiesAndTotals(api.dataSource);
    await api.platform.fold();
    await api.query(`
      INSERT INTO api_keys (id, user_id, name, environment, scopes, hash, pepper_id, last_four, expires_at)
        SELECT lpad(n::text, 12, 'x'), n, 'key', 'live', '{}', sha256(n::text::bytea), '\\x00000000', 'last', now() FROM generate_series(1, 5000) n`);
    await api.query('VACUUM ANALYZE');
    // Credentials stay cached: on a slow host, the notices of revocations are late, and each request queries its credential.
    const revocations = api.app.get(RevocationChannel);
    Object.defineProperty(revocations, 'trusted', { value: true });
    revocations.announce = () => undefined;
    key = await api.key(USUAL);
    manyEvents = await api.key(MANY_EVENTS);
    manyConnections = await api.key(MANY_CONNECTIONS);
    const database = api.app.get(Database);
    const { read, rows, long } = database;
    database.long = (statement, values) => {
      statements.push({ text: statement.text, values });
      return long.call(database, statement, values) as never;
    };
    database.read = (statement, values) => {
      statements.push({ text: statement.text, values });
      return read.call(database, statement, values) as never;
    };
    database.rows = (text, values) => {
      // The instance writes uses in the background, outside of requests.
      if (!/api_key_usage|oauth_grant_usage|member_usage/.test(text)) statements.push({ text, values });
      return rows.call(database, text, values) as never;
    };
  });
  afterAll(() => api.close());

  const plansOf = async (options = '') => {
    const plans: Plan[] = [];
    for (const { text, values } of statements.splice(0))
      plans.push(await explain(api.dataSource, options, text, values));
    return plans;
  };
  it.each(CALLS)('%s scans no growing table sequentially', async (call) => {
    statements.length = 0;
    const first = await api.get(call, key);
    expect(first.status).toBe(200);
    const next = (first.body as { pagination?: { next_cursor: string | null } }).pagination?.next_cursor;
    if (next) await api.get(`${call}${call.includes('?') ? '&' : '?'}cursor=${next}`, key);
    const scanned = (await plansOf()).flatMap(scansOf).filter((table) => GROWING.includes(table));
    expect(scanned).toEqual([]);
  });

  // A statement may call a PL/pgSQL function or a function with a query only once, never per row.
  it.each(CALLS)('%s calls only inlined SQL functions and last_mark_before', async (call) => {
    const functions = await api.query<{ proname: string }>(`
      SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'sql')
        AND proname <> 'last_mark_before'`);
    const called = new RegExp(`\\b(?:${functions.map(({ proname }) => proname).join('|')})\\(`, 'g');
    statements.length = 0;
    expect((await api.get(call, key)).status).toBe(200);
    for (const plan of await plansOf('VERBOSE, ')) expect(JSON.stringify(plan).match(called)).toBeNull();
  });

  /** Rows of the table that were read, including those that were then filtered out. */
  const readOf = (plans: Plan[], table: string) =>
    plans
      .flatMap(stepsOf)
      .filter((node) => node['Relation Name'] === table)
      .reduce((sum, node) => sum + Math.max(1, node['Actual Rows']!) * node['Actual Loops']!, 0);

  it.each(CALLS.filter((call) => /^\/(events|connections)\?/.test(call)))(
    '%s for a member with many rows reads only this member’s rows, and the users on the page',
    async (call) => {
      const credential = call.startsWith('/events') ? manyEvents : manyConnections;
      statements.length = 0;
      const first = await api.get(`${call}&limit=20`, credential);
      expect(first.status).toBe(200);
      const { next_cursor: next } = (first.body as { pagination: { next_cursor: string | null } }).pagination;
      if (next) expect((await api.get(`${call}&limit=20&cursor=${next}`, credential)).status).toBe(200);
      for (const plan of await plansOf('ANALYZE, ')) {
        expect(scansOf(plan).filter((table) => GROWING.includes(table))).toEqual([]);
        expect(stepsOf(plan).filter((node) => node['Node Type'].startsWith('Gather'))).toEqual([]);
        expect(readOf([plan], 'users')).toBeLessThanOrEqual(2 * 21); // an incremental sort reads one more row
        expect(readOf([plan], 'events')).toBeLessThanOrEqual(20_000 + 21 * 2);
        expect(readOf([plan], 'event_totals')).toBeLessThanOrEqual(2 * 21);
      }
    },
  );

  const FILTERED = CALLS.filter((call) => /^\/(events|connections)\?(?!sort=)/.test(call));

  it.each(FILTERED)(
    '%s for a typical member runs one statement, which reads at most three rows of each table per row of the member',
    async (call) => {
      const credential = await api.key(LIKE_MOST);
      const table = call.startsWith('/events') ? 'participants' : 'connections';
      const [{ rows }] = await api.dataSource.query<[{ rows: number }]>(
        `SELECT count(*)::int AS rows FROM ${table} WHERE user_id = ${LIKE_MOST}`,
      );
      expect(rows).toBeGreaterThan(39);
      expect(rows).toBeLessThan(FEW);
      await api.get(call, credential);
      statements.length = 0;
      expect((await api.get(call, credential)).status).toBe(200);
      expect(statements).toHaveLength(1);
      const [plan] = await plansOf('ANALYZE, BUFFERS, ');
      for (const own of ['participants', 'connections', 'events', 'users'])
        expect(readOf([plan!], own)).toBeLessThanOrEqual(3 * rows);
      // For each row, the statement reads only the root and leaf of an index, and the row itself.
      expect(blocksOf(plan!)).toBeLessThanOrEqual(60 * rows);
    },
  );

  it.each(FILTERED)(
    '%s for a member with many rows switches to the long statement after at most 201 rows',
    async (call) => {
      const many = call.startsWith('/events') ? manyEvents : manyConnections;
      await api.get('/credential', many); // caches the credential
      statements.length = 0;
      expect((await api.get(call, many)).status).toBe(200);
      expect(statements).toHaveLength(2);
      const [short] = await plansOf('ANALYZE, BUFFERS, ');
      const read = GROWING.reduce((sum, table) => sum + readOf([short!], table), 0);
      expect(read).toBeGreaterThan(FEW);
      expect(read).toBeLessThanOrEqual(FEW + 1);
      expect(blocksOf(short!)).toBeLessThanOrEqual(3 * FEW);
    },
  );

  it.each(['/me', '/profile', '/events', '/connections', '/achievements', '/achievements?action=stats'])(
    '%s sends one statement if the credential is cached',
    async (call) => {
      await api.get(call, key);
      statements.length = 0;
      await api.get(call, key);
      expect(statements).toHaveLength(1);
    },
  );

  // With millions of rows, PostgreSQL used a smaller index on the peer only, and so read all rows of a peer with very many
  // connections, for each line of an import.
  it('have only connections_id_idx and connections_pkey as alternatives to a pair’s unique key', async () => {
    const some = await api.query<{ index: string }>(`SELECT i.indexrelid::regclass::text AS index
      FROM pg_index k JOIN pg_index i ON i.indrelid = k.indrelid AND i.indexrelid <> k.indexrelid AND i.indpred IS NULL
      WHERE k.indisunique AND k.indpred IS NULL AND k.indnkeyatts = 2 AND k.indrelid IN ('connections'::regclass, 'participants'::regclass)
        AND i.indkey[0] = k.indkey[1] AND NOT k.indkey[0] = ANY (i.indkey::int2[]) ORDER BY 1`); // prettier-ignore
    // Two indexes have the id; the other index is as large as the key of the pair, so PostgreSQL never prefers it.
    expect(some.map(({ index }) => index)).toEqual(['connections_id_idx', 'connections_pkey']);
  });

  // A function that is not inlined is planned by each statement and starts an executor per call: half of the cost of updating an event.
  it('inline every IMMUTABLE SQL function', async () => {
    const functions = await api.query<{ name: string; given: string; values: string }>(`SELECT proname AS name,
        (SELECT string_agg(format('a%s', n), ', ') FROM generate_series(1, pronargs) n) AS given,
        (SELECT string_agg(format('NULL::%s AS a%s', type::regtype, n), ', ') FROM unnest(proargtypes) WITH ORDINALITY a (type, n)) AS values
      FROM pg_proc JOIN pg_language l ON l.oid = prolang
      WHERE lanname = 'sql' AND provolatile = 'i' AND pronamespace = 'public'::regnamespace`); // prettier-ignore
    const names = functions.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['event_visible', 'fold_case']));
    for (const { name, given, values } of functions) {
      const plan = await api.query<object>(
        `EXPLAIN (VERBOSE, COSTS off) SELECT ${name}(${given}) FROM (SELECT ${values} OFFSET 0) t`,
      );
      expect(JSON.stringify(plan)).not.toMatch(new RegExp(`\\b(${names.join('|')})\\(`));
    }
  });
});

postgres.it('a claim of webhook messages never reads all messages of the endpoint', async () => {
  await using api = await TestApi.start();
  const webhooks = new WebhooksService(api.dataSource, api.config);
  const { id } = await webhooks.create({
    url: 'https://receiver.example/',
    types: ['profile.updated'],
    actor: 'admin',
  });
  await asSuperuser(api, (superuser) => superuser.query('ANALYZE webhook_deliveries'));
  const used = new Set<string | undefined>();
  for (let rows = 0; rows < 300; rows += 10) {
    await api.dataSource.transaction(async (manager) => {
      await manager.query('SET LOCAL enable_sort = off'); // as in a claim
      const plan = await explain(manager, '', CLAIM, [[id], 4, 100, 60, [-1]]);
      for (const step of stepsOf(plan)) used.add(step['Index Name']);
    });
    await api.query(
      `INSERT INTO webhook_deliveries (endpoint_id, type, user_id, thing_id, changed_at)
SELECT $1, 'profile.updated', n, n, now() FROM generate_series($2::int, $2 + 9) n`,
      [id, rows + 1],
    );
  }
  expect([...used]).toContain('webhook_deliveries_order_idx');
  expect([...used]).not.toContain('webhook_deliveries_endpoint_idx');
});
