import { ISSUER, CLIENT_ID, REDIRECT_URI, begin, done, me } from './harness.js';
// docs: oidc-client-ts · Discovery, PKCE, ID tokens, automatic renewal; used by react-oidc-context · no renewal in a hidden frame, only by refresh token
import { UserManager } from 'oidc-client-ts';

const users = new UserManager({
  authority: ISSUER,
  client_id: CLIENT_ID,
  redirect_uri: REDIRECT_URI,
  scope: 'openid profile:read events:read',
});
if (begin) await users.signinRedirect();
else {
  const user = await users.signinRedirectCallback();
  const renewed = await users.signinSilent(); // by the refresh token
  // end
  const names = [await me(user.access_token), await me(renewed.access_token)];
  users.startSilentRenew();
  users.stopSilentRenew();
  await users.clearStaleState();
  await users.revokeTokens();
  await users.removeUser();
  if ((await users.getUser()) !== null) throw new Error('the user stays');
  await users.storeUser(user); // its ID token is the hint of the sign-out
  globalThis.signOut = () =>
    users.signoutRedirect({ post_logout_redirect_uri: new URL('/signed-out', REDIRECT_URI).href });
  done(...names);
}
