import { CLIENT_ID, done, ISSUER, me, REDIRECT_URI, signIn } from './harness.mjs';
// docs: oauth4webapi · Discovery, PKCE, PAR, DPoP and private_key_jwt; for Node, Deno, Bun, workers and browsers · nothing
import * as oauth from 'oauth4webapi';

const http = { [oauth.allowInsecureRequests]: true }; // for a server on your own machine alone
const issuer = new URL(ISSUER);
const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...http });
const server = await oauth.processDiscoveryResponse(issuer, found);
const client = { client_id: CLIENT_ID };
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
  await oauth.authorizationCodeGrantRequest(server, client, oauth.None(), back, REDIRECT_URI, verifier, http),
);
// end
const renewed = await oauth.processRefreshTokenResponse(
  server,
  client,
  await oauth.refreshTokenGrantRequest(server, client, oauth.None(), tokens.refresh_token, http),
);
done(await me(tokens.access_token), await me(renewed.access_token));
