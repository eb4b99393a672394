import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { startPgbouncer } from '../../bin/pgbouncer.mjs';
import { ReadConnection } from '../../src/database/postgres/read-connection.js';
import { atOnce } from '../support/concurrent.js';
import { lockWaits, postgres } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import { eventually, until } from '../support/timing.js';

/** PgBouncer's server sessions: fewer than its client connections. */
const SESSIONS = 3;

postgres.describe('with PgBouncer in transaction mode', () => {
  let direct: OauthTest;
  let pooler: Awaited<ReturnType<typeof startPgbouncer>>;
  let oauth: OauthTest;
  const opened: ReadConnection[] = [];

  beforeAll(async () => {
    direct = await OauthTest.start();
    const databaseDirectUrl = direct.api.config.databaseUrl!;
    // The settings that docs/operators/scaling.md gives its role, for the role of the tests.
    const limits = [
      ...readFileSync('docs/operators/scaling.md', 'utf8').matchAll(
        /^ALTER ROLE public_user_api (SET .*);$/gm,
      ),
    ];
    expect(limits.length).toBeGreaterThanOrEqual(5);
    const name = new URL(databaseDirectUrl).pathname.slice(1);
    for (const [, limit] of limits) await direct.dataSource.query(`ALTER DATABASE ${name} ${limit}`);
    pooler = await startPgbouncer(databaseDirectUrl, { default_pool_size: SESSIONS });
    oauth = await OauthTest.start({ databaseUrl: pooler.url, databaseDirectUrl }, direct);
  });
  afterAll(async () => {
    for (const connection of opened) await connection.end();
    await oauth.close();
    await pooler.stop();
    await direct.close();
  });

  async function connected(): Promise<ReadConnection> {
    const connection = await ReadConnection.open({
      connectionString: pooler.url,
      primary: false,
      pooled: true,
    });
    opened.push(connection);
    return connection;
  }

  const call = async (path: string, key: string, body?: object, { issuer } = oauth) => {
    const response = await fetch(`${issuer}/api/public${path}`, {
      method: body ? 'PUT' : 'GET',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  /** Runs SQL in every current session of PgBouncer: keeps each session until all sessions are in use. */
  async function inEverySession(sql: string): Promise<pg.QueryResultRow[]> {
    const clients = Array.from({ length: SESSIONS }, () => new pg.Client({ connectionString: pooler.url }));
    try {
      for (const client of clients) await client.connect().then(() => client.query('BEGIN'));
      const rows: pg.QueryResultRow[] = [];
      for (const client of clients) rows.push(...(await client.query<pg.QueryResultRow>(sql)).rows);
      for (const client of clients) await client.query('COMMIT');
      return rows;
    } finally {
      await Promise.all(clients.map((client) => client.end()));
    }
  }

  it('sign-in, reads, writes, refresh and revocation succeed', async () => {
    const { id, username } = await oauth.member();
    const clientId = await oauth.client();
    const { access_token, refresh_token } = await oauth.tokens(clientId, username);
    expect(await oauth.me(access_token)).toBe(200);
    expect((await oauth.refresh(clientId, refresh_token)).status).toBe(200);
    const key = await oauth.api.key(id);
    for (let n = 0; n < 20; n++) {
      expect((await call('/profile', key, { bio: `the ${n}th` })).status).toBe(200);
      expect((await call('/profile', key)).body).toMatchObject({ bio: `the ${n}th` });
      for (const path of ['/me', '/events', '/connections?q=none', '/achievements?q=none'])
        expect([path, (await call(path, key)).status]).toEqual([path, 200]);
    }
    await oauth.query(
      "UPDATE api_keys SET revoked_at = now(), revocation_reason = 'leaked' WHERE user_id = $1",
      [id],
    );
    await eventually(async () => ((await call('/me', key)).status === 401 ? true : undefined));
  });

  it('frequent reads stay prepared in the sessions, under a name derived from their text', async () => {
    const key = await oauth.api.key(await oauth.api.platform.user());
    await atOnce(200, () => call('/profile', key));
    const rows = await inEverySession('SELECT name, statement FROM pg_prepared_statements');
    expect(rows.map(({ statement }) => statement as string)).toContainEqual(
      expect.stringMatching(/profile|users/),
    );
    expect(rows.filter(({ name }) => !/^pua-[\w-]{43}$/.test(name as string))).toEqual([]);
    const texts = new Map(rows.map(({ name, statement }) => [name as string, statement as string]));
    for (const { name, statement } of rows) expect(texts.get(name as string)).toBe(statement);
  });

  it('each caller gets its own response, even if sessions have lost their prepared statements', async () => {
    const connections = await Promise.all(Array.from({ length: 2 * SESSIONS }, connected));
    const double = { name: 'double', text: 'SELECT 2 * $1::int AS number, repeat($2, $1) AS text' };
    const triple = { name: 'triple', text: 'SELECT 3 * $1::int AS number, $2::text AS text' };
    for (let round = 0; round < 10; round++) {
      const asked = connections.flatMap((connection, i) =>
        Array.from({ length: 40 }, async (_, n) => {
          const twice = (n + i + round) % 2 === 0;
          const rows = await connection.read(twice ? double : triple, [n, 'ä']);
          expect(rows).toEqual([
            twice ? { number: 2 * n, text: 'ä'.repeat(n) } : { number: 3 * n, text: 'ä' },
          ]);
        }),
      );
      await Promise.all([...asked, ...(round % 3 === 0 ? [inEverySession('DEALLOCATE ALL')] : [])]);
    }
  });

  it('a failing statement affects no other statement, and a changed table causes no wrong column', async () => {
    const connection = await connected();
    await inEverySession('SELECT');
    const division = { name: 'division', text: 'SELECT 1 / $1::int AS one' };
    const answers = await Promise.allSettled([1, 0, 1, 0, 1].map((by) => connection.read(division, [by])));
    expect(answers.map(({ status }) => status)).toEqual(
      [1, 0, 1, 0, 1].map((by) => (by ? 'fulfilled' : 'rejected')),
    );
    await oauth.query('CREATE TABLE shapes (a int, b text); INSERT INTO shapes VALUES (1, $$one$$)');
    const all = { name: 'all-shapes', text: 'SELECT * FROM shapes' };
    const others = await Promise.all(Array.from({ length: SESSIONS }, connected));
    const everywhere = async () => {
      for (const each of others) for (let n = 0; n < 2 * SESSIONS; n++) await each.read(all, []);
      return Promise.all([connection, ...others].map((each) => each.read(all, [])));
    };
    for (const rows of await everywhere()) expect(rows).toEqual([{ a: 1, b: 'one' }]);
    await oauth.query(
      'ALTER TABLE shapes DROP COLUMN a; ALTER TABLE shapes ADD COLUMN a text; UPDATE shapes SET a = $$two$$',
    );
    for (const rows of await everywhere()) expect(rows).toEqual([{ b: 'one', a: 'two' }]);
  });

  it('a statement that waits too long is canceled in PostgreSQL, and later writes succeed', async () => {
    const key = await oauth.api.key(await oauth.api.platform.user());
    const { databaseUrl, databaseDirectUrl } = oauth.api.config;
    const databaseDeadlines = { connect: 10_000, lock: 10_000, statement: 600, answer: 15_000 };
    const hurried = await OauthTest.start({ databaseUrl, databaseDirectUrl, databaseDeadlines }, direct);
    const write = (bio: string) => call('/profile', key, { bio }, hurried);
    const other = new pg.Client({ connectionString: databaseDirectUrl });
    await other.connect();
    try {
      await other.query('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0');
      await other.query('BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
      const writes = Array.from({ length: SESSIONS }, () => write('late'));
      expect((await Promise.all(writes)).map(({ status }) => status)).toEqual(writes.map(() => 503));
      await until(async () => (await lockWaits(oauth.dataSource, 'users')).length === 0);
    } finally {
      await other.end();
    }
    await eventually(async () => (await write('in time')).status === 200 || undefined);
    await hurried.close();
  });
});
