// Builds `dist/` where it is older than what it is built from; run directly (`npm run build`), always. Types are stripped, not
// checked: that is `npm run typecheck`, which takes fifty times as long and tells a developer nothing at start.
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

const root = dirname(import.meta.dirname);
const output = join(root, 'dist');
const stamp = join(output, '.built');

/** Leaves `dist/` as the sources are now. @throws where they cannot be parsed */
export async function build({ always = false } = {}) {
  if (!existsSync(join(root, 'src'))) return; // a production image holds only what was built
  // The client's, since the script of the reference has its sign-in inside.
  const sources = globSync(['src/**/*.*', 'migrations/*.ts', 'clients/typescript/src/*.ts'], {
    cwd: root,
    exclude: (path) => path.endsWith('.spec.ts'),
  });
  const inputs = [...sources, '.swcrc', 'bin/build.mjs'];
  const newest = Math.max(...inputs.map((path) => statSync(join(root, path)).mtimeMs));
  if (!always && existsSync(stamp) && statSync(stamp).mtimeMs > newest) return;

  const { transformFile } = await import('@swc/core');
  const files = new Map();
  await Promise.all(
    sources.map(async (source) => {
      if (!source.endsWith('.ts')) {
        files.set(source, readFileSync(join(root, source)));
        return;
      }
      const { code, map } = await transformFile(join(root, source), { cwd: root, sourceMaps: true });
      const script = source.replace(/\.ts$/, '.js');
      files.set(script, `${code}//# sourceMappingURL=${script.split('/').at(-1)}.map\n`);
      files.set(`${script}.map`, map);
    }),
  );
  const stale = globSync(['src/**/*.*', 'migrations/*.*', 'clients/**/*.*'], { cwd: output }).filter(
    (path) => !files.has(path),
  );
  for (const path of stale) rmSync(join(output, path));
  for (const [path, content] of files) replace(join(output, path), content);
  writeFileSync(stamp, '');
}

/** In one step: another process may be reading the file, or building too. */
function replace(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, content);
  renameSync(draft, path);
}

if (import.meta.main) await build({ always: true });
