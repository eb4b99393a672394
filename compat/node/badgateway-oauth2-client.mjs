import { CLIENT_ID, done, ISSUER, me, REDIRECT_URI, signIn } from './harness.mjs';
// docs: @badgateway/oauth2-client · Discovery, PKCE; for Node and browsers · no ID tokens
import { generateCodeVerifier, OAuth2Client } from '@badgateway/oauth2-client';

const client = new OAuth2Client({
  server: ISSUER,
  clientId: CLIENT_ID,
  authenticationMethod: 'client_secret_post',
});
const [state, codeVerifier] = [crypto.randomUUID(), await generateCodeVerifier()];
const scope = ['profile:read', 'events:read'];
const flow = client.authorizationCode;
const back = await signIn(
  await flow.getAuthorizeUri({ redirectUri: REDIRECT_URI, state, codeVerifier, scope }),
);
const tokens = await flow.getTokenFromCodeRedirect(back, { redirectUri: REDIRECT_URI, state, codeVerifier });
const renewed = await client.refreshToken(tokens);
// end
const names = [await me(tokens.accessToken), await me(renewed.accessToken)];
const { active } = await client.introspect(renewed);
await client.revoke(renewed, 'refresh_token');
if (!active || (await client.introspect(renewed)).active)
  throw new Error('introspection or revocation failed');
done(...names);
