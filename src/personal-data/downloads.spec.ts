import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { Downloads } from './account-data.controller.js';

const MEGABYTE = Buffer.alloc(1_000_000, 'x');

/** An endless file that is being sent, and the error that ended it. */
interface Sending {
  pieces: number;
  readonly error: Promise<unknown>;
}

describe('a download', () => {
  let server: Server;
  let downloads: Downloads;
  let sending: Sending;
  beforeAll(async () => {
    server = createServer((_request, response) => {
      const ended = Promise.withResolvers<unknown>();
      const now: Sending = { pieces: 0, error: ended.promise };
      async function* file() {
        for (;;) {
          now.pieces++;
          yield MEGABYTE;
        }
      }
      sending = now;
      downloads.send(response, file()).then(() => ended.resolve(undefined), ended.resolve);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => void server.close());

  async function ask(bounds: { maxDurationMs: number; stalledMs: number }): Promise<Socket> {
    downloads = new Downloads({ atOnce: 1, ...bounds });
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(server, 'request');
    return socket;
  }

  it('is closed if the client stops reading, after fewer than 12 MB of an endless file', async () => {
    const socket = await ask({ maxDurationMs: 60_000, stalledMs: 300 });
    socket.pause();
    expect(await sending.error).toBeInstanceOf(Error);
    // If the client reads nothing, the socket buffers accept fewer pieces.
    expect(sending.pieces).toBeLessThan(12);
  });

  it('is closed after its time limit, even if the client reads fast', async () => {
    const socket = await ask({ maxDurationMs: 300, stalledMs: 60_000 });
    socket.resume();
    expect(await sending.error).toBeInstanceOf(Error);
    expect(sending.pieces).toBeGreaterThan(1);
  });

  it('ends when its client disconnects', async () => {
    const socket = await ask({ maxDurationMs: 60_000, stalledMs: 60_000 });
    await once(socket, 'data');
    socket.destroy();
    expect(await sending.error).toBeInstanceOf(Error);
  });

  it('is limited to one per member and a maximum in total, and is rejected until a slot is free', async () => {
    const few = new Downloads({ atOnce: 2, maxDurationMs: 1_000, stalledMs: 1_000 });
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const runs = [few.run(1, () => first.promise), few.run(2, () => second.promise)];
    const nothing = () => Promise.resolve();
    expect([await few.run(1, nothing), await few.run(3, nothing)]).toEqual(['running', 'full']);
    first.resolve();
    second.reject(new Error('cut'));
    expect((await Promise.allSettled(runs)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect([await few.run(3, nothing), await few.run(1, nothing), few.inProgress]).toEqual([
      undefined,
      undefined,
      0,
    ]);
  });
});
