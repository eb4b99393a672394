import { createServer } from 'node:http';
import { CLIENT_ID, CLIENT_SECRET, done, ISSUER, me, REDIRECT_URI, signIn } from './harness.mjs';
// auth: none client_secret_post
// docs: passport-oauth2 · Sign-in for Express, with PKCE and state in the session · no discovery; renewal by oauth2.getOAuthAccessToken
import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { Strategy } from 'passport-oauth2';

const options = {
  authorizationURL: `${ISSUER}/oauth/authorize`,
  tokenURL: `${ISSUER}/oauth/token`,
  clientID: CLIENT_ID,
  clientSecret: CLIENT_SECRET, // empty for a public client
  callbackURL: REDIRECT_URI,
  scope: ['profile:read', 'events:read'],
  pkce: true,
  state: true,
};
passport.use(
  new Strategy(options, (token, refreshToken, profile, end) => end(null, { token, refreshToken })),
);
const app = express();
app.use(session({ secret: crypto.randomUUID(), resave: false, saveUninitialized: false }));
app.get('/sign-in', passport.authenticate('oauth2', { session: false }));
app.get('/callback', passport.authenticate('oauth2', { session: false }), (request, response) =>
  response.json(request.user),
);
// end
const server = createServer(app).listen(0, '127.0.0.1', async () => {
  const origin = `http://127.0.0.1:${server.address().port}`;
  const begun = await fetch(`${origin}/sign-in`, { redirect: 'manual' });
  const cookie = begun.headers.get('set-cookie').split(';')[0];
  const { search } = new URL(await signIn(begun.headers.get('location')));
  const { token, refreshToken } = await (
    await fetch(`${origin}/callback${search}`, { headers: { cookie } })
  ).json();
  const { _oauth2: oauth2 } = passport._strategy('oauth2');
  oauth2.getOAuthAccessToken(refreshToken, { grant_type: 'refresh_token' }, async (error, renewed) =>
    done(await me(token), await me(renewed)),
  );
});
