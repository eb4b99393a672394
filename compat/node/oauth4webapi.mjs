import { AUTH, CLIENT_ID, CLIENT_SECRET, done, ISSUER, me, REDIRECT_URI, signIn } from './harness.mjs';
// auth: none client_secret_basic client_secret_post
const authentication = {
  none: () => oauth.None(),
  client_secret_basic: () => oauth.ClientSecretBasic(CLIENT_SECRET),
  client_secret_post: () => oauth.ClientSecretPost(CLIENT_SECRET),
}[AUTH]();
// docs: oauth4webapi · Discovery, PKCE, PAR, DPoP and private_key_jwt; for Node, Deno, Bun, workers and browsers · nothing
import * as oauth from 'oauth4webapi';

const http = { [oauth.allowInsecureRequests]: true }; // only for a server on your own machine
const issuer = new URL(ISSUER);
const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...http });
const server = await oauth.processDiscoveryResponse(issuer, found);
const client = { client_id: CLIENT_ID }; // its `authentication`: oauth.None(), or with a secret oauth.ClientSecretBasic(CLIENT_SECRET)
const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()];
const url = new URL(server.authorization_endpoint);
url.search = new URLSearchParams({
  client_id: CLIENT_ID,
  response_type: 'code',
  redirect_uri: REDIRECT_URI,
  scope: 'profile:read events:read',
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
  state,
});
const back = oauth.validateAuthResponse(server, client, new URL(await signIn(url)), state);
const tokens = await oauth.processAuthorizationCodeResponse(
  server,
  client,
  await oauth.authorizationCodeGrantRequest(
    server,
    client,
    authentication,
    back,
    REDIRECT_URI,
    verifier,
    http,
  ),
);
// end
const renewed = await oauth.processRefreshTokenResponse(
  server,
  client,
  await oauth.refreshTokenGrantRequest(server, client, authentication, tokens.refresh_token, http),
);
const names = [await me(tokens.access_token), await me(renewed.access_token)];
const pushed = await oauth.pushedAuthorizationRequest(server, client, authentication, url.searchParams, http);
await oauth.processPushedAuthorizationResponse(server, client, pushed);
const isActive = async () => {
  const response = await oauth.introspectionRequest(
    server,
    client,
    authentication,
    renewed.access_token,
    http,
  );
  return (await oauth.processIntrospectionResponse(server, client, response)).active;
};
const before = await isActive();
await oauth.processRevocationResponse(
  await oauth.revocationRequest(server, client, authentication, renewed.refresh_token, http),
);
if (!before || (await isActive())) throw new Error('introspection or revocation failed');
done(...names);
