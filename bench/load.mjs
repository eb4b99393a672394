// One turn: so many seconds of one question to one server, and what it cost.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuMicroseconds, memoryMegabytes } from './usage.mjs';

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
 */

/**
 * @param {{name: string, url: string, pid: number}} server
 * @param {{name: string, method?: string, body?: string}} question
 * @param {{key: string, path: string}[]} requests asked in turn
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
    const before = [cpuMicroseconds(server.pid), cpuMicroseconds(postgresPid)];
    const script = join(import.meta.dirname, 'load.lua');
    const parameters = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, server.url, '--', file];
    const output = await wrk([...parameters, question.method ?? 'GET', question.body ?? '', String(pauseMs)]);
    const memory = memoryMegabytes(server.pid);
    const [serverUsed, databaseUsed] = [cpuMicroseconds(server.pid), cpuMicroseconds(postgresPid)];
    const result = JSON.parse(output.slice(output.lastIndexOf('\n{')));
    if (result.failed > 0 || result.requests === 0) {
      throw new Error(
        `${server.name}, ${question.name}: ${result.failed} of ${result.requests} requests failed`,
      );
    }
    return {
      rate: result.requests / (result.microseconds / 1e6),
      p50: result.p50 / 1000,
      p99: result.p99 / 1000,
      serverCpu: (serverUsed - before[0]) / result.requests,
      databaseCpu: (databaseUsed - before[1]) / result.requests,
      memory,
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
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
