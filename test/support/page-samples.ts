import type { PageClient } from '../../src/authorization-server/ports.js';
import type { Page, PageUser } from '../../src/member-pages/rendering/page-contents.js';
import { ALL_SCOPES } from '../../src/auth/scopes.js';
import { ClientFault } from '../../src/clients/client-rules.js';

const user: PageUser = { username: 'ada', display_name: 'Ada Lovelace' };
const web: PageClient = { name: 'Trailmix', host: 'app.trailmix.example' };
const native: PageClient = { name: 'Pocket Calendar', host: 'com.example.pocketcalendar', native: true };
const logo = '/logos/client?client_id=trailmix';
const described: PageClient = {
  ...web,
  logo,
  homepage: 'https://trailmix.example/',
  policy: 'https://trailmix.example/privacy',
};
const api = ALL_SCOPES.map((name) => ({
  name,
  checked: name !== 'connections:read',
  required: false,
  writes: name === 'profile:write',
}));
const openid = { name: 'openid', checked: true, required: true, writes: false } as const;
const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const safari =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1';

const signInLine = {
  occurred_at: '2026-11-20 07:00:00',
  method: 'password',
  reason: null,
  browser: 'Firefox',
  system: 'Linux',
  network: '203.0.113.0/24',
} as const;

/** The last 90 before a day. */
const days = Array.from({ length: 90 }, (_, i) =>
  new Date(Date.UTC(2026, 7, 23 + i)).toISOString().slice(0, 10),
);

/** Hostile input instead of a name. */
export const HOSTILE = `"><script>alert(1)</script><img src=https://evil.example/x onerror='alert(2)'>\u202egnp.exe ${'W'.repeat(500)}`;

/** Text typed into a form, which is shown again unchanged. */
const TYPED = `"><script>alert(1)</script><img src=https://evil.example/x onerror='alert(2)'>`;

const signIn = {
  name: 'sign-in',
  path: '/interaction/u',
  csrf: 'token',
  login: undefined,
  passkeys: undefined,
} as const;
const notices = [
  { notice: 'consent.granted', muted: false },
  { notice: 'key.ending', muted: true },
] as const;
const reset = { name: 'password-reset', csrf: 'token' } as const;
const consent = {
  name: 'consent',
  path: '/interaction/u',
  csrf: 'token',
  user,
  durations: ['once', '30', '180'],
  duration: '30',
  idle: 30,
} as const;

const calendar = {
  name: 'calendar',
  csrf: 'token',
  user,
  longest: 60,
  most: 10,
} as const;

const SERVER = 'https://api.example';
const ownApp = {
  client_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c',
  name: 'Trailmix',
  type: 'web',
} as const;
const appForm = {
  name: 'Trailmix',
  type: 'web',
  redirect_uris: 'https://app.trailmix.example/callback\nhttps://staging.trailmix.example/callback',
  allowed_origins: 'https://app.trailmix.example',
  post_logout_redirect_uris: '',
  scopes: ALL_SCOPES.slice(0, 3),
  profile: 'oauth21',
  secret_auth_method: '',
  jwks: '',
  client_uri: 'https://trailmix.example/',
  policy_uri: '',
  backchannel_logout_uri: '',
} as const;
const request = {
  occurred_at: '2026-11-20 07:15:00',
  app_name: 'Trailmix',
  method: 'GET',
  route: '/api/public/events/:id',
  status: 200,
  error: null,
  reason: null,
  parameter: null,
  value: null,
  error_id: null,
  duration_ms: 4,
} as const;

const message = {
  id: `msg_${'0b5e6c1a'.repeat(4)}`,
  type: 'events.updated',
  status: 'delivered',
  attempts: 1,
  attempted_at: '2026-11-20 07:15:00',
  response_status: 204,
  error: null,
  duration_ms: 128,
  next_attempt_at: null,
  changed_at: '2026-11-20 07:15:00',
} as const;
const messages = [
  {
    ...message,
    status: 'pending',
    attempts: 0,
    attempted_at: null,
    response_status: null,
    duration_ms: null,
  },
  { ...message, status: 'dead', attempts: 8, response_status: 503, duration_ms: 1204 },
  {
    ...message,
    status: 'dead',
    response_status: null,
    error: 'no response within 10 s',
    duration_ms: 10_000,
  },
  {
    ...message,
    status: 'withheld',
    attempts: 0,
    attempted_at: null,
    response_status: null,
    duration_ms: null,
  },
  message,
] as const;

