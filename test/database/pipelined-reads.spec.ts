import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { loadConfig } from '../../src/config/config.js';
import { openPool } from '../../src/database/postgres/session.js';
import { PipelinedReads } from '../../src/database/postgres/pipelined-reads.js';
import type { NamedStatement } from '../../src/database/postgres/read-connection.js';
import { atOnce } from '../support/concurrent.js';
import { postgres } from '../support/database.js';

postgres.describe('pipelined reads', () => {
  let reads: PipelinedReads;
  beforeEach(() => {
    reads = new PipelinedReads(
      loadConfig({
        NODE_ENV: 'test',
        SECRET_KEY: process.env.TEST_SECRET_KEY!,
        DATABASE_URL: process.env.TEST_DATABASE_URL!,
      }),
    );
  });
  afterEach(() => reads.end());

  /** @returns undefined if the pool must run the query */
  const rows = (statement: NamedStatement, values: readonly unknown[]) => {
    let pooled = false;
    return reads
      .rows(statement, values, () => {
        pooled = true;
        return Promise.resolve([]);
      })
      .then((found) => (pooled ? undefined : found));
  };

  const ONE = { name: 'one', text: 'SELECT 1 AS one' };
  const connected = async () => {
    // Two connections, which alternate.
    for (let inTurn = 0; inTurn < 2;) {
      inTurn = (await rows(ONE, [])) ? inTurn + 1 : 0;
      await turn();
    }
  };

  it('return their results even if this process was too busy to read the responses in time', async () => {
    await connected();
    const answers = atOnce(40, () => rows(ONE, []));
    await turn(); // the statement is sent
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000); // the responses have arrived, and all timeouts are due
    expect(await answers).toEqual(Array.from({ length: 40 }, () => [{ one: 1 }]));
  });

  it('return the same results as the pool, at the first use of a connection and later', async () => {
    await connected();
    const values = [7, 'a “b” \\', null, true, Buffer.from([0, 255])];
    const every = {
      name: 'every-type',
      text: `SELECT $1::bigint AS number, $2::text AS text, $3::text AS nothing, $4::boolean AS truth, '{1,2}'::integer[] AS list, $5::bytea AS bytes,
          true AS yes, '2024-02-29 12:00:00+00'::timestamptz AS at, '{"a":[1]}'::jsonb AS json, 1.5::float8 AS half`,
    };
    const plain = {
      name: 'plain-values',
      text: every.text.replace('$4', `'t'`).replace('$5', `'\\x00ff'`),
    };
    const pool = openPool({ connectionString: process.env.TEST_DATABASE_URL! });
    try {
      const [row] = (await pool.query(every.text, values)).rows;
      for (let time = 0; time < 6; time++) {
        expect(await rows(every, values)).toEqual([row]);
        expect(await rows(plain, values.slice(0, 3))).toEqual([row]);
      }
    } finally {
      await pool.end();
    }
  });

  it('return no wrong column after a table has changed', async () => {
    const pool = openPool({ connectionString: process.env.TEST_DATABASE_URL! });
    const table = `changing_${process.pid}_${Date.now()}`;
    const all = { name: 'all-of-it', text: `SELECT * FROM ${table}` };
    try {
      await pool.query(`CREATE TABLE ${table} AS SELECT 1 AS one`);
      await connected();
      for (let time = 0; time < 4; time++) expect(await rows(all, [])).toEqual([{ one: 1 }]);
      await pool.query(`ALTER TABLE ${table} ADD COLUMN two text DEFAULT 'x'`);
      await pool.query(`ALTER TABLE ${table} DROP COLUMN one`);
      for (let time = 0; time < 4; time++) expect(await rows(all, [])).toEqual([{ two: 'x' }]);
    } finally {
      await pool.query(`DROP TABLE IF EXISTS ${table}`);
      await pool.end();
    }
  });

  it('time out and are repeated on the pool', async () => {
    await connected();
    const sleep = { name: 'sleep', text: 'SELECT pg_sleep(20)' };
    expect(await Promise.all([rows(sleep, []), rows(sleep, [])])).toEqual([undefined, undefined]);
    await connected();
  });
});

describe('PipelinedReads', () => {
  afterEach(() => void jest.useRealTimers());

  it('does not reconnect after it was closed', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'Date', 'performance'] });
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const reads = new PipelinedReads(
      loadConfig({
        NODE_ENV: 'test',
        SECRET_KEY: process.env.TEST_SECRET_KEY!,
        DATABASE_URL: `postgresql://nobody@127.0.0.1:${port}/none`,
      }),
    );
    try {
      // Each of the two connections is rejected, and retried after a while.
      const deadline = Date.now() + 10_000;
      while (connections < 4 && Date.now() < deadline) {
        await turn();
        await jest.advanceTimersByTimeAsync(500);
      }
      expect(connections).toBeGreaterThanOrEqual(4);
      for (let i = 0; i < 50; i++) await turn();
      const before = connections;
      await reads.end();
      await jest.advanceTimersByTimeAsync(60_000);
      // Connections are accepted in order: another connection would be counted before this one.
      await once(connect(port, '127.0.0.1'), 'close');
      expect(connections).toBe(before + 1);
    } finally {
      server.close();
    }
  });
});
