#!/usr/bin/env node
// The cost of an import, and the longest wait of a concurrent sign-up: `node bench/import.mjs <folder> [root]`, with the files of
// generate-import.mjs, into its own PostgreSQL; `root` is another built checkout to compare with.
import './own-node.mjs';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from '../bin/postgres.mjs';
import { cpuMicroseconds, memoryMegabytes } from './usage.mjs';

const [folder, root = join(import.meta.dirname, '..')] = process.argv.slice(2);
if (!folder) {
  console.error('node bench/import.mjs <folder> [root]');
  process.exit(2);
}
const cluster = mkdtempSync(join(tmpdir(), 'pua-import-'));
const database = await startPostgres(cluster, { shared_buffers: '256MB', max_wal_size: '4GB' });
const env = {
  PATH: process.env.PATH,
  NODE_ENV: 'production',
  DATABASE_URL: database.url,
  SECRET_KEY: randomBytes(32).toString('base64'),
  PUBLIC_URL: 'http://localhost:3000',
};

/** @returns highest memory in MB */
async function pua(...parameters) {
  const child = spawn(process.execPath, [join(root, 'dist/src/cli/main.js'), ...parameters], {
    env,
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  let memory = 0;
  const sampling = setInterval(() => (memory = Math.max(memory, memoryMegabytes(child.pid))), 100);
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearInterval(sampling);
  if (code !== 0) throw new Error(`pua ${parameters[0]} ended with ${code}`);
  return memory;
}

let longest = 0;
let signUps = 0;
let imported = false;
/** Adds a member every 50 ms, as the platform does. */
async function signUp() {
  const client = new pg.Client(database.url);
  client.on('error', () => undefined); // the failing query reports it
  await client.connect();
  for (let id = 1e9; !imported; id++) {
    const asked = performance.now();
    await client.query('INSERT INTO users (id, username) VALUES ($1, $2)', [id, `signed-up-${id}`]);
    longest = Math.max(longest, performance.now() - asked);
    signUps++;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await client.end();
}

try {
  await pua('db', 'migrate');
  const waiting = signUp();
  const begun = performance.now();
  const memory = await pua('import', folder).finally(() => (imported = true));
  const seconds = (performance.now() - begun) / 1000;
  await waiting;
  const cpu = cpuMicroseconds(database.pid) / 1e6;
  console.log(
    `${seconds.toFixed(1)} s, ${cpu.toFixed(1)} s of PostgreSQL's CPU, at most ${Math.round(memory)} MB; ` +
      `the longest of ${signUps} concurrent sign-ups took ${Math.round(longest)} ms`,
  );
} finally {
  await database.stop();
  rmSync(cluster, { recursive: true });
}
