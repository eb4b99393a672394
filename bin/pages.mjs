// `npm run pages [-- name …]`: takes all or the named screenshots in docs/pages, from a demo server with an embedded database. They
// differ between runs only in random or time-dependent text (ids, days).
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launchChromium } from '../test/support/chromium.ts';
import { build } from './build.mjs';

const FOLDER = join(import.meta.dirname, '../docs/pages');
/** The URL in the pages; Chromium resolves it to the real address. */
const PUBLIC_URL = 'http://localhost:3000';
const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 780 };

await build();
const { loadConfig } = await import('../dist/src/config/config.js');
const { openDatabase } = await import('../dist/src/database/open-database.js');
const { DEMO_PASSWORD, FIRST_ID, seedDemo } = await import('../dist/src/operations/demo/demo.js');
const { registerDemoClient, registerDocsClient } = await import('../dist/src/clients/own-clients.js');
const { createApp, closeApp } = await import('../dist/src/app.js');

/** Picture name → size, browser preferences, and actions before. Ada is signed in from `connected-apps` on. */
const PICTURES = {
  front: [DESKTOP, 'light', (page) => page.goto('/')],
  reference: [
    DESKTOP,
    'light',
    (page) => page.goto('/docs#listEvents?limit=2&sort=starts_at&status=scheduled'),
  ],
  'reference-phone': [PHONE, 'dark', (page) => page.goto('/docs#getEvent')],
  guide: [DESKTOP, 'dark', (page) => page.goto('/docs/first-program')],
  'sign-in': [
    PHONE,
    'light',
    async (page) => {
      await page.goto('/demo');
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await page.getByLabel('Username').fill('ada');
    },
  ],
  consent: [
    PHONE,
    'light',
    async (page) => {
      await page.getByLabel('Password').fill(DEMO_PASSWORD);
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await page.getByRole('button', { name: 'Allow' }).waitFor();
    },
  ],
  demo: [
    DESKTOP,
    'light',
    async (page) => {
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.getByRole('heading', { name: 'Achievements' }).waitFor();
      await page.locator('#member').evaluate((member) => scrollTo(0, member.offsetTop - 80));
    },
  ],
  'connected-apps': [DESKTOP, 'light', (page) => page.goto('/account/apps')],
  activity: [DESKTOP, 'light', (page) => page.goto('/account/activity')],
  developer: [DESKTOP, 'light', (page) => page.goto('/developer')],
  requests: [DESKTOP, 'dark', (page) => page.goto('/developer/requests')],
};

const folder = mkdtempSync(join(tmpdir(), 'pua-pages-'));
let database;
let app;
let browser;
try {
  const config = loadConfig({
    NODE_ENV: 'development',
    DATA_DIR: folder,
    LOG_LEVEL: 'silent',
    PUBLIC_URL,
    DEVELOPER_CONSOLE: 'true',
  });
  database = await openDatabase(config, async (dataSource) => {
    await seedDemo(dataSource);
    await registerDocsClient(dataSource, config);
    await registerDemoClient(dataSource, config);
    await liveFor90Days(dataSource);
  });
  app = await createApp(config);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address();
  browser = await launchChromium(undefined, [
    `--host-resolver-rules=MAP localhost:3000 127.0.0.1:${port}`,
    '--disable-lcd-text',
    '--font-render-hinting=none',
  ]);
  const context = await browser.newContext({ baseURL: PUBLIC_URL, reducedMotion: 'reduce', locale: 'en-GB' });
  const page = await context.newPage();
  const wanted = process.argv.slice(2);
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, [size, colorScheme, prepare]] of Object.entries(PICTURES)) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme });
    await prepare(page);
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const picture = await page.screenshot({
      type: 'webp',
      quality: 88,
      animations: 'disabled',
      caret: 'hide',
    });
    writeFileSync(join(FOLDER, `${name}.webp`), picture);
    console.log(`${name}.webp, ${Math.round(picture.length / 1024)} KB`);
  }
} finally {
  await browser?.close();
  if (app) await closeApp(app);
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Data of 90 days: two apps of other members that Ada allowed, and one app that Ada owns. */
async function liveFor90Days(dataSource) {
  await dataSource.query(`
INSERT INTO oauth_clients (id, name, type, redirect_uris, allowed_origins, scopes, owner_id) VALUES
  ('trailmix', 'Trailmix', 'web', '{https://trailmix.example/callback}', '{https://trailmix.example}', '{profile:read,events:read}', NULL),
  ('pocket', 'Pocket Calendar', 'native', '{com.example.pocket:/callback}', '{}', '{events:read}', NULL),
  ('5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c', 'Evening planner', 'web', '{https://planner.example/callback}', '{https://planner.example}', '{profile:read,events:read,connections:read}', ${FIRST_ID});

INSERT INTO oauth_grants (id, user_id, client_id, payload, created_at, expires_at)
SELECT 'of-' || id, ${FIRST_ID}, id, jsonb_build_object('openid', jsonb_build_object('scope', array_to_string(scopes, ' '))),
  now() - interval '70 days', now() + interval '90 days' FROM oauth_clients WHERE id IN ('trailmix', 'pocket');
INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
SELECT sha256(id::bytea), 'RefreshToken', id, '{}', expires_at FROM oauth_grants;
INSERT INTO oauth_grant_usage (grant_id, last_used_at) SELECT id, now() - interval '5 hours' FROM oauth_grants;

INSERT INTO member_usage (user_id, day, app_kind, app_id, scope, uses, last_used_at)
SELECT ${FIRST_ID}, today - n, 'client', app, 'events:read', uses, (today - n) + interval '19 hours'
FROM generate_series(1, 69) n, (SELECT (now() AT TIME ZONE 'UTC')::date AS today) t,
  LATERAL (VALUES ('trailmix', 4 + n * 7 % 11), ('pocket', CASE WHEN n % 7 < 2 THEN 9 ELSE 2 END),
    ('5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c', CASE WHEN n < 20 THEN n * 3 % 8 ELSE 0 END)) of (app, uses) WHERE uses > 0;

INSERT INTO developer_request_counts (client_id, hour, method, route, status, error, requests)
SELECT '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c', date_trunc('hour', now(), 'UTC') - n * interval '1 hour', method, route, status, error, requests
FROM generate_series(0, 719) n, LATERAL (VALUES ('GET', '/api/public/events', 200, NULL, 9 + n * 5 % 17),
  ('GET', '/api/public/events/:id', 404, 'event_not_found', CASE WHEN n % 6 = 2 THEN 3 ELSE 0 END),
  ('POST', '/oauth/token', 400, 'invalid_grant', CASE WHEN n % 19 = 4 THEN 1 ELSE 0 END),
  ('GET', '/api/public/connections', 503, 'service_unavailable', CASE WHEN n % 97 = 13 THEN 2 ELSE 0 END)) of (method, route, status, error, requests)
WHERE requests > 0;

INSERT INTO developer_requests (client_id, occurred_at, method, route, status, error, duration_ms)
SELECT '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c', now() - n * interval '4 minutes', 'GET', CASE WHEN n % 5 = 3 THEN '/api/public/events/:id' ELSE '/api/public/events' END,
  CASE WHEN n % 5 = 3 THEN 404 ELSE 200 END, CASE WHEN n % 5 = 3 THEN 'event_not_found' END, 2 + n * 7 % 9 FROM generate_series(1, 40) n`);
}
