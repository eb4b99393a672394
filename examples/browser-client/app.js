// Signs a member in with OAuth 2.0 code and PKCE (RFC 7636, RFC 9700 §2.1.1), then reads the API. Tokens stay in memory:
// whoever reloads the page signs in again, and no script of another page finds them.
const CLIENT_ID = 'demo';
const SCOPE = 'profile:read events:read';
const REDIRECT_URI = `${location.origin}/demo/callback`;

const element = (id) => document.getElementById(id);
const say = (text) => (element('status').textContent = text);
const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

async function readJson(url, options) {
  const response = await fetch(url, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error_description ?? body.detail ?? response.statusText);
  return body;
}

const discover = () => readJson('/.well-known/oauth-authorization-server');

/** @param prompt `consent`: ask the member again, also for what was refused before (OpenID Connect Core §3.1.2.1) */
async function signIn(prompt) {
  const { authorization_endpoint, issuer } = await discover();
  const [verifier, state] = [random(), random()];
  sessionStorage.setItem('sign-in', JSON.stringify({ verifier, state, issuer }));
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  location.assign(
    `${authorization_endpoint}?${new URLSearchParams({
      client_id: CLIENT_ID,
      response_type: 'code',
      redirect_uri: REDIRECT_URI,
      scope: SCOPE,
      state,
      code_challenge: base64url(new Uint8Array(digest)),
      code_challenge_method: 'S256',
      ...(prompt ? { prompt } : {}),
    })}`,
  );
}

/** Redeems the code that the authorization server sent back, once. */
async function finishSignIn() {
  const answer = new URLSearchParams(location.search);
  const begun = JSON.parse(sessionStorage.getItem('sign-in') ?? 'null');
  sessionStorage.removeItem('sign-in');
  history.replaceState(null, '', '/demo'); // the code is used up: nothing of it stays in the address
  if (!begun || answer.get('state') !== begun.state || answer.get('iss') !== begun.issuer)
    throw new Error('This answer belongs to no sign-in of this tab.');
  if (answer.has('error')) throw new Error(answer.get('error_description') ?? answer.get('error'));
  const { token_endpoint } = await discover();
  return readJson(token_endpoint, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: CLIENT_ID,
      code: answer.get('code'),
      code_verifier: begun.verifier,
      redirect_uri: REDIRECT_URI,
    }),
  });
}

async function show({ access_token, scope }) {
  const call = (path) =>
    readJson(`/api/public${path}`, { headers: { Authorization: `Bearer ${access_token}` } });
  const granted = scope.split(' ');
  if (granted.includes('profile:read')) {
    const profile = await call('/profile');
    element('name').textContent = `${profile.display_name} (@${profile.username})`;
    element('bio').textContent = profile.bio ?? '';
  }
  if (granted.includes('events:read')) {
    const { data } = await call('/events?limit=10');
    element('events').replaceChildren(
      ...data.map(({ title, starts_at_local, role }) => {
        const item = document.createElement('li');
        item.textContent = `${starts_at_local} – ${title} (${role})`;
        return item;
      }),
    );
  }
  const refused = SCOPE.split(' ').filter((name) => !granted.includes(name));
  element('refused').hidden = refused.length === 0;
  element('refused-scopes').textContent = refused.join(', ');
  element('result').hidden = false;
  element('sign-out').hidden = false;
}

element('sign-in').addEventListener('click', () => signIn().catch((error) => say(error.message)));
element('ask-again').addEventListener('click', () => signIn('consent').catch((error) => say(error.message)));
element('sign-out').addEventListener('click', () => location.assign('/demo'));

if (location.pathname === '/demo/callback') {
  say('Signing in …');
  try {
    const tokens = await finishSignIn();
    await show(tokens);
    say(`Signed in, with ${tokens.scope || 'no scope of the API'}.`);
  } catch (error) {
    say(error.message);
  }
}
