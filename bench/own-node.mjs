// First import of every program here: if started with another Node, restarts the program with the Node that `npm ci` installed and
// `npm start` uses, so it measures or kills the Node version that operators run. Since all imports are linked before the first one runs, these
// programs must not import anything that the oldest Node of `engines` lacks.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';

const own = join(import.meta.dirname, '../node_modules/.bin/node');
if (existsSync(own) && realpathSync(own) !== realpathSync(process.execPath)) {
  const child = spawn(own, [...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  const [code] = await once(child, 'exit');
  process.exit(code ?? 1);
}
