import { describe, expect, it } from '@jest/globals';
import { Problem } from '../output/problems.js';
import {
  Cursor,
  Flag,
  ListOf,
  ListOfTexts,
  DateTime,
  OneOf,
  RequiredInteger,
  Search,
  WholeNumber,
} from './parameters.js';
import { Parameters, parseQuery } from './query.js';

const SIZES = ['small', 'medium', 'large'] as const;

class Query {
  @WholeNumber(1, 100, '')
  limit = 20;

  @OneOf(SIZES, '')
  size?: string;

  @ListOf(SIZES, '')
  sizes?: string[];

  @ListOfTexts('')
  tags?: string[];

  @Flag('')
  open?: boolean;

  @DateTime('')
  since?: string;

  @Search(2, 4, '')
  q?: string;

  @Cursor()
  cursor?: string;
}

class NeedsId {
  @RequiredInteger('')
  id: string;
}

const read = (query: string) => ({ ...parseQuery(Query, query) });
const refused = (query: string, of: new () => object = Query) => {
  try {
    parseQuery(of, query);
  } catch (error) {
    return (error as Problem).options.errors;
  }
  return [];
};

describe('the query parser', () => {
  it.each([
    ['', { limit: 20 }],
    ['limit=007', { limit: 7 }],
    ['size=large', { limit: 20, size: 'large' }],
    ['sizes=large,small&sizes=small', { limit: 20, sizes: ['small', 'large'] }],
    ['tags=b&tags=a,b', { limit: 20, tags: ['a', 'b'] }],
    ['open=false', { limit: 20, open: false }],
    ['since=2026-01-31T18:00:00.5%2B01:00', { limit: 20, since: '2026-01-31T17:00:00.500000Z' }],
    ['since=2026-01-31T18:00:00+01:00', { limit: 20, since: '2026-01-31T17:00:00.000000Z' }],
    ['q=%F0%9F%98%80%F0%9F%98%80', { limit: 20, q: '😀😀' }],
    ['cursor=', { limit: 20, cursor: '' }],
  ])('parses %j as %j', (query, parameters) => {
    expect(read(query)).toEqual(parameters);
  });

  it.each([
    ['limit=0', 'limit must be a whole number from 1 to 100.'],
    ['limit=101', 'limit must be a whole number from 1 to 100.'],
    ['limit=1e1', 'limit must be a whole number from 1 to 100.'],
    ['limit=', 'limit must be a whole number from 1 to 100.'],
    ['limit=1&limit=1', 'limit must be given only once.'],
    ['tags=a,,b', 'tags must be a list of 1 to 50 texts, none of them empty.'],
    ['tags=%00', 'tags must be a list of 1 to 50 texts, none of them empty.'],
    [
      `tags=${Array.from({ length: 51 }, (_, n) => n).join(',')}`,
      'tags must be a list of 1 to 50 texts, none of them empty.',
    ],
    ['since=2026-02-30', 'since must be YYYY-MM-DD HH:MM:SS (UTC), RFC 3339, or a date.'],
    ['q=a', 'q must have 2 to 4 characters, none of them U+0000.'],
    ['q=abcde', 'q must have 2 to 4 characters, none of them U+0000.'],
    ['q=ab%00', 'q must have 2 to 4 characters, none of them U+0000.'],
  ])('rejects %j: %s', (query, detail) => {
    const [parameter] = query.split('=');
    expect(refused(query)).toEqual([{ parameter, code: 'invalid_parameter', detail }]);
  });

  it.each([
    ['size=', SIZES],
    ['size=Large', SIZES],
    ['sizes=small,huge', SIZES],
    ['sizes=', SIZES],
    ['open=1', ['true', 'false']],
  ])('rejects %j and lists the allowed values', (query, allowed) => {
    expect(refused(query)).toEqual([expect.objectContaining({ code: 'invalid_parameter', allowed })]);
  });

  it('reports one problem per parameter, unknown parameters first', () => {
    const errors = refused('q=a%00&limit=x&other=1&__proto__=2');
    expect(errors!.map((error) => ('parameter' in error ? [error.parameter, error.code] : error))).toEqual([
      ['other', 'unknown_parameter'],
      ['__proto__', 'unknown_parameter'],
      ['limit', 'invalid_parameter'],
      ['q', 'invalid_parameter'],
    ]);
  });

  it.each([
    ['', 'missing_parameter'],
    ['id=', 'missing_parameter'],
    ['id=x', 'invalid_parameter'],
    ['id=1.5', 'invalid_parameter'],
    [`id=${'9'.repeat(401)}`, 'invalid_parameter'],
  ])('rejects a missing or invalid id in %j: %s', (query, code) => {
    expect(refused(query, NeedsId)).toEqual([expect.objectContaining({ parameter: 'id', code })]);
  });

  it.each([
    ['page=2', '`cursor`'],
    ['offset=20', '`cursor`'],
    ['starting_after=x', '`cursor`'],
    ['per_page=50', '`limit`'],
    ['pageSize=50', '`limit`'],
  ])('rejects %j with a fix that names %s', (query, named) => {
    const [fault, ...others] = refused(query)!;
    expect(fault).toMatchObject({ code: 'unknown_parameter', fix: expect.stringContaining(named) });
    expect(others).toEqual([]);
  });

  it('suggests only parameters that the route has', () => {
    for (const query of ['id=1&page=2', 'id=1&per_page=5', 'id=1&other=x'])
      expect(refused(query, NeedsId)![0]).not.toHaveProperty('fix');
  });

  it('requires a class as the type of the handler’s parameter', () => {
    const decorate = (types: unknown[]) => {
      class Controller {
        list(): void {}
      }
      Reflect.defineMetadata('design:paramtypes', types, Controller.prototype, 'list');
      Parameters()(Controller.prototype, 'list', 0);
    };
    expect(() => decorate([Query])).not.toThrow();
    for (const types of [[Object], []])
      expect(() => decorate(types)).toThrow('Controller.list: parameter 0 needs a class');
  });
});