/** Accepted, refused and failed requests, the last at the end. */
const usedIn = (times: readonly string[]) =>
  times.map((time, i) => ({ time, accepted: (i * 13) % 40, refused: i % 5, failed: i % 11 === 3 ? 2 : 0 }));
const usedBy = {
  id: '4fGh7Kq2LmPz',
  name: 'Trailmix',
  day: 214,
  month: 3120,
  errors_day: 12,
  errors_month: 94,
  p50_ms: 4,
  p95_ms: 31,
};
const use = {
  hours: usedIn(Array.from({ length: 24 }, (_, i) => `2026-11-20 ${String(i).padStart(2, '0')}:00:00`)),
  days: usedIn(days.slice(-30).map((day) => `${day} 00:00:00`)),
  apps: [usedBy, { ...usedBy, name: 'Script on my laptop', p50_ms: null, p95_ms: null }],
  errors: [
    {
      method: 'GET',
      route: '/api/public/events/:id',
      status: 401,
      error: 'invalid_credentials',
      day: 3,
      month: 9,
    },
    { method: 'POST', route: '/oauth/token', status: 400, error: 'invalid_grant', day: 0, month: 2 },
  ],
};

/** Leave for the app before anybody sees them. */
export const AUTOMATIC = ['a response by a link', 'a response in a form that sends itself'] as const;

const response = {
  name: 'onward',
  to: 'https://app.trailmix.example/callback',
  form: { client: web, fields: { code: 'c', state: TYPED } },
  isAutomatic: false,
} as const;

