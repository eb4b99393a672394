import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

/**
 * The most lines of each folder, and of comments in percent of src. Lower a limit when the project gets smaller; raise one only with an
 * entry in docs/decisions. The targets: src 34,500, test 42,000, bench 5,000, migrations 1,700.
 */
const MOST = { src: 41_000, test: 57_000, bench: 5_000, migrations: 1_700, comments: 10 };

const read = (pattern: string, isCounted: (path: string) => boolean = () => true) =>
  globSync(pattern, { exclude: (path) => path === '.data' || path.includes('/.data/') })
    .filter(isCounted)
    .map((path) => readFileSync(path, 'utf8'));
const linesOf = (texts: readonly string[]) =>
  texts.reduce((sum, text) => sum + text.split('\n').length - 1, 0);

const source = read('src/**/*.ts', (path) => !path.endsWith('.spec.ts'));

/** Lines that are nothing but a comment. */
function commentsOf(text: string): number {
  const blocks = text.match(/^[ \t]*\/\*[^]*?\*\/[ \t]*$/gm) ?? [];
  const lines = text.match(/^[ \t]*\/\/.*$/gm) ?? [];
  return blocks.reduce((sum, block) => sum + block.split('\n').length, lines.length);
}

describe('the project stays within its size limits:', () => {
  it.each([
    ['src', linesOf(source)],
    ['test', linesOf(read('test/**/*.ts'))],
    ['bench', linesOf(read('bench/**/*.{mjs,ts,mts}'))],
    ['migrations', linesOf(read('migrations/*.ts'))],
    ['comments', (100 * source.reduce((sum, text) => sum + commentsOf(text), 0)) / linesOf(source)],
  ] as const)('%s', (of, size) => {
    expect(size).toBeGreaterThan(0);
    expect(size).toBeLessThanOrEqual(MOST[of]);
  });
});
