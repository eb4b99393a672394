import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { startPostgres } from '../../bin/postgres.mjs';
import { DEADLINES, migrateAt, postgres, QUICK } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { eventually } from '../support/timing.js';

type Cluster = Awaited<ReturnType<typeof startPostgres>>;

postgres.describe('a server whose database URL temporarily points to a standby', () => {
  const folders = ['primary', 'standby'].map((name) => mkdtempSync(join(tmpdir(), `pua-${name}-`)));
  let primary: Cluster;
  let standby: Cluster;
  let proxy: TcpProxy;
  let oauth: OauthTest;
  let onStandby: pg.Client;
  let kept: string;
  let revoked: string;
  let other: number;

  beforeAll(async () => {
    primary = await startPostgres(folders[0]!, QUICK);
    await migrateAt(primary.url);
    proxy = await TcpProxy.start(primary.url);
    oauth = await OauthTest.start({
      databaseUrl: proxy.url,
      databaseDirectUrl: proxy.url,
      databaseDeadlines: DEADLINES,
    });
    other = await oauth.api.platform.user();
    [kept, revoked] = [await oauth.api.key(await oauth.api.platform.user()), await oauth.api.key(other)];
    standby = await startPostgres(folders[1]!, QUICK, primary.url);
    onStandby = new pg.Client({ connectionString: standby.url }).on('error', () => undefined);
    await onStandby.connect();
  });
  afterAll(async () => {
    await onStandby.end();
    await oauth.close();
    await proxy.close();
    await standby.stop();
    await primary.stop();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  const ask = async (path: string, key: string, body?: object) => {
    const response = await fetch(`${oauth.issuer}${path}`, {
      method: body ? 'PUT' : 'GET',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    await response.arrayBuffer();
    return response.status;
  };
  const profile = '/api/public/profile';
  const until = (status: number, asked: () => Promise<number>) =>
    eventually(async () => ((await asked()) === status ? status : undefined));

  it('responds 503, even with a key whose revocation the standby lacks, until the URL points to the primary', async () => {
    await until(200, () => ask(profile, revoked));
    await eventually(async () => {
      const sql = 'SELECT FROM api_keys HAVING count(*) = 2';
      return (await onStandby.query(sql).catch(() => ({ rowCount: 0 }))).rowCount || undefined;
    });
    await onStandby.query('SELECT pg_wal_replay_pause()');
    const direct = new pg.Client({ connectionString: primary.url }).on('error', () => undefined);
    await direct.connect();
    await direct.query(
      "UPDATE api_keys SET revoked_at = now(), revocation_reason = 'leaked' WHERE user_id = $1",
      [other],
    );
    await direct.end();

    proxy.leadTo(standby.url);
    proxy.cut();
    proxy.mend();
    // More requests than pool connections, so that each connection is created again.
    for (let round = 0; round < 20; round++) {
      for (const key of [kept, revoked]) expect(await ask(profile, key)).toBe(503);
      expect(await ask(profile, kept, { bio: 'on a standby' })).toBe(503);
      expect(await ask('/readyz', kept)).toBe(503);
    }

    // The standby keeps running.
    proxy.leadTo(primary.url);
    await until(200, () => ask(profile, kept));
    await until(200, () => ask(profile, kept, { bio: 'on the primary' }));
    await until(200, () => ask('/readyz', kept));
    // All connections now go to the primary.
    for (let round = 0; round < 20; round++) {
      expect(await ask(profile, kept)).toBe(200);
      expect(await ask(profile, revoked)).toBe(401);
      expect(await ask(profile, kept, { bio: `round ${round}` })).toBe(200);
    }
    await eventually(async () => {
      const sql = "SELECT FROM pg_stat_activity WHERE application_name LIKE 'public-user-api%'";
      return (await onStandby.query(sql)).rowCount === 0 || undefined;
    });
  });
});
