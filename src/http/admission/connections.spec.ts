import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { listen } from '../../../test/support/listen.js';
import { until } from '../../../test/support/timing.js';
import type { Config } from '../../config/config.js';
import { EntryPoint } from '../pipeline/entry-point.js';
import { CONNECTION_BOUNDS, Connections, type ConnectionBounds } from './connections.js';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const DOCUMENT = Buffer.alloc(200_000, 'x');
const sendDocument: Answer = (_request, response) => {
  response.setHeader('Content-Length', DOCUMENT.length);
  response.end(DOCUMENT);
};
const sendUrl: Answer = (request, response) => void response.end(request.url);
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
/** A request whose body is half there. */
const HALF = 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx';

/** Exceeds the system's socket buffers. */
const LARGE = Buffer.alloc(16_000_000, 'x');
const STALLED_MS = 5_000;

describe('connections', () => {
  const ends: (() => void)[] = [];
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });

  /** A client that reads one response for longer than the timeout of a stalled client; other tests run meanwhile. */
  let slowReading: Promise<{ bytes: number; ms: number }>;
  beforeAll(async () => {
    const { open } = await serve((_request, response) => void response.end(LARGE), { stalledMs: STALLED_MS });
    const socket = await open();
    const endsOfIt = ends.splice(0);
    const startedAt = performance.now();
    let bytes = 0;
    slowReading = new Promise<void>((resolve) => {
      socket.on('data', (part) => {
        bytes += part.length;
        if (bytes >= LARGE.length) resolve();
        socket.pause();
        setTimeout(() => socket.resume(), 25);
      });
      socket.once('close', () => resolve());
    }).then(() => {
      for (const end of endsOfIt) end();
      return { bytes, ms: performance.now() - startedAt };
    });
    socket.write(get('/'));
  });

  async function serve(answer: Answer, bounds: Partial<ConnectionBounds> = {}) {
    const server: Server = createServer({ requireHostHeader: false, keepAliveTimeout: 60_000 });
    const connections = new Connections(
      server,
      (request, response) => {
        response.once('prefinish', () => connections.bound(response));
        answer(request, response);
      },
      { ...CONNECTION_BOUNDS, ...bounds },
    );
    const { port } = new URL(await listen(server));
    ends.push(() => {
      server.close();
      server.closeAllConnections();
    });
    return { connections, server, open: (localAddress?: string) => open(Number(port), localAddress) };
  }

  /** A client that reads only when the test calls `read`. */
  async function open(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined);
    ends.push(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  }

  const closed = (socket: Socket) =>
    socket.closed
      ? Promise.resolve()
      : new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  /** Reads until the text is `enough`. */
  const read = (socket: Socket, enough: (text: string) => boolean) =>
    new Promise<string>((resolve, reject) => {
      let text = '';
      socket.on('data', (bytes) => {
        text += bytes.toString();
        if (enough(text)) resolve(text);
      });
      socket.on('close', () => reject(new Error(`closed after ${text.length} bytes`)));
    });
  it('respond to pipelined requests one after the other, in order, without omission', async () => {
    let underWay = 0;
    let most = 0;
    const { open, connections } = await serve((request, response) => {
      most = Math.max(most, ++underWay);
      setImmediate(() => {
        underWay--;
        response.end(`[${request.url}]`);
      });
    });
    const socket = await open();
    const paths = Array.from({ length: 600 }, (_, i) => `/${i}`);
    socket.write(paths.map(get).join(''));
    const text = await read(socket, (answers) => answers.includes('[/599]'));
    expect([...text.matchAll(/\[(.+?)\]/g)].map(([, path]) => path)).toEqual(paths);
    expect(most).toBe(1);
    await until(() => connections.state().idle === 1);
    expect(connections.state()).toEqual({ open: 1, idle: 1, unfinished: 0, ahead: 0, unread: 0 });
  });

  it('start at most one response per connection in one iteration of the event loop', async () => {
    const begun = new Map<unknown, number>();
    let most = 0;
    const { open } = await serve((request, response) => {
      const { socket } = request;
      begun.set(socket, (begun.get(socket) ?? 0) + 1);
      most = Math.max(most, begun.get(socket)!);
      response.end(request.url);
    });
    let turning = true;
    const turn = () => {
      begun.clear();
      if (turning) setImmediate(turn);
    };
    turn();
    const sockets = await Promise.all(Array.from({ length: 4 }, open));
    await Promise.all(
      sockets.map((socket) => {
        socket.write(get('/a').repeat(500) + get('/last'));
        return read(socket, (text) => text.endsWith('/last'));
      }),
    );
    turning = false;
    expect(most).toBe(1);
  });

  it('stop responding to a client that does not read, and disconnect the client', async () => {
    let made = 0;
    const { open, connections } = await serve(
      (request, response) => {
        made++;
        sendDocument(request, response);
      },
      { stalledMs: 300 },
    );
    const sockets = await Promise.all(Array.from({ length: 12 }, open));
    for (const socket of sockets) socket.pause().write(get('/').repeat(1_000));
    // A paused client does not notice that the server closed the connection: the server's state shows it.
    await until(() => connections.state().open === 0);
    expect(made).toBeLessThan(12 * 60); // each connection's buffers accept about 4 MB of 200 MB
    expect(connections.state()).toEqual({ open: 0, idle: 0, unfinished: 0, ahead: 0, unread: 0 });
  });

  it('send clients that read slowly the full response', async () => {
    expect((await slowReading).bytes).toBeGreaterThanOrEqual(LARGE.length);
    expect((await slowReading).ms).toBeGreaterThan(STALLED_MS);
  });

  it('disconnect a client that is still reading after the time limit, one byte at a time', async () => {
    const large = Buffer.alloc(32_000_000, 'x');
    const { open, connections } = await serve((_request, response) => void response.end(large), {
      stalledMs: 10_000,
      unreadMs: 500,
    });
    const socket = await open();
    socket.write(get('/'));
    const reading = setInterval(() => socket.read(1), 10);
    socket.pause();
    await until(() => connections.state().open === 0);
    clearInterval(reading);
    expect(socket.bytesRead).toBeLessThan(large.length);
  });

  it('close the connection whose response is unread for longest if too many responses are unread', async () => {
    const large = Buffer.alloc(32_000_000, 'x');
    const { open, connections } = await serve((_request, response) => void response.end(large), {
      unread: 2,
    });
    const sockets: Socket[] = [];
    for (const unread of [1, 2, 2]) {
      const socket = await open();
      sockets.push(socket.pause());
      socket.write(get('/'));
      await until(() => connections.state().unread === unread && connections.state().open >= unread);
    }
    await until(() => connections.state().open === 2);
    sockets[0]!.resume();
    await closed(sockets[0]!);
    expect(sockets.map((socket) => socket.closed)).toEqual([true, false, false]);
  });

  it('close the connection with the most unread bytes if the connections together exceed the limit', async () => {
    const { open, connections } = await serve(
      (request, response) => void response.end(Buffer.alloc(Number(request.url!.slice(1)), 'x')),
      { unreadBytes: 70_000_000 },
    );
    const sockets: Socket[] = [];
    for (const bytes of [20_000_000, 32_000_000, 24_000_000]) {
      const socket = (await open()).pause();
      sockets.push(socket);
      socket.write(get(`/${bytes}`));
      await until(() => sockets.length === 3 || connections.state().unread === sockets.length);
    }
    await until(() => connections.state().open === 2);
    sockets[1]!.resume();
    await closed(sockets[1]!);
    expect(sockets.map((socket) => socket.closed)).toEqual([false, true, false]);
    expect(connections.state().unread).toBe(2);
  });

  it('disconnect a client that reads nothing, even if the client keeps sending', async () => {
    const { open, connections } = await serve((_request, response) => void response.end(LARGE), {
      stalledMs: 300,
      unreadMs: 1_000_000,
    });
    const socket = (await open()).pause();
    socket.write(`${get('/')}GET / HTTP/1.1\r\nX-Long: `);
    const dripping = setInterval(() => socket.write('x'), 20);
    await until(() => connections.state().open === 0);
    clearInterval(dripping);
    expect(connections.state().open).toBe(0);
  });

  it('keep a client that reads everything late, and respond to its next request', async () => {
    const { open, connections, server } = await serve(
      (request, response) => void response.end(request.url === '/large' ? LARGE : '[small]'),
    );
    let accepted: Socket | undefined;
    server.once('connection', (socket: Socket) => (accepted = socket));
    const socket = (await open()).pause();
    socket.write(get('/large'));
    await until(() => connections.state().unread === 1);
    socket.resume();
    await until(() => connections.state().idle === 1);
    expect(connections.state().unread).toBe(0);
    expect(accepted!.timeout).toBeGreaterThanOrEqual(server.keepAliveTimeout); // not the timeout of a stalled client
    socket.write(get('/'));
    expect(await read(socket, (text) => text.endsWith('[small]'))).toContain('200 OK');
  });

  it('leave a connection paused after its response if overload paused the connection', async () => {
    const { open, connections, server } = await serve((_request, response) => {
      response.once('close', () => response.req.socket.pause()); // as in overload
      response.end(LARGE);
    });
    let accepted: Socket | undefined;
    server.once('connection', (socket: Socket) => (accepted = socket));
    const socket = (await open()).pause();
    socket.write(get('/'));
    await until(() => connections.state().unread === 1);
    socket.resume();
    await until(() => connections.state().idle === 1);
    expect([connections.state().unread, accepted!.isPaused()]).toEqual([0, true]);
  });

  it('close the longest idle connection, and never a busy connection, when a connection exceeds the limit', async () => {
    const { open, connections } = await serve(
      (request, response) => {
        if (request.url !== '/slow') response.end('done');
      },
      { open: 3 },
    );
    const [slow, older, newer] = [await open(), await open(), await open()];
    slow.write(get('/slow'));
    for (const socket of [older, newer]) {
      socket.write(get('/'));
      await read(socket, (text) => text.endsWith('done'));
    }
    await until(() => connections.state().idle === 2);
    const next = await open();
    await closed(older);
    next.write(get('/'));
    await read(next, (text) => text.endsWith('done'));
    expect([slow.closed, newer.closed]).toEqual([false, false]);
  });

  it('close the oldest connection when a connection exceeds the limit and none has sent anything', async () => {
    const { open } = await serve(sendUrl, { open: 2 });
    const [first, second] = [await open(), await open()];
    await open();
    await Promise.race([closed(first), closed(second)]);
    expect([first.closed, second.closed]).toEqual([true, false]);
  });

  it('close a connection that exceeds the limit if all other connections are busy', async () => {
    const { open, connections } = await serve(() => undefined, { open: 2 });
    const [first, second] = [await open(), await open()];
    for (const socket of [first, second]) socket.write(get('/'));
    await until(() => connections.state().idle === 0);
    const third = await open();
    await closed(third);
    expect([first.closed, second.closed]).toEqual([false, false]);
  });

  it('read at most 64 KB ahead of the responses', async () => {
    let most = 0;
    let answered = 0;
    const { open, connections } = await serve((request, response) => {
      most = Math.max(most, connections.state().ahead);
      answered++;
      sendUrl(request, response);
    });
    const socket = await open();
    socket.on('data', () => undefined);
    const sending = setInterval(() => socket.writableLength < 5e6 && socket.write(get('/').repeat(5_000)), 1);
    await until(() => answered > 6_000);
    clearInterval(sending);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(65_536 / get('/').length);
  });

  it('close the connection whose request exceeds the limit of waiting requests', async () => {
    const { open, connections } = await serve(() => undefined, { ahead: 5 });
    const [one, other] = [await open(), await open()];
    one.write(get('/').repeat(5));
    await until(() => connections.state().ahead === 4);
    other.write(get('/').repeat(3));
    await closed(other);
    expect([one.closed, connections.state().ahead]).toEqual([false, 4]);
  });

  it('respond 408 to the request whose body has been awaited longest if too many bodies are awaited', async () => {
    let most = 0;
    const { open, connections } = await serve(
      (request, response) => {
        const arrived = connections.awaitBody(request);
        most = Math.max(most, connections.state().unfinished);
        request.resume().on('end', () => {
          arrived();
          response.end('whole');
        });
      },
      { unfinished: 2 },
    );
    const [first, second, third] = [await open(), await open(), await open()];
    const texts = [first, second, third].map((socket) => read(socket, (text) => text.includes('\r\n\r\n')));
    for (const [i, socket] of [first, second, third].entries()) {
      socket.write(HALF);
      await until(() => connections.state().idle === 2 - i);
    }
    expect(await texts[0]).toMatch(/^HTTP\/1\.1 408 [^]*Connection: close/);
    for (const socket of [second, third]) socket.write('x');
    expect(await texts[1]).toContain('200 OK');
    expect(await texts[2]).toContain('200 OK');
    expect([most, connections.state().unfinished]).toEqual([2, 0]);
  });

  it('stop counting the body of a connection that was closed in favor of another connection', async () => {
    const { open, connections, server } = await serve(
      (request) => void (request.method === 'PUT' && connections.awaitBody(request)),
      { open: 2, unfinished: 1 },
    );
    const [first, busy] = [await open(), await open()];
    busy.write(get('/'));
    first.write(HALF);
    await until(() => connections.state().unfinished === 1);
    const accepted = new Promise<() => void>((resolve) =>
      server.once('connection', (socket) => resolve(connections.awaitBody({ socket } as IncomingMessage))),
    );
    await open();
    expect(connections.state().unfinished).toBe(1);
    (await accepted)();
    expect(connections.state().unfinished).toBe(0);
  });

  it('are closed if their address already has its maximum of connections, all busy', async () => {
    const { open, connections } = await serve(() => undefined, { openOfPeer: 2 });
    const busy = [await open(), await open()];
    for (const socket of busy) socket.write(HALF);
    await until(() => connections.state().open === 2 && connections.state().idle === 0);
    const [refused, neighbor] = [await open(), await open('127.0.0.2')];
    await closed(refused);
    expect([...busy, neighbor].map((socket) => socket.closed)).toEqual([false, false, false]);
    busy[0]!.destroy();
    await until(() => connections.state().open === 2);
    const next = await open();
    await until(() => connections.state().open === 3);
    expect([busy[1]!.closed, neighbor.closed, next.closed]).toEqual([false, false, false]);
  });

  it('replace, at the maximum per address, the idle connection that was opened first', async () => {
    const { open, connections } = await serve(sendUrl, { openOfPeer: 2 });
    const [neighbor, first, second] = [await open('127.0.0.2'), await open(), await open()];
    for (const socket of [second, first]) {
      socket.write(get('/'));
      await read(socket, (text) => text.endsWith('/'));
    }
    await until(() => connections.state().idle === 3);
    const next = await open();
    await closed(first);
    next.write(get('/next'));
    expect(await read(next, (text) => text.includes('/next'))).toContain('200 OK');
    expect([neighbor.closed, second.closed]).toEqual([false, false]);
  });

  it.each([
    [0, CONNECTION_BOUNDS.openOfPeer],
    [1, CONNECTION_BOUNDS.openOfPeer + 1],
  ])('are, with TRUST_PROXY=%d, at most %d of 1,025 from one address', async (trustProxy, most) => {
    const server = createServer();
    const config = { publicUrl: 'http://localhost', trustProxy } as Config;
    const { connections } = new EntryPoint(server, () => undefined, config);
    let accepted = 0;
    server.on('connection', () => accepted++);
    const { port } = new URL(await listen(server));
    ends.push(() => void server.close());
    for (let n = 0; n <= CONNECTION_BOUNDS.openOfPeer; n++) await open(Number(port));
    await until(() => accepted === CONNECTION_BOUNDS.openOfPeer + 1 && connections.state().open === most);
  });

  it('end two requests at once when the awaited bodies, all from one address, exceed the limit of 20', async () => {
    const { open, connections } = await serve((request) => void connections.awaitBody(request), {
      unfinished: 20,
    });
    const sockets = await Promise.all(Array.from({ length: 20 }, () => open()));
    const ended: Socket[] = [];
    for (const socket of sockets) {
      socket.resume().on('end', () => ended.push(socket));
      socket.write(HALF);
    }
    await until(() => connections.state().unfinished === 20);
    const last = await open();
    last.write(HALF);
    await until(() => ended.length === 2);
    expect(connections.state().unfinished).toBe(19);
  });

  it('close the oldest connection that is still sending a request if none is idle and a connection exceeds the limit', async () => {
    const { open, connections } = await serve(() => undefined, { open: 3 });
    const [unfinished, waits, neighbour] = [await open(), await open(), await open()];
    neighbour.write(get('/'));
    for (const socket of [unfinished, waits]) socket.write(HALF);
    await until(() => connections.state().idle === 0);
    const next = await open();
    await closed(unfinished);
    expect([waits.closed, neighbour.closed, next.closed]).toEqual([false, false, false]);
  });

  it('accept a large body, whole or in small chunks, and the next request', async () => {
    const { open } = await serve((request, response) => {
      let length = 0;
      request.on('data', (bytes: Buffer) => (length += bytes.length));
      request.on('end', () => response.end(`[${length}]`));
    });
    const socket = await open();
    const body = 'x'.repeat(3_000_000);
    socket.write(`PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    socket.write(
      `PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(20_000)}0\r\n\r\n`,
    );
    socket.write(get('/'));
    const text = await read(socket, (answers) => answers.includes('[0]'));
    expect([...text.matchAll(/\[(\d+)\]/g)].map(([, length]) => length)).toEqual(['3000000', '20000', '0']);
  });

  it('lose no byte of a large body that the handler reads late', async () => {
    let read: () => void = () => undefined;
    const { open } = await serve((request, response) => {
      read = () => {
        let length = 0;
        request.on('data', (bytes: Buffer) => (length += bytes.length));
        request.on('end', () => response.end(`[${length}]`));
      };
    });
    const socket = await open();
    const body = 'x'.repeat(16_000_000); // exceeds the system's socket buffers
    socket.write(`PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    for (let turn = 0; turn < 1_000; turn++) await new Promise((resolve) => setImmediate(resolve));
    read();
    const text = await new Promise<string>((resolve) =>
      socket.on('data', (bytes) => /\[\d+\]/.test(bytes.toString()) && resolve(bytes.toString())),
    );
    expect(text).toContain('[16000000]');
  });

  it('respond to each pipelined request in its own asynchronous context', async () => {
    const requests = new AsyncLocalStorage<string>();
    const { open, server } = await serve((request, response) =>
      setImmediate(() => response.end(`${request.url} in ${requests.getStore()};`)),
    );
    // Sets the context as a tracer does.
    const emit = server.emit.bind(server) as (event: string, ...rest: unknown[]) => boolean;
    server.emit = ((event: string, ...rest: unknown[]) =>
      event === 'request'
        ? requests.run((rest[0] as IncomingMessage).url!, () => emit(event, ...rest))
        : emit(event, ...rest)) as typeof server.emit;
    const socket = await open();
    const paths = ['/a', '/b', '/c'];
    const answered = read(socket, (text) => text.split(';').length > paths.length);
    socket.write(paths.map(get).join(''));
    expect((await answered).match(/\/\w in \/\w(?=;)/g)).toEqual(paths.map((path) => `${path} in ${path}`));
  });

  it('stop counting a connection that breaks, and its requests, bodies and responses, in any state', async () => {
    const late: ServerResponse[] = [];
    const { open, connections } = await serve((request, response) => {
      if (request.url === '/late') late.push(response);
      else sendDocument(request, response);
    });
    const sent = [
      '',
      'GET /half HTTP/1.1\r\n',
      get('/late'),
      get('/late').repeat(1_000),
      get('/').repeat(1_000),
      HALF,
      'no HTTP at all\r\n\r\n',
      `${get('/')}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n${get('/')}`,
    ];
    for (const how of ['end', 'destroy', 'reset'] as const) {
      const sockets = await Promise.all(sent.map(() => open()));
      sockets.forEach((socket, i) => socket.write(sent[i]!));
      await new Promise((resolve) => setImmediate(resolve));
      for (const socket of sockets) {
        if (how === 'end') socket.end(() => socket.destroy());
        else if (how === 'destroy') socket.destroy();
        else socket.resetAndDestroy();
      }
      // The server notices a disconnected client that it does not read from only when it responds.
      await until(() => {
        for (const response of late.splice(0)) response.end('late');
        return connections.state().open === 0;
      });
      expect(connections.state()).toEqual({ open: 0, idle: 0, unfinished: 0, ahead: 0, unread: 0 });
    }
  });
});
