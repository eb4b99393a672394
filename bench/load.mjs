// One turn: so many seconds of one question to one server, and what it cost.
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
 * @typedef {object} Turn
 * @property {number} rate requests/s
 * @property {number} p50 ms
 * @property {number} p99 ms
 * @property {number} serverCpu µs a request, of all processes of the server
 * @property {number} databaseCpu µs a request, of all processes of PostgreSQL
 * @property {number} memory MB of the server, at the end
 * @property {number} failed requests without a 2xx or 3xx answer
 * @property {number} others share of the machine's CPU time, 0 to 1, that went to what is not of the benchmark
 */

/**
 * @param {{name: string, url: string, pid: number}} server
 * @param {{name: string, method?: string, body?: string}} question
 * @param {{key: string, path: string}[]} requests asked in turn; `key` is an API key or an access token
 * @param {{seconds: number, connections: number, pauseMs?: number, postgresPid: number}} load
 * @returns {Promise<Turn>}
 */
export async function measure(
  server,
  question,
  requests,
  { seconds, connections, pauseMs = 0, postgresPid },
) {
  const folder = mkdtempSync(join(tmpdir(), 'pua-bench-'));
  try {
    const file = join(folder, 'requests');
    writeFileSync(file, requests.map(({ key, path }) => `${key}\t${path}\n`).join(''));
    const before = usage(server.pid, postgresPid);
    const script = join(import.meta.dirname, 'load.lua');
    const parameters = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, server.url, '--', file];
    const output = await wrk([...parameters, question.method ?? 'GET', question.body ?? '', String(pauseMs)]);
    const memory = memoryMegabytes(server.pid);
    const after = usage(server.pid, postgresPid);
    const used = (what) => after[what] - before[what];
    const result = JSON.parse(output.slice(output.lastIndexOf('\n{')));
    return {
      rate: result.requests / (result.microseconds / 1e6),
      p50: result.p50 / 1000,
      p99: result.p99 / 1000,
      serverCpu: used('server') / result.requests,
      databaseCpu: used('database') / result.requests,
      memory,
      failed: result.failed,
      others: Math.max(0, used('busy') - used('ours')) / used('all'),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** CPU time that was used by now, in microseconds. */
export function usage(serverPid, postgresPid) {
  // All that is of the benchmark was started by this process, the load generator too, which has ended by then.
  return {
    server: cpuMicroseconds(serverPid),
    database: cpuMicroseconds(postgresPid),
    ours: cpuMicroseconds(process.pid),
    ...machineMicroseconds(),
  };
}

function wrk(parameters) {
  return new Promise((resolve, reject) => {
    const child = spawn('wrk', parameters, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (text) => (output += text));
    child.on('close', (code) =>
      code === 0 ? resolve(output) : reject(new Error(`wrk ended with ${code}: ${output}`)),
    );
  });
}
