import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { startPostgres } from '../../bin/postgres.mjs';
import { isUnavailable } from '../../src/database/postgres/unavailable.js';
import { puaProcess } from '../support/command-line.js';
import { DEADLINES, migrateAt, postgres, QUICK } from '../support/database.js';
import { OauthTest, PASSWORD } from '../support/oauth.js';
import { profileAt } from '../support/server.js';
import { until } from '../support/timing.js';

const POOL = 4;
/** Two connections for pipelined reads, one for the revocation channel, and two of the test. */
const BESIDE_THE_POOL = 2 + 1 + 2;

type Cluster = Awaited<ReturnType<typeof startPostgres>>;

postgres.describe('a synchronous standby', () => {
  const folders = ['primary', 'standby'].map((name) => mkdtempSync(join(tmpdir(), `pua-${name}-`)));
  let primary: Cluster;
  let standby: Cluster;
  let oauth: OauthTest;
  let environment: Record<string, string>;
  let clientId: string;
  let key: string;

  beforeAll(async () => {
    primary = await startPostgres(folders[0]!, QUICK);
    environment = { NODE_ENV: 'test', SECRET_KEY: process.env.TEST_SECRET_KEY!, DATABASE_URL: primary.url };
    await migrateAt(primary.url);
    oauth = await OauthTest.start({
      databaseUrl: primary.url,
      databaseDirectUrl: primary.url,
      databasePoolSize: POOL,
      databaseDeadlines: DEADLINES,
    });
    clientId = await oauth.client();
    key = await oauth.api.key(await oauth.api.platform.user());
    await startStandby();
    await oauth.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await oauth.query('SELECT pg_reload_conf()');
    await until(async () => (await count("SELECT FROM pg_stat_replication WHERE sync_state = 'sync'")) > 0);
  });
  afterAll(async () => {
    await oauth.close();
    await standby.stop();
    await primary.stop();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  const count = async (rows: string) =>
    (await oauth.query<{ n: number }>(`SELECT count(*) AS n FROM (${rows}) t`))[0]!.n;
  async function startStandby(): Promise<void> {
    standby = await startPostgres(folders[1]!, QUICK, primary.url);
    await until(async () => (await count("SELECT FROM pg_stat_replication WHERE state = 'streaming'")) > 0);
  }
  const WAITING = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

  const put = async (bio: string) => {
    const { status, headers } = await profileAt(oauth.issuer, key, bio);
    return { status, retryAfter: headers.get('retry-after') };
  };
  const get = async (path: string) =>
    (await fetch(`${oauth.issuer}/api/public${path}`, { headers: { 'X-API-Key': key } })).status;

  /** Writes that were rejected without a standby are retried each second. */
  const goodAgain = () => until(async () => (await put('confirmed')).status === 200);

  it('confirms a PUT while connected', async () => {
    expect((await put('confirmed')).status).toBe(200);
  });

  // A cancellation, for example by an admin, ends the wait of a COMMIT: PostgreSQL reports success and a warning.
  it.each<[string, () => Promise<unknown>, unknown]>([
    ['a PUT', async () => (await put('cancelled')).status, 503],
    [
      'a token request',
      async () => {
        const { status, body } = await oauth.token(code);
        return [status, body.error];
      },
      [503, 'temporarily_unavailable'],
    ],
    [
      'a transaction',
      () =>
        oauth.api.app
          .get(DataSource)
          .transaction((manager) => manager.query("UPDATE users SET bio = 'cancelled'"))
          .then(() => 'committed', isUnavailable),
      true,
    ],
    [
      'a command',
      () => puaProcess(environment, ['users', 'create', '--username', 'unconfirmed']),
      {
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('The command may have taken effect: check before you run it again'),
      },
    ],
  ])('leaves a write unconfirmed if the write’s wait is canceled: %s', async (_what, write, outcome) => {
    code = await oauth.code(clientId, (await oauth.member()).username);
    await standby.stop();
    let ended = false;
    const answered = write().finally(() => (ended = true));
    // The server's own writes also wait, so this cancels every waiting statement until the response arrives.
    for (; !ended; await setTimeout(10)) await count(WAITING);
    expect(await answered).toEqual(outcome);
    await startStandby();
    await goodAgain();
  });
  let code: Record<string, string>;

  it('is required for writes: while the standby is lost, the server serves only reads, and then recovers', async () => {
    const { username } = await oauth.member();
    const code = await oauth.code(clientId, username);
    const { refresh_token } = await oauth.tokens(clientId, username);
    const { refresh_token: unused } = await oauth.tokens(clientId, username);
    const browser = oauth.browser();
    const page = await browser.view(oauth.request(clientId).url);
    await standby.stop();

    const writes = [
      async () => (await oauth.token(code)).status,
      async () => (await oauth.refresh(clientId, refresh_token)).status,
      async () => (await browser.press(page, { username, password: PASSWORD }, /sign-in$/)).status,
      async () =>
        (await oauth.post('/oauth/par', Object.fromEntries(oauth.request(clientId).url.searchParams))).status,
    ];
    for (const write of writes) expect(await write()).toBe(503);

    const answers: Awaited<ReturnType<typeof put>>[] = [];
    for (let round = 0; round < 3; round++) {
      const asked = Array.from({ length: 12 }, (_, i) => put(`lost ${round} ${i}`));
      answers.push(...(await Promise.all(asked)));
      for (const path of ['/me', '/profile', '/events']) expect([path, await get(path)]).toEqual([path, 200]);
    }
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
    expect(answers.every(({ retryAfter }) => retryAfter === '1')).toBe(true);
    await until(async () => (await connections()) <= POOL + BESIDE_THE_POOL); // a busy host ends canceled statements late

    await startStandby();
    await goodAgain();
    expect((await oauth.refresh(clientId, unused)).status).toBe(200); // the other refresh token may have been used more than 10 s ago
  });

  const connections = () =>
    count("SELECT FROM pg_stat_activity WHERE application_name LIKE 'public-user-api%'");
});
