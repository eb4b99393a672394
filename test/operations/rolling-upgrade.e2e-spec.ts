import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { puaJson, puaProcess } from '../support/command-line.js';
import { postgres } from '../support/database.js';
import { Load } from '../support/load.js';
import { makeNextVersion } from '../support/next-version.js';
import type { OauthTest } from '../support/oauth.js';
import { ProxiedServers } from '../support/proxied-servers.js';
import type { Proxy } from '../support/proxies.js';
import { ServerProcess } from '../support/server.js';
import { eventually } from '../support/timing.js';

const DELAY_SECONDS = 2;
const NEXT = 'RememberPronouns1763999999000';
/** Changes that a next version may bring: a column, an index and a table, all compatible with the previous version. */
const MIGRATION = `import type { MigrationInterface, QueryRunner } from 'typeorm';

export class ${NEXT} implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(\`
ALTER TABLE users ADD COLUMN pronouns text CHECK (char_length(pronouns) <= 100);
CREATE INDEX users_pronouns_idx ON users (pronouns) WHERE pronouns IS NOT NULL;
CREATE TABLE pronoun_choices (user_id bigint NOT NULL REFERENCES users (id), chosen_at timestamptz NOT NULL DEFAULT now());
INSERT INTO compatible_migrations (name) VALUES ('${NEXT}');
\`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(\`
DELETE FROM compatible_migrations WHERE name = '${NEXT}';
DROP TABLE pronoun_choices;
ALTER TABLE users DROP COLUMN pronouns;
\`);
  }
}
`;

const FUNCTION = `
CREATE OR REPLACE FUNCTION chooses_pronouns(id bigint) RETURNS boolean LANGUAGE sql STABLE
  RETURN EXISTS (SELECT FROM pronoun_choices WHERE user_id = id);
`;

