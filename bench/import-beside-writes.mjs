#!/usr/bin/env node
// What members feel while an import changes all of them: `node bench/import-beside-writes.mjs [members [batch]]` (100,000 in one
// transaction; with a batch, in several). Beside the import, members that it changes save their profiles, 20 a second, and are referred
// to by new rows, as a consent does. Ends with 1 if one of them fails or waits for more than 2 s.
import './own-node.mjs';
import { spawn } from 'node:child_process';
import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { openDataset } from './data.mjs';
import { startOurs } from './servers.mjs';

const MOST_MS = 2_000;
const PAUSE_MS = 50;
const members = Number(process.argv[2] ?? 100_000);
const batch = process.argv[3];
const folder = mkdtempSync(join(tmpdir(), 'pua-import-'));
const dataset = await openDataset(members);
const server = await startOurs(dataset);
const client = new pg.Client(dataset.url);
await client.connect();

/** Every member as they are stored, with another name, and an external id, which a foreign key could refer to. */
async function writeUsers() {
  mkdirSync(join(folder, 'import'));
  const file = createWriteStream(join(folder, 'import/users.ndjson'));
  const { rows } = await client.query(
    'SELECT id, username, created_at FROM users WHERE id <= $1 ORDER BY id',
    [members],
  );
  const stamp = new Date().toISOString();
  const changes = (id) => ({ first_name: `Ada ${stamp}`, external_id: `ada-${id}` });
  for (const { id, username, created_at } of rows)
    if (!file.write(`${JSON.stringify({ id: Number(id), username, created_at, ...changes(id) })}\n`))
      await once(file, 'drain');
  file.end();
  await once(file, 'close');
}

let isRunning = true;
const times = { put: [], refer: [] };
const failures = new Map();
const note = (kind, since, failure) => {
  times[kind].push(performance.now() - since);
  if (failure) failures.set(failure, (failures.get(failure) ?? 0) + 1);
};
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

async function put(n) {
  const since = performance.now();
  const response = await fetch(`${server.url}/api/public/profile`, {
    method: 'PUT',
    headers: { 'X-API-Key': dataset.keys[n % (dataset.keys.length - 1)], 'Content-Type': 'application/json' },
    body: JSON.stringify({ bio: `I am number ${n}` }),
  });
  await response.arrayBuffer();
  note('put', since, response.ok ? undefined : `PUT ${response.status}`);
}
async function refer(n) {
  const since = performance.now();
  const id = dataset.members[n % dataset.members.length];
  const fault = await client.query('SELECT FROM users WHERE id = $1 FOR KEY SHARE', [id]).then(
    () => undefined,
    (error) => `reference ${error.code}`,
  );
  note('refer', since, fault);
}

try {
  await writeUsers();
  const writing = [];
  const members = (async () => {
    for (let n = 0; isRunning; n++) {
      writing.push(put(n), refer(n + 1));
      await pause();
    }
    await Promise.all(writing);
  })();
  const since = performance.now();
  const { secretKey } = dataset;
  const pua = spawn(
    process.execPath,
    ['dist/src/cli/main.js', 'import', join(folder, 'import'), ...(batch ? ['--batch', batch] : [])],
    {
      env: {
        ...process.env,
        NODE_ENV: 'production',
        DATABASE_URL: dataset.url,
        SECRET_KEY: secretKey,
        PUBLIC_URL: server.url,
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const [code] = await once(pua, 'close');
  isRunning = false;
  await members;
  console.log(`import ended with ${code} after ${((performance.now() - since) / 1_000).toFixed(1)} s`);
  let longest = 0;
  for (const [kind, list] of Object.entries(times)) {
    list.sort((a, b) => a - b);
    longest = Math.max(longest, list.at(-1));
    console.log(
      `${kind}: ${list.length}, median ${list[list.length >> 1].toFixed(0)} ms, longest ${list.at(-1).toFixed(0)} ms`,
    );
  }
  console.log('failed:', Object.fromEntries(failures));
  if (code !== 0 || failures.size > 0 || longest > MOST_MS + PAUSE_MS) process.exitCode = 1;
} finally {
  await client.end();
  await server.stop();
  await dataset.stop();
  rmSync(folder, { recursive: true });
}
