import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { thorough } from '../../test/support/database.js';
import { listen } from '../../test/support/listen.js';
import { NameServer } from '../../test/support/name-server.js';
import { resolveAddresses, PublicHttps } from './public-https.js';

describe('a request to a user-supplied URL', () => {
  let inside: Server;
  let connections = 0;
  let userAgent: string | undefined;
  let port: number;

  beforeAll(async () => {
    inside = createServer(({ headers }, response) => {
      userAgent = headers['user-agent'];
      response.writeHead(204).end();
    });
    inside.on('connection', () => connections++);
    port = Number(new URL(await listen(inside)).port);
  });
  afterAll(() => void inside.close());

  const post = (https: PublicHttps, url: string, loopback = false) =>
    https.post({ url: new URL(url), headers: {}, body: '{}', signal: AbortSignal.timeout(60_000), loopback });

  it.each([
    'http://localhost',
    'https://localhost',
    'http://127.0.0.1',
    'https://127.0.0.1',
    'https://[::ffff:127.0.0.1]',
  ])('never reaches this host: %s', async (origin) => {
    connections = 0;
    await expect(post(new PublicHttps(), `${origin}:${port}/`)).rejects.toThrow('not on the internet');
    expect(connections).toBe(0);
  });

  it.each([
    'https://10.0.0.1/',
    'https://169.254.169.254/latest',
    'https://[fe80::1]/',
    'http://192.168.0.1/',
  ])('never reaches the private network, even if loopback is allowed: %s', async (url) => {
    await expect(post(new PublicHttps(), url, true)).rejects.toThrow('not on the internet');
  });

  it('reaches loopback over http if allowed, and sends its User-Agent', async () => {
    expect(await post(new PublicHttps(), `http://localhost:${port}/`, true)).toMatchObject({ status: 204 });
    expect(userAgent).toBe('public-user-api');
  });

  it('resolves the name once per attempt, and connects to no IP address that the check rejects', async () => {
    connections = 0;
    const https = new PublicHttps();
    const answers = ['203.0.113.7', '127.0.0.1']; // a second lookup would resolve to loopback
    let looks = 0;
    https.lookUp = () => Promise.resolve([{ address: answers[Math.min(looks++, 1)]!, family: 4 }]);
    const judged: string[] = [];
    https.isAllowed = (address) => {
      judged.push(address);
      return false;
    };
    await expect(post(https, `https://rebinding.example:${port}/`)).rejects.toThrow('not on the internet');
    expect([looks, judged, connections]).toEqual([1, ['203.0.113.7'], 0]);
    // At the next attempt the name resolves to a private address: the check runs again.
    await expect(post(https, `https://rebinding.example:${port}/`)).rejects.toThrow('not on the internet');
    expect([looks, judged, connections]).toEqual([2, ['203.0.113.7', '127.0.0.1'], 0]);
  });

  it('fails if any IP address of the URL’s host name is private', async () => {
    const https = new PublicHttps();
    https.lookUp = () =>
      Promise.resolve([
        { address: '93.184.215.14', family: 4 },
        { address: '10.0.0.1', family: 4 },
      ]);
    await expect(post(https, 'https://mixed.example/')).rejects.toThrow('not on the internet');
  });

  it('ends at the response headers, so that a body cannot hold the connection', async () => {
    let ended: Promise<unknown> | undefined;
    const dripping = createServer((_, response) => {
      ended = once(response, 'close');
      response.writeHead(202).write('x'); // the body never ends
    });
    const url = await listen(dripping);
    expect(await post(new PublicHttps(), url, true)).toMatchObject({ status: 202 });
    await ended;
    dripping.close();
  });
});

describe('the name in a user-supplied URL', () => {
  /** Several times as many as there are threads for lookups by the system. */
  const NAMES = Array.from({ length: 20 }, (_, i) => `dead-${i}.example`);
  let nameServer: NameServer;
  const lookUp = (name: string) => resolveAddresses(name, [nameServer.address]);

  beforeAll(async () => {
    nameServer = await NameServer.start({ 'receiver.example': '93.184.215.14' });
  });
  afterAll(() => nameServer.close());

  it('is resolved by the name servers', async () => {
    expect(await lookUp('receiver.example')).toEqual([{ address: '93.184.215.14', family: 4 }]);
  });

  thorough.it('times out after 2 s without a response, and occupies no thread', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'Date', 'performance'] });
    try {
      const lookingUp = Promise.allSettled(NAMES.map(lookUp));
      await Promise.all([lookup('localhost'), readFile(import.meta.filename)]);
      while (nameServer.asked === 0) await setImmediate();
      jest.advanceTimersByTime(2_000);
      for (const outcome of await lookingUp)
        expect(outcome).toMatchObject({ reason: { message: 'no name server responded within 2 s' } });
    } finally {
      jest.useRealTimers();
    }
  });

  it('is resolved once for all concurrent requests', async () => {
    const https = new PublicHttps();
    let looks = 0;
    https.lookUp = async () => {
      looks++;
      await setImmediate();
      throw new Error('there is no such name');
    };
    const read = () => https.readJson(new URL('https://agent.example/client.json'));
    await Promise.all([read(), read()].map((reading) => expect(reading).rejects.toThrow('no such name')));
    expect(looks).toBe(1);
  });
});
