// Runs the open-loop load generator (open-loop.mjs) in its own process.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuMicroseconds } from './usage.mjs';

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
