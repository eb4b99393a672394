#!/usr/bin/env node
// What the program loads when it starts over PostgreSQL, by package: `node bin/with-postgres.mjs node bench/loaded.mjs`. MB are what a
// process has more than a bare one when it imports that package alone, with everything that the package needs: they do not add up.
import './own-node.mjs';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../bin/postgres.mjs';

const root = join(import.meta.dirname, '..');
/** Packages below this size, in KB of source, are summed up. */
const SMALLEST = 50;
const OURS = 'this server';

const folder = mkdtempSync(join(tmpdir(), 'pua-loaded-'));
const list = join(folder, 'loaded.json');
const hook = join(folder, 'hook.mjs');
writeFileSync(
  hook,
  `import { registerHooks } from 'node:module';
import { writeFileSync } from 'node:fs';
const files = [];
registerHooks({ load(url, context, next) { const loaded = next(url, context); files.push([url, loaded.source?.length ?? 0]); return loaded; } });
process.on('exit', () => writeFileSync(${JSON.stringify(list)}, JSON.stringify(files)));`,
);

const env = {
  PATH: process.env.PATH,
  NODE_ENV: 'production',
  LOG_LEVEL: 'silent',
  HOST: '127.0.0.1',
  PORT: String(await freePort()),
  PUBLIC_URL: 'https://api.example',
  SECRET_KEY: randomBytes(32).toString('base64'),
  DATABASE_URL: process.env.TEST_DATABASE_URL,
};
try {
  spawnSync(process.execPath, ['bin/pua.mjs', 'db', 'migrate'], { cwd: root, env });
  const server = spawn(process.execPath, ['--import', hook, 'dist/src/main.js'], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
  const ended = once(server, 'close');
  while (!(await fetch(`http://127.0.0.1:${env.PORT}/readyz`).catch(() => undefined))?.ok)
    await new Promise((resolve) => setTimeout(resolve, 50));
  server.kill('SIGTERM');
  await ended;

  const files = JSON.parse(readFileSync(list, 'utf8')).filter(([url]) => url.startsWith('file:'));
  const packages = Map.groupBy(files, ([url]) => packageOf(url));
  const rows = [...packages].map(([name, files]) => ({
    name,
    files: files.length,
    kilobytes: Math.round(files.reduce((sum, [, length]) => sum + length, 0) / 1000),
  }));
  const bare = memoryOf('');
  const rest = { files: 0, kilobytes: 0 };
  console.log('| Package | files | KB | MB of the process |\n| --- | ---: | ---: | ---: |');
  for (const { name, files, kilobytes } of rows.sort((a, b) => b.kilobytes - a.kilobytes)) {
    if (kilobytes < SMALLEST) {
      rest.files += files;
      rest.kilobytes += kilobytes;
    } else {
      const more = name === OURS ? '' : Math.round(memoryOf(`await import('${name}')`) - bare);
      console.log(`| ${name} | ${files} | ${kilobytes} | ${more} |`);
    }
  }
  console.log(`| ${rows.filter(({ kilobytes }) => kilobytes < SMALLEST).length} others | ${rest.files} | ${rest.kilobytes} | |
| Node, with nothing loaded | | | ${Math.round(bare)} |`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The innermost package that a file belongs to. */
function packageOf(url) {
  const [, ...inside] = url.split('/node_modules/');
  return inside.length === 0 ? OURS : /^(@[^/]+\/)?[^/]+/.exec(inside.at(-1))[0];
}

/** MB of a process that does nothing but this; the median of three. */
function memoryOf(program) {
  const script = `${program}; gc(); console.log(process.memoryUsage.rss() / 1e6)`;
  const flags = ['--expose-gc', '--input-type=module', '-e', script];
  return [0, 1, 2]
    .map(() => Number(spawnSync(process.execPath, flags, { cwd: root, encoding: 'utf8' }).stdout))
    .sort((a, b) => a - b)[1];
}
