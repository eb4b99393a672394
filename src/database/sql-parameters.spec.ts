import { describe, expect, it } from '@jest/globals';
import { SqlParameters } from './sql-parameters.js';

describe('SQL parameters', () => {
  it('are numbered in order, after the parameters with constant numbers', () => {
    const parameters = new SqlParameters(['a', 'b']);
    expect([parameters.add('c'), parameters.addAll(['d', 'e']), parameters.add('f', 'bytea')]).toEqual([
      '$3',
      4,
      '$6::bytea',
    ]);
    expect(parameters.values).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });
});
