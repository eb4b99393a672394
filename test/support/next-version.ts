import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Files from which a release is built. */
const PARTS = [
  'CHANGELOG.md',
  'bin',
  'clients',
  'docs',
  'examples',
  'migrations',
  'schema',
  'src',
  'package.json',
  '.swcrc',
];

/**
 * Builds the next version of this program: with these migrations, by file name, and a function.
 *
 * @returns its folder, built
 */
export function makeNextVersion(migrations: Readonly<Record<string, string>>, sql = ''): string {
  const root = mkdtempSync(join(process.env.TEST_FOLDER!, 'next-version-'));
  for (const part of PARTS) cpSync(part, join(root, part), { recursive: true });
  symlinkSync(resolve('node_modules'), join(root, 'node_modules'));
  for (const [file, text] of Object.entries(migrations)) writeFileSync(join(root, 'migrations', file), text);
  appendFileSync(join(root, 'schema/members.sql'), sql);
  execFileSync(process.execPath, [join(root, 'bin/build.mjs')], { stdio: 'pipe' });
  return root;
}
