import { describe, expect, it } from '@jest/globals';
import {
  JsonFragment,
  jsonText,
  type JsonField,
  type JsonKind,
  type JsonObject,
  type JsonSource,
  type ValueSql,
} from './json-text.js';
import { row } from './column.js';
import { timestamp } from './field.js';
import { relation } from './response.js';

/** The relation `t` does not exist in this application. */
const key = (name: string, kind: JsonKind, from: unknown, orNull = false): [string, JsonField] => [
  name,
  { kind, from: from as JsonSource, orNull },
];
const objectOf = (...keys: [string, JsonField][]): JsonObject => ({
  name: 'Thing',
  properties: Object.fromEntries(keys),
});

it('a SQL fragment can name only the columns of its table', () => {
  const e = relation(class extends row({ starts_at: timestamp }) {}, 'e');
  const known: ValueSql = e.starts_at.from;
  // @ts-expect-error: a renamed column
  const renamed = e.begins_at as unknown;
  // @ts-expect-error: the table is unknown
  const unchecked: ValueSql = 'e.begins_at';
  expect([known, renamed, unchecked]).toEqual(['e.starts_at', undefined, 'e.begins_at']);
});

describe('the SQL of JSON text', () => {
  it.each<[JsonKind, boolean, string]>([
    ['number', false, `'{"k":' || t.k || '}'`],
    ['number', true, `'{"k":' || COALESCE(t.k::text, 'null') || '}'`],
    ['text', false, `'{"k":' || json_text(t.k) || '}'`],
    ['text', true, `'{"k":' || json_text(t.k) || '}'`],
    ['word', false, `'{"k":"' || t.k || '"}'`],
    ['word', true, `'{"k":' || COALESCE('"' || t.k || '"', 'null') || '}'`],
    ['timestamp', false, `'{"k":"' || api_time(t.k) || '"}'`],
    ['timestamp', true, `'{"k":' || COALESCE('"' || api_time(t.k) || '"', 'null') || '}'`],
    ['boolean', false, `'{"k":' || CASE WHEN t.k THEN 'true' ELSE 'false' END || '}'`],
    ['json', false, `'{"k":' || t.k || '}'`],
    ['items', false, `'{"k":[' || t.k || ']}'`],
    ['texts', false, `'{"k":' || to_json(t.k)::text || '}'`],
  ])('converts a %s (nullable: %s)', (kind, orNull, sql) => {
    expect(jsonText(objectOf(key('k', kind, 't.k', orNull)))).toBe(sql);
  });

  it('puts one literal between two values, and parentheses around expressions', () => {
    const keys = [key('a', 'word', 't.a'), key('b', 'number', 'x + y'), key('c', 'boolean', 't.c IS NULL')];
    expect(jsonText(objectOf(...keys))).toBe(
      `'{"a":"' || t.a || '","b":' || (x + y) || ',"c":' || CASE WHEN (t.c IS NULL) THEN 'true' ELSE 'false' END || '}'`,
    );
  });

  it('places a complete fragment at its first key, and repeats none of its keys', () => {
    const card = new JsonFragment('t.card', true);
    const rest = new JsonFragment('t.rest');
    const keys = [
      key('id', 'number', card),
      key('b', 'text', 't.b'),
      key('name', 'text', card),
      key('c', 'text', rest),
      key('d', 'text', rest),
    ];
    expect(jsonText(objectOf(...keys))).toBe(`t.card || ',"b":' || json_text(t.b) || ',' || t.rest || '}'`);
  });

  it('rejects a complete fragment that is not at the first key', () => {
    const card = new JsonFragment('t.card', true);
    expect(() => jsonText(objectOf(key('a', 'text', 't.a'), key('id', 'number', card)))).toThrow(
      /^Thing.id: /,
    );
  });

  it('nests objects, and returns null if the object’s condition fails or its row is missing', () => {
    const keys = [key('x', 'number', 't.x')];
    expect(jsonText(objectOf(key('o', 'json', objectOf(...keys))))).toBe(`'{"o":{"x":' || t.x || '}}'`);
    expect(jsonText(objectOf(key('o', 'json', { ...objectOf(...keys), when: 't.y' })))).toBe(
      `'{"o":' || CASE WHEN t.y THEN '{"x":' || t.x || '}' ELSE 'null' END || '}'`,
    );
    expect(jsonText(objectOf(key('o', 'json', { ...objectOf(...keys), lookup: 't WHERE t.id = 1' })))).toBe(
      `'{"o":' || COALESCE((SELECT '{"x":' || t.x || '}' FROM t WHERE t.id = 1), 'null') || '}'`,
    );
  });

  it('converts times to their local zone', () => {
    const local = { local: 't.at', zone: 't.zone' };
    expect(jsonText(objectOf(key('at', 'timestamp', local)))).toBe(
      `'{"at":"' || local_time(t.at, t.zone) || '"}'`,
    );
  });
});
