// What recording changes adds to a write, and counting usage to a read (docs/contributors/performance.md). On a throw-away PostgreSQL:
//   node bin/with-postgres.mjs node bench/seams.mjs
// CPU time of server and database together, the best of several rounds alternating with and without the triggers.
import './own-node.mjs';
import { startFresh } from './fresh-server.mjs';
import { setRecording } from './recording.mjs';
import { cpuMicroseconds } from './usage.mjs';

const ROUNDS = 6;
const [MEMBERS, EVENTS, WRITES, LINES] = [200, 200, 400, 2_000];

const { url, pid, pua, database, end } = await startFresh();
await database.query(`INSERT INTO users (id, username) SELECT i, 'member_' || i FROM generate_series(1, ${MEMBERS}) i;
INSERT INTO events (id, title, status, visibility, starts_at, timezone, organizer_id)
  SELECT i, 'Event ' || i, 'scheduled', 'public', now() + i * interval '1 hour', 'UTC', 1 FROM generate_series(1, ${EVENTS}) i;
INSERT INTO participants (user_id, event_id, role, rsvp_status)
  SELECT u, e, 'attendee', 'going' FROM generate_series(1, ${MEMBERS}) u, generate_series(1, 20) e`);
await database.query('VACUUM ANALYZE');
const key = pua('keys', 'create', '--user', '7', '--name', 'b', '--scopes', 'profile:read,profile:write');
const feedKey = pua('keys', 'create', '--platform', '--name', 'b', '--scopes', 'platform:write');

const send = async (path, method, body, sentKey, type) => {
  const headers = { 'X-API-Key': sentKey, 'Content-Type': type };
  const options = { method, headers, body };
  const response = await fetch(url + path, options);
  const text = await response.text();
  if (!response.ok) throw new Error(text);
};
let n = 0;
const answers = ['going', 'maybe'];
const kinds = {
  'PUT /profile': [
    WRITES,
    async () => {
      for (let i = 0; i < WRITES; i++)
        await send('/api/public/profile', 'PUT', `{"bio":"bio ${n++}"}`, key, 'application/json');
    },
  ],
  [`a line of a feed of ${LINES} answers`]: [
    LINES,
    async () => {
      const rsvp_status = answers[n++ % 2];
      const lines = Array.from({ length: LINES }, (_, i) => {
        const record = {
          user_id: 1 + (i % MEMBERS),
          event_id: 1 + Math.floor(i / MEMBERS),
          role: 'attendee',
          rsvp_status,
        };
        return `${JSON.stringify({ type: 'participants', record })}\n`;
      });
      await send('/api/platform/records', 'POST', lines.join(''), feedKey, 'application/x-ndjson');
    },
  ],
};
const recording = (on) => setRecording(async (sql) => (await database.query(sql)).rows, on);
const cpu = () => cpuMicroseconds(pid) + cpuMicroseconds(Number(process.env.TEST_POSTGRES_PID));

for (const [name, [count, write]] of Object.entries(kinds)) {
  const best = { true: Infinity, false: Infinity };
  for (let round = 0; round < ROUNDS; round++)
    for (const on of round % 2 ? [true, false] : [false, true]) {
      await recording(on);
      await write();
      const start = cpu();
      await write();
      best[on] = Math.min(best[on], (cpu() - start) / count);
    }
  const more = (100 * best.true) / best.false - 100;
  console.log(
    `${name}: ${best.false.toFixed(0)} µs of CPU, recorded ${best.true.toFixed(0)} µs (+${more.toFixed(1)} %)`,
  );
}
await end();

// Reads: what the guard and the recorder do for each request, for a thousand callers, without the request itself.
const { Usage } = await import('../dist/src/auth/usage/usage.js');
const usage = new Usage(undefined, undefined, { finished: () => undefined });
const requests = Array.from({ length: 1_000 }, (_, i) => ({
  context: { address: '127.0.0.1' },
  principal: { kind: 'api_key', userId: i, clientId: null, keyId: `key${i}`, credentialId: `key${i}` },
}));
const response = { statusCode: 200 };
let fastest = Infinity;
for (let round = 0; round < ROUNDS; round++) {
  const start = process.cpuUsage();
  for (let i = 0; i < 1_000_000; i++) {
    const request = requests[i % 1_000];
    usage.watch(request, 'events:read');
    request.context.whenWritten(request, response);
  }
  const { user, system } = process.cpuUsage(start);
  fastest = Math.min(fastest, (user + system) / 1_000_000);
}
console.log(`a read, counted: ${fastest.toFixed(2)} µs of CPU`);
