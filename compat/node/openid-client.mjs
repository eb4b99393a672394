import { AUTH, CLIENT_ID, CLIENT_SECRET, done, ISSUER, me, REDIRECT_URI, signIn } from './harness.mjs';
// auth: none client_secret_basic client_secret_post
const authentication = {
  none: () => client.None(),
  client_secret_basic: () => client.ClientSecretBasic(CLIENT_SECRET),
  client_secret_post: () => client.ClientSecretPost(CLIENT_SECRET),
}[AUTH]();
// docs: openid-client · Discovery, PKCE, PAR, DPoP and private_key_jwt · nothing
import * as client from 'openid-client';

const http = { execute: [client.allowInsecureRequests] }; // only for a server on your own machine
// `authentication` is client.None(), or with a secret client.ClientSecretBasic(CLIENT_SECRET).
const config = await client.discovery(new URL(ISSUER), CLIENT_ID, undefined, authentication, http);
const [pkceCodeVerifier, expectedState] = [client.randomPKCECodeVerifier(), client.randomState()];
const url = client.buildAuthorizationUrl(config, {
  redirect_uri: REDIRECT_URI,
  scope: 'profile:read events:read',
  code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
  code_challenge_method: 'S256',
  state: expectedState,
});
const back = await signIn(url); // the URL to which the server redirected the member
const tokens = await client.authorizationCodeGrant(config, new URL(back), {
  pkceCodeVerifier,
  expectedState,
});
const renewed = await client.refreshTokenGrant(config, tokens.refresh_token);
// end
const names = [await me(tokens.access_token), await me(renewed.access_token)];
await client.buildAuthorizationUrlWithPAR(config, Object.fromEntries(url.searchParams));
client.buildEndSessionUrl(config, { post_logout_redirect_uri: REDIRECT_URI });
const isActive = async () => (await client.tokenIntrospection(config, renewed.access_token)).active;
const before = await isActive();
await client.tokenRevocation(config, renewed.refresh_token);
if (!before || (await isActive())) throw new Error('introspection or revocation failed');
done(...names);
