// A browser app that signs a member in with OAuth 2.0 code and PKCE, and shows the data that they share. The client library
// (clients/typescript) sends all API requests; this file builds the page. Tokens stay in memory: after a reload, the member signs in
// again, and no other page's script can read them.
import { bearer, PublicUserApi, SignIn } from './client/index.js';

const { issuer: given, clientId } = document.documentElement.dataset;
const issuer = given || location.origin;
const SCOPE = 'openid profile profile:read events:read connections:read achievements:read';

const memory = new Map();
const session = new SignIn({
  issuer,
  clientId,
  redirectUri: `${location.origin}/demo/callback`,
  scope: SCOPE,
  storage: {
    getItem: (name) => memory.get(name) ?? null,
    setItem: (name, value) => void memory.set(name, value),
    removeItem: (name) => void memory.delete(name),
  },
  fetch: watched,
});
const api = new PublicUserApi({ baseUrl: issuer, credentials: session, fetch: watched });

// The panel with requests and responses.

const SECRETS = /^(code|code_verifier|access_token|refresh_token|id_token|token|state)$/;
const shortened = (text) => (text.length > 12 ? `${text.slice(0, 6)}…` : text);
const shown = (name, value) => (SECRETS.test(name) && typeof value === 'string' ? shortened(value) : value);
const shownParameters = (parameters) =>
  [...parameters].map(([name, value]) => `  ${name}=${shown(name, value)}`).join('\n');
const shownJson = (body) => JSON.stringify(body, (name, value) => shown(name, value), 2);

/** Shows a call's request and response. */
let watcher = () => {};

/** `fetch` that also records the request and response. */
async function watched(url, request = {}) {
  const response = await fetch(url, request);
  const { pathname, search } = new URL(url);
  const { Authorization: authorization } = request.headers ?? {};
  const sent = [
    `${request.method ?? 'GET'} ${pathname}${search}`,
    ...(authorization ? [`Authorization: Bearer ${shortened(authorization.slice('Bearer '.length))}`] : []),
    ...(request.body instanceof URLSearchParams ? [shownParameters(request.body)] : []),
  ].join('\n');
  const body = await response
    .clone()
    .json()
    .catch(() => undefined);
  const received = [`${response.status} ${response.statusText}`, ...(body ? [shownJson(body)] : [])].join(
    '\n',
  );
  if (!pathname.startsWith('/.well-known/')) watcher(sent, received);
  return response;
}

/** Runs `work`; the step shows its first request and response. */
async function watch(step, work) {
  watcher = (sent, received) => {
    watcher = () => {};
    show(step, ['Sent', sent], ['Received', received]);
  };
  try {
    return await work();
  } finally {
    watcher = () => {};
  }
}

function show(step, ...texts) {
  step.classList.add('done');
  const exchange = make('div', 'exchange');
  exchange.append(
    ...texts.map(([label, text]) => {
      const figure = make('figure');
      const block = make('pre', '', text);
      block.tabIndex = 0; // a scrolling block must be reachable by keyboard
      figure.append(make('figcaption', '', label), block);
      return figure;
    }),
  );
  step.append(exchange);
}

// The page.

const element = (id) => document.getElementById(id);
const step = (name) => document.querySelector(`[data-step=${name}]`);
const say = (text) => (element('status').textContent = text);
const reveal = (...ids) => ids.forEach((id) => (element(id).hidden = false));

