// By downloads and calendars that are read without end, or not at all.
import { setTimeout as pause } from 'node:timers/promises';
import { Browser, formsOf } from '../oauth-client.mjs';
import { ask, open, PASSWORD, setPasswords } from './target.mjs';

const MEMBERS = 12;
const EVENTS = 1_000;
/** Downloads that nobody reads. */
const UNREAD = 140;
/** Before a download that was refused or cut is asked for again. */
const AGAIN_MS = 1_000;
const LINKS = 10;
const LINK_READS_PER_SECOND = 40;

/** @type {import('./target.mjs').Attack[]} */
export const attacks = [
  { name: 'downloads that nobody reads', prepare: prepareDownloads, attack: holdDownloads },
  { name: 'downloads at full speed', prepare: prepareDownloads, attack: takeDownloads },
  { name: 'ten calendar links, 40/s', prepare: prepareCalendar, attack: readCalendars },
  { name: 'one calendar link, ten at a time', prepare: prepareCalendar, attack: readOneCalendar },
];

/** Members with a thousand events of 14 KB each, signed in: what posts the form of each. */
async function prepareDownloads(target) {
  const members = await membersWithEvents(target, MEMBERS, 14_000);
  return Promise.all(
    members.map(async ({ username }) => {
      const browser = await signedIn(target, username, '/account/data');
      const { body } = await browser.open('/account/data');
      const { path, form } = formsOf(body).find((one) => one.path.endsWith('/download'));
      const sent = new URLSearchParams(form).toString();
      return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: ${browser.cookiesAt(path)}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${sent.length}\r\n\r\n${sent}`;
    }),
  );
}

function holdDownloads(target, forms, until) {
  return inParallel(UNREAD, async (n) => {
    while (!until.aborted) {
      const socket = open(target);
      socket.write(forms[n % forms.length]);
      await Promise.race([new Promise((resolve) => socket.once('close', resolve)), ended(until)]);
      socket.destroy();
      await pause(AGAIN_MS);
    }
  });
}

function takeDownloads(target, forms, until) {
  return inParallel(forms.length, async (n) => {
    while (!until.aborted) {
      const socket = open(target);
      socket.write(forms[n]);
      socket.resume();
      await Promise.race([new Promise((resolve) => socket.once('close', resolve)), ended(until)]);
      socket.destroy();
      await pause(AGAIN_MS);
    }
  });
}

/** Ten links of one member with a thousand events. */
async function prepareCalendar(target) {
  const [{ username }] = await membersWithEvents(target, 1, 2_000);
  const browser = await signedIn(target, username, '/account/calendar');
  const links = [];
  while (links.length < LINKS) {
    const { path, form } = formsOf((await browser.open('/account/calendar')).body, {
      name: `Link ${links.length}`,
    }).find((one) => one.path.endsWith('/create'));
    const { headers } = await browser.open(path, form);
    const { body } = await browser.open(headers.location);
    links.push(/\/calendar\/[\w-]{43}\.ics/.exec(body)[0]);
  }
  return links;
}

async function readCalendars(target, links, until) {
  const reads = [];
  for (let n = 0; !until.aborted; n++) {
    reads.push(ask(target, { path: links[n % links.length] }));
    await pause(1_000 / LINK_READS_PER_SECOND);
  }
  await Promise.all(reads);
}

function readOneCalendar(target, [link], until) {
  return inParallel(10, async () => {
    while (!until.aborted) await ask(target, { path: link });
  });
}

/** How often members were made. */
let made = 0;

async function membersWithEvents({ pua, database }, count, bytes) {
  const members = Array.from({ length: count }, (_, n) => ({ username: `attacker-${made++}-${n}` }));
  for (const member of members) {
    pua('users', 'create', '--username', member.username);
    const { rows } = await database.query('SELECT id FROM users WHERE username = $1', [member.username]);
    member.id = rows[0].id;
  }
  const ids = members.map(({ id }) => id);
  const usernames = members.map(({ username }) => username);
  await setPasswords({ database }, usernames);
  await database.query(
    `WITH made AS (
  INSERT INTO events (title, description, status, visibility, timezone, organizer_id, starts_at)
  SELECT 'Event ' || n, repeat(md5(n::text), $3 / 32), 'scheduled', 'public', 'Europe/Berlin', $1, now() + n * interval '1 hour'
  FROM generate_series(1, $4::int) n RETURNING id
) INSERT INTO participants (event_id, user_id, role) SELECT made.id, u.id, 'co_organizer' FROM made, unnest($2::bigint[]) u (id)
WHERE u.id <> $1`,
    [ids[0], ids, bytes, EVENTS],
  );
  await database.query('VACUUM ANALYZE events, participants');
  return members;
}

async function signedIn(target, username, path) {
  const browser = new Browser({ name: 'ours', url: target.url });
  const { body } = await browser.open(path);
  const signIn = formsOf(body, { username, password: PASSWORD })[0];
  const { status } = await browser.open(signIn.path, signIn.form);
  if (status !== 303) throw new Error(`${username} was not signed in: ${status}`);
  return browser;
}

function inParallel(count, work) {
  return Promise.all(Array.from({ length: count }, (_, n) => work(n)));
}

function ended(signal) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', resolve, { once: true });
  });
}
