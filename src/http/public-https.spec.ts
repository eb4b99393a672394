import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PublicHttps } from './public-https.js';

describe('what is sent to an address that others chose', () => {
  let inside: Server;
  let connections = 0;
  let port: number;

  beforeAll(async () => {
    inside = createServer((_, response) => response.writeHead(204).end());
    inside.on('connection', () => connections++);
    await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
    ({ port } = inside.address() as AddressInfo);
  });
  afterAll(() => void inside.close());

  const post = (https: PublicHttps, url: string, loopback = false) =>
    https.post({ url: new URL(url), headers: {}, body: '{}', signal: AbortSignal.timeout(5_000), loopback });

  it.each([
    'http://localhost',
    'https://localhost',
    'http://127.0.0.1',
    'https://127.0.0.1',
    'https://[::ffff:127.0.0.1]',
  ])('never comes to this machine: %s', async (origin) => {
    connections = 0;
    await expect(post(new PublicHttps(), `${origin}:${port}/`)).rejects.toThrow('not one of the internet');
    expect(connections).toBe(0);
  });

  it.each([
    'https://10.0.0.1/',
    'https://169.254.169.254/latest',
    'https://[fe80::1]/',
    'http://192.168.0.1/',
  ])('never connects to our own network, even where this machine is allowed: %s', async (url) => {
    await expect(post(new PublicHttps(), url, true)).rejects.toThrow('not one of the internet');
  });

  it('comes to this machine where that is allowed, by http, too', async () => {
    expect(await post(new PublicHttps(), `http://localhost:${port}/`, true)).toBe(204);
  });

  it('connects to the address that was checked: a name is resolved only once', async () => {
    connections = 0;
    const https = new PublicHttps();
    const answers = ['203.0.113.7', '127.0.0.1']; // the second look would lead inside
    let looks = 0;
    https.lookUp = ((_host: string, _options: object, callback: (error: null, found: object[]) => void) =>
      callback(null, [{ address: answers[Math.min(looks++, 1)], family: 4 }])) as never;
    const judged: string[] = [];
    https.isAllowed = (address) => {
      judged.push(address);
      return false;
    };
    await expect(post(https, `https://rebinding.example:${port}/`)).rejects.toThrow(
      'not one of the internet',
    );
    expect([looks, judged, connections]).toEqual([1, ['203.0.113.7'], 0]);
    // At the next attempt the name leads inside: that is judged anew.
    await expect(post(https, `https://rebinding.example:${port}/`)).rejects.toThrow(
      'not one of the internet',
    );
    expect([looks, judged, connections]).toEqual([2, ['203.0.113.7', '127.0.0.1'], 0]);
  });

  it('comes nowhere where one of a name’s addresses is inside', async () => {
    const https = new PublicHttps();
    https.lookUp = ((_host: string, _options: object, callback: (error: null, found: object[]) => void) =>
      callback(null, [
        { address: '93.184.215.14', family: 4 },
        { address: '10.0.0.1', family: 4 },
      ])) as never;
    await expect(post(https, 'https://mixed.example/')).rejects.toThrow('not one of the internet');
  });
});
