import type { PageClient } from '../../src/authorization-server/ports.js';
import type { Page, PageUser } from '../../src/member-pages/rendering/page-contents.js';
import { ALL_SCOPES } from '../../src/auth/scopes.js';
import { ClientFault } from '../../src/clients/client-rules.js';

const user: PageUser = { username: 'ada', display_name: 'Ada Lovelace' };
/** Values for every page of a signed-in member. */
const own = { csrf: 'token', user } as const;
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

/** The 90 days before a day. */
const days = Array.from({ length: 90 }, (_, i) =>
  new Date(Date.UTC(2026, 7, 23 + i)).toISOString().slice(0, 10),
);

/** Hostile input instead of a name. */
export const HOSTILE = `"><script>alert(1)</script><img src=https://evil.example/x onerror='alert(2)'>\u202egnp.exe ${'W'.repeat(500)}`;

const hostile = { csrf: 'token', user: { username: HOSTILE, display_name: HOSTILE } } as const;

/** Text typed into a form, which is shown again unchanged. */
const TYPED = `"><script>alert(1)</script><img src=https://evil.example/x onerror='alert(2)'>`;

const signIn = {
  name: 'sign-in',
  path: '/interaction/u',
  csrf: 'token',
  client: web,
  login: undefined,
  passkeys: undefined,
} as const;
const notices = [
  { notice: 'consent.granted', muted: false },
  { notice: 'key.ending', muted: true },
] as const;
const reset = { name: 'password-reset', csrf: 'token' } as const;
const error = { name: 'error', error_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c' } as const;
const consent = {
  name: 'consent',
  path: '/interaction/u',
  ...own,
  client: web,
  scopes: [openid, ...api.slice(0, 1)],
  again: false,
  durations: ['once', '30', '180'],
  duration: '30',
  idle: 30,
} as const;

const key = {
  name: HOSTILE,
  id: '4fGh7Kq2LmPz',
  environment: 'live' as const,
  scopes: [] as never[],
  created_at: '2026-10-01 12:00:00',
  last_used_at: null,
  expires_at: null,
};
const link = { id: 2, name: 'Phone', created_at: '2026-10-01 12:00:00', last_used_at: null } as const;
const passkey = { ...link, id: 1, name: 'Laptop', synced: false } as const;

const calendar = { name: 'calendar', ...own, longest: 60, most: 10 } as const;

const SERVER = 'https://api.example';
const ownApp = { client_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c', name: 'Trailmix', type: 'web' } as const;
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
const review = {
  name: 'developer-review',
  ...own,
  client: { ...ownApp, state: 'enabled' },
  applied_at: null,
  approved_at: null,
  rejection: null,
  changes: [],
  canApply: true,
  scopes: ALL_SCOPES.slice(0, 2),
  values: {
    purpose: 'Plans hikes with friends.',
    policy_uri: 'https://trailmix.example/privacy',
    reasons: { 'profile:read': 'To greet you by name.' },
  },
  longest: { purpose: 1000, reason: 300 },
  testers: [],
  most: 25,
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
const unsent = {
  ...message,
  attempts: 0,
  attempted_at: null,
  response_status: null,
  duration_ms: null,
} as const;
const dead = { ...message, status: 'dead' } as const;
const messages = [
  { ...unsent, status: 'pending' },
  { ...dead, attempts: 8, response_status: 503, duration_ms: 1204 },
  { ...dead, response_status: null, error: 'no response within 10 s', duration_ms: 10_000 },
  { ...unsent, status: 'withheld' },
  message,
] as const;

/** Accepted, rejected and failed requests, the latest at the end. */
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

/** Pages that redirect to the app before a member sees them. */
export const AUTOMATIC = ['a response by a link', 'a response in a form that sends itself'] as const;

const response = {
  name: 'onward',
  to: 'https://app.trailmix.example/callback',
  form: { client: web, fields: { code: 'c', state: TYPED } },
  isAutomatic: false,
} as const;

const activity = {
  name: 'activity',
  ...own,
  days: [],
  apps: [],
  used: [],
  signIns: [],
  events: [],
} as const;
const used = {
  day: '2026-11-20',
  app_name: 'Trailmix',
  app_host: 'trailmix.example',
  app_kind: 'client',
  scopes: ['events:read'],
  uses: 128,
  last_used_at: '2026-11-20 07:15:00',
} as const;
const clientPage = {
  name: 'developer-client',
  ...own,
  client: null,
  values: appForm,
  profiles: [],
  scopes: ALL_SCOPES,
  server: SERVER,
} as const;
const ownClient = { ...ownApp, state: 'enabled', has_keys: false, secrets: null } as const;
const keyPage = {
  name: 'developer-key',
  ...own,
  values: { name: '', scopes: ['profile:read'], days: 30 },
  scopes: ALL_SCOPES,
  days: [1, 7, 30, 90],
  most: 10,
} as const;
const requests = {
  name: 'developer-requests',
  ...own,
  of: null,
  most: 100,
  apps: [],
  use: { hours: [], days: [], apps: [], errors: [] },
  requests: [],
} as const;
const ownKey = {
  id: '4fGh7Kq2LmPz',
  name: 'Script on my laptop',
  environment: 'test',
  last_four: 'x7Yz',
  scopes: ALL_SCOPES,
  status: 'active',
  accepted: true,
  ends_at: '2027-02-20 07:00:00',
  last_used_at: '2026-11-20 07:15:00',
} as const;

/** Every page in every visibly different state. */
export const SAMPLES: Readonly<Record<string, Page>> = {
  'sign-in': signIn,
  'sign-in with the platform’s own login': { ...signIn, login: 'Example' },
  'sign-in with a passkey': { ...signIn, passkeys: 'too' },
  'sign-in with a passkey alone': { ...signIn, fault: { reason: 'unproven' }, passkeys: 'only' },
  'sign-in to the account': { ...signIn, client: null },
  'sign-in refused': { ...signIn, username: 'ada', fault: { reason: 'invalid' } },
  'sign-in throttled': { ...signIn, username: 'ada', fault: { reason: 'throttled', retryAfterSeconds: 125 } },
  'sign-in busy': { ...signIn, username: 'ada', fault: { reason: 'busy' } },
  consent: { ...consent, scopes: [openid, ...api] },
  'consent to a native app': {
    ...consent,
    client: native,
    scopes: api,
    again: true,
    durations: ['once', '30', '180', 'unlimited'],
    duration: '180',
    idle: 180,
  },
  'consent to a described app': { ...consent, client: described, scopes: [openid, ...api.slice(0, 2)] },
  'an app that is not approved': {
    name: 'not-approved',
    path: '/interaction/u',
    ...own,
    client: { ...web, unreviewed: 'byMember' },
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
    ...error,
    fault: 'strangeApp',
    code: 'invalid_scope',
    next: { text: 'toApp', href: 'https://app.trailmix.example/callback', host: 'app.trailmix.example' },
  },
  error: { ...error, fault: 'expired', code: 'invalid_request_uri' },
  'error of a redirect URI that is not registered': {
    ...error,
    fault: 'wrongAddress',
    code: 'invalid_redirect_uri',
    unregistered: {
      name: 'redirect_uri',
      value: `https://app.trailmix.example/callback?${HOSTILE}`,
      registered: ['https://app.trailmix.example/callback', HOSTILE],
    },
  },
  'error of an unavailable identity provider': {
    ...error,
    fault: 'upstreamAway',
    code: 'temporarily_unavailable',
    login: 'Example',
    next: { text: 'tryAgain', href: '/interaction/u' },
  },
  'error of an unknown person': {
    ...error,
    fault: 'unknownMember',
    login: 'Example',
    next: { text: 'anotherAccount', href: '/interaction/u/upstream?other=1' },
  },
  'connected apps': {
    name: 'apps',
    ...own,
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
    invitations: [
      { client_id: 'c', client: web, invited_by: 'grace', is_accepted: false },
      { client_id: 'd', client: described, invited_by: 'alan', is_accepted: true },
    ],
  },
  'no connected apps': { name: 'apps', ...own, apps: [] },
  sessions: {
    name: 'sessions',
    ...own,
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
    ...own,
    done: 'key-revoked',
    more: 3,
    keys: [
      {
        ...key,
        name: 'Ada’s calendar',
        scopes: ALL_SCOPES,
        last_used_at: '2026-11-20 07:15:00',
        expires_at: '2027-01-01 12:00:00',
      },
      { ...key, name: 'Looks itself up', id: '4fGh7Kq2LmPy', environment: 'test' },
    ],
  },
  'no keys': { name: 'keys', ...own, keys: [] },
  'hostile keys': { name: 'keys', ...hostile, keys: [key] },
  'your data': { name: 'data', ...own },
  'calendar links': {
    ...calendar,
    done: 'calendar-link-revoked',
    links: [
      { ...link, last_used_at: '2026-11-20 07:15:00' },
      { ...link, id: 1, name: 'Laptop' },
    ],
  },
  'no calendar links': { ...calendar, links: [] },
  'a new calendar link': {
    ...calendar,
    made: { name: 'Phone', url: `https://platform.example/calendar/${'a'.repeat(43)}.ics` },
    links: [link],
  },
  'rejected calendar link': { ...calendar, fault: 'name', links: [] },
  'hostile calendar links': { ...calendar, fault: 'limit', most: 1, links: [{ ...link, name: HOSTILE }] },
  security: {
    name: 'security',
    ...own,
    done: 'passkey-added',
    notices,
    passkeys: {
      suggested: 'Firefox on Linux',
      items: [
        { ...passkey, last_used_at: '2026-11-20 07:15:00' },
        { ...passkey, name: 'Phone', synced: true },
      ],
      full: false,
      removable: true,
    },
    password: 'on',
    switchable: true,
  },
  'security without a fresh sign-in': {
    name: 'security',
    ...own,
    confirm: '/account/security/confirm',
    notices,
    passkeys: { suggested: 'Firefox on Linux', items: [passkey], full: false, removable: false },
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
  'rejected security form': {
    name: 'security',
    ...own,
    fault: 'throttled',
    retryAfterSeconds: 125,
    password: 'on',
    switchable: false,
  },
  'security with nothing to change': {
    name: 'security',
    ...own,
    fault: 'notRemoved',
    passkeys: { suggested: 'Passkey', items: [], full: true, removable: false },
    password: 'none',
    switchable: false,
  },
  'hostile security': {
    name: 'security',
    ...hostile,
    passkeys: {
      suggested: HOSTILE,
      items: [{ ...passkey, name: HOSTILE, synced: true }],
      full: false,
      removable: true,
    },
    password: 'on',
    switchable: false,
  },
  activity: {
    ...activity,
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
      used,
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
      {
        occurred_at: '2026-11-19 21:00:00',
        type: 'consent.granted',
        app_name: 'Trailmix',
        of_all_apps: false,
      },
      { occurred_at: '2026-11-18 21:00:00', type: 'access.revoked', app_name: null, of_all_apps: true },
    ],
  },
  'no activity': activity,
  'hostile activity': {
    ...activity,
    ...hostile,
    days: ['2026-11-20'],
    apps: [{ app_name: HOSTILE, app_kind: 'client', counts: [1] }],
    used: [{ ...used, app_name: HOSTILE, app_host: HOSTILE, uses: 1 }],
    events: [
      { occurred_at: '2026-11-20 07:00:00', type: 'consent.granted', app_name: HOSTILE, of_all_apps: false },
    ],
  },
  'consent to an app of a member’s own': { ...consent, client: { ...web, unreviewed: 'byMember' } },
  'consent to an unregistered app': { ...consent, client: { ...web, unreviewed: 'byDocument' } },
  'sign-in to the console': { ...signIn, client: null, lead: 'toDeveloper' },
  developer: {
    name: 'developer',
    ...own,
    done: 'key-revoked',
    most: { clients: 10, keys: 2 },
    clients: [
      {
        client_id: '5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c',
        name: 'Trailmix',
        type: 'web',
        state: 'enabled',
        review: 'pending',
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
      ownKey,
      {
        ...ownKey,
        id: '4fGh7Kq2LmPy',
        name: 'Old one',
        scopes: [],
        status: 'revoked',
        accepted: false,
        ends_at: '2026-11-20 07:00:00',
        last_used_at: null,
      },
    ],
  },
  'no apps and keys': { name: 'developer', ...own, most: { clients: 10, keys: 10 }, clients: [], keys: [] },
  'review of an app': {
    ...review,
    review: 'none',
    testers: [
      { username: 'grace', invited_at: '2026-11-20 07:15:00', accepted_at: null },
      { username: 'alan', invited_at: '2026-11-20 07:15:00', accepted_at: '2026-11-20 07:20:00' },
    ],
    fault: 'reasons',
  },
  'review of an app that waits': {
    ...review,
    review: 'pending',
    applied_at: '2026-11-20 07:15:00',
    canApply: false,
  },
  'review of changes that the platform rejected': {
    ...review,
    review: 'rejected',
    approved_at: '2026-10-20 07:15:00',
    rejection: 'The logo belongs to another company.',
    changes: ['name', 'logo'],
    testers: null,
  },
  'new app': { ...clientPage, values: { ...appForm, name: '', redirect_uris: '' } },
  'rejected new app': {
    ...clientPage,
    values: { ...appForm, redirect_uris: 'http://app.trailmix.example/callback' },
    fault: new ClientFault('insecureUri', 'redirect_uris', 'http://app.trailmix.example/callback'),
  },
  'own app': {
    ...clientPage,
    done: 'app-changed',
    client: { ...ownClient, state: 'disabled', review: 'approved', waits: true, has_keys: true, logo },
  },
  'own app, with the first lines of its code': { ...clientPage, client: ownClient },
  'own app with a secret': {
    ...clientPage,
    client: {
      ...ownClient,
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
  },
  'created secret': {
    name: 'developer-made-secret',
    ...own,
    client_id: ownApp.client_id,
    secret: `pua_secret_${'x'.repeat(43)}`,
  },
  'webhooks of an app': {
    name: 'developer-webhooks',
    ...own,
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
    ...own,
    app: { id: 'Kq2LmPz9xQa4', name: 'Backup' },
    webhooks: [],
    types: [],
    values: { url: '', types: [] },
    most: 5,
  },
  'webhook secret': {
    name: 'developer-made-secret',
    ...own,
    webhooks_of: { id: ownApp.client_id, name: ownApp.name },
    secret: `whsec_${'x'.repeat(43)}`,
  },
  'own app that the platform disabled': {
    ...clientPage,
    client: { ...ownClient, state: 'disabledByPlatform' },
  },
  'new key': keyPage,
  'rejected new key': { ...keyPage, values: { name: TYPED, scopes: [], days: 7 }, fault: 'bad' },
  'created key': {
    name: 'developer-made-key',
    ...own,
    key: `pua_test_4fGh7Kq2LmPz_${'x'.repeat(49)}`,
    try: 'https://api.example/api/public/credential',
  },
  requests: {
    ...requests,
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
  'no requests': requests,
  'hostile requests': {
    ...requests,
    ...hostile,
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
    ...clientPage,
    ...hostile,
    client: { ...ownClient, name: HOSTILE },
    values: { ...appForm, name: TYPED, redirect_uris: TYPED, jwks: `</textarea>${TYPED}` },
    fault: new ClientFault('relativeUri', 'redirect_uris', HOSTILE),
  },
  'hostile consent': { ...consent, ...hostile, client: { name: HOSTILE, host: HOSTILE }, scopes: api },
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
    ...hostile,
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
