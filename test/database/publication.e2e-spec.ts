import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import pg from 'pg';
import type { DataSource } from 'typeorm';
import { startPostgres } from '../../bin/postgres.mjs';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { migrate } from '../../src/database/schema/migrate.js';
import { deleteExpired, expiredRows } from '../../src/operations/sweeper/sweeper.js';
import { postgres, testConfig } from '../support/database.js';
import { Platform } from '../support/platform.js';
import { until } from '../support/timing.js';

const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  wal_level: 'logical',
  wal_retrieve_retry_interval: '100ms',
  shared_buffers: '32MB',
};
/** The statements that docs/streaming.md has operators run. */
const [, STATEMENTS] = /```sql\n(CREATE PUBLICATION .*?)```/s.exec(
  readFileSync('docs/streaming.md', 'utf8'),
)!;
/** Two tables of a reader that has nothing else, and counts what arrives. */
const READER = `CREATE TABLE changes (arrived bigint GENERATED ALWAYS AS IDENTITY, changed_in bigint, sequence bigint, user_id bigint,
  resource text, id bigint, kind text, changed_at timestamptz);
CREATE TABLE platform_changes (arrived bigint GENERATED ALWAYS AS IDENTITY, changed_in bigint, sequence bigint, type text,
  user_id bigint, by_id text, fields jsonb, scopes text[], changed_at timestamptz)`;

postgres.describe('a reader of the publication of docs/streaming.md', () => {
  const folders = ['publisher', 'reader'].map((name) => mkdtempSync(join(tmpdir(), `pua-${name}-`)));
  let clusters: Awaited<ReturnType<typeof startPostgres>>[];
  let dataSource: DataSource;
  let platform: Platform;
  let reader: pg.Client;

  beforeAll(async () => {
    clusters = await Promise.all(folders.map((folder) => startPostgres(folder, SETTINGS)));
    const [publisher, subscriber] = clusters.map(({ url }) => url);
    const environment = {
      NODE_ENV: 'test',
      SECRET_KEY: process.env.TEST_SECRET_KEY!,
      DATABASE_URL: publisher!,
    };
    dataSource = await createDataSource(testConfig(environment), 'maintenance').initialize();
    await migrate(dataSource);
    platform = new Platform(dataSource);
    await dataSource.query(STATEMENTS!);
    reader = new pg.Client(subscriber);
    await reader.connect();
    await reader.query(READER);
    const url = publisher!.replace('postgres@', 'pua_streaming@');
    await reader.query(
      `CREATE SUBSCRIPTION pua_changes CONNECTION '${url}' PUBLICATION pua_changes WITH (copy_data = false)`,
    );
  });
  afterAll(async () => {
    await reader.query('DROP SUBSCRIPTION pua_changes');
    await reader.end();
    await dataSource.destroy();
    await Promise.all(clusters.map((cluster) => cluster.stop()));
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => reader.query('TRUNCATE changes, platform_changes'));

  /** Waits until the reader has everything that is committed; returns what of it came, in the order in which it came. */
  const arrived = async (statement = 'SELECT user_id, resource, id, kind FROM changes ORDER BY arrived') => {
    const [{ lsn }] = await dataSource.query<[{ lsn: string }]>('SELECT pg_current_wal_lsn() AS lsn');
    await until(async () => {
      const [slot] = await dataSource.query<{ isThere: boolean }[]>(
        `SELECT confirmed_flush_lsn >= $1 AS "isThere" FROM pg_replication_slots WHERE slot_name = 'pua_changes'`,
        [lsn],
      );
      return slot!.isThere;
    }, 'the reader has confirmed the position');
    return (await reader.query<Record<string, unknown>>(statement)).rows;
  };
  const rename = (
    client: { query: (sql: string, values: unknown[]) => Promise<unknown> },
    id: number,
    name: string,
  ) => client.query('UPDATE users SET bio = $2 WHERE id = $1', [id, name]);
  const bioOf = (id: number) => ({
    user_id: id,
    resource: 'profile',
    id,
    kind: 'updated',
  });

  it('has each committed change once, in the order of commits, and none that was rolled back', async () => {
    const [one, other, third] = [await platform.user(), await platform.user(), await platform.user()];
    const [first, last] = [new pg.Client(clusters[0]!.url), new pg.Client(clusters[0]!.url)];
    for (const client of [first, last]) {
      await client.connect();
      await client.query('BEGIN');
    }
    await rename(first, one, 'begun first');
    await rename(last, other, 'begun last');
    await last.query('COMMIT');
    await first.query('COMMIT');
    await first.query('BEGIN');
    await rename(first, third, 'not kept');
    await first.query('ROLLBACK');
    await Promise.all([first.end(), last.end()]);
    expect(await arrived()).toEqual([bioOf(other), bioOf(one)]);
  });

  it('has what members did, with its values', async () => {
    const member = await platform.user();
    await dataSource.query(
      `INSERT INTO platform_changes (type, user_id, by_id, fields) VALUES ('profile.updated', $1, 'an app', '{"bio": "new"}')`,
      [member],
    );
    expect(await arrived('SELECT type, user_id, by_id, fields FROM platform_changes')).toEqual([
      { type: 'profile.updated', user_id: member, by_id: 'an app', fields: { bio: 'new' } },
    ]);
  });

  it('keeps what coalescing and the sweeper delete here', async () => {
    const member = await platform.user();
    await rename(dataSource, member, 'one');
    await rename(dataSource, member, 'two');
    await dataSource.query(`UPDATE changes SET changed_at = now() - interval '40 days' WHERE user_id = $1`, [
      member,
    ]);
    await dataSource.query('SELECT coalesce_changes(1000)');
    const retention = { auditRetentionSeconds: 86_400, changesRetentionSeconds: 86_400 };
    for (const rows of expiredRows(retention).filter(({ table }) => table === 'changes'))
      await deleteExpired(dataSource, rows);
    const [left] = await dataSource.query<[{ n: number }]>(
      'SELECT count(*)::int AS n FROM changes WHERE user_id = $1',
      [member],
    );
    expect([left.n, await arrived()]).toEqual([0, [bioOf(member), bioOf(member)]]);
  });

  it('sees the erasure of a member, as a person who is removed', async () => {
    const member = await platform.user();
    await eraseMembers(dataSource, [member], { actor: 'admin' });
    expect(await arrived()).toContainEqual({
      user_id: null,
      resource: 'people',
      id: member,
      kind: 'removed',
    });
  });

  it('goes on where it was, however long it was away: PostgreSQL keeps its log for it meanwhile', async () => {
    const members = [await platform.user(), await platform.user()];
    await rename(dataSource, members[0]!, 'before');
    await arrived();
    await reader.query('ALTER SUBSCRIPTION pua_changes DISABLE');
    const slot = async () => {
      const [row] = await dataSource.query<{ active: boolean; held: number }[]>(
        `SELECT active, pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::float8 AS held FROM pg_replication_slots
           WHERE slot_name = 'pua_changes'`,
      );
      return row!;
    };
    await until(async () => !(await slot()).active, 'the reader is gone');
    await rename(dataSource, members[1]!, 'meanwhile');
    await dataSource.query(`SELECT pg_switch_wal()`);
    await dataSource.query('CHECKPOINT');
    expect((await slot()).held).toBeGreaterThan(0);
    await reader.query('ALTER SUBSCRIPTION pua_changes ENABLE');
    expect(await arrived()).toEqual(members.map(bioOf));
  });
});
