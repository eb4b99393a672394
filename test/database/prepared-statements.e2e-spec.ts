import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Database } from '../../src/database/database.js';
import { Requester, workFor } from '../../src/database/postgres/callers.js';
import { List, type ListQuery } from '../../src/database/list.js';
import { MemberReads } from '../../src/database/member-reads.js';
import { listOf } from '../../src/resources/resources.js';
import { relation } from '../../src/model/response.js';
import { Participant } from '../../src/resources/events/table.js';
import { postgres } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import type { ApiDocument } from '../support/openapi.js';

/** Runs of each statement: more than the five custom plans that PostgreSQL creates in each session. */
const RUNS = 10;
/** Reads alternate between two pipelined connections. */
const READS = 2 * RUNS;

interface Prepared {
  readonly pid: number;
  readonly name: string;
  readonly statement: string;
  readonly custom_plans: number;
  readonly generic_plans: number;
}

const PREPARED = `SELECT pg_backend_pid() AS pid, name, regexp_replace(statement, '\\s+', ' ', 'g') AS statement, custom_plans, generic_plans
FROM pg_prepared_statements`;

/** Adds rows of other members: in a table of one page every plan costs the same. */
const OTHERS = `INSERT INTO users (id, username) SELECT 100000 + n, 'other-' || n FROM generate_series(1, 3000) n;
INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
  SELECT 'grant-' || n, 100000 + n, (SELECT min(id) FROM oauth_clients), '{}', 'infinity' FROM generate_series(1, 3000) n;
INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
  SELECT sha256(n::text::bytea), 'RefreshToken', 'grant-' || n, '{}', 'infinity' FROM generate_series(1, 3000) n;
INSERT INTO oauth_sessions (uid_key, key, user_id, payload, expires_at)
  SELECT sha256(n::text::bytea), sha256(n::text::bytea), 100000 + n, '', 'infinity' FROM generate_series(1, 3000) n;
INSERT INTO oauth_state (key, model, payload, expires_at)
  SELECT sha256(n::text::bytea), 'Interaction', '', 'infinity' FROM generate_series(1, 3000) n;
INSERT INTO changes (resource, id, kind) SELECT r, n, 'updated' FROM generate_series(1, 3000) n, unnest('{people,events}'::text[]) r`;

interface OwnQuery extends ListQuery {
  readonly sort: 'starts_at';
  readonly role?: string;
  readonly rsvp_status?: string;
  readonly after?: string;
  readonly before?: string;
  readonly is_draft?: boolean;
  readonly other_than?: number;
}

/**
 * The tables that got more than 50 changes above: autovacuum analyzes them within a minute (autovacuum_analyze_threshold). Tables that
 * change less, such as a few clients, have no statistics in production either: PostgreSQL assumes ten pages. The list is fixed, since
 * the counters of changes may lack what another session has just changed.
 */
const ANALYZE = `ANALYZE users, user_totals, achievements, achievement_total_deltas, changes,
  oauth_grants, oauth_tokens, oauth_sessions, oauth_state`;

