import { expect } from '@jest/globals';
import { BoundedClient, WriteGate } from '../../src/database/postgres/bounded-client.js';
import { isUnavailable } from '../../src/database/postgres/unavailable.js';
import { createEmptyDatabase, postgres } from '../support/database.js';
import { TcpProxy } from '../support/tcp-proxy.js';

postgres.it(
  'a pooled client emits no unhandled error if its connection breaks after a statement timed out',
  async () => {
    const database = await createEmptyDatabase();
    const proxy = await TcpProxy.start(database.environment.DATABASE_URL!);
    const client = new BoundedClient({
      connectionString: proxy.url,
      answerMs: 50,
      primary: true,
      writes: new WriteGate(),
    });
    try {
      await client.connect();
      const released = new Promise((resolve) => (client.release = resolve));
      const error: unknown = await client.query('SELECT pg_sleep(60)').catch((thrown: unknown) => thrown);
      expect([error, isUnavailable(error)]).toEqual([expect.any(Error), true]);
      client.release(); // as a pool does when the statement has ended
      const ended = new Promise<void>((resolve) => void client.once('end', resolve));
      proxy.cut();
      await ended;
      expect(await released).toBe(true); // true: the pool must not reuse the client
    } finally {
      await proxy.close();
      await database.drop();
    }
  },
);
