// First import of every program here: restarts a program of another Node with the Node that `npm ci` installed and `npm start` uses.
// All imports are linked before the first one runs, so these programs must not import anything that the oldest Node of `engines` lacks.
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
