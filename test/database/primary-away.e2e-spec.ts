import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { signalPostgres, startPostgres } from '../../bin/postgres.mjs';
import { MemberReads, STAND_IN_SECONDS } from '../../src/database/member-reads.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { PrimaryWal } from '../../src/database/replicas/primary-wal.js';
import { migrate } from '../../src/database/schema/migrate.js';
import { postgres, testConfig } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/timing.js';

const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: 100,
  shared_buffers: '32MB',
  wal_retrieve_retry_interval: '100ms',
};
const PATHS = ['/me', '/profile', '/events', '/connections', '/achievements', '/achievements?action=stats'];

type Cluster = Awaited<ReturnType<typeof startPostgres>>;

postgres.describe('while the primary is away, a server with replicas', () => {
  const folders = ['primary', 'first', 'second'].map((name) => mkdtempSync(join(tmpdir(), `pua-${name}-`)));
  let primary: Cluster;
  let replicas: Cluster[];
  /** As superuser of the primary. */
  let admin: DataSource;
  /** As superusers of the replicas. */
  let sessions: DataSource[];
  /** The server's way to the primary. */
  let proxy: TcpProxy;
  let oauth: OauthTest;
  let reads: MemberReads;
  /** A client of the authorization server. */
  let client: string;

  beforeAll(async () => {
    primary = await startPostgres(folders[0]!, SETTINGS);
    const open = (url: string) =>
      createDataSource(
        testConfig({ NODE_ENV: 'test', SECRET_KEY: process.env.TEST_SECRET_KEY!, DATABASE_URL: url }),
        'maintenance',
      ).initialize();
    admin = await open(primary.url);
    await migrate(admin);
    replicas = await Promise.all(
      folders.slice(1).map((folder) => startPostgres(folder, SETTINGS, primary.url)),
    );
    sessions = await Promise.all(replicas.map(({ url }) => open(url)));
    proxy = await TcpProxy.start(primary.url);
    oauth = await OauthTest.start({
      databaseUrl: proxy.url,
      databaseDirectUrl: proxy.url,
      databaseReadUrls: replicas.map(({ url }) => url),
      databaseDeadlines: { connect: 300, lock: 300, statement: 600, answer: 900 },
    });
    reads = oauth.api.app.get(MemberReads);
    client = await oauth.client();
  });
  afterAll(async () => {
    await Promise.all([admin, ...sessions].map((session) => session.destroy().catch(() => undefined)));
    await oauth.close();
    await proxy.close();
    await Promise.all(replicas.map((replica) => replica.stop()));
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
  afterEach(() => Promise.all(sessions.map((session) => session.query('SELECT pg_wal_replay_resume()'))));

  const get = async (path: string, credential: string, headers: Record<string, string> = {}) => {
    const isKey = credential.includes('_live_');
    const sent = isKey ? { 'X-API-Key': credential } : { Authorization: `Bearer ${credential}` };
    const { status, headers: received } = await oauth.api.send('GET', `/api/public${path}`, {
      ...sent,
      ...headers,
    });
    return { status, age: Number(received.age ?? 0), etag: received.etag as string };
  };
  const put = async (key: string) => (await oauth.api.put('/profile', key, { bio: 'new' })).status;
  const readiness = async () => (await fetch(`${oauth.issuer}/readyz`)).status;

  /** A member with a key and an access token, neither of which the server has seen since it was made. */
  async function member() {
    const { id, username } = await oauth.member();
    const { access_token: token } = await oauth.tokens(client, username);
    const key = await oauth.api.key(id);
    return { id, key, token: String(token) };
  }
  /** Until the server has heard of all that is written on the primary by now, and the replicas have it. */
  async function untilHeard({ replayed = true } = {}): Promise<void> {
    const [{ position }] = (await admin.query(
      "SELECT (pg_current_wal_flush_lsn() - '0/0')::float8 AS position",
    )) as [{ position: number }];
    await until(() => (oauth.api.app.get(PrimaryWal).lastHeard?.position ?? 0) >= position);
    for (const session of replayed ? sessions : [])
      await until(async () => {
        const sql = "SELECT (pg_last_wal_replay_lsn() - '0/0')::float8 AS position";
        return (await session.query<{ position: number }[]>(sql))[0]!.position >= position;
      });
  }
  const untilAway = () => until(() => reads.asOf !== undefined, 'the server notices that it is away');
  const untilBack = async (key: string) => {
    await until(async () => (await put(key)) === 200, 'writes succeed again');
    await until(async () => (await get('/me', key)).age === 0, 'nothing is said to be old');
    await until(async () => (await readiness()) === 200, 'it is ready');
  };

  async function expectReadsAlone({ key, token }: { key: string; token: string }): Promise<void> {
    for (const credential of [key, token, key, token])
      for (const path of PATHS) {
        const { status, age } = await get(path, credential);
        expect([path, status]).toEqual([path, 200]);
        expect(age).toBeGreaterThanOrEqual(1);
        expect(age).toBeLessThanOrEqual(STAND_IN_SECONDS);
      }
    const { etag } = await get('/profile', key);
    expect(await get('/profile', key, { 'If-None-Match': etag })).toMatchObject({ status: 304 });
    expect(await put(key)).toBe(503);
    // What is complete or new on the primary alone.
    for (const path of ['/sync', '/credential', '/events?updated_since=2026-01-01%2000:00:00', '/events/1'])
      expect([path, await get(path, key)]).toEqual([path, expect.objectContaining({ status: 503, age: expect.any(Number) })]); // prettier-ignore
    expect(await readiness()).toBe(200);
  }

  it('that is frozen answers members’ reads from them, says how old they are, and goes on as before afterwards', async () => {
    const known = await member();
    await untilHeard();
    signalPostgres(primary.pid, 'SIGSTOP');
    try {
      await untilAway();
      await expectReadsAlone(known);
    } finally {
      signalPostgres(primary.pid, 'SIGCONT');
    }
    await untilBack(known.key);
  });

  it('refuses what was revoked before, and says 503 of what they do not know', async () => {
    const [revoked, unknown] = [await member(), await member()];
    await admin.query("UPDATE api_keys SET revoked_at = now(), revocation_reason = 'lost' WHERE user_id = $1", [revoked.id]); // prettier-ignore
    await admin.query('DELETE FROM oauth_tokens WHERE grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $1)', [revoked.id]); // prettier-ignore
    await untilHeard();
    proxy.cut();
    try {
      await untilAway();
      expect(await get('/me', revoked.key)).toMatchObject({ status: 401 });
      expect(await get('/me', revoked.token)).toMatchObject({ status: 503 });
      expect(await get('/me', unknown.key.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a')))).not.toMatchObject({ status: 200 }); // prettier-ignore
      expect(await get('/me', unknown.key)).toMatchObject({ status: 200 });
    } finally {
      proxy.mend();
    }
    await untilBack(unknown.key);
    expect(await get('/me', revoked.token)).toMatchObject({ status: 401 });
  });

  it('takes nothing from replicas that lack what the server has heard of: not a key that was revoked', async () => {
    const [revoked, other] = [await member(), await member()];
    await untilHeard();
    await Promise.all(sessions.map((session) => session.query('SELECT pg_wal_replay_pause()')));
    await admin.query("UPDATE api_keys SET revoked_at = now(), revocation_reason = 'lost' WHERE user_id = $1", [revoked.id]); // prettier-ignore
    await untilHeard({ replayed: false });
    proxy.cut();
    try {
      await untilAway();
      for (let asked = 0; asked < 5; asked++) {
        expect(await get('/me', revoked.key)).toMatchObject({ status: 503 });
        expect(await get('/me', other.key)).toMatchObject({ status: 503 });
      }
      await Promise.all(sessions.map((session) => session.query('SELECT pg_wal_replay_resume()')));
      await until(async () => (await get('/me', other.key)).status === 200);
      expect(await get('/me', revoked.key)).toMatchObject({ status: 401 });
    } finally {
      proxy.mend();
    }
    await untilBack(other.key);
  });

  it('that goes on without it is believed as far as any of them has heard: a key that was revoked there is refused', async () => {
    const [revoked, other] = [await member(), await member()];
    await untilHeard();
    proxy.cut();
    try {
      await untilAway();
      await until(async () => (await get('/me', revoked.key)).status === 200);
      // The one that is asked first has received it, and does not show it yet.
      await sessions[0]!.query('SELECT pg_wal_replay_pause()');
      await admin.query("UPDATE api_keys SET revoked_at = now(), revocation_reason = 'lost' WHERE user_id = $1", [revoked.id]); // prettier-ignore
      await until(async () => (await get('/me', revoked.key)).status === 401);
      for (let asked = 0; asked < 20; asked++)
        expect(await get('/me', revoked.key)).toMatchObject({ status: 401 });
      expect(await get('/me', other.key)).toMatchObject({ status: 200 });
    } finally {
      proxy.mend();
    }
    await untilBack(other.key);
  });

  it('stops after half a minute', async () => {
    const known = await member();
    await untilHeard();
    proxy.cut();
    try {
      await untilAway();
      await until(async () => (await get('/me', known.key)).status === 200);
      const wal = oauth.api.app.get(PrimaryWal);
      wal.lastHeard = { ...wal.lastHeard!, at: wal.lastHeard!.at - STAND_IN_SECONDS * 1_000 };
      await until(async () => (await get('/me', known.key)).status === 503);
      for (const path of PATHS) expect([path, (await get(path, known.key)).status]).toEqual([path, 503]);
      expect(await readiness()).toBe(503);
    } finally {
      proxy.mend();
    }
    await untilBack(known.key);
  });

  it('that is killed answers members’ reads from them', async () => {
    const known = await member();
    await untilHeard();
    signalPostgres(primary.pid, 'SIGKILL');
    await untilAway();
    await expectReadsAlone(known);
  });
});
