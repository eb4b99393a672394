#!/usr/bin/env node
// Writes a large import folder: `node bench/generate-import.mjs <folder> [users] [connections]`, by default 300,000 and 1,000,000.
// The same numbers create the same files.
import './own-node.mjs';
import { createWriteStream, mkdirSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';

const [folder, users = '300000', connections = '1000000'] = process.argv.slice(2);
if (!folder) {
  console.error('node bench/generate-import.mjs <folder> [users] [connections]');
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
const members = Number(users);
const events = Math.ceil(members / 10);
const achievements = 50;

async function write(name, records) {
  const file = createWriteStream(join(folder, `${name}.ndjson`));
  let text = '';
  for (const record of records) {
    text += `${JSON.stringify(record)}\n`;
    if (text.length < 1_000_000) continue;
    if (!file.write(text)) await once(file, 'drain');
    text = '';
  }
  file.end(text);
  await once(file, 'close');
}

/** 1 to n. */
function* count(n) {
  for (let i = 1; i <= n; i++) yield i;
}
const day = (n) => `20${10 + (n % 15)}-0${1 + (n % 9)}-${10 + (n % 19)} 1${n % 10}:00:00`;

await write(
  'users',
  count(members).map((id) => ({
    id,
    username: `member${id}`,
    first_name: `Ada ${id}`,
    last_name: 'Lovelace',
    bio: id % 3 ? `I am number ${id}, and I am here for the music.` : null,
    profile_picture: `https://cdn.example.com/avatars/${id}.jpg`,
    created_at: day(id),
  })),
);
await write(
  'achievements',
  count(achievements).map((id) => ({
    id,
    key: `k${id}`,
    name: `Badge ${id}`,
    category: `c${id % 5}`,
    target: 10,
  })),
);
await write(
  'events',
  count(events).map((id) => ({
    id,
    title: `Meeting ${id}`,
    status: 'completed',
    visibility: 'public',
    starts_at: day(id),
    timezone: 'America/Denver',
    location: { name: 'Library', city: 'Missoula', country_code: 'US' },
    organizer_id: 1 + (id % members),
    created_at: day(id),
    updated_at: day(id),
  })),
);
await write(
  'participants',
  count(members).flatMap((user_id) =>
    [
      {
        user_id,
        event_id: 1 + (user_id % events),
        role: 'attendee',
        rsvp_status: 'going',
        responded_at: day(user_id),
      },
      { user_id, event_id: 1 + ((user_id * 7 + 3) % events), role: 'attendee', rsvp_status: 'maybe' },
    ].filter(({ event_id }, i, both) => i === 0 || event_id !== both[0].event_id),
  ),
);
// Each member requests connections to others in strides that never repeat a pair.
const strides = [1, 17, 1009, 40_009];
await write(
  'connections',
  count(Number(connections)).map((id) => {
    const requester_id = 1 + (id % members);
    const stride = strides[Math.floor(id / members) % strides.length];
    return {
      id,
      requester_id,
      addressee_id: 1 + ((requester_id - 1 + stride) % members),
      status: id % 20 ? 'accepted' : 'pending',
      source: 'search',
      requested_at: day(id),
      connected_at: id % 20 ? day(id) : null,
    };
  }),
);
await write(
  'user_achievements',
  count(members).map((user_id) => ({
    user_id,
    achievement_id: 1 + (user_id % achievements),
    progress: 10,
    earned_at: day(user_id),
    pin_position: 1,
  })),
);
