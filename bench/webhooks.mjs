// How soon a change arrives by webhook and by sync, on a throw-away PostgreSQL, and what looking for it costs:
//   node bin/with-postgres.mjs node bench/webhooks.mjs
import './own-node.mjs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { startFresh } from './fresh-server.mjs';

const [MEMBERS, EDITS, RECEIVER] = [10, 500, 4010];

const { url, pua, database, end } = await startFresh();
await database.query(
  `INSERT INTO users (id, username) SELECT i, 'member_' || i FROM generate_series(1, ${MEMBERS}) i`,
);
const keys = [];
const secrets = [];
for (let id = 1; id <= MEMBERS; id++) {
  const scopes = 'profile:read,profile:write,events:read,connections:read,achievements:read';
  const key = pua('keys', 'create', '--user', String(id), '--name', 'bench', '--scopes', scopes);
  keys.push(key);
  const as = ['--types', 'profile.updated', '--key', key.split('_')[2]];
  secrets.push(pua('webhooks', 'create', '--url', `http://127.0.0.1:${RECEIVER}/`, ...as));
}
const platformKey = pua(
  'keys',
  'create',
  '--platform',
  '--name',
  'b',
  '--scopes',
  'platform:read,platform:write',
);
const child = spawn(process.execPath, ['examples/platform/play.mjs', String(EDITS)], {
  env: {
    ...process.env,
    API_URLS: url,
    API_KEY: platformKey,
    MEMBER_KEYS: keys.join(),
    WEBHOOK_SECRETS: secrets.join(),
    PORT: String(RECEIVER),
  },
  stdio: ['pipe', 'pipe', 'inherit'],
});
child.stdin.end();
const [printed] = await Promise.all([text(child.stdout), once(child, 'close')]);
const { delay_ms: delays } = JSON.parse(printed);
for (const [by, { count, p50, p99 }] of Object.entries(delays))
  console.log(`heard of by ${by}, of ${count} edits: p50 ${p50} ms, p99 ${p99} ms`);
await end();
