import { CLIENT_ID, done, ISSUER, me, REDIRECT_URI, signIn } from './harness.mjs';
// docs: arctic · PKCE · no discovery; comparing `state`
import { CodeChallengeMethod, generateCodeVerifier, generateState, OAuth2Client } from 'arctic';

const client = new OAuth2Client(CLIENT_ID, null, REDIRECT_URI);
const [state, verifier] = [generateState(), generateCodeVerifier()];
const url = client.createAuthorizationURLWithPKCE(
  `${ISSUER}/oauth/authorize`,
  state,
  CodeChallengeMethod.S256,
  verifier,
  ['profile:read', 'events:read'],
);
const { searchParams } = new URL(await signIn(url));
if (searchParams.get('state') !== state) throw new Error('not the sign-in that was begun here');
const endpoint = `${ISSUER}/oauth/token`;
const tokens = await client.validateAuthorizationCode(endpoint, searchParams.get('code'), verifier);
const renewed = await client.refreshAccessToken(endpoint, tokens.refreshToken(), []);
// end
const names = [await me(tokens.accessToken()), await me(renewed.accessToken())];
await client.revokeToken(`${ISSUER}/oauth/revoke`, renewed.refreshToken());
done(...names);
