// A platform that feeds its data: first every record of a folder in the import's format, line by line or in batches, then
// changes. It needs only Node.
//
//   API_KEY=<of pua keys create --platform> node examples/platform/feed.mjs <folder> [--batch 1000]
//
// API_URL is the API's URL (default http://localhost:3000). You can restart the program at any time: existing records stay
// unchanged, and it repeats a request whose response was lost with the same Idempotency-Key.
import { randomUUID } from 'node:crypto';
import { createReadStream, readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createGunzip } from 'node:zlib';

/** Types of records; each refers only to earlier ones. */
const TYPES = ['users', 'achievements', 'events', 'participants', 'connections', 'user_achievements'];
const MAX_LINES = 5_000;
const MAX_BYTES = 8_000_000;
const ATTEMPTS = 30;

/** Lines of a feed for each record of the folder. */
export async function* linesOf(folder) {
  const files = readdirSync(folder);
  for (const type of TYPES) {
    const name = [`${type}.ndjson`, `${type}.ndjson.gz`].find((each) => files.includes(each));
    if (!name) continue;
    const file = createReadStream(join(folder, name));
    const input = name.endsWith('.gz') ? file.pipe(createGunzip()) : file;
    for await (const text of createInterface({ input })) {
      if (text.trim() === '') continue;
      const { deleted, ...record } = JSON.parse(text);
      yield deleted === true ? { type, op: 'delete', record } : { type, op: 'put', record };
    }
  }
}

/** Groups lines into bodies of at most `batch` lines, within the API's limit of bytes. */
export async function* bodiesOf(lines, batch) {
  let body = [];
  let bytes = 0;
  for await (const line of lines) {
    const text = `${JSON.stringify(line)}\n`;
    const length = Buffer.byteLength(text);
    if (body.length > 0 && (body.length >= batch || bytes + length > MAX_BYTES)) {
      yield body.join('');
      body = [];
      bytes = 0;
    }
    body.push(text);
    bytes += length;
  }
  if (body.length > 0) yield body.join('');
}

/** Sends one feed until the server accepts or rejects it. Retries if the server is unavailable, busy, or ends during a request. */
export async function send({ url, key }, body) {
  const headers = {
    'X-API-Key': key,
    'Content-Type': 'application/x-ndjson',
    'Idempotency-Key': randomUUID(), // the same for every attempt
  };
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(`${url}/api/platform/records`, { method: 'POST', headers, body }).catch(
      (error) => error,
    );
    const answer = response instanceof Error ? undefined : await response.json().catch(() => undefined);
    if (answer && response.ok) return answer;
    const again = answer === undefined || response.status === 429 || response.status >= 500;
    if (!again || attempt === ATTEMPTS) {
      const errors = (answer?.errors ?? []).map(
        ({ line, code, detail }) => `\n  line ${line}: ${code}: ${detail}`,
      );
      throw new Error(
        `${answer?.code ?? response.cause ?? response}: ${answer?.detail ?? ''}${errors.join('')}`,
      );
    }
    const wait = answer ? Number(response.headers.get('retry-after') ?? 1) : 0.2 * attempt;
    await setTimeout(1000 * wait);
  }
}

/** Feeds a whole folder. @returns the results of its records, and the duration in seconds */
export async function feedFolder(api, folder, batch) {
  const sum = { received: 0, created: 0, updated: 0, deleted: 0, unchanged: 0, stale: 0 };
  const began = performance.now();
  for await (const body of bodiesOf(linesOf(folder), batch)) {
    const counts = await send(api, body);
    for (const name of Object.keys(sum)) sum[name] += counts[name];
  }
  return { ...sum, seconds: (performance.now() - began) / 1000 };
}

if (process.argv[1] && realpathSync(process.argv[1]) === import.meta.filename) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { batch: { type: 'string', default: '1000' } },
  });
  const [folder] = positionals;
  const batch = Math.min(Number(values.batch), MAX_LINES);
  if (!folder || !(batch >= 1) || !process.env.API_KEY) {
    console.error('Use: API_KEY=<key> node examples/platform/feed.mjs <folder> [--batch <1 to 5000>]');
    process.exit(2);
  }
  const api = { url: process.env.API_URL ?? 'http://localhost:3000', key: process.env.API_KEY };
  const { seconds, ...counts } = await feedFolder(api, folder, batch);
  console.log({ ...counts, seconds, 'records a second': Math.round(counts.received / seconds) });
}
