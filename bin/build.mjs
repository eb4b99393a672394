// Builds `dist/` if it is older than its sources; `npm run build` always builds. Types are only stripped: `npm run typecheck` takes fifty
// times as long.
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { GUIDE_SOURCES, renderGuides } from './guides.mjs';
import { clientPackages, packageSources } from './packages.mjs';

const root = dirname(import.meta.dirname);
const output = join(root, 'dist');
const stamp = join(output, '.built');
/** One of the clients' packages, which are all built together. */
const packages = join(output, 'packages/typescript.tgz');
/** Temporary files of another process. */
const DRAFT = /\.\d+\.draft$/;

/** Brings `dist/` up to date with the sources. @throws if they cannot be parsed */
export async function build({ always = false } = {}) {
  if (!existsSync(join(root, 'src'))) return; // a production image contains only the build
  // Includes the client's sources: the API reference's script contains the client's sign-in.
  const sources = ['src', 'migrations', 'schema', 'clients/typescript/src']
    .flatMap((folder) => filesUnder(root, folder))
    .filter((path) => !path.endsWith('.spec.ts'))
    .concat('docs/examples.json');
  const programs = ['.swcrc', 'package.json', 'bin/build.mjs', 'bin/bundle.mjs', 'bin/guides.mjs'];
  const inputs = [...sources, ...GUIDE_SOURCES, ...packageSources(), ...programs];
  if (!always && isNewer(stamp, inputs)) return;

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
  const folders = ['src', 'migrations', 'schema', 'clients'];
  if (always || !isNewer(packages, packageSources())) {
    for (const [path, content] of await clientPackages()) files.set(`packages/${path}`, content);
    folders.push('packages');
  }
  for (const path of folders.flatMap((folder) => filesUnder(output, folder)))
    if (!files.has(path) && !DRAFT.test(path)) rmSync(join(output, path), { force: true });
  for (const [path, content] of files) replace(join(output, path), content);
  const { bundle } = await import('./bundle.mjs');
  const bundled = await bundle();
  for (const [path, content] of bundled) replace(join(output, 'bundle', path), content);
  for (const path of filesUnder(join(output, 'bundle'), '.'))
    if (!bundled.has(path) && !DRAFT.test(path)) rmSync(join(output, 'bundle', path), { force: true });
  replace(join(output, 'docs/guides.json'), await renderGuides());
  writeFileSync(stamp, '');
}

/** Whether a file is newer than its sources. */
function isNewer(made, sources) {
  if (!existsSync(made)) return false;
  const newest = Math.max(...sources.map((path) => statSync(join(root, path)).mtimeMs));
  return statSync(made).mtimeMs > newest;
}

/** Paths relative to `base`. Not by `globSync`, which is experimental in Node 22. */
function filesUnder(base, folder) {
  if (!existsSync(join(base, folder))) return [];
  return readdirSync(join(base, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(relative(base, entry.parentPath), entry.name));
}

/** Replaces a file atomically: another process may be reading or building the same file. */
function replace(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}.draft`;
  writeFileSync(draft, content);
  renameSync(draft, path);
}

if (process.argv[1] && realpathSync(process.argv[1]) === import.meta.filename) await build({ always: true });
