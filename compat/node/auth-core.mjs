import { CLIENT_ID, CLIENT_SECRET, done, ISSUER, me, signIn } from './harness.mjs';
// auth: client_secret_basic
// docs: @auth/core · Auth.js, for Next.js, SvelteKit, Express and Qwik: discovery, PKCE, ID tokens and sessions · renewal in the callback jwt
import { Auth } from '@auth/core';

const config = {
  basePath: '/auth', // the redirect URI is <your site>/auth/callback/platform
  trustHost: true,
  secret: crypto.randomUUID(),
  providers: [
    {
      id: 'platform',
      name: 'Platform',
      type: 'oidc',
      issuer: ISSUER,
      clientId: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
      authorization: { params: { scope: 'openid profile profile:read events:read' } },
    },
  ],
  callbacks: {
    async jwt({ token, account }) {
      if (account) return { ...token, ...tokensOf(account) };
      if (Date.now() < token.expires_at * 1000) return token;
      const response = await fetch(`${ISSUER}/oauth/token`, {
        method: 'POST',
        headers: { Authorization: `Basic ${btoa(`${CLIENT_ID}:${CLIENT_SECRET}`)}` },
        body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token.refresh_token }),
      });
      if (!response.ok) return null; // signs the member out
      const { expires_in, ...tokens } = await response.json();
      return { ...token, ...tokensOf({ ...tokens, expires_at: Math.floor(Date.now() / 1000) + expires_in }) };
    },
    session: ({ session, token }) => ({ ...session, access_token: token.access_token }), // only where no page reads it
  },
};
const tokensOf = ({ access_token, refresh_token, expires_at }) => ({
  access_token,
  refresh_token,
  expires_at,
});
// end

// Sends the requests that a browser would send.
const site = 'https://app.example';
const cookies = new Map();
async function ask(path, init = {}) {
  const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
  const response = await Auth(
    new Request(site + path, { ...init, headers: { ...init.headers, cookie } }),
    config,
  );
  for (const line of response.headers.getSetCookie()) {
    const [name, value] = line.split(';')[0].split(/=(.*)/);
    if (/max-age=0|1970/i.test(line)) cookies.delete(name);
    else cookies.set(name, value);
  }
  return response;
}
const { csrfToken } = await (await ask('/auth/csrf')).json();
const begun = await ask('/auth/signin/platform', {
  method: 'POST',
  body: new URLSearchParams({ csrfToken, callbackUrl: site }),
});
const { pathname, search } = new URL(await signIn(begun.headers.get('location')));
const returned = await ask(pathname + search);
if (returned.headers.get('location') !== site) throw new Error(`sent to ${returned.headers.get('location')}`);
const first = await (await ask('/auth/session')).json();
const { jwt } = config.callbacks;
config.callbacks.jwt = (parts) => jwt({ ...parts, token: { ...parts.token, expires_at: 0 } }); // the token has expired
const second = await (await ask('/auth/session')).json();
if (first.access_token === second.access_token) throw new Error('the token was not renewed');
done(await me(first.access_token), await me(second.access_token));