function make(name, className = '', text = '') {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

/** Handles a button; shows an error if the action fails. */
function on(id, action) {
  element(id).addEventListener('click', async ({ currentTarget }) => {
    currentTarget.disabled = true;
    await action().catch((error) => say(error.message));
    currentTarget.disabled = false;
  });
}

/** @param prompt `consent`: ask the member again, also for scopes that they declined before */
async function signIn(prompt) {
  const url = await session.begin(prompt);
  sessionStorage.setItem('request', url.href);
  location.assign(url);
}

async function finish() {
  const back = new URL(location.href);
  const request = sessionStorage.getItem('request');
  sessionStorage.removeItem('request');
  history.replaceState(null, '', '/demo'); // the code is used: remove it from the URL
  if (request) {
    const { pathname, searchParams } = new URL(request);
    show(step('request'), ['Sent', `GET ${pathname}\n${shownParameters(searchParams)}`]);
  }
  show(step('code'), ['Received', `GET ${back.pathname}\n${shownParameters(back.searchParams)}`]);
  const scope = await watch(step('token'), () => session.finish(back));
  reveal('sign-out', 'after');
  element('sign-in').hidden = element('who').hidden = true;
  say(`Signed in, with ${scope || 'no API scope'}.`);
  await showMember(scope.split(' '));
}

async function showMember(granted) {
  const asked = SCOPE.split(' ').filter((name) => name.includes(':'));
  const refused = asked.filter((name) => !granted.includes(name));
  element('refused-scopes').textContent = refused.join(', ');
  element('refused').hidden = refused.length === 0;
  await watch(step('call'), () => api.credential());
  if (granted.includes('profile:read')) {
    const profile = await api.profile();
    element('initial').textContent = profile.display_name.slice(0, 1);
    element('member-name').textContent = profile.display_name;
    element('username').textContent = `@${profile.username}`;
    element('bio').textContent = profile.bio ?? '';
    element('counts').textContent =
      `${profile.connections_count} connections · ${profile.achievements_count} achievements`;
  } else element('member-name').textContent = 'A member who shares no profile';
  reveal('member');
  if (granted.includes('events:read'))
    await list('events', api.events({ limit: 8, sort: 'starts_at', time_filter: 'upcoming' }), eventItem);
  if (granted.includes('connections:read'))
    await list('connections', api.connections({ limit: 6 }), personItem);
  if (granted.includes('achievements:read')) {
    const pinned = await api.pinnedAchievements();
    const { data } = await api.allAchievements({ limit: 9 }).page();
    const others = data.filter(({ id }) => pinned.every((one) => one.id !== id));
    fill('achievements', [...pinned, ...others].map(achievementItem));
  }
}

async function list(id, found, itemOf) {
  const { data } = await found.page();
  fill(id, data.map(itemOf));
}

function fill(id, items) {
  reveal(id);
  const target = element(id).querySelector('ol, ul');
  target.replaceChildren(...(items.length > 0 ? items : [make('li', 'quiet', 'Nothing yet.')]));
}

/** Shows the event's local time, regardless of the browser's time zone. */
function eventItem({
  title,
  starts_at_local,
  timezone,
  location: place,
  is_online,
  is_all_day,
  role,
  rsvp_status,
  status,
}) {
  const local = new Date(`${starts_at_local.replace(' ', 'T')}Z`);
  const part = (options) => local.toLocaleString('en-GB', { timeZone: 'UTC', ...options });
  const item = make('li', 'event');
  const date = make('time', 'date');
  date.dateTime = starts_at_local.replace(' ', 'T');
  date.append(
    make('span', 'month', part({ month: 'short' })),
    make('span', 'day', part({ day: 'numeric' })),
    make('span', 'weekday', part({ weekday: 'short' })),
  );
  const text = make('div');
  const time = is_all_day ? 'All day' : starts_at_local.slice(11, 16);
  const where = is_online ? 'online' : [place?.name, place?.city].filter(Boolean).join(', ');
  text.append(
    make('p', status === 'cancelled' ? 'name cancelled' : 'name', title),
    make('p', 'quiet', [`${time}, ${timezone.replace('_', ' ')}`, where].filter(Boolean).join(' · ')),
    make('p', 'badges'),
  );
  text.lastChild.append(
    ...[role.replace('_', '-'), rsvp_status, status === 'cancelled' ? status : null]
      .filter(Boolean)
      .map((word) => make('span', 'badge', word)),
  );
  item.append(date, text);
  return item;
}

function personItem({ user, status, met_at_event }) {
  const item = make('li', 'person');
  const tile = make('span', 'tile', user.display_name.slice(0, 1));
  tile.ariaHidden = 'true';
  const text = make('div');
  const met = met_at_event ? `met at ${met_at_event.title}` : status.replace('_', ' ');
  text.append(make('p', 'name', user.display_name), make('p', 'quiet', `@${user.username} · ${met}`));
  item.append(tile, text);
  return item;
}

/** The bar shows the member's progress; an achievement without steps is earned or not. */
function achievementItem({ name, description, rarity, rarity_percentage, earned, is_pinned, progress }) {
  const item = make('li', earned ? 'achievement' : 'achievement locked');
  const head = make('p', 'name', name);
  if (is_pinned) head.append(' ', make('span', 'badge', 'pinned'));
  const done = progress ? `${progress.current} of ${progress.target}` : earned ? 'earned' : 'not earned yet';
  const share = rarity_percentage === null ? rarity : `${rarity}: ${rarity_percentage} % of members have it`;
  const bar = make('meter', 'progress');
  const [value, max] = progress ? [progress.current, progress.target] : [earned ? 1 : 0, 1];
  Object.assign(bar, { min: 0, max, value, ariaLabel: done });
  item.append(head, make('p', 'quiet', [description, done].filter(Boolean).join(' · ')), bar);
  item.append(make('p', 'share', share));
  return item;
}

function laterStep(title, explanation) {
  const item = make('li');
  item.append(make('h3', '', title), make('p', '', explanation));
  element('later').prepend(item);
  return item;
}

/** A token of revoked access, which the server rejects. */
let revoked;

on('sign-in', () => signIn());
on('ask-again', () => signIn('consent'));
on('sign-out', async () => location.assign('/demo'));
on('refresh', () =>
  watch(laterStep('Refresh', 'A refresh token works once: the response has the next one.'), () =>
    session.accessToken(true),
  ),
);
on('revoke', async () => {
  revoked = await session.accessToken();
  const item = laterStep('Revoke', 'The app revokes its access: all tokens of this sign-in end at once.');
  await watch(item, () => session.signOut());
});
on('call', async () => {
  const explanation = revoked
    ? 'The server rejects the same token: 401.'
    : 'The token works until it expires or is revoked.';
  const item = laterStep('Call', explanation);
  // With a new client, which has no cached response to revalidate.
  const token = revoked ?? (await session.accessToken());
  const caller = new PublicUserApi({ baseUrl: issuer, credentials: bearer(token), fetch: watched });
  await watch(item, () => caller.credential());
});

for (const link of document.querySelectorAll('[data-path]')) link.href = issuer + link.dataset.path;
if (given) element('who').hidden = true;

if (location.pathname === '/demo/callback') {
  say('Signing in …');
  await finish().catch((error) => {
    const isDenied = error.code === 'access_denied';
    if (isDenied) reveal('denied');
    say(isDenied ? '' : error.message);
  });
}
