import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, it } from '@jest/globals';
import pg from 'pg';
import { ReadConnection } from '../../src/database/postgres/read-connection.js';
import { postgres } from '../support/database.js';

const URL_OF_DATABASE = () => process.env.TEST_DATABASE_URL!;

/** Letters of one to four bytes, as long as a page. */
const PAGE = {
  name: 'page',
  text: `SELECT $1::int AS number, repeat('aä€𝄞"\\', $1) AS text, repeat('aä€𝄞"\\', $1) AS items, NULL::text AS nothing`,
  bytes: 'items',
};
const pageOf = (length: number) => {
  const text = 'aä€𝄞"\\'.repeat(length);
  return [{ number: length, text, items: Buffer.from(text), nothing: null }];
};
const DIVISION = { name: 'division', text: 'SELECT 1 / $1::int AS one' };

postgres.describe('a connection for reads', () => {
  const opened: ReadConnection[] = [];
  const servers: Server[] = [];
  afterEach(async () => {
    for (const connection of opened.splice(0)) await connection.end();
    for (const server of servers.splice(0)) server.close();
  });

  async function open(
    connectionString = URL_OF_DATABASE(),
    more: pg.ClientConfig = {},
  ): Promise<ReadConnection> {
    const connection = await ReadConnection.open({ connectionString, primary: true, ...more });
    opened.push(connection);
    return connection;
  }

  /** A URL of a proxy to PostgreSQL, whose messages `pass` splits. */
  async function through(pass: (bytes: Buffer, to: Socket) => void): Promise<string> {
    const url = new URL(URL_OF_DATABASE());
    const [port, host] = [Number(url.port), url.hostname];
    const server = createServer((client) => {
      const database = connect(port, host);
      client.setNoDelay().pipe(database);
      database.on('data', (bytes) => pass(bytes, client)).on('close', () => client.destroy());
      client.on('close', () => database.destroy());
      for (const socket of [client, database]) socket.on('error', () => undefined);
    });
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    url.port = String((server.address() as AddressInfo).port);
    return url.href;
  }

  it('reads messages in pieces of 1 to 4,096 bytes, and empty and long pages', async () => {
    for (const size of [1, 3, 7, 4_096]) {
      const connection = await open(
        await through((bytes, to) => {
          for (let at = 0; at < bytes.length; at += size) to.write(bytes.subarray(at, at + size));
        }),
      );
      const lengths = size < 7 ? [0, 1, 40] : [0, 1, 40, 1_500, 20_000];
      const pages = await Promise.all(lengths.map((length) => connection.read(PAGE, [length])));
      expect(pages).toEqual(lengths.map(pageOf));
    }
  });

  it('returns to each concurrent caller its own response, even if every third statement fails', async () => {
    const connection = await open();
    const asked = Array.from({ length: 60 }, (_, i) => connection.read(DIVISION, [i % 3])!);
    const answers = await Promise.allSettled(asked);
    for (const [i, answer] of answers.entries())
      expect(answer).toMatchObject(
        i % 3 === 0
          ? { status: 'rejected', reason: { code: '22012', message: 'division by zero' } }
          : { status: 'fulfilled', value: [{ one: i % 3 === 1 ? 1 : 0 }] },
      );
    const state = await Promise.race([connection.loss.then(() => 'lost'), turn('open')]);
    expect([connection.inProgress, state]).toEqual([0, 'open']);
  });

  it('can run a statement again after PostgreSQL rejected the statement', async () => {
    const connection = await open();
    const bad = { name: 'bad', text: `SELECT 'x'::int` };
    for (let time = 0; time < 3; time++) {
      await expect(connection.read(bad, [])).rejects.toMatchObject({ code: '22P02' });
      await expect(connection.read({ name: 'none', text: 'SELECT FROM nothing' }, [])).rejects.toMatchObject({
        code: '42P01',
      });
    }
    await expect(connection.read(DIVISION, ['x'])).rejects.toMatchObject({ code: '22P02' });
    expect(await connection.read(DIVISION, [1])).toEqual([{ one: 1 }]);
    expect(await connection.read(DIVISION, [1])).toEqual([{ one: 1 }]);
  });

  it('sends lists, objects and times as parameters', async () => {
    const connection = await open();
    const values = {
      name: 'values',
      text: 'SELECT $1::int[] AS list, $2::jsonb AS object, $3::timestamptz AS time',
    };
    expect(await connection.read(values, [[1, null, 3], { a: ['ä€'] }, new Date(0)])).toEqual([
      { list: [1, null, 3], object: { a: ['ä€'] }, time: new Date(0) },
    ]);
  });

  it('rejects current and later callers when the connection is lost', async () => {
    const sockets: Socket[] = [];
    const url = await through((bytes, to) => {
      sockets.push(to);
      to.write(bytes);
    });
    const connection = await open(url);
    const waiting = Promise.allSettled(
      [1, 2, 3].map(() => connection.read({ name: 'sleep', text: 'SELECT pg_sleep(20)' }, [])),
    );
    await turn();
    sockets[0]!.destroy();
    expect((await waiting).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await expect(connection.read(DIVISION, [1])).rejects.toThrow();
    await connection.loss;
  });

  it('reports a canceled or slow statement, and continues with the next statement', async () => {
    const connection = await open(URL_OF_DATABASE(), { statement_timeout: 1_000 });
    const me = { name: 'me', text: 'SELECT pg_backend_pid() AS pid' };
    const [own] = (await connection.read<{ pid: number }>(me, []))!;
    const sleep = { name: 'sleep', text: 'SELECT pg_sleep(20)' };
    const slow = connection.read(sleep, [])!;
    const next = connection.read(DIVISION, [1])!;
    await expect(slow).rejects.toMatchObject({ code: '57014' });
    expect(await next).toEqual([{ one: 1 }]);

    const patient = await open();
    const [other] = (await patient.read<{ pid: number }>(me, []))!;
    expect(other!.pid).not.toBe(own!.pid);
    const sleeping = patient.read(sleep, [])!;
    let ended = false;
    const end = sleeping.catch((error: unknown) => ((ended = true), error));
    while (!ended)
      await connection.read({ name: 'cancel', text: 'SELECT pg_cancel_backend($1)' }, [other!.pid]);
    expect(await end).toMatchObject({ code: '57014' });
    expect(await patient.read(DIVISION, [1])).toEqual([{ one: 1 }]);
  });
});
