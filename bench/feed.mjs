// The speed of feeds and their effect on readers, on a throw-away PostgreSQL:
//   node bin/with-postgres.mjs node bench/feed.mjs
import './own-node.mjs';
import { startFresh } from './fresh-server.mjs';

const { url, pua, end } = await startFresh();
const platformKey = pua('keys', 'create', '--platform', '--name', 'feed', '--scopes', 'platform:write');

async function feed(lines) {
  const began = performance.now();
  const response = await fetch(`${url}/api/platform/records`, {
    method: 'POST',
    headers: { 'X-API-Key': platformKey, 'Content-Type': 'application/x-ndjson' },
    body: lines.map((line) => JSON.stringify(line)).join('\n'),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  await response.arrayBuffer();
  return performance.now() - began;
}

const put = (type, record, version) => ({ type, op: 'put', record, version });
const users = (from, count, version) =>
  Array.from({ length: count }, (_, i) =>
    put('users', { id: from + i, username: `m${from + i}`, bio: `version ${version}` }, version),
  );
const events = (count) =>
  Array.from({ length: count }, (_, i) =>
    put('events', {
      id: i + 1,
      title: `Event ${i + 1}`,
      status: 'scheduled',
      visibility: 'public',
      starts_at: '2031-05-01 18:00:00',
      timezone: 'Europe/Vienna',
      organizer_id: 1 + (i % 5_000),
    }),
  );
const answers = (count, version, rsvp_status) =>
  Array.from({ length: count }, (_, i) =>
    put(
      'participants',
      { event_id: 1 + (i % 1_000), user_id: 1 + ((i * 7) % 5_000), role: 'attendee', rsvp_status },
      version,
    ),
  );

const line = (what, ms, records) =>
  console.log(`${what}: ${Math.round(ms)} ms, ${Math.round((records / ms) * 1000)} records/s`);
line('5,000 new members', await feed(users(1, 5_000, 1)), 5_000);
line('5,000 members changed', await feed(users(1, 5_000, 2)), 5_000);
line('5,000 members unchanged', await feed(users(1, 5_000, 3)), 5_000);
line('1,000 new events', await feed(events(1_000)), 1_000);
line('5,000 new answers', await feed(answers(5_000, 1, 'going')), 5_000);
line('5,000 answers changed', await feed(answers(5_000, 2, 'maybe')), 5_000);
let began = performance.now();
for (let i = 0; i < 200; i++) await feed(users(1 + i, 1, 10 + i));
line('200 feeds of one line', performance.now() - began, 200);

const key = pua('keys', 'create', '--user', '1', '--name', 'r', '--scopes', 'profile:read,profile:write');
async function calls(milliseconds, method) {
  const times = [];
  const until = performance.now() + milliseconds;
  while (performance.now() < until) {
    const from = performance.now();
    const response = await fetch(`${url}/api/public/profile`, {
      method,
      headers: { 'X-API-Key': key, ...(method === 'PUT' ? { 'Content-Type': 'application/json' } : {}) },
      ...(method === 'PUT' ? { body: JSON.stringify({ bio: String(from) }) } : {}),
    });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(String(response.status));
    times.push(performance.now() - from);
  }
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor(share * (times.length - 1))].toFixed(1);
  return `${times.length} calls, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}
console.log('GET alone:', await calls(3_000, 'GET'));
console.log('PUT alone:', await calls(3_000, 'PUT'));
let feeding = true;
let fed = 0;
const feeders = Array.from({ length: 4 }, async (_, i) => {
  for (let version = 1000; feeding; version++) {
    await feed(users(10_000 + i * 5_000, 5_000, version));
    fed += 5_000;
  }
});
began = performance.now();
console.log('GET beside four feeds of 5,000 lines:', await calls(6_000, 'GET'));
console.log('PUT beside four feeds of 5,000 lines:', await calls(6_000, 'PUT'));
line('four feeds at once', performance.now() - began, fed);
feeding = false;
await Promise.all(feeders);
await end();