/** Every page in every visibly different state. */
export const SAMPLES: Readonly<Record<string, Page>> = {
  'sign-in': { ...signIn, client: web },
  'sign-in with the platform’s own login': {
    ...signIn,
    client: web,
    login: 'Example',
  },
  'sign-in with a passkey': {
    ...signIn,
    client: web,
    passkeys: 'too',
  },
  'sign-in with a passkey alone': {
    ...signIn,
    client: web,
    fault: { reason: 'unproven' },
    passkeys: 'only',
  },
  'sign-in to the account': { ...signIn, client: null },
  'sign-in refused': { ...signIn, client: web, username: 'ada', fault: { reason: 'invalid' } },
  'sign-in throttled': {
    ...signIn,
    client: web,
    username: 'ada',
    fault: { reason: 'throttled', retryAfterSeconds: 125 },
  },
  'sign-in busy': { ...signIn, client: web, username: 'ada', fault: { reason: 'busy' } },
  consent: {
    ...consent,
    client: web,
    scopes: [openid, ...api],
    again: false,
  },
  'consent to a native app': {
    ...consent,
    client: native,
    scopes: api,
    again: true,
    durations: ['once', '30', '180', 'unlimited'],
    duration: '180',
    idle: 180,
  },
  'consent to an app that says who it is': {
    ...consent,
    client: described,
    scopes: [openid, ...api.slice(0, 2)],
    again: false,
  },
  'sign-out': { name: 'sign-out', action: '/oauth/logout/confirm', fields: { xsrf: 'x' }, client: web },
  'signed out': { name: 'signed-out', client: null },
  'signed out by an app that the member does not know': {
    name: 'signed-out',
    client: web,
    back: 'https://app.trailmix.example/bye',
  },
  'a response in a form': response,
  [AUTOMATIC[0]]: { name: 'onward', to: `${response.to}?code=c&state=%22%3E`, isAutomatic: true },
  [AUTOMATIC[1]]: { ...response, isAutomatic: true },
  'error of an app that the member does not know': {
    name: 'error',
    fault: 'strangeApp',
    error_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c',
    code: 'invalid_scope',
    next: { text: 'toApp', href: 'https://app.trailmix.example/callback', host: 'app.trailmix.example' },
  },
  error: {
    name: 'error',
    fault: 'expired',
    error_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c',
    code: 'invalid_request_uri',
  },
  'error of a redirect URI that is not registered': {
    name: 'error',
    fault: 'wrongAddress',
    error_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c',
    code: 'invalid_redirect_uri',
    unregistered: {
      name: 'redirect_uri',
      value: `https://app.trailmix.example/callback?${HOSTILE}`,
      registered: ['https://app.trailmix.example/callback', HOSTILE],
    },
  },
  'error of a login that does not answer': {
    name: 'error',
    fault: 'upstreamAway',
    error_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c',
    code: 'temporarily_unavailable',
    login: 'Example',
    next: { text: 'tryAgain', href: '/interaction/u' },
  },
  'error of nobody known here': {
    name: 'error',
    fault: 'unknownMember',
    error_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c',
    login: 'Example',
    next: { text: 'anotherAccount', href: '/interaction/u/upstream?other=1' },
  },
  'connected apps': {
    name: 'apps',
    csrf: 'token',
    user,
    done: 'access-revoked',
    apps: [
      {
        client_id: 'a',
        client: described,
        scopes: ['openid', ...ALL_SCOPES],
        since: '2026-01-31 18:00:05',
        access_ends_at: '2027-01-31 18:00:05',
        durations: ['30', '180', 'unlimited'],
        last_used_at: '2026-11-20 07:15:00',
      },
      {
        client_id: 'b',
        client: native,
        scopes: ALL_SCOPES.slice(0, 1),
        since: '2026-11-02 09:30:00',
        access_ends_at: null,
        durations: [],
        last_used_at: null,
      },
    ],
  },
  'no connected apps': { name: 'apps', csrf: 'token', user, apps: [] },
  sessions: {
    name: 'sessions',
    csrf: 'token',
    user,
    done: 'session-ended',
    sessions: [
      {
        id: 'a',
        signed_in_at: '2026-11-20 07:00:00',
        last_seen_at: '2026-11-21 06:30:00',
        ip: '203.0.113.7',
        user_agent: firefox,
        current: true,
      },
      {
        id: 'b',
        signed_in_at: '2026-10-01 12:00:00',
        last_seen_at: '2026-11-19 21:04:00',
        ip: '2001:db8:5::1f',
        user_agent: safari,
        current: false,
      },
      {
        id: 'c',
        signed_in_at: '2026-09-01 12:00:00',
        last_seen_at: '2026-09-01 12:00:00',
        ip: null,
        user_agent: null,
        current: false,
      },
    ],
  },
  keys: {
    name: 'keys',
    csrf: 'token',
    user,
    done: 'key-revoked',
    more: 3,
    keys: [
      {
        name: 'Ada’s calendar',
        id: '4fGh7Kq2LmPz',
        environment: 'live',
        scopes: ALL_SCOPES,
        created_at: '2026-10-01 12:00:00',
        last_used_at: '2026-11-20 07:15:00',
        expires_at: '2027-01-01 12:00:00',
      },
      {
        name: 'Looks itself up',
        id: '4fGh7Kq2LmPy',
        environment: 'test',
        scopes: [],
        created_at: '2026-10-01 12:00:00',
        last_used_at: null,
        expires_at: null,
      },
    ],
  },
  'no keys': { name: 'keys', csrf: 'token', user, keys: [] },
  'hostile keys': {
    name: 'keys',
    csrf: 'token',
    user: { username: HOSTILE, display_name: HOSTILE },
    keys: [
      {
        name: HOSTILE,
        id: '4fGh7Kq2LmPz',
        environment: 'live',
        scopes: [],
        created_at: '2026-10-01 12:00:00',
        last_used_at: null,
        expires_at: null,
      },
    ],
  },
  'your data': { name: 'data', csrf: 'token', user },
  'calendar links': {
    ...calendar,
    done: 'calendar-link-revoked',
    links: [
      {
        id: 2,
        name: 'Phone',
        created_at: '2026-10-01 12:00:00',
        last_used_at: '2026-11-20 07:15:00',
      },
      {
        id: 1,
        name: 'Laptop',
        created_at: '2026-09-01 12:00:00',
        last_used_at: null,
      },
    ],
  },
  'no calendar links': { ...calendar, links: [] },
  'a new calendar link': {
    ...calendar,
    made: { name: 'Phone', url: `https://platform.example/calendar/${'a'.repeat(43)}.ics` },
    links: [
      {
        id: 2,
        name: 'Phone',
        created_at: '2026-10-01 12:00:00',
        last_used_at: null,
      },
    ],
  },
  'a calendar link refused': { ...calendar, fault: 'name', links: [] },
  'hostile calendar links': {
    ...calendar,
    fault: 'limit',
    most: 1,
    links: [
      {
        id: 2,
        name: HOSTILE,
        created_at: '2026-10-01 12:00:00',
        last_used_at: null,
      },
    ],
  },
  security: {
    name: 'security',
    csrf: 'token',
    user,
    done: 'passkey-added',
    notices,
    passkeys: {
      suggested: 'Firefox on Linux',
      items: [
        {
          id: 1,
          name: 'Laptop',
          created_at: '2026-10-01 12:00:00',
          last_used_at: '2026-11-20 07:15:00',
          synced: false,
        },
        {
          id: 1,
          name: 'Phone',
          created_at: '2026-11-02 09:30:00',
          last_used_at: null,
          synced: true,
        },
      ],
      full: false,
      removable: true,
    },
    password: 'on',
    switchable: true,
  },
  'security without a fresh sign-in': {
    name: 'security',
    csrf: 'token',
    user,
    confirm: '/account/security/confirm',
    notices,
    passkeys: {
      suggested: 'Firefox on Linux',
      items: [
        {
          id: 1,
          name: 'Laptop',
          created_at: '2026-10-01 12:00:00',
          last_used_at: null,
          synced: false,
        },
      ],
      full: false,
      removable: false,
    },
    password: 'off',
    switchable: true,
  },
  'stop emails': { name: 'unsubscribe', notice: 'key.created', token: '1-key-created-code', done: false },
  'stop emails, done': {
    name: 'unsubscribe',
    notice: 'key.created',
    token: '1-key-created-code',
    done: true,
  },
  'password reset': { ...reset, step: 'ask' },
  'password reset, mail on its way': { ...reset, step: 'sent' },
  'password reset, by the link': {
    ...reset,
    step: 'choose',
    token: 'secret',
    username: 'ada',
    fault: 'common',
  },
  'password reset, link too old': { ...reset, step: 'expired' },
  'password reset, done': {
    ...reset,
    step: 'done',
    passkeys: [
      { name: 'Laptop', created_at: '2026-09-01 12:00:00', last_used_at: '2026-11-20 07:15:00' },
      { name: HOSTILE, created_at: '2026-10-01 12:00:00', last_used_at: null },
    ],
  },
  'password reset, done without passkeys': { ...reset, step: 'done', passkeys: [] },
  'security refused': {
    name: 'security',
    csrf: 'token',
    user,
    fault: 'throttled',
    retryAfterSeconds: 125,
    password: 'on',
    switchable: false,
  },
  'security with nothing to change': {
    name: 'security',
    csrf: 'token',
    user,
    fault: 'notRemoved',
    passkeys: { suggested: 'Passkey', items: [], full: true, removable: false },
    password: 'none',
    switchable: false,
  },
  'hostile security': {
    name: 'security',
    csrf: 'token',
    user: { username: HOSTILE, display_name: HOSTILE },
    passkeys: {
      suggested: HOSTILE,
      items: [{ id: 1, name: HOSTILE, created_at: '2026-10-01 12:00:00', last_used_at: null, synced: true }],
      full: false,
      removable: true,
    },
    password: 'on',
    switchable: false,
  },
  activity: {
    name: 'activity',
    csrf: 'token',
    user,
    days,
    apps: [
      { app_name: 'Trailmix', app_kind: 'client', counts: days.map((_, i) => (i * 7) % 23) },
      { app_name: 'Pocket Calendar', app_kind: 'client', counts: days.map((_, i) => (i * 5) % 17) },
      {
        app_name: 'Script on my laptop',
        app_kind: 'key',
        counts: days.map((_, i) => (i % 7 === 0 ? 12 : 0)),
      },
      { app_name: 'Cycling club', app_kind: 'client', counts: days.map((_, i) => (i > 60 ? 4 : 0)) },
      { app_name: null, app_kind: 'client', counts: days.map((_, i) => (i < 40 ? 3 : 0)) },
      { app_name: null, app_kind: 'others', counts: days.map((_, i) => i % 4) },
    ],
    used: [
      {
        day: '2026-11-20',
        app_name: 'Trailmix',
        app_host: 'trailmix.example',
        app_kind: 'client',
        scopes: ['events:read'],
        uses: 128,
        last_used_at: '2026-11-20 07:15:00',
      },
      {
        day: '2026-11-19',
        app_name: null,
        app_host: null,
        app_kind: 'key',
        scopes: ['profile:read'],
        uses: 3,
        last_used_at: '2026-11-19 21:04:00',
      },
    ],
    signIns: [
      { ...signInLine, reason: 'wrong_password', network: '2001:db8:5::/48', system: null },
      signInLine,
      { ...signInLine, method: 'passkey', network: 'local' },
      { ...signInLine, method: 'upstream', browser: null, system: null, network: null },
    ],
    events: [
      { occurred_at: '2026-11-19 21:00:00', type: 'consent.granted', app_name: 'Trailmix' },
      { occurred_at: '2026-11-18 21:00:00', type: 'access.revoked', app_name: null },
    ],
  },
  'no activity': {
    name: 'activity',
    csrf: 'token',
    user,
    days: [],
    apps: [],
    used: [],
    signIns: [],
    events: [],
  },
  'hostile activity': {
    name: 'activity',
    csrf: 'token',
    user: { username: HOSTILE, display_name: HOSTILE },
    days: ['2026-11-20'],
    apps: [{ app_name: HOSTILE, app_kind: 'client', counts: [1] }],
    used: [
      {
        day: '2026-11-20',
        app_name: HOSTILE,
        app_host: HOSTILE,
        app_kind: 'client',
        scopes: ['events:read'],
        uses: 1,
        last_used_at: '2026-11-20 07:15:00',
      },
    ],
    signIns: [],
    events: [{ occurred_at: '2026-11-20 07:00:00', type: 'consent.granted', app_name: HOSTILE }],
  },
  'consent to an app of a member’s own': {
    ...consent,
    client: { ...web, unreviewed: 'byMember' },
    scopes: [openid, ...api.slice(0, 1)],
    again: false,
  },
  'consent to an app that nobody registered': {
    ...consent,
    client: { ...web, unreviewed: 'byDocument' },
    scopes: [openid, ...api.slice(0, 1)],
    again: false,
  },
  'sign-in to the console': { ...signIn, client: null, lead: 'toDeveloper' },
  developer: {
    name: 'developer',
    csrf: 'token',
    user,
    done: 'key-revoked',
    most: { clients: 10, keys: 2 },
    clients: [
      {
        client_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c',
        name: 'Trailmix',
        type: 'web',
        state: 'enabled',
        host: 'app.trailmix.example',
        logo,
      },
      {
        client_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3d',
        name: 'Pocket Calendar',
        type: 'native',
        state: 'disabledByPlatform',
        host: 'com.example.pocketcalendar',
      },
    ],
    keys: [
      {
        id: '4fGh7Kq2LmPz',
        name: 'Script on my laptop',
        environment: 'test',
        last_four: 'x7Yz',
        scopes: ALL_SCOPES,
        status: 'active',
        accepted: true,
        ends_at: '2027-02-20 07:00:00',
        last_used_at: '2026-11-20 07:15:00',
      },
      {
        id: '4fGh7Kq2LmPy',
        name: 'Old one',
        environment: 'test',
        last_four: 'x7Yy',
        scopes: [],
        status: 'revoked',
        accepted: false,
        ends_at: '2026-11-20 07:00:00',
        last_used_at: null,
      },
    ],
  },
  'no apps and keys': {
    name: 'developer',
    csrf: 'token',
    user,
    most: { clients: 10, keys: 10 },
    clients: [],
    keys: [],
  },
  'new app': {
    name: 'developer-client',
    csrf: 'token',
    user,
    client: null,
    values: { ...appForm, name: '', redirect_uris: '' },
    profiles: [],
    scopes: ALL_SCOPES,
    server: SERVER,
  },
  'new app refused': {
    name: 'developer-client',
    csrf: 'token',
    user,
    client: null,
    values: { ...appForm, redirect_uris: 'http://app.trailmix.example/callback' },
    profiles: [],
    scopes: ALL_SCOPES,
    server: SERVER,
    fault: new ClientFault('insecureUri', 'redirect_uris', 'http://app.trailmix.example/callback'),
  },
  'own app': {
    name: 'developer-client',
    csrf: 'token',
    user,
    done: 'app-changed',
    client: { ...ownApp, state: 'disabled', has_keys: true, secrets: null, logo },
    values: appForm,
    profiles: [],
    scopes: ALL_SCOPES,
    server: SERVER,
  },
  'own app, with the first lines of its code': {
    name: 'developer-client',
    csrf: 'token',
    user,
    client: { ...ownApp, state: 'enabled', has_keys: false, secrets: null },
    values: appForm,
    profiles: [],
    scopes: ALL_SCOPES,
    server: SERVER,
  },
  'own app with a secret': {
    name: 'developer-client',
    csrf: 'token',
    user,
    client: {
      ...ownApp,
      state: 'enabled',
      has_keys: false,
      secrets: [
        { last_four: 'x9Qa', created_at: '2026-11-20 07:15:00', expires_at: null, last_used_at: null },
        {
          last_four: 'b3Kd',
          created_at: '2026-10-20 07:15:00',
          expires_at: '2026-11-21 07:15:00',
          last_used_at: '2026-11-20 07:14:00',
        },
      ],
    },
    profiles: ['oauth21', 'oidc'],
    values: { ...appForm, profile: 'oidc', secret_auth_method: 'client_secret_basic' },
    webhooks: [
      { url: 'https://app.trailmix.example/webhooks', status: 'failing', deliveries: messages },
      { url: 'https://old.trailmix.example/', status: 'disabled', deliveries: [] },
    ],
    scopes: ALL_SCOPES,
    server: SERVER,
  },
  'made secret': {
    name: 'developer-made-secret',
    csrf: 'token',
    user,
    client_id: ownApp.client_id,
    secret: `pua_secret_${'x'.repeat(43)}`,
  },
  'webhooks of an app': {
    name: 'developer-webhooks',
    csrf: 'token',
    user,
    app: { id: ownApp.client_id, name: ownApp.name },
    webhooks: [
      {
        id: 'wh_4fGh7Kq2LmPz9xQa',
        url: `https://app.trailmix.example/${'long/'.repeat(20)}webhooks`,
        status: 'failing',
        types: ['profile.updated', 'events.updated', 'events.removed'],
        previous_secret_until: '2026-11-21 07:15:00',
        last: messages[0]!,
      },
      {
        id: 'wh_5fGh7Kq2LmPz9xQa',
        url: 'https://old.trailmix.example/',
        status: 'disabled',
        types: ['profile.updated'],
        previous_secret_until: null,
        last: null,
      },
    ],
    types: ['profile.updated', 'events.updated', 'events.removed'],
    values: { url: TYPED, types: [] },
    fault: 'url',
    most: 5,
  },
  'webhooks of a key, with no room': {
    name: 'developer-webhooks',
    csrf: 'token',
    user,
    app: { id: 'Kq2LmPz9xQa4', name: 'Backup' },
    webhooks: [],
    types: [],
    values: { url: '', types: [] },
    most: 5,
  },
  'webhook secret': {
    name: 'developer-made-secret',
    csrf: 'token',
    user,
    webhooks_of: { id: ownApp.client_id, name: ownApp.name },
    secret: `whsec_${'x'.repeat(43)}`,
  },
  'own app that the platform disabled': {
    name: 'developer-client',
    csrf: 'token',
    user,
    client: { ...ownApp, state: 'disabledByPlatform', has_keys: false, secrets: null },
    values: appForm,
    profiles: [],
    scopes: ALL_SCOPES,
    server: SERVER,
  },
  'new key': {
    name: 'developer-key',
    csrf: 'token',
    user,
    values: { name: '', scopes: ['profile:read'], days: 30 },
    scopes: ALL_SCOPES,
    days: [1, 7, 30, 90],
    most: 10,
  },
  'new key refused': {
    name: 'developer-key',
    csrf: 'token',
    user,
    values: { name: TYPED, scopes: [], days: 7 },
    scopes: ALL_SCOPES,
    days: [1, 7, 30, 90],
    fault: 'bad',
    most: 10,
  },
  'made key': {
    name: 'developer-made-key',
    csrf: 'token',
    user,
    key: `pua_test_4fGh7Kq2LmPz_${'x'.repeat(49)}`,
    try: 'https://api.example/api/public/credential',
  },
  requests: {
    name: 'developer-requests',
    csrf: 'token',
    user,
    of: null,
    most: 100,
    apps: [
      { id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c', name: 'Trailmix' },
      { id: '4fGh7Kq2LmPz', name: 'Script on my laptop' },
    ],
    use,
    requests: [
      {
        ...request,
        route: '/oauth/authorize',
        status: 400,
        error: 'invalid_redirect_uri',
        reason: 'unregistered_redirect_uri',
        parameter: 'redirect_uri',
        value: 'https://app.trailmix.example/callback/',
        error_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c',
      },
      { ...request, status: 200 },
      { ...request, status: 401, error: 'invalid_credentials', reason: 'not of the kind oauth_token' },
    ],
  },
  'no requests': {
    name: 'developer-requests',
    csrf: 'token',
    user,
    of: null,
    most: 100,
    apps: [],
    use: { hours: [], days: [], apps: [], errors: [] },
    requests: [],
  },
  'hostile requests': {
    name: 'developer-requests',
    csrf: 'token',
    user: { username: HOSTILE, display_name: HOSTILE },
    of: null,
    most: 100,
    apps: [
      { id: 'a', name: HOSTILE },
      { id: 'b', name: HOSTILE },
    ],
    use: { ...use, apps: [{ ...usedBy, name: HOSTILE }] },
    requests: [
      {
        ...request,
        app_name: HOSTILE,
        error: 'invalid_scope',
        reason: 'scope',
        value: HOSTILE.slice(0, 200),
        parameter: 'scope',
      },
    ],
  },
  'hostile app': {
    name: 'developer-client',
    csrf: 'token',
    user: { username: HOSTILE, display_name: HOSTILE },
    client: { ...ownApp, name: HOSTILE, state: 'enabled', has_keys: false, secrets: null },
    values: { ...appForm, name: TYPED, redirect_uris: TYPED, jwks: `</textarea>${TYPED}` },
    profiles: [],
    scopes: ALL_SCOPES,
    server: SERVER,
    fault: new ClientFault('relativeUri', 'redirect_uris', HOSTILE),
  },
  'hostile consent': {
    ...consent,
    client: { name: HOSTILE, host: HOSTILE },
    user: { username: HOSTILE, display_name: HOSTILE },
    scopes: api,
    again: false,
  },
  'hostile sign-in': {
    ...signIn,
    client: { name: HOSTILE, host: HOSTILE },
    username: HOSTILE,
    login: HOSTILE,
  },
  'unknown address': { name: 'error', fault: 'unknownAddress', next: { text: 'toFront', href: '/' } },
  'hostile error': { name: 'error', fault: 'malformed', detail: HOSTILE, error_id: HOSTILE, code: HOSTILE },
  'hostile apps': {
    name: 'apps',
    csrf: 'token',
    user: { username: HOSTILE, display_name: HOSTILE },
    apps: [
      {
        client_id: '"><script>',
        client: { name: HOSTILE, host: HOSTILE },
        scopes: [],
        since: '2026-01-31 18:00:05',
        access_ends_at: '2027-01-31 18:00:05',
        durations: ['30', '180', 'unlimited'],
        last_used_at: null,
      },
    ],
  },
};
