// Runs the open-loop load generator (open-loop.mjs) in its own process. `node bench/generator.mjs --selftest [RATE…]` says what it
// measures where nothing is to be measured: against a responder that costs next to nothing (canned.mjs).
import './own-node.mjs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuMicroseconds } from './usage.mjs';

/** Rates, in requests/s, of a selftest without others: of a page of events at half load up to a profile above its peak. */
const RATES = [1_000, 3_500, 7_000, 14_000, 20_000];
const SELFTEST = { seconds: 5, connections: 256, bytes: 500 };

/** A request as it is sent; `body` is sent with its type, which is JSON or a form. */
export function request(path, header, { method = 'GET', body = '', type = 'application/json' } = {}) {
  const entity = body && `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  const headers = header && `${header}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}${entity}\r\n${body}`;
}

/**
 * @param {import('./open-loop.mjs').Plan} plan
 * @returns {Promise<{outcome: import('./open-loop.mjs').Outcome, cpu: number}>} `cpu`: the generator's CPU time in µs
 */
export async function runGenerator(plan) {
  const folder = mkdtempSync(join(tmpdir(), 'pua-overload-'));
  const file = join(folder, 'plan.json');
  writeFileSync(file, JSON.stringify(plan));
  try {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'open-loop.mjs'), file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    let cpu = 0;
    const sampling = setInterval(() => (cpu = Math.max(cpu, cpuMicroseconds(child.pid))), 200);
    child.stdout.on('data', (text) => (output += text));
    const code = await new Promise((resolve) => child.once('close', resolve));
    clearInterval(sampling);
    if (code !== 0) throw new Error(`the load generator ended with ${code}`);
    return { outcome: JSON.parse(output), cpu };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * What the generator measures by itself under a plan: everything but the server.
 *
 * @param {Omit<import('./open-loop.mjs').Plan, 'port'>} plan
 * @param {number} bytes of each response's body
 * @returns {ReturnType<typeof runGenerator>}
 */
export async function runAgainstCanned(plan, bytes) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'canned.mjs'), String(bytes)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [port] = await once(child.stdout, 'data');
    return await runGenerator({ ...plan, port: Number(port) });
  } finally {
    child.kill();
    await once(child, 'close');
  }
}

async function selftest(rates) {
  const { bytes, ...plan } = SELFTEST;
  const requests = [request('/', '')];
  const head = [
    'offered/s',
    'answered/s',
    'p50 ms',
    'p99 ms',
    'p99.9 ms',
    'longest ms',
    'own pause ms',
    'CPU µs',
  ];
  console.log(`| ${head.join(' | ')} |\n|${' ---: |'.repeat(head.length)}`);
  for (const rate of [...rates, 0]) {
    const { outcome, cpu } = await runAgainstCanned({ ...plan, requests, rate }, bytes);
    const { answered, refused, failed, unanswered, seconds, sent, pause } = outcome;
    if (refused.count + failed + (rate && unanswered) > 0)
      throw new Error(`${rate}/s: ${refused.count} refused, ${failed} failed, ${unanswered} unanswered`);
    const latencies = [answered.p50, answered.p99, answered.p999, answered.max, pause].map((ms) =>
      ms.toFixed(1),
    );
    const cells = [
      rate || 'as many as it can',
      Math.round(answered.count / seconds),
      ...latencies,
      (cpu / sent).toFixed(0),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}

if (process.argv[1] === import.meta.filename && process.argv[2] === '--selftest') {
  const rates = process.argv.slice(3).map(Number);
  await selftest(rates.length > 0 ? rates : RATES);
}
