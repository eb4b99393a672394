// Builds where what was built is older than what it is built from; run directly (`npm run build`), always.
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = dirname(import.meta.dirname);
const stamp = join(root, 'dist/.built');

/** Leaves `dist/` as the sources are now; ends the process where they do not compile. */
export function build({ always = false } = {}) {
  if (!existsSync(join(root, 'src'))) return; // a production image holds only what was built
  const sources = globSync(['src/**', 'migrations/**', 'package.json', 'tsconfig*.json', 'nest-cli.json'], {
    cwd: root,
  });
  const newest = Math.max(...sources.map((source) => statSync(join(root, source)).mtimeMs));
  if (!always && existsSync(stamp) && statSync(stamp).mtimeMs > newest) return;
  const nest = join(root, 'node_modules/@nestjs/cli/bin/nest.js');
  const { status } = spawnSync(process.execPath, [nest, 'build'], { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(1);
  writeFileSync(stamp, '');
}

if (import.meta.main) build({ always: true });
