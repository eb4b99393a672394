#!/usr/bin/env node
// Five times the capacity of `npm start` on the embedded database, where a response costs milliseconds: `node
// bench/overload-embedded.mjs`. One caller with one key, without a limit.
import './own-node.mjs';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from '../bin/build.mjs';
import { freePort } from '../bin/postgres.mjs';
import { request, runGenerator } from './generator.mjs';

/** Multiple of what the server can handle. */
const TIMES = 5;
const WARM_SECONDS = 3;
const PEAK_SECONDS = 5;
const SECONDS = 10;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

await build();
const folder = mkdtempSync(join(tmpdir(), 'pua-embedded-'));
const port = await freePort();
const url = `http://127.0.0.1:${port}`;
const server = spawn(process.execPath, ['dist/src/main.js'], {
  cwd: join(import.meta.dirname, '..'),
  env: { PATH: process.env.PATH, PORT: port, DATA_DIR: folder, RATE_LIMIT_READ: '0', LOG_LEVEL: 'warn' },
  stdio: ['ignore', 'pipe', 'inherit'],
});
let output = '';
server.stdout.setEncoding('utf8').on('data', (text) => (output += text));
const isReady = () =>
  fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
try {
  while (!/pua_test_\w+/.test(output) || !(await isReady())) await pause(100);
  const [key] = /pua_test_\w+/.exec(output);
  console.log(
    '| Call | peak/s | offered/s | answered/s | ratio | p99 ms | refused p99 ms | failed | /readyz red |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const path of ['/api/public/events', '/api/public/events?limit=100', '/api/public/profile']) {
    const load = { port, requests: [request(path, `X-API-Key: ${key}`)] };
    await runGenerator({ ...load, rate: 0, seconds: WARM_SECONDS, connections: 32 });
    const closed = (await runGenerator({ ...load, rate: 0, seconds: PEAK_SECONDS, connections: 32 })).outcome;
    const peak = closed.answered.count / closed.seconds;
    let red = 0;
    let watching = true;
    const watched = (async () => {
      for (; watching; await pause(100)) if (!(await isReady())) red++;
    })();
    const open = { ...load, rate: TIMES * peak, seconds: SECONDS, connections: 1_000 };
    const { seconds, answered, refused, failed, unanswered } = (await runGenerator(open)).outcome;
    watching = false;
    await watched;
    const rate = answered.count / seconds;
    const cells = [peak, TIMES * peak, rate].map((number) => number.toFixed(0));
    cells.push((rate / peak).toFixed(2), answered.p99.toFixed(0), refused.p99.toFixed(0));
    console.log(`| \`GET ${path}\` | ${cells.join(' | ')} | ${failed + unanswered} | ${red} |`);
  }
} finally {
  server.kill('SIGTERM');
  await new Promise((resolve) => server.once('close', resolve));
  rmSync(folder, { recursive: true });
}
