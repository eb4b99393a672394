import { createHash, randomBytes } from 'node:crypto';
import { CLIENT_ID, done, ISSUER, me, REDIRECT_URI, signIn } from './harness.mjs';
// docs: simple-oauth2 · Code and refresh · no discovery, no PKCE; requires a secret, which stays empty
import { AuthorizationCode } from 'simple-oauth2';

const client = new AuthorizationCode({
  client: { id: CLIENT_ID, secret: '' },
  auth: { tokenHost: ISSUER, tokenPath: '/oauth/token', authorizePath: '/oauth/authorize' },
  options: { authorizationMethod: 'body' },
});
const [state, code_verifier] = [randomBytes(32).toString('hex'), randomBytes(32).toString('base64url')];
const code_challenge = createHash('sha256').update(code_verifier).digest('base64url');
const url = client.authorizeURL({
  redirect_uri: REDIRECT_URI,
  scope: 'profile:read events:read',
  state,
  code_challenge,
  code_challenge_method: 'S256',
});
const back = new URL(await signIn(url)).searchParams;
if (back.get('state') !== state) throw new Error('not the sign-in that was begun here');
const code = back.get('code');
const tokens = await client.getToken({ code, redirect_uri: REDIRECT_URI, code_verifier });
const renewed = await tokens.refresh();
// end
const names = [await me(tokens.token.access_token), await me(renewed.token.access_token)];
await renewed.revokeAll();
done(...names);
