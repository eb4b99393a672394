import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { postgres } from '../support/database.js';
import { Nginx } from '../support/nginx.js';
import { freePort, OauthTest } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';

const RESTARTS = 10;
const DELAY_SECONDS = 2;

postgres.describe('two servers behind nginx', () => {
  let oauth: OauthTest;
  let nginx: Nginx;
  let servers: ServerProcess[];
  let settings: Record<string, string>[];
  beforeAll(async () => {
    const [port, ...ports] = [await freePort(), await freePort(), await freePort()];
    oauth = await OauthTest.start({ publicUrl: `http://127.0.0.1:${port}` });
    settings = ports.map((at) => ({
      ...oauth.api.environment,
      PORT: String(at),
      PUBLIC_URL: `http://127.0.0.1:${port}`,
      TRUST_PROXY: '1',
      SHUTDOWN_DELAY: String(DELAY_SECONDS),
      RATE_LIMIT_READ: '0',
      RATE_LIMIT_WRITE: '0',
      RATE_LIMIT_AUTH: '0',
    }));
    servers = await Promise.all(settings.map((each) => ServerProcess.start(each)));
    nginx = await Nginx.start(port, ports, DELAY_SECONDS / 2);
  });
  afterAll(async () => {
    await nginx.stop();
    await Promise.all(servers.map((server) => server.kill('SIGKILL')));
    await oauth.close();
  });

  const kept = new Agent({ keepAlive: true });
  const ask = (method: string, path: string, headers: Record<string, string>, body = '') =>
    new Promise<{ status: number; body: string }>((resolve, reject) => {
      const sent = request(nginx.url + path, { method, headers, agent: kept }, (answer) => {
        text(answer).then((got) => resolve({ status: answer.statusCode!, body: got }), reject);
      });
      sent.on('error', reject);
      sent.end(body);
    });

  it('lose no request in 10 rolling restarts under load, not even a POST to the token endpoint', async () => {
    const { id, username } = await oauth.member();
    const key = { 'X-API-Key': await oauth.api.key(id) };
    const clientId = await oauth.client();
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
    let restarted = 0;
    const answered = { read: 0, write: 0, token: 0 };
    const lost: unknown[] = [];
    let busy = 0;
    /** Sends one request after the other, until the restarts are over. */
    const load = async (
      kind: keyof typeof answered,
      send: () => Promise<{ status: number; body: string }>,
    ) => {
      while (restarted < RESTARTS) {
        const answer = await send().catch((error: Error) => ({ status: 0, body: error.message }));
        if (answer.status === 200) answered[kind]++;
        else if (answer.status === 503)
          busy++; // asked again: what it would have used up is still good
        else lost.push([kind, answer]);
      }
    };
    const refreshing = async () => {
      let { refresh_token } = await oauth.tokens(clientId, username);
      await load('token', async () => {
        const asked = { grant_type: 'refresh_token', client_id: clientId, refresh_token };
        const answer = await ask('POST', '/oauth/token', form, new URLSearchParams(asked).toString());
        if (answer.status === 200) ({ refresh_token } = JSON.parse(answer.body) as { refresh_token: string });
        return answer;
      });
    };
    const json = { ...key, 'Content-Type': 'application/json' };
    const loads = [
      refreshing(),
      refreshing(),
      refreshing(),
      load('read', () => ask('GET', '/api/public/profile', key)),
      load('write', () => ask('PUT', '/api/public/profile', json, '{"bio":"on"}')),
    ];
    for (; restarted < RESTARTS; restarted++) {
      const i = restarted % 2;
      expect(await servers[i]!.kill('SIGTERM')).toBe(0);
      servers[i] = await ServerProcess.start(settings[i]!);
    }
    await Promise.all(loads);
    expect({ lost, errors: lost.length > 0 ? nginx.errors : '' }).toEqual({ lost: [], errors: '' });
    expect(busy).toBeLessThan(RESTARTS);
    for (const count of Object.values(answered)) expect(count).toBeGreaterThan(RESTARTS * 10);
  }, 300_000);
});
