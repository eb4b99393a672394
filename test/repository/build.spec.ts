import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { thorough } from '../support/database.js';

/** A project of a few files, which this project's script builds. */
const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'build-'));
const write = (path: string, text: string) => writeFileSync(join(folder, path), text);
const built = (path: string) => readFileSync(join(folder, 'dist', path), 'utf8');
const build = () => spawnSync(process.execPath, ['bin/build.mjs'], { cwd: folder, encoding: 'utf8' });

beforeAll(() => {
  for (const path of ['src/pages', 'src/cli', 'migrations'])
    mkdirSync(join(folder, path), { recursive: true });
  for (const path of [
    'bin',
    'docs',
    'clients',
    'CHANGELOG.md',
    'src/site/highlight.ts',
    'src/site/script/tokens.ts',
    'src/site/templates/request.eta',
    'src/values/string-rules.ts',
    '.swcrc',
  ])
    cpSync(path, join(folder, path), { recursive: true });
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  write('package.json', '{"type":"module"}');
  // The entry points of the bundle.
  for (const path of ['main', 'app', 'cli/main', 'cli/database']) write(`src/${path}.ts`, 'export {};\n');
  write('src/a.ts', 'export const a: number = 1;\n');
  write('src/a.spec.ts', 'throw new Error();\n');
  write('src/pages/page.eta', '<p>é</p>');
  write('migrations/1-first.ts', 'export class First {}\n');
});
afterAll(() => rmSync(folder, { recursive: true }));

thorough.describe('npm run build', () => {
  it('writes scripts with source maps, omits tests, and copies other files', () => {
    expect(build()).toMatchObject({ status: 0, stderr: '' });
    expect(built('src/a.js')).toBe('export const a = 1;\n//# sourceMappingURL=a.js.map\n');
    expect(JSON.parse(built('src/a.js.map'))).toMatchObject({ version: 3 });
    expect(built('src/pages/page.eta')).toBe('<p>é</p>');
    expect(built('migrations/1-first.js')).toContain('class First');
    expect(existsSync(join(folder, 'dist/src/a.spec.js'))).toBe(false);
  });

  it('renders the guides that /docs shows, and renders them again after a change', () => {
    const guides = () => JSON.parse(built('docs/guides.json')) as { name: string; html: string }[];
    const buildIfStale = () =>
      spawnSync(process.execPath, ['-e', "import('./bin/build.mjs').then(({ build }) => build())"], {
        cwd: folder,
      });
    build();
    expect(guides().map(({ name }) => name)).toEqual(expect.arrayContaining(['limits', 'errors', 'python']));
    appendFileSync(join(folder, 'docs/developers/limits.md'), '\nNobody waits `for` ever.\n');
    expect(buildIfStale().status).toBe(0);
    expect(guides().find(({ name }) => name === 'limits')!.html).toContain(
      'Nobody waits <code>for</code> ever.',
    );
  });

  it('removes the output of a deleted source', () => {
    write('src/old.ts', 'export {};\n');
    build();
    rmSync(join(folder, 'src/old.ts'));
    write('src/new.ts', 'export {};\n');
    expect(build().status).toBe(0);
    expect(existsSync(join(folder, 'dist/src/old.js'))).toBe(false);
    expect(existsSync(join(folder, 'dist/src/new.js'))).toBe(true);
  });

  it('fails if a source cannot be parsed, and keeps the previous output', () => {
    write('src/broken.ts', 'export const a: number = 1;\n');
    build();
    write('src/broken.ts', 'export const a: = ;\n');
    const { status, stderr } = build();
    rmSync(join(folder, 'src/broken.ts'));
    expect(status).toBe(1);
    expect(stderr).toContain('broken.ts');
    expect(built('src/broken.js')).toContain('a = 1');
  });
});
