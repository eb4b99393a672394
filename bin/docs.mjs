// `npm run docs`: writes the pages of docs/ that are made from tables in the code. A test compares them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { format } from 'prettier';
import { build } from './build.mjs';

/** Path → text of every generated page. */
export async function pages() {
  build();
  const { PROBLEMS } = await import('../dist/src/http/problems.js');
  const cell = (text) => text.replaceAll('|', '\\|');
  const errors = [
    '# Error codes',
    'Made by `npm run docs` from `src/http/problems.ts`. Every error is `application/problem+json` (RFC 9457); `code` is one of',
    'these, `type` is its address in the running API, `GET /api/public/problems/{code}`.',
    '',
    '| Status | Code | Meaning | What to do |',
    '| --- | --- | --- | --- |',
    ...[...PROBLEMS.values()].map(
      ({ status, code, meaning, mend }) => `| ${status} | \`${code}\` | ${cell(meaning)} | ${cell(mend)} |`,
    ),
  ].join('\n');
  return { 'docs/errors.md': await format(errors, { parser: 'markdown' }) };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const root = join(import.meta.dirname, '..');
  for (const [path, text] of Object.entries(await pages())) writeFileSync(join(root, path), text);
}