postgres.describe('prepared statements', () => {
  let oauth: OauthTest;
  let user: { id: number; username: string };
  let clientId: string;
  /** Shared by all tests: a statement that one test prepares remains in the session until the connection closes. */
  let seen: Seen;

  beforeAll(async () => {
    // One connection next to the two for pipelined reads, so that each session runs every statement often enough.
    oauth = await OauthTest.start({ databasePoolSize: 1 });
    user = await oauth.member();
    clientId = await oauth.client();
    for (let i = 0; i < 30; i++)
      await oauth.api.platform.progress(user.id, await oauth.api.platform.achievement(), {
        earned_at: '2026-01-01T00:00:00Z',
      });
    await oauth.query(OTHERS);
    await oauth.api.platform.settle(); // counters are compacted, which changes each achievement once more
    await oauth.query(ANALYZE);
    seen = new Seen();
  });
  afterAll(() => oauth.close());

  /** Statements that the sessions of requests have prepared. */
  const prepared = () => workFor(new Requester(), readPrepared);
  async function readPrepared(): Promise<Prepared[]> {
    const database = oauth.api.app.get(Database);
    const rows: Prepared[] = await database.rows<Prepared & Record<string, unknown>>(PREPARED, []);
    for (let lane = 0; lane < 2; lane++)
      rows.push(
        ...(await database.read<Prepared & Record<string, unknown>>({ name: 'all', text: PREPARED }, [])),
      );
    return rows;
  }

  /** All statements prepared so far, including those of lost connections. */
  class Seen {
    readonly #rows = new Map<string, Prepared>();

    async look(): Promise<void> {
      for (const row of await prepared()) this.#rows.set(`${row.pid} ${row.name}`, row);
    }

    get rows(): Prepared[] {
      return [...this.#rows.values()];
    }
  }

  const plannedAnew = (rows: readonly Prepared[]) =>
    rows
      .filter(({ name, custom_plans }) => name !== 'all' && custom_plans > 5)
      .map(({ custom_plans, statement }) => `planned ${custom_plans} times: ${statement}`);

  /** Every GET route, with each value of the parameters that have few values. */
  async function reads(): Promise<string[]> {
    const { body } = await oauth.api.send('GET', '/api/public/openapi.json');
    return Object.entries((body as ApiDocument).paths).flatMap(([template, { get }]) => {
      if (!get) return [];
      const path = template.replace(/\{\w+\}/g, '1').replace('/api/public', '');
      const choices = get.parameters.filter(
        ({ in: place, name }) => place === 'query' && ['sort', 'action'].includes(name),
      );
      return [
        path,
        ...choices.flatMap(({ name, schema }) =>
          (schema.enum ?? []).map((value) => `${path}?${name}=${value}&id=1`),
        ),
      ];
    });
  }

  it('get at most five custom plans each from requests to every GET route of the API, and from PUT /profile', async () => {
    const paths = await reads();
    expect(paths).toEqual(expect.arrayContaining(['/profile', '/events', '/events?sort=title&id=1']));
    const key = await oauth.api.key(user.id);
    const { access_token } = await oauth.tokens(clientId, user.username);
    expect(await oauth.api.platform.event({ organizer_id: user.id })).toBeGreaterThan(0);
    const { next } = (await oauth.api.get('/sync', key)).body as { next: string };
    paths.push(`/sync?cursor=${next}`);
    for (let run = 0; run < READS; run++) {
      for (const path of paths) await oauth.api.get(path, key);
      await oauth.api.put('/profile', key, { bio: `the ${run}th` });
      await oauth.me(access_token);
      await seen.look();
    }
    const { rows } = seen;
    for (const part of 'users participants connections user_achievements oauth_tokens DISTINCT'.split(' '))
      expect(rows.some(({ statement }) => statement.includes(part))).toBe(true);
    expect(plannedAnew(rows)).toEqual([]);
  });

  it('get at most five custom plans each from sign-ins, exchanges, refreshes and revocations', async () => {
    const browser = oauth.browser();
    for (let run = 0; run < READS; run++) {
      const { access_token, refresh_token } = await oauth.tokens(clientId, user.username); // a new browser
      const code = await oauth.code(clientId, user.username, {}, browser); // signed in, from the second run on
      expect((await oauth.token(code)).status).toBe(200);
      const refreshed = await oauth.refresh(clientId, refresh_token);
      expect(refreshed.status).toBe(200);
      expect((await oauth.refresh(clientId, refresh_token)).body).toMatchObject({
        refresh_token: refreshed.body.refresh_token,
      });
      await oauth.post('/oauth/introspect', { token: access_token, client_id: clientId });
      await fetch(new URL('/oauth/userinfo', oauth.issuer), {
        headers: { Authorization: `Bearer ${access_token}` },
      });
      const { searchParams } = oauth.request(clientId).url;
      expect((await oauth.post('/oauth/par', Object.fromEntries(searchParams))).status).toBe(201);
      await oauth.post('/oauth/revoke', {
        token: refreshed.body.refresh_token,
        client_id: clientId,
      });
      await seen.look();
    }
    const { rows } = seen;
    for (const part of [
      'INSERT INTO login_throttle',
      'UPDATE login_throttle',
      'LEFT JOIN users u ON u.folded_username = typed.folded_username',
      'INSERT INTO auth_events',
    ])
      expect(rows.filter(({ statement }) => statement.includes(part))).not.toEqual([]);
    expect(plannedAnew(rows)).toEqual([]);
  });

  it('include at most 32 different filtered queries of a list', async () => {
    // A new list: all tests of a process share the program's lists, and may have reached their limit.
    const list = new List<OwnQuery>({
      ...listOf('events'),
      name: 'events-of-this-test',
      item: `jsonb_build_object('of', 'this test')::text`,
      sorts: { starts_at: { key: relation(Participant, 'p').starts_at.from, type: 'timestamptz' } },
      filters: {
        role: (at) => `p.role = ${at}`,
        rsvp_status: (at) => `p.rsvp_status = ${at}`,
        after: (at) => `p.starts_at >= ${at}::timestamptz`,
        before: (at) => `p.starts_at < ${at}::timestamptz`,
        is_draft: (at) => `p.event_is_draft = ${at}`,
        other_than: (at) => `p.event_id <> ${at}`,
      },
    });
    const times = { after: '2026-01-01', before: '2036-01-01' };
    const given = { role: 'attendee', rsvp_status: 'going', ...times, is_draft: false, other_than: 1 };
    const ways = Array.from({ length: 40 }, (_, n) =>
      Object.fromEntries(Object.entries(given).filter((_filter, bit) => ((n + 1) >> bit) % 2 === 1)),
    );
    const reads = oauth.api.app.get(MemberReads).of(user.id);
    for (let run = 0; run < READS; run++) {
      for (const filters of ways)
        await list.page(reads, user.id, { limit: 20, sort: 'starts_at', ...filters }, undefined);
      await seen.look();
    }
    const filtered = seen.rows.filter(({ statement }) => statement.includes("'this test'"));
    // Counted by text: the pool, which reads while a connection is lost, uses other statement names.
    expect(new Set(filtered.map(({ statement }) => statement)).size).toBe(32);
    expect(plannedAnew(filtered)).toEqual([]);
  });

  /** Number of runs of each statement of the authorization server, and the sessions in which it ran. */
  async function runs(): Promise<{ pids: string; counts: Map<string, number> }> {
    const rows = await prepared();
    const asked = rows.filter(
      ({ statement }) =>
        /oauth_(sessions|grants|tokens|consents|state)|users|auth_events/.test(statement) &&
        !/SET successor = NULL|SET password_hash|fold_totals|pg_prepared_statements/.test(statement),
    );
    const counts = new Map<string, number>();
    for (const { statement, custom_plans, generic_plans } of asked)
      counts.set(statement, (counts.get(statement) ?? 0) + custom_plans + generic_plans);
    const pids = [...new Set(rows.map(({ pid }) => pid))].sort((one, other) => one - other);
    return { pids: pids.join(), counts };
  }

  /** Number of runs of each statement by the request; repeated if a connection was lost meanwhile. */
  async function executed<T>(
    prepare: () => Promise<T>,
    request: (of: T) => Promise<number>,
  ): Promise<number[]> {
    for (let attempt = 0; attempt < 20; attempt++) {
      const of = await prepare();
      const before = await runs();
      expect(await request(of)).toBeLessThan(400);
      const after = await runs();
      if (before.pids !== after.pids || after.pids.split(',').length < 3) continue;
      return [...after.counts]
        .map(([statement, times]) => times - (before.counts.get(statement) ?? 0))
        .filter((times) => times !== 0);
    }
    throw new Error('connections are lost all the time');
  }

  it('are two, run once each, for an authorization, a code exchange and a refresh', async () => {
    const browser = oauth.browser();
    const code = () => oauth.code(clientId, user.username, {}, browser);
    await code(); // signs in
    const { url } = oauth.request(clientId);
    const nothing = () => Promise.resolve();
    expect(await executed(nothing, async () => (await browser.send(url)).status)).toEqual([1, 1]);
    expect(await executed(code, async (form) => (await oauth.token(form)).status)).toEqual([1, 1]);
    expect(
      await executed(
        async () => (await oauth.token(await code())).body.refresh_token,
        async (token) => (await oauth.refresh(clientId, token)).status,
      ),
    ).toEqual([1, 1]);
  });
});
