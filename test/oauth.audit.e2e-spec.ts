import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { onPostgres } from './support/database.js';
import { OauthTest, PASSWORD } from './support/oauth.js';
import type { FormPage } from './support/oauth.js';
import { ServerProcess } from './support/server.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

const events = (clientId: string, userId: number) =>
  oauth.dataSource.query<Record<string, unknown>[]>(
    'SELECT type, actor, user_id, error_id, details FROM auth_events WHERE client_id = $1 OR user_id = $2 ORDER BY id',
    [clientId, userId],
  );

describe('the audit trail', () => {
  it('tells who signed in, what was consented to, and what became of the tokens', async () => {
    const member = await oauth.member();
    const clientId = await oauth.client();
    const { body } = await oauth.token(await oauth.code(clientId, member.username));
    await oauth.refresh(clientId, body.refresh_token);
    await oauth.age('oauth_tokens', 11);
    const reused = await oauth.refresh(clientId, body.refresh_token);
    const trail = await events(clientId, member.id);
    expect(trail.map(({ type, actor }) => `${String(actor)} ${String(type)}`)).toEqual([
      'admin client.created',
      'user sign_in.succeeded',
      'user consent.granted',
      'client token.issued',
      'client token.refreshed',
      'client token.reused',
      'client token.refused',
    ]);
    expect(trail.slice(1).every(({ user_id }) => Number(user_id) === member.id)).toBe(true);
    expect(trail.at(-1)!.error_id).toBe(reused.body.error_id);
    expect(trail.at(-1)!.details).toMatchObject({
      error: 'invalid_grant',
      reason: 'refresh token already used',
    });
  });

  // The log is what a process of its own writes, and the embedded database serves one process alone.
  (onPostgres ? it : it.skip)(
    'and the log hold the true reason of a refusal under its error id, and no secret',
    async () => {
      const server = await ServerProcess.start({
        ...oauth.api.environment,
        PUBLIC_URL: oauth.issuer,
        LOG_LEVEL: 'trace',
        LOG_FORMAT: 'json',
      });
      try {
        const member = await oauth.member();
        const clientId = await oauth.client();
        const browser = oauth.browser(server.url);
        const form = await oauth.code(clientId, member.username, {}, browser);
        const { body } = await oauth.token(form, {}, server.url);
        expect(await oauth.me(body.access_token, server.url)).toBe(200);
        const wrong = { ...form, code: 'x'.repeat(43) };
        const refused = await oauth.token(wrong, {}, server.url);
        expect(refused.body.error_description).toBe('grant request is invalid');
        const unknown = (await browser.open(oauth.request('nobody').url)) as FormPage;
        expect(unknown.html).toContain(unknown.headers.get('x-request-id'));

        const reasons = server.output
          .split('\n')
          .filter((line) => line.includes('"reason"'))
          .map((line) => JSON.parse(line) as Record<string, unknown>);
        expect(reasons).toEqual([
          expect.objectContaining({
            request_id: refused.body.error_id,
            reason: 'authorization code not found',
          }),
          expect.objectContaining({
            request_id: unknown.headers.get('x-request-id'),
            reason: 'client not found',
          }),
        ]);
        const trail = JSON.stringify(await oauth.dataSource.query('SELECT * FROM auth_events'));
        const interaction = [...browser.cookies.keys()].map((key) => key.split(';/interaction/')[1]);
        for (const secret of [
          form.code!,
          form.code_verifier!,
          body.access_token,
          body.refresh_token,
          body.id_token!,
          browser.cookies.get('pua_session;/')!.value,
          PASSWORD,
          ...interaction.filter((uid) => uid !== undefined),
        ]) {
          expect(server.output).not.toContain(secret);
          expect(trail).not.toContain(secret);
        }
      } finally {
        await server.kill();
      }
    },
    30_000,
  );
});
