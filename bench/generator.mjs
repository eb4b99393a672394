// Runs the open-loop load generator (open-loop.mjs) in its own process.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './load.mjs';

/** A GET request as it is sent. */
export const request = (path, header) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n`;

/** @param {import('./open-loop.mjs').Plan} plan @returns {Promise<import('./open-loop.mjs').Outcome>} */
export async function runGenerator(plan) {
  const folder = mkdtempSync(join(tmpdir(), 'pua-overload-'));
  const file = join(folder, 'plan.json');
  writeFileSync(file, JSON.stringify(plan));
  try {
    return JSON.parse(await run(process.execPath, [join(import.meta.dirname, 'open-loop.mjs'), file]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
