import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import type { DataSource } from 'typeorm';
import { createTestDatabase, postgres, testConfig, type TestDatabase } from '../support/database.js';
import { Platform } from '../support/platform.js';
import { Receiver } from '../support/receiver.js';
import { ServerProcess } from '../support/server.js';
import { eventually } from '../support/timing.js';

postgres.describe('instances that send webhooks', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let webhooks: WebhooksService;
  let platform: Platform;

  beforeAll(async () => {
    database = await createTestDatabase();
    const config = testConfig(database.environment);
    dataSource = await createDataSource(config, 'maintenance').initialize();
    webhooks = new WebhooksService(dataSource, config);
    platform = new Platform(dataSource);
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  const rename = (ids: readonly number[]) =>
    dataSource.query(`UPDATE users SET bio = 'x' || random() WHERE id = ANY ($1)`, [ids]);
  const endpoint = (url: string) => webhooks.create({ url, types: ['profile.updated'], actor: 'admin' });
  const members = (count: number) => Promise.all(Array.from({ length: count }, () => platform.user()));
  const rowsOf = (id: string) =>
    dataSource.query<{ user_id: number; status: string; lease: number | null }[]>(
      `SELECT user_id, status, EXTRACT(epoch FROM leased_until - now())::float8 AS lease FROM webhook_deliveries
WHERE endpoint_id = $1 ORDER BY user_id`,
      [id],
    );

  it('continue within 20 s after a sending one was killed', async () => {
    const receiver = await Receiver.start();
    const first = await ServerProcess.start(database.environment);
    let second: ServerProcess | undefined;
    try {
      const ids = await members(20);
      const { id } = await endpoint(receiver.url);
      receiver.respond = () => undefined; // holds what it got
      await rename(ids);
      await receiver.untilReceived(8);
      await first.kill('SIGKILL');
      receiver.respond = (_, response) => void response.writeHead(204).end();
      const leases = (await rowsOf(id)).flatMap(({ lease }) => lease ?? []);
      expect(leases).toHaveLength(8);
      for (const lease of leases) expect(lease).toBeLessThanOrEqual(20);
      second = await ServerProcess.start(database.environment);
      // Those seconds pass.
      await dataSource.query('UPDATE webhook_deliveries SET leased_until = now() WHERE endpoint_id = $1', [
        id,
      ]);
      await receiver.until(() => receiver.received.length >= 28);
      await eventually(
        async () => (await rowsOf(id)).every(({ status }) => status === 'delivered') || undefined,
      );
      expect((await rowsOf(id)).map(({ user_id }) => user_id)).toEqual(ids.toSorted((a, b) => a - b));
      await webhooks.disable(id, 'admin');
    } finally {
      await first.kill('SIGKILL');
      await second?.kill('SIGKILL');
      await receiver.close();
    }
  });

  it('deliver each change once to each endpoint, although some are killed repeatedly, two workers among them', async () => {
    const receiver = await Receiver.start();
    const other = await Receiver.start();
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
        expect((await rowsOf(id)).map(({ user_id }) => user_id)).toEqual(ids.toSorted((a, b) => a - b));
      }
      for (const each of [receiver, other])
        expect(new Set(each.received.map(({ message }) => message.data.member_id))).toEqual(new Set(ids));
      expect(servers[1]!.errors).toBe('');
    } finally {
      await Promise.all(servers.map((server) => server.kill('SIGKILL')));
      await receiver.close();
      await other.close();
    }
  });

  it('finish current deliveries when they end, and leave the rest to others', async () => {
    const receiver = await Receiver.start();
    const first = await ServerProcess.start(database.environment);
    try {
      const [id] = await members(1);
      const { id: hook } = await endpoint(receiver.url);
      receiver.respond = () => undefined;
      await rename([id!]);
      await receiver.untilReceived(1);
      expect(await first.kill('SIGTERM')).toBe(0);
      const [row] = await rowsOf(hook);
      expect(row).toMatchObject({ status: 'pending', lease: null });
      await webhooks.disable(hook, 'admin');
    } finally {
      await first.kill('SIGKILL');
      await receiver.close();
    }
  });
});
