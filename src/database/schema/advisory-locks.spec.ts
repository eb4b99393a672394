import { globSync, readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { ADVISORY_LOCKS } from './advisory-locks.js';

const NUMBERS: readonly number[] = Object.values(ADVISORY_LOCKS);

it('no two advisory locks have one number', () => {
  expect(new Set(NUMBERS).size).toBe(NUMBERS.length);
});

it('every advisory lock stands in the list, those that only migrations take too', () => {
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
