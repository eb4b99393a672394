// `npm run docs`: writes the pages of docs/ that are made from tables in the code. A test compares them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { build } from './build.mjs';

/** Path → text of every generated page. */
export async function pages() {
  build();
  const { SETTINGS } = await import('../dist/src/config/settings.js');
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
  const settings = [
    '# Settings',
    'Made by `npm run docs` from `src/config/settings.ts`. Settings are environment variables, or lines of a file `.env` in the',
    'working folder; what the environment holds goes first. Every one has a development default. All that are wrong are named at',
    'start, at once, and never shown. In production `SECRET_KEY` and `DATABASE_URL` are required.',
    '',
    '| Name | Default | Meaning |',
    '| --- | --- | --- |',
    ...Object.entries(SETTINGS).map(
      ([name, { default: value, meaning }]) => `| \`${name}\` | ${cell(value)} | ${cell(meaning)} |`,
    ),
  ].join('\n');
  const environment = Object.entries(SETTINGS).map(
    ([name, { default: value, meaning }]) =>
      `# ${meaning.replaceAll('`', '')} (default: ${value})\n# ${name}=\n`,
  );
  const markdown = (text) => format(text, { parser: 'markdown' });
  return {
    'docs/errors.md': await markdown(errors),
    'docs/settings.md': await markdown(settings),
    '.env.example': `# Made by npm run docs from src/config/settings.ts. Copy to .env, and set what differs.\n\n${environment.join('\n')}`,
  };
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..');
  for (const [path, text] of Object.entries(await pages())) writeFileSync(join(root, path), text);
}
