import { createHash, randomBytes } from 'node:crypto';
import { CLIENT_ID, done, ISSUER, me, REDIRECT_URI, signIn } from './harness.mjs';
// docs: client-oauth2 · Code and refresh · no discovery, no PKCE; no longer developed
import ClientOAuth2 from 'client-oauth2';

const code_verifier = randomBytes(32).toString('base64url');
const client = new ClientOAuth2({
  clientId: CLIENT_ID,
  clientSecret: '',
  accessTokenUri: `${ISSUER}/oauth/token`,
  authorizationUri: `${ISSUER}/oauth/authorize`,
  redirectUri: REDIRECT_URI,
  scopes: ['profile:read', 'events:read'],
  state: randomBytes(16).toString('hex'),
});
const code_challenge = createHash('sha256').update(code_verifier).digest('base64url');
const url = client.code.getUri({ query: { code_challenge, code_challenge_method: 'S256' } });
const tokens = await client.code.getToken(await signIn(url), { body: { code_verifier } });
const renewed = await tokens.refresh();
// end
done(await me(tokens.accessToken), await me(renewed.accessToken));