postgres.describe('an upgrade with a migration, behind nginx', () => {
  let next: string;
  let all: ProxiedServers;
  let oauth: OauthTest;
  let proxy: Proxy;
  let servers: ServerProcess[];
  let settings: ProxiedServers['settings'];
  beforeAll(async () => {
    next = makeNextVersion({ '1763999999000-remember-pronouns.ts': MIGRATION }, FUNCTION);
    all = await ProxiedServers.start('nginx', {
      spare: 1,
      // In production a server never migrates by itself.
      environment: { NODE_ENV: 'production', SHUTDOWN_DELAY: String(DELAY_SECONDS) },
      keepaliveSeconds: DELAY_SECONDS / 2,
    });
    ({ oauth, proxy, servers, settings } = all);
  });
  afterAll(() => all?.close());

  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const postForm = (path: string, fields: Record<string, string>) =>
    proxy.ask('POST', path, { headers: form, body: new URLSearchParams(fields).toString() });
  /** The status of a request; repeats the request while a server responds 503, as production servers do on a busy host. */
  const statusAt = (server: ServerProcess, path: string, init: RequestInit = {}) =>
    eventually(async () => {
      const answer = await fetch(server.url + path, init);
      await answer.arrayBuffer();
      return answer.status === 503 ? undefined : answer.status;
    });
  /** Resolves when every server, of either version, rejects the credential. */
  const refusedByAll = (headers: Record<string, string>) =>
    Promise.all(
      servers.map((server) =>
        eventually(async () => (await statusAt(server, '/api/public/me', { headers })) === 401 || undefined),
      ),
    );

  it('loses no request and no write under load, during the migration and while each server is replaced', async () => {
    const clientId = await oauth.client();
    const load = new Load();

    const read = { 'X-API-Key': await oauth.api.key((await oauth.member()).id) };
    for (const path of ['/profile', '/events', '/connections', '/achievements'])
      load.add(`GET ${path}`, () => proxy.ask('GET', `/api/public${path}`, { headers: read }));

    // Each write depends on the previous one, so a duplicate or lost write makes the next write fail.
    const writer = await oauth.member();
    const write = { 'X-API-Key': await oauth.api.key(writer.id), 'Content-Type': 'application/json' };
    let { etag } = await eventually(async () => {
      const { status, headers } = await proxy.ask('GET', '/api/public/profile', { headers: write });
      return status === 503 ? undefined : headers;
    });
    let written = 0;
    load.add('PUT /profile', async () => {
      const answer = await proxy.ask('PUT', '/api/public/profile', {
        headers: { ...write, 'If-Match': etag as string },
        body: JSON.stringify({ bio: String(written + 1) }),
      });
      if (answer.status === 200) {
        written++;
        ({ etag } = answer.headers);
      } else if (answer.status === 503) {
        // The outcome is unknown: the caller reads the profile.
        const seen = await proxy.ask('GET', '/api/public/profile', { headers: write });
        if (seen.status === 200) {
          ({ etag } = seen.headers);
          written = Number((JSON.parse(seen.body) as { bio: string | null }).bio ?? 0);
        }
      }
      return answer;
    });

    const refresher = await oauth.member();
    const signIn = async (username: string) => {
      try {
        return await oauth.token(await oauth.code(clientId, username));
      } catch (error) {
        // The requested page (oauth.ts), which begins with the status.
        if (!(error as Error).message.startsWith('503 ')) throw error;
        return undefined;
      }
    };
    const tokensOf = (username: string) =>
      eventually(async () => {
        const answer = await signIn(username);
        return answer && answer.status !== 503 ? answer.body : undefined;
      });
    let { refresh_token } = await tokensOf(refresher.username);
    load.add('refresh', async () => {
      const answer = await postForm('/oauth/token', {
        grant_type: 'refresh_token',
        client_id: clientId,
        refresh_token,
      });
      if (answer.status === 200) ({ refresh_token } = JSON.parse(answer.body) as { refresh_token: string });
      return answer;
    });

    const comer = await oauth.member();
    load.add('sign-in', async () => {
      const answer = await signIn(comer.username);
      if (!answer) return { status: 503, headers: { 'retry-after': '1' }, body: '' };
      const { status, headers, body } = answer;
      return { status, headers: Object.fromEntries(headers), body: JSON.stringify(body) };
    });
    await load.meanwhile(3);

    const environment = settings[0]!;
    const { stdout } = await puaProcess(environment, ['db', 'migrate', '--json'], next);
    expect(JSON.parse(stdout)).toEqual({ applied: [NEXT, 'schema/'] });
    await load.meanwhile(3);
    for (const server of servers) expect(await statusAt(server, '/readyz')).toBe(200);

    // The previous version starts on the newer schema, and revokes access everywhere.
    servers.push(await ServerProcess.start(settings[2]!));
    const old = servers[2]!;
    const leaving = await oauth.member();
    const key = await puaJson<{ id: string; key: string }>(environment, ['keys', 'create', '--user', leaving.username, '--name', 'made by the version before', '--scopes', 'profile:read', '--env', 'live']); // prettier-ignore
    const tokens = await tokensOf(leaving.username);
    const credentials = [{ 'X-API-Key': key.key }, { Authorization: `Bearer ${tokens.access_token}` }];
    for (const server of servers)
      for (const headers of credentials)
        expect(await statusAt(server, '/api/public/me', { headers })).toBe(200);
    servers[0] = await replace(0); // one server of each version from here on
    await puaJson(environment, ['keys', 'revoke', key.id, '--reason', 'leaked']);
    await refusedByAll(credentials[0]!);
    const body = new URLSearchParams({ token: tokens.refresh_token, client_id: clientId });
    expect(await statusAt(old, '/oauth/revoke', { method: 'POST', headers: form, body })).toBe(200);
    await refusedByAll(credentials[1]!);
    await load.meanwhile(3);

    servers[1] = await replace(1);
    await load.meanwhile(3);
    await load.end();

    expect(load.failed).toEqual([]);
    const answered = Object.values(load.answered).reduce((sum, count) => sum + count, 0);
    expect(load.busy).toBeLessThan(answered / 10);
    const [stored] = await oauth.query<object>('SELECT bio FROM users WHERE id = $1', [writer.id]);
    expect(stored).toEqual({ bio: String(written) });
  });

  /** Stops a server, starts the next version, and waits for it, as docs/operators/deploy.md describes. */
  async function replace(i: number): Promise<ServerProcess> {
    expect(await servers[i]!.kill('SIGTERM')).toBe(0);
    const server = await ServerProcess.start(settings[i]!, next);
    expect(await statusAt(server, '/readyz')).toBe(200);
    await all.untilUsed(i);
    return server;
  }
});
