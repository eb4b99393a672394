// The API reference's examples: requests of the demo's first member to a real server, recorded by `npm run docs`.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const FILE = join(import.meta.dirname, '../docs/examples.json');

/** The day of the recorded demo: its times are relative to it, so they are the same in every recording. */
const DAY = new Date('2026-03-02T00:00:00Z');
/** Fixed, so that cursors signed with it never change. It protects nothing. */
const SECRET_KEY = Buffer.from('Of the examples, and of nothing else').toString('base64');
/** Values that depend on the time of recording stay as first recorded. */
const VOLATILE = ['rarity_computed_at', 'ETag', 'key_id', 'next', 'sequence', 'at', 'by'];
/** Values of API keys that also depend on the time of recording. */
const OF_KEY = ['created_at', 'expires_at', 'access_ends_at'];
/** Headers that differ between responses. */
const HEADERS = ['Content-Type', 'ETag', 'Link', 'X-Total-Count', 'Allow', 'WWW-Authenticate'];

/** The example of a single record shows an item from the list's example. */
const EVENT = 900_000_001;
const ACHIEVEMENT = 900_000_001;

/** Operation id → its examples: name, summary, path, and the rest of the request. */
const CALLS = {
  getMe: [
    ['me', 'The member', '/me'],
    ['missing_credentials', 'Without a credential', '/me', { key: null }],
    ['not_acceptable', 'Another media type', '/me', { headers: { Accept: 'text/csv' } }],
  ],
  getProfile: [['profile', 'The profile with its counts', '/profile']],
  updateProfile: [
    ['updated', 'A new bio', '/profile', { method: 'PUT', body: { bio: 'Engines, poetry, cake.' } }],
    [
      'validation_failed',
      'Two invalid fields',
      '/profile',
      { method: 'PUT', body: { bio: 42, username: 'countess' } },
    ],
    [
      'precondition_failed',
      'The profile has changed in the meantime',
      '/profile',
      { method: 'PUT', body: { bio: 'Engines.' }, headers: { 'If-Match': '"1-of-an-earlier-version"' } },
    ],
  ],
  listEvents: [
    ['events', 'Two of the coming events, by title', '/events?status=scheduled&sort=title&limit=2'],
    ['unknown_parameter', 'An unknown parameter', '/events?page=2'],
    ['invalid_parameter', 'A value that is not allowed', '/events?sort=name'],
  ],
  getEvent: [
    ['event', 'An event that the member organizes', `/events/${EVENT}`],
    ['event_not_found', 'No such event, or no access to it', '/events/1'],
  ],
  listConnections: [['connections', 'The two most recent connections', '/connections?limit=2']],
  listAchievements: [['earned', 'The one that was earned first', '/achievements?sort=earned_at&limit=1']],
  listEarnedAchievements: [
    ['earned', 'The two that were earned first', '/achievements/earned?sort=earned_at&limit=2'],
  ],
  listAllAchievements: [
    ['all', 'All achievements, most progress first', '/achievements/all?sort=-progress&limit=2'],
  ],
  getAchievementStatistics: [['stats', 'In total, by category and by rarity', '/achievements/stats']],
  getAchievement: [
    ['detail', 'One achievement', `/achievements/${ACHIEVEMENT}`],
    ['achievement_not_found', 'No such achievement', '/achievements/1'],
  ],
  listPinnedAchievements: [['pinned', 'The pinned achievements', '/achievements/pinned']],
  listChanges: [['start', 'A cursor to start from', '/sync']],
  getCredential: [['credential', 'An API key', '/credential']],
  listProblems: [['problems', 'Every error code', '/problems', { key: null }]],
  getProblem: [
    ['problem', 'One error code', '/problems/validation_failed', { key: null }],
    ['not_found', 'No such code', '/problems/none', { key: null }],
  ],
  listPlatformChanges: [['edited', 'A member edited their profile', '/changes', { platform: true }]],
  // Last, because they change what the other examples show.
  feedRecords: [
    [
      'fed',
      'A member’s current record',
      '/records',
      {
        platform: true,
        method: 'POST',
        type: 'application/x-ndjson',
        body: {
          type: 'users',
          op: 'put',
          record: { id: 7, username: 'grace_hopper', first_name: 'Grace', last_name: 'Hopper' },
          version: 1,
        },
      },
    ],
    [
      'bad_line',
      'An invalid line',
      '/records',
      {
        platform: true,
        method: 'POST',
        type: 'application/x-ndjson',
        body: {
          type: 'participants',
          record: { event_id: 1, user_id: 7, role: 'attendee', rsvp_status: 'going' },
        },
      },
    ],
  ],
};

