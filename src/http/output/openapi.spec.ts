import { describe, expect, it } from '@jest/globals';
import { DeprecatedParameter, Flag, WholeNumber } from '../input/parameters.js';
import { IN_NODE, textField } from '../../model/response.js';
import { deprecationHeaders, DeprecatedRoute, describeParameters, RespondsWith } from './openapi.js';
import { deprecation, Model, schemaNamed } from '../../model/json-schema.js';

class Query {
  @WholeNumber(1, 9, 'Kept')
  limit = 5;
}

class QueryThatLoses extends Query {
  @DeprecatedParameter('2026-03-01', '2027-06-01')
  @Flag('Ends')
  wide?: boolean;
}

const Item = new Model('ItemWithoutEnd', { name: textField(IN_NODE, 'Kept') });
const ItemThatLoses = new Model('ItemThatLosesAField', {
  name: textField(IN_NODE, 'Kept'),
  nick: textField(IN_NODE, 'Ends').deprecated('2026-02-01', '2027-02-01').nullable,
});

function handlerWith(...decorators: MethodDecorator[]): object {
  const descriptor = { value: () => undefined };
  for (const decorate of decorators) decorate({}, 'handler', descriptor);
  return descriptor.value;
}

describe('the headers of a route', () => {
  const usual = RespondsWith('Read it', Item);

  it.each([
    ['nothing', handlerWith(usual), Query, []],
    [
      'the route',
      handlerWith(usual, DeprecatedRoute('2026-12-01', '2027-12-01')),
      Query,
      ['@1796083200', 'Wed, 01 Dec 2027 00:00:00 GMT'],
    ],
    ['a parameter', handlerWith(usual), QueryThatLoses, ['@1772323200', 'Tue, 01 Jun 2027 00:00:00 GMT']],
    [
      'a field and, later, a parameter',
      handlerWith(RespondsWith('Read it', ItemThatLoses)),
      QueryThatLoses,
      ['@1769904000', 'Mon, 01 Feb 2027 00:00:00 GMT'],
    ],
  ])('announce the removal of %s', (_, handler, query, values) => {
    expect(deprecationHeaders(handler, query).map(([, value]) => value)).toEqual(values);
  });
});

describe('the OpenAPI document', () => {
  it('marks a deprecated parameter and a deprecated field', () => {
    const ends = { deprecated: true, 'x-sunset': '2027-02-01' };
    expect(describeParameters(QueryThatLoses)).toMatchObject([
      { name: 'limit', deprecated: undefined },
      {
        name: 'wide',
        deprecated: true,
        required: false,
        schema: { type: 'boolean', 'x-sunset': '2027-06-01' },
      },
    ]);
    expect(schemaNamed('ItemThatLosesAField')).toMatchObject({ properties: { nick: ends } });
  });

  it.each([
    ['2026-01-01', '2026-12-31'],
    ['2026-03-01', '2027-02-28'],
    ['2026-01-01', 'soon'],
  ])('rejects a removal date that is invalid or too early: %s, %s', (since, sunset) => {
    expect(() => deprecation(since, sunset)).toThrow(RangeError);
  });

  it('accepts a removal 12 months after its announcement', () => {
    expect(deprecation('2026-01-01', '2027-01-01')).toMatchObject({ deprecated: true });
  });
});
