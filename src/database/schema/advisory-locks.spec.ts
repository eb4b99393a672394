import { globSync, readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { ADVISORY_LOCKS } from './advisory-locks.js';

const NUMBERS: readonly number[] = Object.values(ADVISORY_LOCKS);

it('all advisory locks have different numbers', () => {
  expect(new Set(NUMBERS).size).toBe(NUMBERS.length);
});

it('every advisory lock with a constant number in src and migrations is in the list', () => {
  const taken = globSync('{src,migrations}/**/*.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/pg_(?:try_)?advisory_\w*lock\(([^)]*)\)/g)].map(
      ([, lock]) => lock!,
    ),
  );
  expect(taken.length).toBeGreaterThan(4);
  for (const lock of taken)
    expect([lock, /^\$(1|\{ADVISORY_LOCKS\.\w+\})$/.test(lock) || NUMBERS.includes(Number(lock))]).toEqual([
      lock,
      true,
    ]);
});
