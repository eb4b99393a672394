// Measures one load: requests of one kind to one server, and their cost.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuMicroseconds, machineMicroseconds, memoryMegabytes } from './usage.mjs';

export function requireWrk() {
  if (spawnSync('wrk', ['-v']).error === undefined) return;
  console.error('wrk is not installed: apt-get install wrk');
  process.exit(1);
}

/**
 * @typedef {object} Load as seen by a load generator
 * @property {number} requests
 * @property {number} microseconds
 * @property {number} p50 µs
 * @property {number} p99 µs
 * @property {number} failed requests without a 2xx or 3xx response
 *
 * @typedef {object} Turn
 * @property {number} requests
 * @property {number} rate requests/s
 * @property {number} p50 ms
 * @property {number} p99 ms
 * @property {number} serverCpu µs per request, of all processes of the server
 * @property {number} databaseCpu µs per request, of all processes of PostgreSQL
 * @property {number} memory MB of the server, at the end
 * @property {number} failed requests
 * @property {number} others share used by processes outside the benchmark
 */

/**
 * @param {import('./servers.mjs').Server} server
 * @param {() => Promise<Load>} generate sends the load; resolves when all responses have arrived
 * @returns {Promise<Turn>}
 */
export async function meter(server, generate) {
  const before = usage(server);
  const load = await generate();
  const memory = memoryMegabytes(server.pid);
  const after = usage(server);
  const used = (what) => after[what] - before[what];
  return {
    requests: load.requests,
    rate: load.requests / (load.microseconds / 1e6),
    p50: load.p50 / 1000,
    p99: load.p99 / 1000,
    serverCpu: used('server') / load.requests,
    databaseCpu: used('database') / load.requests,
    memory,
    failed: load.failed,
    others: Math.max(0, used('busy') - used('ours')) / used('all'),
  };
}

function usage({ pid, postgresPid }) {
  // This process started everything in the benchmark, including the load generator, which has ended by now.
  return {
    server: cpuMicroseconds(pid),
    database: cpuMicroseconds(postgresPid),
    ours: cpuMicroseconds(process.pid),
    ...machineMicroseconds(),
  };
}

/**
 * Measures one kind of request with wrk, for some seconds.
 *
 * @param {import('./servers.mjs').Server} server
 * @param {import('./questions.mjs').Question} question
 * @param {import('./questions.mjs').Request[]} requests sent in turn
 * @param {{seconds: number, connections: number}} plan
 */
export function measure(server, question, requests, { seconds, connections }) {
  const folder = mkdtempSync(join(tmpdir(), 'pua-bench-'));
  const file = join(folder, 'requests');
  const lines = requests.map(({ credential: { header, value }, path }) => `${header}\t${value}\t${path}\n`);
  writeFileSync(file, lines.join(''));
  const script = join(import.meta.dirname, 'load.lua');
  const parameters = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, server.url, '--', file];
  parameters.push(question.method ?? 'GET', question.body ?? '');
  return meter(server, async () => {
    const output = await run('wrk', parameters);
    return JSON.parse(output.slice(output.lastIndexOf('\n{')));
  }).finally(() => rmSync(folder, { recursive: true }));
}

/** Runs a load generator. @returns its output */
export function run(program, parameters) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, parameters, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (text) => (output += text));
    child.on('close', (code) =>
      code === 0 ? resolve(output) : reject(new Error(`${program} ended with ${code}: ${output}`)),
    );
  });
}
