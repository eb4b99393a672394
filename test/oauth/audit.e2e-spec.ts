import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { postgres } from '../support/database.js';
import { OauthTest, REDIRECT_URI } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

describe('the audit log', () => {
  it('records the sign-in, the consent, and issued, refreshed and reused tokens', async () => {
    const { clientId, ...member } = await oauth.memberAndClient();
    const { body } = await oauth.token(await oauth.code(clientId, member.username));
    await oauth.refresh(clientId, body.refresh_token);
    await oauth.age('oauth_tokens', 11);
    const reused = await oauth.refresh(clientId, body.refresh_token);
    const trail = await oauth.events({ user: member.id });
    expect(trail.map(({ type, actor }) => `${actor} ${type}`)).toEqual([
      'user sign_in.succeeded',
      'user consent.granted',
      'client token.issued',
      'client token.refreshed',
      'client token.reused',
      'client token.refused',
    ]);
    expect(trail.at(-1)).toMatchObject({
      error_id: reused.body.error_id,
      details: { error: 'invalid_grant', reason: 'refresh_token_used' },
    });
  });

  // The test starts a second process, and the embedded database serves only one process.
  postgres.it(
    'is complemented by the server log, which has the reason and error id of a rejection',
    async () => {
      const settings = { PUBLIC_URL: oauth.issuer, LOG_LEVEL: 'trace', LOG_FORMAT: 'json' };
      const server = await ServerProcess.start({ ...oauth.api.environment, ...settings });
      try {
        const browser = oauth.browser(server.url);
        const wrong = { code: 'x'.repeat(43), code_verifier: 'x'.repeat(43), redirect_uri: REDIRECT_URI };
        const form = { grant_type: 'authorization_code', client_id: await oauth.client(), ...wrong };
        const refused = await oauth.token(form, {}, server.url);
        expect(refused.body.error_description).toBe('grant request is invalid');
        const unknown = await browser.view(oauth.request('nobody').url);
        expect(unknown.html).toContain(unknown.headers.get('x-request-id'));

        await server.kill();
        const reasons = server.output
          .split('\n')
          .filter((line) => line.includes('"reason"') && line.includes('"request_id"')) // not of background work
          .map((line) => JSON.parse(line) as Record<string, unknown>);
        expect(reasons).toMatchObject([
          { request_id: refused.body.error_id, reason: 'code_not_found' },
          { request_id: unknown.headers.get('x-request-id'), reason: 'unknown_client' },
        ]);
      } finally {
        await server.kill();
      }
    },
  );
});
