#!/usr/bin/env node
// Ends the access of many grants on one day: `node bench/ending-access.mjs [--grants 1000000] [--minutes 15]`. In the first phase every access
// ends within 7 days (a notice, an email and a message each), in the second every access has ended (a message each). Fails if an end costs more CPU than a
// request per second for a minute, or if an unrelated message or email waits for more than 5 s. A phase stops after --minutes, even if unfinished.
import './own-node.mjs';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { SMTPServer } from 'smtp-server';
import { build } from '../bin/build.mjs';
import { startPostgres } from '../bin/postgres.mjs';
import { POSTGRES } from './data.mjs';
import { freshDatabase, Instance, openServices } from './instances.mjs';
import { cpuMicroseconds } from './usage.mjs';

const MAX_WAIT_MS = 5_000;
const MAX_REQUESTS = 60;
const APPS = 10;
const READS = 3_000;

const options = {
  grants: { type: 'string', default: '1000000' },
  minutes: { type: 'string', default: '600' },
};
const { values: flags } = parseArgs({ options });
const grants = Number(flags.grants);
await build();
const folder = mkdtempSync(join(tmpdir(), 'pua-ending-'));
const postgres = await startPostgres(folder, POSTGRES);
process.env.TEST_DATABASE_URL = postgres.url;

/** Messages and emails to the apps and their members, and the arrival time of the last unrelated one. */
const received = { message: 0, email: 0 };
const others = { message: 0, email: 0 };
const receive = (kind, isOther) => (isOther ? (others[kind] = performance.now()) : received[kind]++);
const receiver = createServer((request, response) => {
  receive('message', request.url === '/other');
  request.resume().on('end', () => response.writeHead(204).end());
}).listen(0, '127.0.0.1');
const mails = new SMTPServer({
  authOptional: true,
  disabledCommands: ['STARTTLS', 'AUTH'],
  onData: (stream, { envelope }, done) => {
    receive('email', envelope.rcptTo[0].address.startsWith('other@'));
    stream.resume().on('end', done);
  },
});
await Promise.all([once(receiver, 'listening'), once(mails.listen(0, '127.0.0.1'), 'listening')]);

const environment = await (
  await freshDatabase()
).environment({
  LOG_LEVEL: 'warn',
  RATE_LIMIT_READ: '0',
  SWEEP_INTERVAL: '1',
  SMTP_URL: `smtp://127.0.0.1:${mails.server.address().port}`,
  MAIL_FROM: 'no-reply@mail.example',
});
const { dataSource, config, makeKey } = await openServices(environment);
const { WebhooksService } = await import('../dist/src/webhooks/webhooks.service.js');
const webhooks = new WebhooksService(dataSource, config);
const addEndpoint = (path, types, clientId) => {
  const url = `http://127.0.0.1:${receiver.address().port}${path}`;
  return webhooks.create({ url, types, clientId, actor: 'admin' });
};
/** Member 1 has no ending access. */
const FILL = [
  `INSERT INTO users (id, username, email) SELECT n, 'm' || n, CASE n WHEN 1 THEN 'other' ELSE 'm' || n END || '@mail.example'
   FROM generate_series(1, 1 + ${grants / APPS}) n`,
  `INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes)
   SELECT 'app' || n, 'App ' || n, 'web', '{https://app.example/cb}', '{profile:read}' FROM generate_series(1, ${APPS}) n`,
  `INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at, created_at)
   SELECT c.id || '-' || u.id, u.id, c.id, '{"resources": {"api": "profile:read"}}', now() + interval '90 days', now() - interval '25 days'
   FROM users u CROSS JOIN oauth_clients c WHERE u.id > 1`,
  `INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
   SELECT sha256(id::bytea), 'RefreshToken', id, '{}', now() + interval '90 days' FROM oauth_grants`,
  'INSERT INTO oauth_grant_usage (grant_id, last_used_at) SELECT id, now() FROM oauth_grants',
  'VACUUM ANALYZE',
];
for (const statement of FILL) await dataSource.query(statement);
const key = await makeKey(1);
await addEndpoint('/other', ['profile.updated']);
for (let n = 1; n <= APPS; n++) await addEndpoint('/', ['access.ending', 'access.ended'], `app${n}`);

const server = await new Instance('the server', environment, process.stderr).start();
const cpu = () => cpuMicroseconds(server.pid) + cpuMicroseconds(postgres.pid);
const read = async () =>
  (await fetch(`${server.url}/api/public/profile`, { headers: { 'X-API-Key': key } })).arrayBuffer();
const CAUSES = {
  message: 'UPDATE users SET bio = random()::text WHERE id = 1',
  email: `INSERT INTO auth_events (type, actor, user_id) VALUES ('user.password_set', 'admin', 1)`,
};

let [idle, longest] = [0, 0];
/** Runs until every access is processed. @returns CPU in µs, minus the CPU of an equally long time in which no access ends */
async function measure(name, isDone) {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1_000;
  const before = cpu();
  const waits = { message: 0, email: 0 };
  let isOver = false;
  const watching = Object.entries(CAUSES).map(async ([kind, cause]) => {
    for (; !isOver; await pause(500)) {
      const causedAt = performance.now();
      await dataSource.query(cause);
      while (others[kind] < causedAt) await pause(5);
      waits[kind] = Math.max(waits[kind], others[kind] - causedAt);
    }
  });
  while (!isDone(seconds()) && seconds() < 60 * flags.minutes) await pause(500);
  const took = seconds();
  const used = cpu() - before - idle * took;
  isOver = true;
  await Promise.all(watching);
  console.log(`${name}: ${Math.round(took)} s, ${Math.round(used / 1e6)} s of CPU; so far:`);
  for (const kind in waits)
    console.log(`  ${received[kind]} ${kind}s; unrelated ones: at most ${Math.round(waits[kind])} ms`);
  longest = Math.max(longest, waits.message, waits.email);
  return used;
}
/** Moves all ends of access into the day after `at`, without messages about the change. */
const moveEnds = (at) =>
  dataSource.transaction(async (manager) => {
    await manager.query('SET LOCAL session_replication_role = replica');
    await manager.query(`UPDATE oauth_grants SET access_ends_at = ${at} + random() * interval '1 day'`);
  });

for (let n = 0; n < READS; n++) await read();
const before = cpu();
for (let n = 0; n < READS; n++) await read();
const request = (cpu() - before) / READS;
idle = (await measure('nothing ends', (seconds) => seconds > 20)) / 20;
await moveEnds(`now() + interval '5 days'`);
const ending = await measure('ends soon', () => Math.min(received.message, received.email) >= grants);
await moveEnds(`now() - interval '1 day'`);
const ended = await measure('has ended', () => received.message >= 2 * grants);
const isWhole = received.email >= grants && received.message >= 2 * grants;
const cost = isWhole ? (ending + ended) / grants : 0;
if (isWhole) console.log(`An end costs ${Math.round(cost)} µs of CPU, a request ${Math.round(request)} µs`);

await server.kill('SIGTERM');
await dataSource.destroy();
await postgres.stop();
rmSync(folder, { recursive: true });
process.exit(cost > MAX_REQUESTS * request || longest > MAX_WAIT_MS ? 1 : 0);
