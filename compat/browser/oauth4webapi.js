import { ISSUER, CLIENT_ID, REDIRECT_URI, begin, done, me } from './harness.js';
// docs: oauth4webapi · The same as in Node · nothing
import * as oauth from 'oauth4webapi';

const http = { [oauth.allowInsecureRequests]: true }; // only for a server on your own machine
const issuer = new URL(ISSUER);
const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...http });
const server = await oauth.processDiscoveryResponse(issuer, found);
const client = { client_id: CLIENT_ID };
if (begin) {
  const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()];
  sessionStorage.setItem('sign-in', JSON.stringify({ verifier, state }));
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
  location.assign(url);
} else {
  const { verifier, state } = JSON.parse(sessionStorage.getItem('sign-in'));
  const back = oauth.validateAuthResponse(server, client, new URL(location.href), state);
  const answer = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    back,
    REDIRECT_URI,
    verifier,
    http,
  );
  const tokens = await oauth.processAuthorizationCodeResponse(server, client, answer);
  // end
  const renewed = await oauth.processRefreshTokenResponse(
    server,
    client,
    await oauth.refreshTokenGrantRequest(server, client, oauth.None(), tokens.refresh_token, http),
  );
  const names = [await me(tokens.access_token), await me(renewed.access_token)];
  const revocation = await oauth.revocationRequest(server, client, oauth.None(), renewed.refresh_token, http);
  await oauth.processRevocationResponse(revocation);
  done(...names);
}