/**
 * Starts a server with its own demo, sends the requests, and stops the server.
 *
 * @param look receives the server's freshly migrated database
 * @returns the text of {@link FILE}, and the OpenAPI document
 */
export async function recordExamples(look) {
  const { loadConfig } = await import('../dist/src/config/config.js');
  const { openDatabase } = await import('../dist/src/database/open-database.js');
  const { seedDemo, testKey } = await import('../dist/src/operations/demo/demo.js');
  const { ApiKeysService } = await import('../dist/src/auth/api-keys/api-keys.service.js');
  const { createApp, closeApp } = await import('../dist/src/app.js');
  const folder = mkdtempSync(join(tmpdir(), 'pua-examples-'));
  try {
    const config = loadConfig({
      NODE_ENV: 'development',
      DATA_DIR: folder,
      LOG_LEVEL: 'silent',
      PUBLIC_URL: 'http://localhost:3000',
      SECRET_KEY,
    });
    const keys = {};
    const database = await openDatabase(config, async (dataSource) => {
      await look(dataSource);
      await seedDemo(dataSource, DAY);
      keys.member = await testKey(dataSource, config);
      const { key } = await new ApiKeysService(dataSource, config).create({
        userId: null,
        name: 'feed',
        scopes: ['platform:read', 'platform:write'],
        environment: 'live',
        cidrs: [],
        noExpiryReason: 'of the examples',
        actor: 'admin',
      });
      keys.platform = key;
    });
    const app = await createApp(config);
    await app.listen(0, '127.0.0.1');
    const { port } = app.getHttpServer().address();
    try {
      const known = JSON.parse(readFileSync(FILE, 'utf8'));
      const all = {};
      for (const [name, calls] of Object.entries(CALLS)) {
        all[name] = [];
        for (const call of calls)
          all[name].push(unchanged(await record(`http://127.0.0.1:${port}`, keys, call), known[name]));
      }
      const openapi = await (await fetch(`http://127.0.0.1:${port}/api/public/openapi.json`)).json();
      return { examples: JSON.stringify(all), openapi };
    } finally {
      await closeApp(app);
      await database.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function record(
  origin,
  keys,
  [name, summary, path, { platform = false, method = 'GET', body, type, headers, key } = {}],
) {
  const full = `/api/${platform ? 'platform' : 'public'}${path}`;
  const response = await fetch(origin + full, {
    method,
    headers: {
      ...(key === null ? {} : { 'X-API-Key': platform ? keys.platform : keys.member }),
      ...(body === undefined ? {} : { 'Content-Type': type ?? 'application/json' }),
      'X-Request-Id': `docs-${name}`,
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const shown = HEADERS.filter((header) => response.headers.has(header));
  return {
    name,
    summary,
    request: { method, path: full, ...(body === undefined ? {} : { body }), ...(type ? { type } : {}) },
    response: {
      status: response.status,
      headers: Object.fromEntries(shown.map((header) => [header, response.headers.get(header)])),
      body: await response.json(),
    },
  };
}

/** The previously recorded example, if only time-dependent values differ. */
function unchanged(example, known = []) {
  const before = known.find(({ name }) => name === example.name);
  return before && JSON.stringify(before, timeless) === JSON.stringify(example, timeless) ? before : example;
}

function timeless(name, value) {
  const made = VOLATILE.includes(name) || ('key_id' in this && OF_KEY.includes(name));
  return made ? typeof value : value;
}
