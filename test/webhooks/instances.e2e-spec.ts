import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import type { DataSource } from 'typeorm';
import { hold, lockWaits, postgres } from '../support/database.js';
import { openDatabase, type OpenDatabase } from '../support/open-database.js';
import { atOnce } from '../support/concurrent.js';
import { Platform } from '../support/platform.js';
import { Receiver } from '../support/receiver.js';
import { ServerProcess } from '../support/server.js';
import { eventually, until } from '../support/timing.js';

postgres.describe('instances that send webhooks', () => {
  let database: OpenDatabase;
  let dataSource: DataSource;
  let webhooks: WebhooksService;
  let keys: ApiKeysService;
  let platform: Platform;

  beforeAll(async () => {
    database = await openDatabase();
    ({ dataSource } = database);
    webhooks = new WebhooksService(dataSource, database.config);
    keys = new ApiKeysService(dataSource, database.config);
    platform = new Platform(dataSource);
    await (await ServerProcess.start(database.environment)).kill(); // the first start writes an audit event, also while a test locks the log
  });
  afterAll(() => database.close());

  const rename = (ids: readonly number[]) =>
    dataSource.query(`UPDATE users SET bio = 'x' || random() WHERE id = ANY ($1)`, [ids]);
  const endpoint = (url: string) => webhooks.create({ url, types: ['profile.updated'], actor: 'admin' });
  const members = (count: number) => atOnce(count, () => platform.user());
  const rowsOf = (id: string) =>
    dataSource.query<{ user_id: number; status: string; lease: number | null }[]>(
      `SELECT user_id, status, EXTRACT(epoch FROM leased_until - now())::float8 AS lease FROM webhook_deliveries
WHERE endpoint_id = $1 ORDER BY user_id`,
      [id],
    );

  const sorted = (ids: readonly number[]) => ids.toSorted((a, b) => a - b);

  it('claim messages for at most 20 s, and another instance sends them after one is killed', async () => {
    await using receiver = await Receiver.start();
    await using first = await ServerProcess.start(database.environment);
    const ids = await members(20);
    const { id } = await endpoint(receiver.url);
    receiver.respond = () => undefined; // never responds, so messages stay claimed
    await rename(ids);
    await receiver.untilReceived(8);
    await first.kill('SIGKILL');
    receiver.respond = (_, response) => void response.writeHead(204).end();
    const leases = (await rowsOf(id)).flatMap(({ lease }) => lease ?? []);
    expect(leases).toHaveLength(8);
    for (const lease of leases) expect(lease).toBeLessThanOrEqual(20);
    await using _second = await ServerProcess.start(database.environment);
    // Ends the leases now instead of waiting 20 s.
    await dataSource.query('UPDATE webhook_deliveries SET leased_until = now() WHERE endpoint_id = $1', [id]);
    await receiver.until(() => receiver.received.length >= 28);
    await eventually(
      async () => (await rowsOf(id)).every(({ status }) => status === 'delivered') || undefined,
    );
    expect((await rowsOf(id)).map(({ user_id }) => user_id)).toEqual(sorted(ids));
    await webhooks.disable(id, 'admin');
  });

  it('create one message per change and endpoint and deliver each, although one instance is killed repeatedly, and another has two workers', async () => {
    await using receiver = await Receiver.start();
    await using other = await Receiver.start();
    const environment = { ...database.environment, WORKERS: '2' };
    const servers = [await ServerProcess.start(database.environment), await ServerProcess.start(environment)];
    try {
      const ids = await members(150);
      const endpoints = [await endpoint(receiver.url), await endpoint(other.url)];
      for (let round = 0; round < 3; round++) {
        const part = ids.slice(round * 50, round * 50 + 50);
        for (const id of part) await rename([id]);
        await receiver.untilReceived(round * 50 + 10);
        await servers[0]!.kill('SIGKILL');
        await dataSource.query(
          'UPDATE webhook_deliveries SET leased_until = now() WHERE leased_until IS NOT NULL',
        );
        servers[0] = await ServerProcess.start(database.environment);
      }
      for (const { id } of endpoints) {
        await eventually(async () => {
          await dataSource.query('UPDATE webhook_deliveries SET due_at = now() WHERE due_at > now()');
          const rows = await rowsOf(id);
          return (rows.length === 150 && rows.every(({ status }) => status === 'delivered')) || undefined;
        });
        expect((await rowsOf(id)).map(({ user_id }) => user_id)).toEqual(sorted(ids));
      }
      for (const each of [receiver, other])
        expect(new Set(each.received.map(({ message }) => message.data.member_id))).toEqual(new Set(ids));
      expect(servers[1]!.errors).toBe('');
      for (const { id } of endpoints) await webhooks.disable(id, 'admin');
    } finally {
      await Promise.all(servers.map((server) => server.kill('SIGKILL')));
    }
  });

  it('release an unfinished message at shutdown', async () => {
    await using receiver = await Receiver.start();
    await using first = await ServerProcess.start(database.environment);
    const [id] = await members(1);
    const { id: hook } = await endpoint(receiver.url);
    receiver.respond = () => undefined;
    await rename([id!]);
    await receiver.untilReceived(1);
    expect(await first.kill('SIGTERM')).toBe(0);
    const [row] = await rowsOf(hook);
    expect(row).toMatchObject({ status: 'pending', lease: null });
    await webhooks.disable(hook, 'admin');
  });

  /** Access of six members in an app: three have ended, three end in three days. */
  async function endAccess(url: string) {
    const [ids, clientId] = [await members(6), randomUUID()];
    await dataSource.query(
      `INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) VALUES ($1, 'App', 'native', '{app:/}', '{profile:read}')`,
      [clientId],
    );
    const types = ['access.ending', 'access.ended'];
    const { id } = await webhooks.create({ url, types, clientId, actor: 'admin' });
    await dataSource.query(
      `WITH made AS (
  INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at, access_ends_at)
  SELECT $1 || id, id, $1, '{"resources":{"x":"profile:read"}}', now() + interval '9 days', now() + interval '3 days'
  FROM unnest($2::bigint[]) id RETURNING id
), used AS (INSERT INTO oauth_grant_usage (grant_id, last_used_at) SELECT id, now() FROM made)
INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
SELECT sha256(convert_to(id, 'UTF8')), 'RefreshToken', id, '{}', now() + interval '1 day' FROM made`,
      [clientId, ids],
    );
    const values = [clientId, ids.slice(0, 3)];
    await dataSource.query('DELETE FROM oauth_grants WHERE client_id = $1 AND user_id = ANY ($2)', values);
    const [ended, ending] = [ids.slice(0, 3), ids.slice(3)];
    return { ended, ending, endpoints: [id], kind: 'access', notice: 'access.ending' };
  }

  /** Keys of two members: one has expired, one expires in three days. */
  async function endKeys(url: string) {
    const [ids, endpoints] = [await members(2), [] as string[]];
    for (const userId of ids) {
      const key = { userId, name: 'Key', scopes: ['profile:read'], environment: 'live', cidrs: [] } as const;
      const { id: keyId } = await keys.create({ ...key, expiresInSeconds: 3 * 86_400, actor: 'system' });
      await dataSource.query('INSERT INTO api_key_usage (key_id, last_used_at) VALUES ($1, now())', [keyId]);
      const types = ['credential.ending', 'credential.ended'];
      endpoints.push((await webhooks.create({ url, types, keyId, actor: 'admin' })).id);
    }
    await dataSource.query('UPDATE api_keys SET expires_at = now() WHERE user_id = $1', [ids[0]]);
    return { ended: [ids[0]!], ending: [ids[1]!], endpoints, kind: 'credential', notice: 'key.ending' };
  }

  it.each(
    (['the instance', 'its database session'] as const).flatMap((killed) =>
      (
        [
          ['tell_apps_of_access', 'access_changes', endAccess],
          ['tell_apps_of_access', 'webhook_deliveries', endAccess],
          ['tell_of_ending_access', 'webhook_deliveries', endAccess],
          ['report_ending_access', 'auth_events', endAccess],
          ['report_ending_access', 'platform_changes', endAccess],
          ['tell_of_ending_keys', 'webhook_deliveries', endKeys],
          ['report_ending_keys', 'auth_events', endKeys],
          ['report_ending_keys', 'platform_changes', endKeys],
        ] as const
      ).map((moment) => [killed, ...moment] as const),
    ),
  )(
    'report each end of access or of a key once if %s is killed while %s waits to write %s',
    async (killed, work, table, end) => {
      await using receiver = await Receiver.start();
      const servers: ServerProcess[] = [];
      const start = async () => servers.push(await ServerProcess.start(database.environment));
      const { ended, ending, endpoints, kind, notice } = await end(receiver.url);
      const ids = [...ended, ...ending];
      const writers = await hold(dataSource, `LOCK TABLE ${table} IN SHARE MODE`);
      const waiting = () => lockWaits(dataSource, `SELECT ${work}(`);
      try {
        await start();
        await until(async () => (await waiting()).length > 0);
        if (killed === 'the instance') await servers[0]!.kill('SIGKILL');
        else
          for (const { pid } of await waiting())
            await dataSource.query('SELECT pg_terminate_backend($1)', [pid]);
        await writers.rollback();
        await start(); // also if only the session was killed: otherwise its retry would take 30 s
        await receiver.untilReceived(ids.length);
        const notices = await eventually(async () => {
          const rows = await dataSource.query<{ user_id: number }[]>(
            'SELECT user_id FROM platform_changes WHERE notice = $1 AND user_id = ANY ($2)',
            [notice, ids],
          );
          return rows.length > 0 ? rows : undefined;
        });
        expect(sorted(notices.map(({ user_id }) => user_id))).toEqual(sorted(ending));
        const made = (await Promise.all(endpoints.map(rowsOf))).flat();
        expect(sorted(made.map(({ user_id }) => user_id))).toEqual(sorted(ids));
        const told = receiver.received.map(({ message: { type, data } }) => `${type} of ${data.member_id}`);
        expect(told.toSorted()).toEqual(
          [
            ...ended.map((of) => `${kind}.ended of ${of}`),
            ...ending.map((of) => `${kind}.ending of ${of}`),
          ].toSorted(),
        );
        for (const id of endpoints) await webhooks.disable(id, 'admin');
      } finally {
        await Promise.all(servers.map((server) => server.kill('SIGKILL')));
      }
    },
  );
});
