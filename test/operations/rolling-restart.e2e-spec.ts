import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { postgres } from '../support/database.js';
import { Load } from '../support/load.js';
import type { OauthTest } from '../support/oauth.js';
import { ProxiedServers } from '../support/proxied-servers.js';
import type { Proxy } from '../support/proxies.js';
import { ServerProcess } from '../support/server.js';

postgres.describe.each([
  ['nginx', 4, 2],
  ['Caddy', 2, 5], // Caddy checks the health of each server every second
] as const)('two servers behind %s', (name, restarts, delaySeconds) => {
  let all: ProxiedServers;
  let oauth: OauthTest;
  let proxy: Proxy;
  beforeAll(async () => {
    all = await ProxiedServers.start(name, {
      environment: { SHUTDOWN_DELAY: String(delaySeconds) },
      keepaliveSeconds: delaySeconds / 2,
    });
    ({ oauth, proxy } = all);
  });
  afterAll(() => all?.close());

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
      expect(await all.servers[i]!.kill('SIGTERM')).toBe(0);
      all.servers[i] = await ServerProcess.start(all.settings[i]!);
      await all.untilUsed(i);
    }
    await load.end();
    expect(load.failed).toEqual([]);
    const answered = Object.values(load.answered);
    expect(Math.min(...answered)).toBeGreaterThan(restarts * 10);
    // Repeated, since the host may be busy.
    expect(load.busy).toBeLessThan(answered.reduce((sum, count) => sum + count) / 10);
  });
});
