#!/usr/bin/env node
// How long a database with data takes to migrate, and how long others wait: `node bench/migration.mjs <cluster>`, a folder made by
// another checkout's bench/data.mjs, which is migrated in place. Meanwhile a reader and a writer access a row of each table twenty
// times a second, without a deadline.
import './own-node.mjs';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { build } from '../bin/build.mjs';
import { startPostgres } from '../bin/postgres.mjs';

const [cluster] = process.argv.slice(2);
if (!cluster) {
  console.error('node bench/migration.mjs <cluster>');
  process.exit(2);
}
const PROBES = {
  'users, read': 'SELECT username FROM users WHERE id = 5000',
  'users, written': `UPDATE users SET bio = 'written meanwhile' WHERE id = 5000`,
  'events, read': 'SELECT title FROM events WHERE id = 5000',
  'participants, read': 'SELECT FROM participants WHERE user_id = 5000',
  'connections, read': 'SELECT FROM connections WHERE user_id = 5000',
  'user_achievements, read': 'SELECT FROM user_achievements WHERE user_id = 5000',
  'api_keys, read': 'SELECT FROM api_keys WHERE user_id = 5000',
};
const PAUSE_MS = 50;

await build();
const { secretKey } = JSON.parse(readFileSync(join(cluster, 'keys.json'), 'utf8'));
const database = await startPostgres(cluster, { shared_buffers: '2GB', max_wal_size: '4GB' });
Object.assign(process.env, {
  NODE_ENV: 'production',
  DATABASE_URL: database.url,
  SECRET_KEY: secretKey,
  PUBLIC_URL: 'http://localhost',
});
const { loadConfig } = await import('../dist/src/config/config.js');
const { createDataSource } = await import('../dist/src/database/postgres/data-source.js');
const { migrate } = await import('../dist/src/database/schema/migrate.js');
const { readSchema } = await import('../dist/src/database/schema/schema.js');
const totals = await import('../dist/src/operations/doctor/totals.js');

const dataSource = await createDataSource(loadConfig(), 'maintenance').initialize();
let migrated = false;
const waits = Object.fromEntries(Object.keys(PROBES).map((name) => [name, 0]));
const probing = Object.entries(PROBES).map(async ([name, sql]) => {
  const client = new pg.Client(database.url);
  await client.connect();
  while (!migrated) {
    const asked = performance.now();
    await client.query(sql);
    waits[name] = Math.max(waits[name], performance.now() - asked);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  await client.end();
});
try {
  const { pending } = await readSchema(dataSource);
  const before = await size();
  const begun = performance.now();
  const done = new Map();
  const watching = setInterval(async () => {
    const { applied } = await readSchema(dataSource).catch(() => ({ applied: [] })); // it waits for locks like the others
    for (const name of applied)
      if (pending.includes(name) && !done.has(name)) done.set(name, performance.now() - begun);
  }, 200);
  await migrate(dataSource);
  const seconds = (performance.now() - begun) / 1000;
  clearInterval(watching);
  migrated = true;
  await Promise.all(probing);
  console.log(
    `${pending.length} migrations in ${seconds.toFixed(1)} s; database ${before} -> ${await size()}`,
  );
  for (const [name, ms] of done) console.log(`  ${(ms / 1000).toFixed(1)} s: ${name}`);
  for (const [name, ms] of Object.entries(waits))
    console.log(`longest wait, ${name}: ${(ms / 1000).toFixed(2)} s`);
  const counted = performance.now();
  const { manager } = dataSource;
  const wrong = {
    totals: (await totals.findDrift(manager)).length,
    copies: (await totals.findStaleCopies(manager)).length,
    sides: await totals.countLoneSides(manager),
  };
  console.log(
    `wrong afterwards: ${JSON.stringify(wrong)} (counted anew in ${((performance.now() - counted) / 1000).toFixed(0)} s)`,
  );
} finally {
  migrated = true;
  await dataSource.destroy();
  await database.stop();
}

async function size() {
  const [row] = await dataSource.query('SELECT pg_size_pretty(pg_database_size(current_database())) AS size');
  return row.size;
}
