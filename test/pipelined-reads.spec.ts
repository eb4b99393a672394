import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { loadConfig } from '../src/config/config.js';
import { PipelinedReads } from '../src/database/pipelined-reads.js';

describe('PipelinedReads', () => {
  afterEach(() => void jest.useRealTimers());

  it('does not connect again once it was ended, though it was about to', async () => {
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
      // Each of the two is refused, and tries again after a while.
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
      // Connections are accepted in order: were there another, it would be counted before this one.
      await once(connect(port, '127.0.0.1'), 'close');
      expect(connections).toBe(before + 1);
    } finally {
      server.close();
    }
  });
});
