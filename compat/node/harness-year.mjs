// Signs a member in once with oidc-client-ts, and prints their profile for each further line.
import { createInterface } from 'node:readline';
import { InMemoryWebStorage, OidcClient, UserManager, WebStorageStateStore } from 'oidc-client-ts';
import { CLIENT_ID, ISSUER, REDIRECT_URI } from './harness.mjs';

const settings = {
  authority: ISSUER,
  client_id: CLIENT_ID,
  redirect_uri: REDIRECT_URI,
  scope: 'openid profile:read',
  stateStore: new WebStorageStateStore({ store: new InMemoryWebStorage() }),
};
const users = new UserManager({ ...settings, automaticSilentRenew: false });
const renew = () => users.signinSilent(); // by the refresh token
console.log((await new OidcClient(settings).createSigninRequest({})).url);
for await (const line of createInterface({ input: process.stdin })) {
  if (line.startsWith('https:')) await users.signinRedirectCallback(line);
  const { access_token } = await renew().catch(renew);
  const headers = { Authorization: `Bearer ${access_token}` };
  console.log((await (await fetch(`${ISSUER}/api/public/me`, { headers })).json()).id);
}
