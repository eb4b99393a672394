#!/usr/bin/env node
// Runs a command over a throw-away PostgreSQL: `node bin/with-postgres.mjs npm test`. The command finds it in
// TEST_DATABASE_URL. The cluster listens on loopback only and is gone afterwards.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from './postgres.mjs';

const folder = mkdtempSync(join(tmpdir(), 'pua-postgres-'));
const postgres = await startPostgres(folder, {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: 300,
  shared_buffers: process.env.PG_SHARED_BUFFERS ?? '256MB',
});

const [command, ...parameters] = process.argv.slice(2);
const child = spawn(command, parameters, {
  stdio: 'inherit',
  env: { ...process.env, TEST_DATABASE_URL: postgres.url, TEST_POSTGRES_PID: String(postgres.pid) },
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('close', async (code) => {
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
  process.exit(code ?? 1);
});
