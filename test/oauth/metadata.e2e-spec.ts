import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ALL_SCOPES } from '../../src/auth/scopes.js';
import { PROFILES } from '../../src/clients/profiles.js';
import { idleSeconds, secondsOf } from '../../src/clients/access-durations.js';
import { LIFETIMES } from '../../src/authorization-server/lifetimes.js';
import { OauthTest } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

describe('metadata', () => {
  it.each(['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'])(
    'at %s states the server’s capabilities',
    async (path) => {
      const response = await fetch(oauth.issuer + path);
      const { issuer } = oauth;
      const authMethods = ['none', 'private_key_jwt', 'client_secret_basic', 'client_secret_post'];
      const algorithms = Object.values(PROFILES).flatMap(({ assertionAlgorithms }) => assertionAlgorithms);
      const metadata = (await response.json()) as object;
      expect(metadata).toMatchObject({
        issuer,
        authorization_endpoint: `${issuer}/oauth/authorize`,
        token_endpoint: `${issuer}/oauth/token`,
        revocation_endpoint: `${issuer}/oauth/revoke`,
        introspection_endpoint: `${issuer}/oauth/introspect`,
        userinfo_endpoint: `${issuer}/oauth/userinfo`,
        jwks_uri: `${issuer}/oauth/jwks`,
        pushed_authorization_request_endpoint: `${issuer}/oauth/par`,
        end_session_endpoint: `${issuer}/oauth/logout`,
        response_types_supported: ['code'],
        response_modes_supported: ['query', 'form_post'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: authMethods,
        revocation_endpoint_auth_methods_supported: authMethods,
        introspection_endpoint_auth_methods_supported: authMethods,
        token_endpoint_auth_signing_alg_values_supported: expect.arrayContaining(algorithms),
        backchannel_logout_supported: true,
        backchannel_logout_session_supported: true,
        ui_locales_supported: ['en', 'de', 'fr'],
        id_token_signing_alg_values_supported: ['ES256', 'RS256'],
        authorization_response_iss_parameter_supported: true,
        scopes_supported: ['openid', 'offline_access', 'profile', ...ALL_SCOPES],
        protected_resources: [`${issuer}/api/public`],
      });
      const unsupported = /^(frontchannel|require_pushed_authorization_requests)/;
      expect(Object.keys(metadata).filter((name) => unsupported.test(name))).toEqual([]);
      expect(response.headers.get('access-control-allow-origin')).toBe('*');
    },
  );

  it('of the API as a protected resource names the authorization server (RFC 9728)', async () => {
    expect(await oauth.json('/.well-known/oauth-protected-resource/api/public')).toMatchObject({
      resource: `${oauth.issuer}/api/public`,
      authorization_servers: [oauth.issuer],
      bearer_methods_supported: ['header'],
    });
  });
});

describe('lifetimes', () => {
  const { grant } = LIFETIMES;
  const idle = [true, false].map((isPublicBrowser) => idleSeconds({ isPublicBrowser }));
  const { accessToken, maxSession, session, authorizationCode } = LIFETIMES;

  it.each<[string, boolean]>([
    ['a grant outlives every refresh token', grant >= Math.max(...idle)],
    ['a refresh token outlives its access token', Math.min(...idle) > accessToken],
    [
      'one-time access outlives its code and its access token',
      secondsOf('once')! >= authorizationCode + accessToken,
    ],
    ['a browser session’s longest lifetime is at least its idle lifetime', maxSession >= session],
    ['an authorization code is valid for 10 minutes at most (RFC 6749 §4.1.2)', authorizationCode <= 600],
  ])('%s', (_, holds) => expect(holds).toBe(true));
});
