import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import {
  CONNECTION_SOURCES,
  CONNECTION_STATUSES,
  COUNTRY_CODE_PATTERN,
  EVENT_ROLES,
  EVENT_STATUSES,
  EVENT_VISIBILITIES,
  LENGTHS,
  MAX_LATITUDE,
  MAX_LONGITUDE,
  MAX_PINNED,
  MAX_TAGS,
  RARITIES,
  RSVP_STATUSES,
  RSVP_STATUSES_BY_ROLE,
  type Length,
} from '../../src/values/vocabulary.js';
import { openDatabase, type OpenDatabase } from '../support/open-database.js';

/** A CHECK of one of the platform's tables, over these columns. */
interface Check {
  readonly table: string;
  readonly columns: readonly string[];
  readonly expression: string;
}

const CHECKS = `
  SELECT c.conrelid::regclass::text AS table, pg_get_expr(c.conbin, c.conrelid) AS expression,
    (SELECT json_agg(a.attname ORDER BY a.attname) FROM pg_attribute a WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)) AS columns
  FROM pg_constraint c WHERE c.contype = 'c' AND c.conrelid::regclass::text
    IN ('users', 'events', 'participants', 'connections', 'achievements', 'user_achievements')`;

const WORDS: Record<string, readonly string[]> = {
  'connections.source': CONNECTION_SOURCES,
  'connections.status': CONNECTION_STATUSES,
  'events.status': EVENT_STATUSES,
  'events.visibility': EVENT_VISIBILITIES,
  'participants.role': EVENT_ROLES,
};

const lengths = Object.entries(LENGTHS).flatMap(([table, columns]) =>
  Object.entries<Length>(columns).map(([column, length]) => [`${table}.${column}`, length] as const),
);

describe('the limits that the code and the database share', () => {
  let database: OpenDatabase;
  let dataSource: DataSource;
  let checks: Check[];
  beforeAll(async () => {
    database = await openDatabase();
    ({ dataSource } = database);
    checks = await dataSource.query<Check[]>(CHECKS);
  });
  afterAll(() => database.close());

  /** Whether all checks that cover only these columns accept the values: `{ role: "'attendee'::text" }`. */
  const accepted = async (table: string, values: Record<string, string>) => {
    const concerned = checks.filter(
      (check) => check.table === table && check.columns.every((column) => Object.hasOwn(values, column)),
    );
    expect(concerned).not.toEqual([]);
    const columns = Object.entries(values).map(([column, value]) => `${value} AS ${column}`);
    const [row] = await dataSource.query<{ accepted: boolean }[]>(
      `SELECT ${concerned.map(({ expression }) => `COALESCE(${expression}, true)`).join(' AND ')} AS accepted
       FROM (SELECT ${columns.join(', ')}) given`,
    );
    return row!.accepted;
  };
  /** Columns with their own CHECK that contains this text. */
  const checkedWith = (part: RegExp) =>
    checks
      .filter(({ columns, expression }) => columns.length === 1 && part.test(expression))
      .map(({ table, columns }) => `${table}.${columns[0]}`)
      .toSorted();

  it('cover every text column that has a CHECK of its length', () => {
    expect(checkedWith(/char_length/)).toEqual(lengths.map(([name]) => name).toSorted());
  });

  it.each(lengths)('limit %s to %j code points (minimum, maximum)', async (name, [least, most]) => {
    const [table, column] = name.split('.') as [string, string];
    // An emoji has two code units, but the limit counts code points.
    const ofLength = (length: number) => accepted(table, { [column]: `repeat('😀', ${length})::text` });
    expect(await ofLength(most)).toBe(true);
    expect(await ofLength(most + 1)).toBe(false);
    expect(await ofLength(least)).toBe(true);
    if (least > 0) expect(await ofLength(least - 1)).toBe(false);
  });

  it('cover every column that has a CHECK of its values', () => {
    expect(checkedWith(/ANY \(ARRAY/)).toEqual(Object.keys(WORDS).toSorted());
  });

  it.each(Object.entries(WORDS))('allow in %s the values %j, and no other value', async (name, words) => {
    const [table, column] = name.split('.') as [string, string];
    const { expression } = checks.find(
      (check) => check.table === table && check.columns.length === 1 && check.columns[0] === column,
    )!;
    const named = Array.from(expression.matchAll(/'(\w+)'::text/g), ([, word]) => word);
    expect(named).toEqual(words);
    for (const word of [...words, 'x'])
      expect([word, await accepted(table, { [column]: `'${word}'::text` })]).toEqual([word, word !== 'x']);
  });

  it('cover the RSVPs of each role', async () => {
    for (const role of EVENT_ROLES) {
      const own: readonly (string | null)[] =
        RSVP_STATUSES_BY_ROLE[role].length > 0 ? RSVP_STATUSES_BY_ROLE[role] : [null];
      for (const status of [...RSVP_STATUSES, null]) {
        const values = { role: `'${role}'::text`, rsvp_status: status ? `'${status}'::text` : 'NULL::text' };
        expect([role, status, await accepted('participants', values)]).toEqual([
          role,
          status,
          own.includes(status),
        ]);
      }
    }
  });

  it('cover the limits of coordinates, pin positions and tags', async () => {
    const bounds: [table: string, column: string, type: string, least: number, most: number][] = [
      ['events', 'location_latitude', 'float8', -MAX_LATITUDE, MAX_LATITUDE],
      ['events', 'location_longitude', 'float8', -MAX_LONGITUDE, MAX_LONGITUDE],
      ['user_achievements', 'pin_position', 'smallint', 1, MAX_PINNED],
    ];
    for (const [table, column, type, least, most] of bounds)
      for (const value of [least - 1, least, most, most + 1])
        expect([column, value, await accepted(table, { [column]: `(${value})::${type}` })]).toEqual([
          column,
          value,
          value >= least && value <= most,
        ]);
    for (const count of [MAX_TAGS, MAX_TAGS + 1]) {
      const tags = `array_fill('tag'::text, ARRAY[${count}])`;
      expect([count, await accepted('events', { tags })]).toEqual([count, count <= MAX_TAGS]);
    }
  });

  it('cover country codes', () => {
    const { expression } = checks.find(({ columns }) => columns[0] === 'location_country_code')!;
    expect(expression).toContain(`'${COUNTRY_CODE_PATTERN}'`);
  });

  it('cover the tiers: every result of rarity_tier, and no other value', async () => {
    const rows = await dataSource.query<{ tier: string }[]>(
      `SELECT DISTINCT rarity_tier(earners, eligible) AS tier FROM generate_series(0, 200) earners, (VALUES (9), (200)) AS e (eligible)`,
    );
    expect(rows.map(({ tier }) => tier).toSorted()).toEqual([...RARITIES].toSorted());
  });
});
