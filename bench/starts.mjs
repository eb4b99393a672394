// Start times: each the median of three; each first start has its own folder.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../bin/postgres.mjs';
import { median } from './measurements.mjs';
import { containerSettings } from './servers.mjs';
import { memoryMegabytes } from './usage.mjs';

const root = join(import.meta.dirname, '..');
const TIMES = 3;
const DEADLINE_MS = 60_000;
/** After this long without a request, a server is idle. */
const IDLE_MS = 5_000;

/**
 * @typedef {object} Starts times in seconds
 * @property {number} first `npm start` with a new embedded database
 * @property {number} second the same again
 * @property {number} postgres a start over PostgreSQL, as in the image
 * @property {number} help `pua --help`
 * @property {number} keys `pua keys list`
 * @property {number} idle MB of a server over PostgreSQL without requests
 */

/** @returns {Promise<Starts>} */
export async function measureStarts({ url, secretKey }) {
  const embedded = { NODE_ENV: 'development', LOG_LEVEL: 'silent' };
  const firsts = [];
  const seconds = [];
  for (let time = 0; time < TIMES; time++) {
    const folder = mkdtempSync(join(tmpdir(), 'pua-start-'));
    for (const list of [firsts, seconds])
      list.push((await startAndEnd(['bin/start.mjs'], { ...embedded, DATA_DIR: folder })).seconds);
    rmSync(folder, { recursive: true, force: true });
  }
  const { flags, env } = containerSettings();
  const settings = {
    ...env,
    LOG_LEVEL: 'silent',
    DATABASE_URL: url,
    SECRET_KEY: secretKey,
    PUBLIC_URL: 'https://api.example',
  };
  const onPostgres = [];
  for (let time = 0; time < TIMES; time++)
    onPostgres.push(await startAndEnd([...flags, 'bin/server.mjs'], settings, IDLE_MS));
  const command = (...words) =>
    median(
      Array.from({ length: TIMES }, () =>
        secondsOf(process.execPath, ['bin/pua.mjs', ...words], root, settings),
      ),
    );
  return {
    first: median(firsts),
    second: median(seconds),
    postgres: median(onPostgres.map((start) => start.seconds)),
    idle: median(onPostgres.map(({ memory }) => memory)),
    help: command('--help'),
    keys: command('keys', 'list'),
  };
}

/** From the start of the process to its first 200 at /readyz. */
async function startAndEnd(command, settings, restMs = 0) {
  const port = String(await freePort());
  const began = performance.now();
  const child = spawn(process.execPath, command, {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, HOST: '127.0.0.1', PORT: port, ...settings },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'close');
  while (!(await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok) {
    if (child.exitCode !== null || performance.now() - began > DEADLINE_MS)
      throw new Error(`${command} did not start`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const seconds = (performance.now() - began) / 1000;
  await new Promise((resolve) => setTimeout(resolve, restMs));
  const memory = memoryMegabytes(child.pid);
  child.kill('SIGTERM');
  await ended;
  return { seconds, memory };
}

function secondsOf(program, parameters, cwd, settings) {
  const began = performance.now();
  const { status, stderr } = spawnSync(program, parameters, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...settings },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${parameters.join(' ')} ended with ${status}: ${stderr}`);
  return (performance.now() - began) / 1000;
}
