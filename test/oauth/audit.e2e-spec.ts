import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { postgres } from '../support/database.js';
import { OauthTest, REDIRECT_URI } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

const events = (clientId: string, userId: number) =>
  oauth.query<Record<string, unknown>>(
    'SELECT type, actor, user_id, error_id, details FROM auth_events WHERE client_id = $1 OR user_id = $2 ORDER BY id',
    [clientId, userId],
  );

describe('the audit log', () => {
  it('records the sign-in, the consent, and issued, refreshed and reused tokens', async () => {
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
      reason: 'refresh_token_used',
    });
  });

  it('is written in one transaction with a consent, or the consent is not stored', async () => {
    const member = await oauth.member();
    const clientId = await oauth.client();
    await oauth.query(`CREATE FUNCTION refuse_consents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the trail is full'; END $$;
CREATE TRIGGER refuse_consents BEFORE INSERT ON auth_events FOR EACH ROW
  WHEN (NEW.type = 'consent.granted' AND NEW.client_id = '${clientId}') EXECUTE FUNCTION refuse_consents()`);
    try {
      await expect(oauth.code(clientId, member.username)).rejects.toThrow(/^500 at /);
    } finally {
      await oauth.query('DROP FUNCTION refuse_consents CASCADE');
    }
    const consents = 'SELECT FROM oauth_consents WHERE user_id = $1';
    expect(await oauth.query(consents, [member.id])).toEqual([]);
    await oauth.code(clientId, member.username);
    expect(await oauth.query(consents, [member.id])).toHaveLength(1);
  });

  // The test starts a second process, and the embedded database serves only one process.
  postgres.it('is complemented by the server log: reason and error id of each rejection', async () => {
    const server = await ServerProcess.start({
      ...oauth.api.environment,
      PUBLIC_URL: oauth.issuer,
      LOG_LEVEL: 'trace',
      LOG_FORMAT: 'json',
    });
    try {
      const browser = oauth.browser(server.url);
      const wrong = { code: 'x'.repeat(43), code_verifier: 'x'.repeat(43), redirect_uri: REDIRECT_URI };
      const refused = await oauth.token(
        { grant_type: 'authorization_code', client_id: await oauth.client(), ...wrong },
        {},
        server.url,
      );
      expect(refused.body.error_description).toBe('grant request is invalid');
      const unknown = await browser.view(oauth.request('nobody').url);
      expect(unknown.html).toContain(unknown.headers.get('x-request-id'));

      await server.kill();
      const reasons = server.output
        .split('\n')
        .filter((line) => line.includes('"reason"') && line.includes('"request_id"')) // not of background work
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(reasons).toEqual([
        expect.objectContaining({
          request_id: refused.body.error_id,
          reason: 'code_not_found',
        }),
        expect.objectContaining({
          request_id: unknown.headers.get('x-request-id'),
          reason: 'unknown_client',
        }),
      ]);
    } finally {
      await server.kill();
    }
  });
});
