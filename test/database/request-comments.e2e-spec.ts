import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startPostgres } from '../../bin/postgres.mjs';
import { MemberReads } from '../../src/database/member-reads.js';
import { TestApi } from '../support/api.js';
import { atOnce } from '../support/concurrent.js';
import { migrateAt, postgres, QUICK } from '../support/database.js';
import { eventually } from '../support/timing.js';

type Cluster = Awaited<ReturnType<typeof startPostgres>>;

/** A log of every statement; a line without a leading `|` continues the previous line. */
const LOGGING = {
  logging_collector: 'on',
  log_filename: 'log',
  log_statement: 'all',
  log_line_prefix: '|',
};

postgres.describe('PostgreSQL’s own log', () => {
  const folders = ['primary', 'replica'].map((name) => mkdtempSync(join(tmpdir(), `pua-log-${name}-`)));
  let primary: Cluster;
  let replica: Cluster;
  /** Two servers over one database: with request ids in statements, and without. */
  let marked: TestApi;
  let plain: TestApi;
  let key: string;

  const settings = { ...QUICK, ...LOGGING };

  beforeAll(async () => {
    primary = await startPostgres(folders[0]!, settings);
    await migrateAt(primary.url);
    replica = await startPostgres(folders[1]!, settings, primary.url);
    const address = { databaseUrl: primary.url, databaseDirectUrl: primary.url };
    plain = await TestApi.start(address);
    marked = await TestApi.start({ ...address, sqlRequestIds: true, databasePoolSize: 2 }, plain);
    key = await plain.key(await plain.platform.user());
  });
  afterAll(async () => {
    await marked.close();
    await plain.close();
    await replica.stop();
    await primary.stop();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  const logOf = (index: number) => readFileSync(join(folders[index]!, 'data/log/log'), 'utf8');
  /** Waits until the log has a statement of the request with the text `last`. @returns log entries with protocol and statement */
  const statementsOf = (id: string, last: string, index = 0) =>
    eventually(() => {
      const found = logOf(index)
        .split('\n|')
        .filter((entry) => entry.includes(`/*request_id='${id}'*/`))
        .map((entry) => entry.replace(/^LOG: +/, '').replace(/ \/\*request_id='[^']*'\*\/$/, ''));
      return found.some((statement) => statement.includes(last)) ? found : undefined;
    });
  const call = (api: TestApi, path: string, id: string, init: RequestInit & { headers?: object } = {}) =>
    fetch(api.url + path, { ...init, headers: { 'X-API-Key': key, 'X-Request-Id': id, ...init.headers } });

  it('has the request id in statements of a read, a write, a list and a token request', async () => {
    const read = await call(marked, '/api/public/profile', 'a-read');
    expect([read.status, read.headers.get('x-request-id')]).toEqual([200, 'a-read']);
    const reads = await statementsOf('a-read', 'FROM users');
    expect(reads.length).toBeGreaterThan(0);
    const written = await call(marked, '/api/public/profile', 'a-write', {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ bio: 'marked' }),
    });
    expect(written.status).toBe(200);
    const writes = await statementsOf('a-write', 'UPDATE users');
    // A statement with a request id has no name: PostgreSQL prepares one text per name.
    expect([...reads, ...writes].filter((statement) => /^execute (?!<unnamed>)/.test(statement))).toEqual([]);
    await call(marked, '/api/public/events?q=nothing', 'a-list');
    await statementsOf('a-list', 'participants');
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: 'x'.repeat(43),
      client_id: 'x',
    });
    await call(marked, '/oauth/token', 'a-token-request', { method: 'POST', body: form, headers: {} });
    await statementsOf('a-token-request', 'oauth_clients');
  });

  it('has the right request id for each of many requests that share two connections', async () => {
    const members = await atOnce(20, async () => {
      const id = await plain.platform.user();
      return { id, key: await plain.key(id) };
    });
    const statuses = await Promise.all(
      members.flatMap(({ id, key: own }) =>
        ['/api/public/profile', '/api/public/events?q=nothing'].map(
          async (path) =>
            (await call(marked, path, `member-${id}`, { headers: { 'X-API-Key': own } })).status,
        ),
      ),
    );
    // A request without a slot is rejected, so the log has no statement of that request.
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    const pairs = await eventually(() => {
      // The two statements that have the member's id as the first parameter.
      const found = logOf(0)
        .split('\n|LOG:')
        .filter((entry) => /FROM users u|FROM participants/.test(entry))
        .flatMap((entry) => {
          const pair = /request_id='member-(\d+)'\*\/\n\|DETAIL: +parameters: \$1 = '(\d+)'/.exec(entry);
          return pair ? [[pair[1], pair[2]]] : [];
        });
      return found.length >= statuses.filter((status) => status === 200).length ? found : undefined;
    });
    expect(pairs.filter(([id, parameter]) => id !== parameter)).toEqual([]);
  });

  it('contains a generated request id instead of an invalid X-Request-Id', async () => {
    const hostile = "'*/; DROP TABLE users; --";
    const response = await call(marked, '/api/public/profile', hostile);
    const id = response.headers.get('x-request-id')!;
    expect([response.status, id]).toEqual([200, expect.stringMatching(/^[\da-f-]{36}$/)]);
    await statementsOf(id, 'FROM users');
    expect(logOf(0)).not.toContain(hostile);
  });

  it('has no request ids if SQL_REQUEST_IDS is off, and statements are prepared', async () => {
    const id = randomUUID();
    const { id: member, key: own } = await plain.member();
    await call(plain, '/api/public/profile', id, { headers: { 'X-API-Key': own } });
    const entries = await eventually(() => {
      const found = logOf(0)
        .split('\n|LOG:')
        .filter((entry) => entry.includes(`$1 = '${member}'`) && /execute (?!<unnamed>)/.test(entry));
      return found.length > 0 ? found : undefined;
    });
    expect(entries.join('\n')).not.toContain('request_id');
    expect(logOf(0)).not.toContain(id);
  });

  it('also has the request ids on a replica, for short reads and lists', async () => {
    await using api = await TestApi.start({ ...marked.config, databaseReadUrls: [replica.url] }, plain);
    const { reads } = api.app.get(MemberReads);
    for (const [path, last] of [
      ['/api/public/profile', 'FROM users'],
      ['/api/public/events?q=nothing', 'participants'],
    ] as const) {
      const id = await eventually(async () => {
        const before = reads.replica;
        const next = randomUUID();
        await call(api, path, next);
        return reads.replica > before ? next : undefined;
      });
      expect((await statementsOf(id, last, 1)).length).toBeGreaterThan(0);
    }
  });
});
