import { CLIENT_ID, done, ISSUER, me, REDIRECT_URI, signIn } from './harness.mjs';
// docs: openid-client · Discovery, PKCE, PAR, DPoP and private_key_jwt · nothing
import * as client from 'openid-client';

const http = { execute: [client.allowInsecureRequests] }; // for a server on your own machine alone
const config = await client.discovery(new URL(ISSUER), CLIENT_ID, undefined, client.None(), http);
const [pkceCodeVerifier, expectedState] = [client.randomPKCECodeVerifier(), client.randomState()];
const url = client.buildAuthorizationUrl(config, {
  redirect_uri: REDIRECT_URI,
  scope: 'profile:read events:read',
  code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
  code_challenge_method: 'S256',
  state: expectedState,
});
const back = await signIn(url); // the address at which the member came back
const tokens = await client.authorizationCodeGrant(config, new URL(back), {
  pkceCodeVerifier,
  expectedState,
});
const renewed = await client.refreshTokenGrant(config, tokens.refresh_token);
// end
done(await me(tokens.access_token), await me(renewed.access_token));
