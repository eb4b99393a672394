import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { DataSource } from 'typeorm';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { achievementsAccess } from '../../src/resources/achievements/access.js';
import { derivedOfUserAchievements } from '../../src/resources/achievements/derived.js';
import { connectionsAccess } from '../../src/resources/connections/access.js';
import { derivedOfConnections } from '../../src/resources/connections/derived.js';
import { eventsAccess } from '../../src/resources/events/access.js';
import { derivedOfParticipants } from '../../src/resources/events/derived.js';
import { TestApi } from '../support/api.js';
import { atOnce } from '../support/concurrent.js';
import { onPostgres, thorough } from '../support/database.js';
import {
  DEADLOCK,
  FOREIGN_KEY_VIOLATION,
  RIGHT,
  SERIALIZATION_FAILURE,
  UNIQUE_VIOLATION,
  findWrong,
  manyThings,
  oneThing,
  takeOver,
  writeThem,
} from '../support/writers.js';

const WRITERS = 8;

const DERIVED = [
  ['events', derivedOfParticipants, eventsAccess],
  ['connections', derivedOfConnections, connectionsAccess],
  ['achievements', derivedOfUserAchievements, achievementsAccess],
] as const;

const ISOLATION = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const;

thorough.describe('the schema’s triggers, after random histories', () => {
  let api: TestApi;
  let writers: DataSource[];
  beforeAll(async () => {
    api = await TestApi.start();
    writers = await atOnce(WRITERS, () => createDataSource(api.config, 'maintenance').initialize());
    await writeThem(api.platform);
  });
  afterAll(async () => {
    await Promise.all(writers.map((writer) => writer.destroy()));
    await api.close();
  });

  const wrong = () => findWrong(api);

  /** Runs all writers at once, each with its own statements; compaction runs meanwhile, as it does alongside a server. */
  async function writeAll(
    statements: string[],
    write: (writer: DataSource, sql: string, n: number) => Promise<unknown>,
  ) {
    await Promise.all([
      ...writers.map(async (writer, i) => {
        for (const [n, sql] of statements.entries()) if (n % WRITERS === i) await write(writer, sql, n);
      }),
      (async () => {
        for (let n = 0; n < 10; n++) await api.query('SELECT fold_totals(7), copy_names(3)');
      })(),
    ]);
  }

  it.each([
    ['single changes by many writers, without any deadlock', oneThing, []],
    ['several changes at once by many writers', manyThings, [DEADLOCK]],
  ])('keep the derived data correct after %s, at any isolation level', async (_, statement, mayHappen) => {
    const lostRaces = [UNIQUE_VIOLATION, FOREIGN_KEY_VIOLATION, SERIALIZATION_FAILURE];
    const expected = new Set<string>([...lostRaces, ...mayHappen]);
    let done = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(statement, { minLength: 40, maxLength: 160 }), async (statements) => {
        await writeAll(statements, async (writer, sql, n) => {
          try {
            await writer.transaction(ISOLATION[n % ISOLATION.length]!, (manager) => manager.query(sql));
            done++;
          } catch (error) {
            if (!expected.has((error as { code: string }).code)) throw error;
          }
        });
        expect(await wrong()).toEqual(RIGHT);
      }),
      { numRuns: onPostgres ? 25 : 5, endOnFailure: true },
    );
    expect(done).toBeGreaterThan(100);
  });

  it('report each visible row whose declared columns changed', async () => {
    const query = <Row>(sql: string, values: unknown[] = []) => api.query<Row>(sql, values);
    const rows = DERIVED.map(([resource, { reported }, { rows, member, id, isShown }]) => {
      const columns = reported.map((column) => `${rows.split(' ')[1]}.${column}`).join(', ');
      return `SELECT '${resource} ' || ${member} || ' ' || ${id} AS key, ${isShown} AS shown, ROW(${columns})::text AS said FROM ${rows}`;
    }).join(' UNION ALL ');
    const readRows = async () =>
      new Map(
        (await query<{ key: string; shown: boolean; said: string }>(rows)).map((row) => [row.key, row]),
      );
    await query('UPDATE users SET disabled_at = NULL');
    await query(`UPDATE events SET status = 'scheduled', deleted_at = NULL`);
    let changed = 0;
    const check = async (sql: string) => {
      const was = await readRows();
      const [mark] = await query<{ at: string }>('SELECT max(sequence)::text AS at FROM changes');
      await query(sql).catch((error: { code: string }) => expect(error.code).toBe(UNIQUE_VIOLATION));
      const is = await readRows();
      const told = await query<{ key: string }>(
        `SELECT resource || ' ' || user_id || ' ' || id AS key FROM changes WHERE sequence > COALESCE($1, 0) AND user_id IS NOT NULL`,
        [mark!.at],
      );
      const reported = told.map(({ key }) => key);
      const differs = (key: string) => was.get(key)?.said !== is.get(key)?.said;
      const isShown = (key: string) => was.get(key)?.shown === true || is.get(key)?.shown === true;
      const expected = [...new Set([...was.keys(), ...is.keys()])].filter(
        (key) => differs(key) && isShown(key),
      );
      changed += expected.length;
      expect([sql, reported]).toEqual([sql, expect.arrayContaining(expected)]);
      // A deleted draft is reported only to its organizers; a profile has no declaration.
      if (/^UPDATE (events|users)/.test(sql)) return;
      expect([sql, reported.filter((key) => !differs(key))]).toEqual([sql, []]);
    };
    const statements = fc.array(fc.oneof({ arbitrary: oneThing, weight: 4 }, takeOver), { minLength: 100 });
    await fc.assert(
      fc.asyncProperty(statements, async (all) => {
        for (const sql of all) await check(sql);
      }),
      { numRuns: 5, endOnFailure: true },
    );
    expect(changed).toBeGreaterThan(20);
  });
});
