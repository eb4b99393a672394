import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

/**
 * Maximum lines of each folder, and of comments in percent of src. Lower a limit when the project gets smaller; raise one only with an
 * entry in docs/decisions. The targets: src 34,500, test 42,000, bench 5,000, migrations 1,700.
 */
const MOST = { src: 39_800, test: 52_800, bench: 5_000, migrations: 1_700, comments: 10 };

const read = (pattern: string, isCounted: (path: string) => boolean = () => true) =>
  globSync(pattern, { exclude: (path) => path === '.data' || path.includes('/.data/') })
    .filter(isCounted)
    .map((path) => readFileSync(path, 'utf8'));
const linesOf = (texts: readonly string[]) =>
  texts.reduce((sum, text) => sum + text.split('\n').length - 1, 0);

const source = read('src/**/*.ts', (path) => !path.endsWith('.spec.ts'));

/** Lines with only a comment. */
function commentsOf(text: string): number {
  const blocks = text.match(/^[ \t]*\/\*[^]*?\*\/[ \t]*$/gm) ?? [];
  const lines = text.match(/^[ \t]*\/\/.*$/gm) ?? [];
  return blocks.reduce((sum, block) => sum + block.split('\n').length, lines.length);
}

/** Maximum words of each page (wc -w); of any other page: 150. */
const MAX_WORDS: Readonly<Record<string, number>> = {
  'README.md': 450,
  'CONTRIBUTING.md': 1_050,
  'CHANGELOG.md': 3_200,
  'docs/README.md': 200,
  'docs/api-contract.md': 2_300,
  'docs/contributors/add-a-resource.md': 1_020,
  'docs/contributors/architecture.md': 1_000,
  'docs/contributors/benchmark.md': 1_000,
  'docs/contributors/data.md': 400,
  'docs/contributors/dependencies.md': 700,
  'docs/contributors/flows.md': 1_600,
  'docs/contributors/glossary.md': 500,
  'docs/contributors/performance.md': 2_200,
  'docs/contributors/tables.md': 500,
  'docs/developers/assistants.md': 650,
  'docs/developers/backend.md': 445,
  'docs/developers/browser-app.md': 450,
  'docs/developers/caching.md': 190,
  'docs/developers/calendar.md': 400,
  'docs/developers/confidential-clients.md': 600,
  'docs/developers/errors.md': 850,
  'docs/developers/first-program.md': 500,
  'docs/developers/generated-clients.md': 400,
  'docs/developers/libraries.md': 1_200,
  'docs/developers/limits.md': 180,
  'docs/developers/mobile-app.md': 350,
  'docs/developers/oauth.md': 2_200,
  'docs/developers/paging-and-sync.md': 465,
  'docs/developers/times.md': 240,
  'docs/developers/webhooks.md': 700,
  'docs/operators/admin.md': 1_100,
  'docs/operators/audit.md': 1_900,
  'docs/operators/backup.md': 1_200,
  'docs/operators/changes.md': 500,
  'docs/operators/command-line.md': 3_000,
  'docs/operators/deploy.md': 1_700,
  'docs/operators/failover.md': 1_200,
  'docs/operators/import.md': 2_600,
  'docs/operators/metrics.md': 1_150,
  'docs/operators/monitoring.md': 3_100,
  'docs/operators/operations.md': 700,
  'docs/operators/operator.md': 700,
  'docs/operators/scaling.md': 3_000,
  'docs/operators/service-levels.md': 450,
  'docs/operators/settings.md': 1_900,
  'docs/operators/sign-in.md': 1_600,
  'docs/operators/upgrade.md': 700,
  'docs/operators/webhooks.md': 450,
  'docs/operators/writing-programs.md': 700,
  'docs/trust/certification.md': 500,
  'docs/trust/personal-data.md': 700,
  'docs/trust/reliability.md': 1_500,
  'docs/trust/security.md': 2_800,
};
const wordsOf = (page: string) => readFileSync(page, 'utf8').trim().split(/\s+/).length;

describe('the documents stay within their budgets:', () => {
  const pages = globSync(['{README,CONTRIBUTING,CHANGELOG}.md', 'docs/**/*.md']);

  it.each(pages)('%s', (page) => {
    expect(wordsOf(page)).toBeLessThanOrEqual(MAX_WORDS[page] ?? 150);
  });

  it('docs/contributors/architecture.md: 120 lines', () => {
    expect(linesOf([readFileSync('docs/contributors/architecture.md', 'utf8')])).toBeLessThanOrEqual(120);
  });

  it('60,000 words in all', () => {
    expect(pages.reduce((sum, page) => sum + wordsOf(page), 0)).toBeLessThanOrEqual(60_000);
    expect(Object.keys(MAX_WORDS).filter((page) => !pages.includes(page))).toEqual([]);
  });
});

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
