import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { postgres } from '../support/database.js';
import { Load } from '../support/load.js';
import { freePort, OauthTest } from '../support/oauth.js';
import { Proxy } from '../support/proxies.js';
import { ServerProcess } from '../support/server.js';

jest.setTimeout(300_000); // many processes start

postgres.describe.each([
  ['nginx', 10, 2],
  ['Caddy', 3, 5], // it asks for the health of a server, each second
] as const)('two servers behind %s', (name, restarts, delaySeconds) => {
  const trusted = getCACertificates('default');
  let oauth: OauthTest;
  let proxy: Proxy;
  let servers: ServerProcess[];
  let settings: Record<string, string>[];
  beforeAll(async () => {
    const [port, ...ports] = [await freePort(), await freePort(), await freePort()];
    oauth = await OauthTest.start({ publicUrl: `https://localhost:${port}` });
    settings = ports.map((at) => ({
      ...oauth.api.environment,
      PORT: String(at),
      PUBLIC_URL: oauth.issuer,
      TRUST_PROXY: '1',
      SHUTDOWN_DELAY: String(delaySeconds),
      RATE_LIMIT_READ: '0',
      RATE_LIMIT_WRITE: '0',
      RATE_LIMIT_AUTH: '0',
    }));
    servers = await Promise.all(settings.map((each) => ServerProcess.start(each)));
    proxy = await Proxy.start(name, port, ports, delaySeconds / 2);
    setDefaultCACertificates([...trusted, proxy.certificate]);
  });
  afterAll(async () => {
    setDefaultCACertificates(trusted);
    await proxy?.stop();
    await Promise.all((servers ?? []).map((server) => server.kill('SIGKILL')));
    await oauth?.close();
  });

  it('lose no request in rolling restarts under load, not even a POST to the token endpoint', async () => {
    const { id, username } = await oauth.member();
    const headers = { 'X-API-Key': await oauth.api.key(id) };
    const clientId = await oauth.client();
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const load = new Load();
    for (let n = 0; n < 3; n++) {
      let { refresh_token } = await oauth.tokens(clientId, username);
      load.add('token', async () => {
        const asked = { grant_type: 'refresh_token', client_id: clientId, refresh_token };
        const body = new URLSearchParams(asked).toString();
        const answer = await proxy.ask('POST', '/oauth/token', { headers: form, body });
        if (answer.status === 200) ({ refresh_token } = JSON.parse(answer.body) as { refresh_token: string });
        return answer;
      });
    }
    load.add('read', () => proxy.ask('GET', '/api/public/profile', { headers }));
    const json = { ...headers, 'Content-Type': 'application/json' };
    load.add('write', () => proxy.ask('PUT', '/api/public/profile', { headers: json, body: '{"bio":"on"}' }));
    for (let restarted = 0; restarted < restarts; restarted++) {
      const i = restarted % 2;
      expect(await servers[i]!.kill('SIGTERM')).toBe(0);
      servers[i] = await ServerProcess.start(settings[i]!);
    }
    await load.end();
    expect(load.failed).toEqual([]);
    const answered = Object.values(load.answered);
    expect(Math.min(...answered)).toBeGreaterThan(restarts * 10);
    // Asked again: on a machine that is busy with other things, too.
    expect(load.busy).toBeLessThan(answered.reduce((sum, count) => sum + count) / 10);
  }, 600_000);
});
