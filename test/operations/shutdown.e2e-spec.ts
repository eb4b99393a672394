import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { createTestDatabase, postgres, testConfig, type TestDatabase } from '../support/database.js';
import { Platform } from '../support/platform.js';
import { Client } from '../support/raw-client.js';
import { ServerProcess } from '../support/server.js';
import { eventually } from '../support/timing.js';

/** Longer than any test: a test ends its server when it has finished. */
const DELAY_SECONDS = 300;

// Tests of server processes require a separate database that outlives them.
postgres.describe('a server that is shutting down', () => {
  let database: TestDatabase;
  let key: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    const config = testConfig(database.environment);
    const dataSource = await createDataSource(config, 'maintenance').initialize();
    const userId = await new Platform(dataSource).user();
    ({ key } = await new ApiKeysService(dataSource, config).create({
      userId,
      name: 'test',
      scopes: ['profile:read', 'profile:write'],
      environment: 'live',
      cidrs: [],
      expiresInSeconds: 3600,
      actor: 'admin',
    }));
    await dataSource.destroy();
  });
  afterAll(() => database.drop());

  const start = (settings: Record<string, string> = {}) =>
    ServerProcess.start({
      ...database.environment,
      SHUTDOWN_DELAY: String(DELAY_SECONDS),
      RATE_LIMIT_READ: '0',
      RATE_LIMIT_WRITE: '0',
      ...settings,
    });

  /** Sends one request, and reads the complete response. */
  const ask = async (
    server: ServerProcess,
    path: string,
    { agent = new Agent(), headers = {}, method = 'GET', body = '' } = {} as Partial<{
      agent: Agent;
      headers: Record<string, string>;
      method: string;
      body: string;
    }>,
  ) => {
    const sent = request(server.url + path, { agent, method, headers }).end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    answer.resume();
    await once(answer, 'end');
    return answer;
  };

  const untilNotReady = async (server: ServerProcess) => {
    while ((await ask(server, '/readyz')).statusCode === 200);
  };

  it('responds 503 at /readyz, and sends one response on each new connection during SHUTDOWN_DELAY', async () => {
    const server = await start();
    const profile = { headers: { 'X-API-Key': key } };
    const { etag } = (await ask(server, '/api/public/profile', profile)).headers;
    const before = await ask(server, '/livez', { agent: new Agent({ keepAlive: true }) });
    expect(before.headers.connection).toBe('keep-alive');

    void server.kill('SIGTERM');
    await untilNotReady(server);
    const json = { 'X-API-Key': key, 'Content-Type': 'application/json' };
    for (const [path, status, options] of [
      ['/readyz', 503, {}],
      ['/livez', 200, {}],
      ['/api/public/profile', 200, profile],
      ['/api/public/profile', 304, { headers: { 'X-API-Key': key, 'If-None-Match': etag! } }],
      ['/api/public/profile', 200, { method: 'PUT', headers: json, body: '{"bio":"last"}' }],
      ['/api/public/profile', 400, { method: 'PUT', headers: json, body: '{' }],
      ['/api/public/profile', 401, {}],
      ['/api/public/profile', 204, { method: 'OPTIONS' }],
      ['/api/public/openapi.json', 200, {}],
      ['/api/public/nothing', 404, {}],
      ['/nothing', 404, {}],
      ['/oauth/jwks', 200, {}],
      ['/oauth/token', 400, { method: 'POST' }],
      ['/oauth/authorize', 400, {}],
      ['/account/apps', 200, {}],
      ['/interaction/none', 400, {}],
    ] as const) {
      const agent = new Agent({ keepAlive: true });
      const answer = await ask(server, path, { ...options, agent });
      expect([path, answer.statusCode, answer.headers.connection]).toEqual([path, status, 'close']);
      agent.destroy();
    }
    await server.kill('SIGKILL');
  });

  it('ends only after SHUTDOWN_DELAY', async () => {
    const server = await start({ SHUTDOWN_DELAY: '1' });
    const told = performance.now();
    expect(await server.kill('SIGTERM')).toBe(0);
    expect(performance.now() - told).toBeGreaterThanOrEqual(1_000);
  });

  it.each(['1', '2'])(
    'responds to each of 16 keep-alive connections that send a request at the signal or later (WORKERS=%s)',
    async (WORKERS) => {
      const server = await start({ WORKERS });
      const agents = Array.from({ length: 16 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
      const profile = { headers: { 'X-API-Key': key } };
      for (const agent of agents) await ask(server, '/api/public/profile', { ...profile, agent });
      const sockets = agents.map((agent) => Object.values(agent.freeSockets)[0]![0]!);

      void server.kill('SIGTERM');
      const half = agents
        .slice(0, 8)
        .map((agent) => ask(server, '/api/public/profile', { ...profile, agent }));
      const early = await Promise.all(half);
      await untilNotReady(server);
      // Each process learns of the signal by itself, and until then keeps its connections.
      const later = await Promise.all(
        agents.slice(8).map((agent) =>
          eventually(async () => {
            const answer = await ask(server, '/api/public/profile', { ...profile, agent });
            const isLast = answer.statusCode !== 200 || answer.headers.connection === 'close';
            return isLast ? answer : undefined;
          }),
        ),
      );
      expect([...early, ...later].map(({ statusCode }) => statusCode)).toEqual(Array(16).fill(200));
      expect(later.map(({ headers }) => headers.connection)).toEqual(Array(8).fill('close'));
      // On the existing connections: no client had to reconnect.
      expect(later.map(({ socket }) => sockets.includes(socket))).toEqual(Array(8).fill(true));
      for (const agent of agents) agent.destroy();
      await server.kill('SIGKILL');
    },
  );

  it('closes the connection of a running request after its response', async () => {
    const server = await start({ SHUTDOWN_DELAY: '0' });
    const client = await Client.open(server.url);
    const body = '{"bio":"on its way"}';
    client.socket.write(
      `PUT /api/public/profile HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
    );
    await client.until((text) => text.includes('100 Continue'));
    const ended = server.kill('SIGTERM');
    while (
      await ask(server, '/livez').then(
        () => true,
        () => false,
      )
    );
    client.socket.write(body);
    await once(client.socket, 'close');
    expect(client.text).toMatch(/HTTP\/1\.1 200 OK/);
    expect(client.text).toMatch(/^Connection: close\r$/m);
    expect(await ended).toBe(0);
  });

  it('ends completely if the signal comes while its workers start', async () => {
    // The first worker may serve before the last worker is ready.
    const server = await start({ WORKERS: '4', SHUTDOWN_DELAY: '0' });
    expect(await server.kill('SIGTERM')).toBe(0);
    await expect(ask(server, '/livez')).rejects.toThrow('ECONNREFUSED');
  });

  it('does not wait for an idle connection', async () => {
    const server = await start({ SHUTDOWN_DELAY: '0' });
    const { socket } = await Client.open(server.url);
    expect(await server.kill('SIGTERM')).toBe(0);
    socket.destroy();
  });
});
