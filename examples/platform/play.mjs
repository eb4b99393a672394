// Simulates a platform, its members and their apps. The platform feeds changed records, line by line and in batches, and reads members' edits.
// Members edit their profiles. Each member has an app that keeps a copy by sync when webhooks arrive. At the end, all copies must be equal.
//
//   API_URLS=<instances, comma separated> API_KEY=<of the platform> MEMBER_KEYS=<comma separated> \
//   WEBHOOK_SECRETS=<of pua webhooks create --key, comma separated> PORT=<of their URL> node examples/platform/play.mjs <edits> < lines
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { receive } from '../webhooks/receiver.mjs';

const URLS = process.env.API_URLS.split(',');
const LISTS = {
  connections: '/connections?limit=100&status=accepted,pending_sent,pending_received',
  achievements: '/achievements?limit=100',
  events: '/events?limit=100',
};
/** Numbers that depend on other members: sync does not report their changes. */
const COUNTED =
  /^(attendees_count|spots_left|rarity|rarity_percentage|earned_by_count|eligible_users_count)$/;

/** Calls one instance after another until one responds. @returns the response's JSON; an instance may be killed at any time */
async function call(key, path, { method = 'POST', body, type = 'application/json' } = {}) {
  const headers = {
    'X-API-Key': key,
    ...(body ? { 'Content-Type': type, 'Idempotency-Key': randomUUID() } : {}),
  };
  for (let attempt = 0; ; attempt++) {
    const response = await fetch(
      URLS[attempt % URLS.length] + path,
      body ? { method, headers, body } : { headers },
    ).catch(() => undefined);
    const answer = await response?.json().catch(() => undefined);
    if (answer && (response.ok || response.status === 404)) return answer;
    if (answer && response.status < 500 && response.status !== 429)
      throw new Error(`${path}: ${JSON.stringify(answer)}`);
    if (attempt === 200) throw new Error(`no instance responds to ${path}`);
    await setTimeout(100);
  }
}

/** An app's copy of a member's data: read once, then updated by sync. */
class Copy {
  #things = new Map();
  #syncing = Promise.resolve();

  constructor(key) {
    this.key = key;
  }

  async read() {
    this.next = (await this.#get('/sync')).next;
    this.#things = new Map([['profile', await this.#get('/profile')]]);
    for (const name of Object.keys(LISTS)) await this.#readList(name);
    return this;
  }

  /** Runs syncs one after another: each continues where the previous one ended. */
  sync() {
    return (this.#syncing = this.#syncing.then(() => this.#sync()));
  }

  get content() {
    return JSON.parse(
      JSON.stringify(Object.fromEntries(this.#things), (name, value) =>
        COUNTED.test(name) ? undefined : value,
      ),
    );
  }

  async #sync() {
    for (let more = true; more;) {
      const page = await this.#get(`/sync?limit=1000&cursor=${this.next}`);
      for (const name of new Set(page.data.map(({ resource }) => resource)))
        if (name === 'profile') this.#things.set('profile', await this.#get('/profile'));
        else await this.#readList(name);
      ({ next: this.next, more } = page);
    }
  }

  async #readList(name) {
    const items = [];
    for (let cursor = ''; cursor !== null;) {
      const { data, pagination } = await this.#get(LISTS[name] + (cursor && `&cursor=${cursor}`));
      items.push(...data);
      cursor = pagination.next_cursor;
    }
    this.#things.set(name, items);
  }

  #get(path) {
    return call(this.key, `/api/public${path}`);
  }
}

const at = (sorted, share) =>
  Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN);
const figures = (delays) => {
  const sorted = delays.toSorted((a, b) => a - b);
  return { count: sorted.length, p50: at(sorted, 0.5), p99: at(sorted, 0.99) };
};

const [edits] = process.argv.slice(2).map(Number);
const copies = await Promise.all(process.env.MEMBER_KEYS.split(',').map((key) => new Copy(key).read()));
const byMember = new Map(copies.map((copy) => [copy.content.profile.id, copy]));
const editedAt = new Map();
const delays = { webhook: [], sync: [] };
const told = (message) => {
  const { member_id: member, resource } = message.data;
  if (resource === 'profile' && editedAt.has(member))
    delays.webhook.push(performance.now() - editedAt.get(member));
  void byMember.get(member)?.sync();
};
const server = await receive(Number(process.env.PORT), process.env.WEBHOOK_SECRETS.split(','), told);

// The platform: its members' bios, which it reads from the server, and the records that it feeds.
const home = new Map();
let place = (await call(process.env.API_KEY, '/api/platform/changes?limit=1000')).next;
const takeHome = async (wait) => {
  const page = await call(
    process.env.API_KEY,
    `/api/platform/changes?types=profile.updated&wait=${wait}&limit=1000&after=${place}`,
  );
  for (const { member_id: member, fields } of page.data) if ('bio' in fields) home.set(member, fields.bio);
  place = page.next;
  return page.data.length;
};
let done = false;
const following = (async () => {
  while (!done) await takeHome(1);
})();
/** Lines of one feed, in order. */
const SIZES = [1, 1, 1, 20];
const feeding = (async () => {
  let lines = 0;
  let feeds = 0;
  let waiting = [];
  const feed = async () => {
    const body = waiting.map((line) => `${line}\n`).join('');
    await call(process.env.API_KEY, '/api/platform/records', { body, type: 'application/x-ndjson' });
    feeds++;
    lines += waiting.length;
    waiting = [];
  };
  for await (const line of createInterface({ input: process.stdin })) {
    waiting.push(line);
    if (waiting.length === SIZES[feeds % SIZES.length]) await feed();
  }
  if (waiting.length > 0) await feed();
  return lines;
})();
const bios = new Map();
const editing = (async () => {
  for (let i = 0; i < edits; i++) {
    const [member, copy] = [...byMember][i % byMember.size];
    bios.set(member, `bio ${i}`);
    editedAt.set(member, performance.now());
    await call(copy.key, '/api/public/profile', {
      method: 'PUT',
      body: JSON.stringify({ bio: bios.get(member) }),
    });
    const written = performance.now();
    while (copy.content.profile.bio !== bios.get(member)) await copy.sync();
    delays.sync.push(performance.now() - written);
  }
})();
const [lines] = await Promise.all([feeding, editing]);
done = true;
await following;

/** The server may report the last writes a moment later. */
async function agree(isSo) {
  for (let attempt = 0; attempt < 150; attempt++) {
    if (await isSo()) return true;
    await setTimeout(200);
  }
  return false;
}
const appsAgree = await agree(async () => {
  for (const copy of copies) await copy.sync();
  const fresh = await Promise.all(copies.map(({ key }) => new Copy(key).read()));
  return copies.every((copy, i) => isDeepStrictEqual(copy.content, fresh[i].content));
});
const platformAgrees = await agree(async () => {
  await takeHome(0);
  return (
    isDeepStrictEqual(home, bios) &&
    copies.every(({ content: { profile } }) => profile.bio === bios.get(profile.id))
  );
});
server.closeAllConnections();
server.close();
console.log(
  JSON.stringify({
    lines,
    edits,
    apps_agree: appsAgree,
    platform_agrees: platformAgrees,
    delay_ms: { webhook: figures(delays.webhook), sync: figures(delays.sync) },
  }),
);
