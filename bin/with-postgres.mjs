#!/usr/bin/env node
// Runs a command with a temporary PostgreSQL on loopback: `node bin/with-postgres.mjs npm test`. TEST_DATABASE_URL names a role like in
// production (owns its databases, but is not a superuser), TEST_SUPERUSER_URL a superuser. Removes the cluster afterwards.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from './postgres.mjs';

/** Unusual formats, to test that the server sets the formats of every connection. */
const FORMATS = {
  DateStyle: 'German',
  IntervalStyle: 'sql_standard',
  TimeZone: 'Asia/Kathmandu',
  bytea_output: 'escape',
  extra_float_digits: 0,
  standard_conforming_strings: 'off',
  escape_string_warning: 'off',
  quote_all_identifiers: 'on',
};

const folder = mkdtempSync(join(tmpdir(), 'pua-postgres-'));
const postgres = await startPostgres(folder, {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: 300,
  shared_buffers: process.env.PG_SHARED_BUFFERS ?? '256MB',
  ...FORMATS,
});

const superuser = new pg.Client({ connectionString: postgres.url });
await superuser.connect();
// Tests create databases and roles, write as a subscription worker (without ordinary triggers), and COPY from programs.
await superuser.query(`
  CREATE ROLE pua LOGIN NOSUPERUSER CREATEDB CREATEROLE;
  GRANT SET ON PARAMETER session_replication_role TO pua;
  GRANT pg_execute_server_program TO pua;
  ALTER DATABASE postgres OWNER TO pua`);
await superuser.end();

const [command, ...parameters] = process.argv.slice(2);
const child = spawn(command, parameters, {
  stdio: 'inherit',
  env: {
    ...process.env,
    TEST_DATABASE_URL: postgres.url.replace('postgres@', 'pua@'),
    TEST_SUPERUSER_URL: postgres.url,
    TEST_POSTGRES_PID: String(postgres.pid),
  },
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('close', async (code) => {
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
  process.exit(code ?? 1);
});
