import { ISSUER, CLIENT_ID, REDIRECT_URI, begin, done, me } from './harness.js';
// docs: @openid/appauth · PKCE and discovery for browsers, Electron and Node; the flow of AppAuth for iOS and Android · no verification of ID tokens
import {
  AuthorizationRequest,
  AuthorizationServiceConfiguration,
  AuthorizationNotifier,
  BaseTokenRequestHandler,
  FetchRequestor,
  LocalStorageBackend,
  RedirectRequestHandler,
  BasicQueryStringUtils,
  DefaultCrypto,
  TokenRequest,
} from '@openid/appauth';

const http = new FetchRequestor();
const server = await AuthorizationServiceConfiguration.fetchFromIssuer(ISSUER, http);
const query = Object.assign(new BasicQueryStringUtils(), {
  parse: ({ search }) => Object.fromEntries(new URLSearchParams(search)), // not in the fragment
});
const handler = new RedirectRequestHandler(new LocalStorageBackend(), query, location, new DefaultCrypto());
const client = { client_id: CLIENT_ID, redirect_uri: REDIRECT_URI };
const notifier = new AuthorizationNotifier();
handler.setAuthorizationNotifier(notifier);
notifier.setAuthorizationListener(async (request, response) => {
  const tokens = new BaseTokenRequestHandler(http);
  const code_verifier = request.internal.code_verifier;
  const code = {
    ...client,
    grant_type: 'authorization_code',
    code: response.code,
    extras: { code_verifier },
  };
  const first = await tokens.performTokenRequest(server, new TokenRequest(code));
  const refresh = { ...client, grant_type: 'refresh_token', refresh_token: first.refreshToken };
  const renewed = await tokens.performTokenRequest(server, new TokenRequest(refresh));
  // end
  const names = [await me(first.accessToken), await me(renewed.accessToken)];
  const { RevokeTokenRequest } = await import('@openid/appauth');
  const token = { token: renewed.refreshToken, client_id: CLIENT_ID };
  await tokens.performRevokeTokenRequest(server, new RevokeTokenRequest(token));
  done(...names);
});
const asked = { ...client, scope: 'profile:read events:read', response_type: 'code' };
if (begin) handler.performAuthorizationRequest(server, new AuthorizationRequest(asked));
else await handler.completeAuthorizationRequestIfPossible();
