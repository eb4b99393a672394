import { globSync, readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

const MAX_MB = 400;
const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
  'dependencies' | 'devDependencies',
  Record<string, string>
>;

describe('the installed packages', () => {
  const names = Object.keys({ ...dependencies, ...devDependencies });
  const tables = readFileSync('docs/contributors/dependencies.md', 'utf8').split(
    '## Candidates for removal',
  )[0]!;
  const described = [...tables.matchAll(/^\| (`.*?) +\|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`(.*?)`/g)].map(([, name]) => name!),
  );

  it('are listed in docs/contributors/dependencies.md, which lists no other packages', () => {
    const stands = (name: string, pattern: string) =>
      pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
    expect(names.filter((name) => !described.some((pattern) => stands(name, pattern)))).toEqual([]);
    expect(described.filter((pattern) => !names.some((name) => stands(name, pattern)))).toEqual([]);
  });

  it(`use less than ${MAX_MB} MB on disk, without the files that bin/unused.mjs lists`, async () => {
    const { UNUSED } = (await import(`${process.cwd()}/bin/unused.mjs`)) as { UNUSED: readonly string[] };
    const removed = new Set(globSync(UNUSED.flatMap((path) => [path, `${path}/**`])));
    // A program may have several names (hard links).
    const sizes = globSync('node_modules/{,.}*/**')
      .filter((path) => !removed.has(path))
      .map((path) => [statSync(path).ino, statSync(path).blocks * 512] as const);
    const megabytes = [...new Map(sizes).values()].reduce((sum, bytes) => sum + bytes, 0) / 2 ** 20;
    expect(megabytes).toBeLessThan(MAX_MB);
    expect(megabytes).toBeGreaterThan(MAX_MB / 2);
  });
});
