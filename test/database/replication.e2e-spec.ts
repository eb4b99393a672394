import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { DataSource } from 'typeorm';
import { startPostgres } from '../../bin/postgres.mjs';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { migrate } from '../../src/database/schema/migrate.js';
import { countLoneSides, findDrift, findStaleCopies } from '../../src/operations/doctor/totals.js';
import { postgres, testConfig } from '../support/database.js';
import { Platform } from '../support/platform.js';
import {
  DEADLOCK,
  FOREIGN_KEY_VIOLATION,
  SERIALIZATION_FAILURE,
  UNIQUE_VIOLATION,
  manyThings,
  writeThem,
} from '../support/writers.js';
import { until } from '../support/timing.js';

const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  wal_level: 'logical',
  wal_retrieve_retry_interval: '100ms',
};
const WRITERS = 4;
/** What the platform writes: neither totals nor their changes, which the subscriber makes by itself. */
const PUBLISHED = ['users', 'events', 'participants', 'connections', 'achievements', 'user_achievements'];
/** What the platform itself writes in each, generated columns and copies aside. */
const WRITTEN = {
  users: 'id, username, first_name, disabled_at',
  events: 'id, title, status, starts_at, deleted_at, organizer_id',
  participants: 'user_id, event_id, role, rsvp_status',
  connections: 'id, user_id, peer_id, status, connected_at',
  user_achievements: 'user_id, achievement_id, progress, earned_at',
};
const MAY_BE_LOST = [UNIQUE_VIOLATION, FOREIGN_KEY_VIOLATION, SERIALIZATION_FAILURE, DEADLOCK];

postgres.describe('a subscriber of the platform’s own PostgreSQL', () => {
  const folders = ['publisher', 'subscriber'].map((name) => mkdtempSync(join(tmpdir(), `pua-${name}-`)));
  let clusters: Awaited<ReturnType<typeof startPostgres>>[];
  let publisher: DataSource;
  let subscriber: DataSource;
  let writers: DataSource[];

  const open = (url: string) =>
    createDataSource(
      testConfig({ NODE_ENV: 'test', SECRET_KEY: process.env.TEST_SECRET_KEY!, DATABASE_URL: url }),
      'maintenance',
    ).initialize();

  beforeAll(async () => {
    clusters = await Promise.all(folders.map((folder) => startPostgres(folder, SETTINGS)));
    [publisher, subscriber] = (await Promise.all(clusters.map(({ url }) => open(url)))) as [
      DataSource,
      DataSource,
    ];
    await Promise.all([migrate(publisher), migrate(subscriber)]);
    writers = await Promise.all(Array.from({ length: WRITERS }, () => open(clusters[0]!.url)));
    await writeThem(new Platform(publisher));
    await write(fc.sample(manyThings, { numRuns: 80 }));
    await publisher.query(
      `CREATE PUBLICATION platform FOR TABLE ${PUBLISHED.join(', ')} WITH (publish = 'insert, update, delete')`,
    );
    // The tables are copied side by side, so answers may be there before their events.
    await subscriber.query(
      `CREATE SUBSCRIPTION platform CONNECTION '${clusters[0]!.url}' PUBLICATION platform`,
    );
    await until(
      async () =>
        (await rows(subscriber, "SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r'")).length === 0,
    );
  });
  afterAll(async () => {
    await subscriber.query('DROP SUBSCRIPTION platform');
    await Promise.all([publisher, subscriber, ...writers].map((dataSource) => dataSource.destroy()));
    await Promise.all(clusters.map((cluster) => cluster.stop()));
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  const rows = (dataSource: DataSource, sql: string) => dataSource.query<object[]>(sql);
  /** All writers at once; the servers of both sides fold meanwhile. */
  async function write(statements: string[]): Promise<void> {
    await Promise.all([
      ...writers.map(async (writer, i) => {
        for (const [n, sql] of statements.entries()) {
          if (n % WRITERS !== i) continue;
          try {
            await writer.query(sql);
          } catch (error) {
            if (!MAY_BE_LOST.includes((error as { code: string }).code)) throw error;
          }
        }
      }),
      ...[publisher, subscriber].map(async (dataSource) => {
        for (let n = 0; n < 5; n++) await dataSource.query('SELECT fold_totals(7), copy_names(3)');
      }),
    ]);
  }

  /** Until the subscriber has applied all that the publisher has written so far. */
  async function caughtUp(): Promise<void> {
    const [{ lsn }] = (await rows(publisher, 'SELECT pg_current_wal_lsn()::text AS lsn')) as [
      { lsn: string },
    ];
    await until(
      async () =>
        (await rows(publisher, `SELECT FROM pg_stat_replication WHERE replay_lsn >= '${lsn}'`)).length === 1,
    );
  }

  it('has its rows, every copy, and every total equal to its count, whatever many writers did there at once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(manyThings, { minLength: 40, maxLength: 120 }), async (statements) => {
        await write(statements);
        await caughtUp();
        for (const [table, columns] of Object.entries(WRITTEN)) {
          const all = `SELECT ${columns} FROM ${table} ORDER BY ${columns}`;
          expect(await rows(subscriber, all)).toEqual(await rows(publisher, all));
        }
        while (((await rows(subscriber, 'SELECT copy_names(500) AS n')) as [{ n: number }])[0].n > 0);
        const { manager } = subscriber;
        expect(await findDrift(manager)).toEqual([]);
        expect(await findStaleCopies(manager)).toEqual([]);
        expect(await countLoneSides(manager)).toBe(0);
      }),
      { numRuns: 8, endOnFailure: true },
    );
    expect(
      await rows(
        subscriber,
        'SELECT apply_error_count::int AS apply, sync_error_count::int AS sync FROM pg_stat_subscription_stats',
      ),
    ).toEqual([{ apply: 0, sync: 0 }]);
  });

  it('makes the totals of achievements by itself, whatever counts come with their rows', async () => {
    await publisher.query('UPDATE achievements SET earners_count = 77, points = 5 WHERE id = 1');
    await caughtUp();
    expect(await rows(subscriber, 'SELECT points FROM achievements WHERE id = 1')).toEqual([{ points: 5 }]);
    await subscriber.query('SELECT fold_totals(5000)');
    expect(await findDrift(subscriber.manager)).toEqual([]);
  });
});
