import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

describe('the pages that are made from tables in the code', () => {
  // In a process of its own: it loads what was built.
  const pages = JSON.parse(
    execFileSync(process.execPath, [
      '--input-type=module',
      '-e',
      `import { pages } from './bin/docs.mjs'; console.log(JSON.stringify(await pages()))`,
    ]).toString(),
  ) as Record<string, string>;

  it.each(Object.keys(pages))('%s is up to date (npm run docs)', (path) => {
    expect(readFileSync(path, 'utf8')).toBe(pages[path]);
  });
});
