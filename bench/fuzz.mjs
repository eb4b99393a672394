// Sends malformed requests to the API, the authorization server, the pages and the bare socket: generated from the OpenAPI
// documents, the route table, the forms of the pages and valid OAuth requests, each changed in a few places. A fault is an end of
// the process, a 5xx other than a 503 with Retry-After, a log line with level `error`, a redirect to an unregistered URI, a stack
// in a response, or a response of the API that its document does not declare.
//   nice node bin/with-postgres.mjs node bench/fuzz.mjs --requests 1000000 [--seed 1] [--out fuzz.json]
// The same seed creates the same kinds of requests; their effect depends on the order of responses. Loopback only.
import './own-node.mjs';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  AUTHORIZE,
  Browser,
  CLIENT_ID,
  exchange,
  exchangeForm,
  formsOf,
  REDIRECT_URI,
  refreshForm,
} from './oauth-client.mjs';
import { freshDatabase, Instance, openServices, PASSWORD } from './instances.mjs';

const { values: options } = parseArgs({
  options: {
    requests: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '20261122' },
    connections: { type: 'string', default: '16' },
    out: { type: 'string' },
  },
});
let requests = Number(options.requests);
// Ends early, with a verdict on the run so far.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (requests = 0));
const MEMBERS = 30;
/** The members who send requests; no record of a feed refers to them. */
const [BY_KEY, BY_BROWSER] = [1, 2];

// ------------------------------------------------------------------------------------------------------------------- the choices

let state = Number(options.seed) >>> 0;
/** Mulberry32: 0 ≤ x < 1. */
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let x = Math.imul(state ^ (state >>> 15), 1 | state);
  x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
  return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
}
const below = (count) => Math.floor(random() * count);
const pick = (list) => list[below(list.length)];
const chance = (share) => random() < share;
const times = (count, make) => Array.from({ length: count }, make);
const randomBytesOf = (length) => Buffer.from(times(length, () => below(256)));

// prettier-ignore
const TEXTS = [
  '', ' ', '0', '1', '-1', '1.5', '1e3', '1e999', '0x10', '٣', '99999999999', '9223372036854775807',
  '9223372036854775808', 'null', 'true', 'undefined', 'NaN', '[]', '{}', '[object Object]', '__proto__',
  'constructor', 'toString', "' OR 1=1 --", "'; DROP TABLE users; --", '$1', '%', '%s%n', '_%\\',
  '<script>alert(1)</script>', '"><img src=x>', '{{7*7}}', '../../../../etc/passwd', '..%2f..%2f',
  'http://127.0.0.1:1/', 'https://evil.example/', '//evil.example', 'javascript:alert(1)', 'data:text/html,x', '\0',
  'a\0b', '\r\nSet-Cookie: a=b', '\u2028', '\ufeff', '\ufffd', '\u202e', 'é', 'e\u0301', 'İ', 'ß', '💙', '👩‍👩‍👧‍👦',
  '❤️'.repeat(60), 'Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴', '2026-02-30T00:00:00Z', '2026-01-01T00:00:00+99:00',
  '-271821-04-20T00:00:00Z', '9999-12-31T23:59:59.999999999Z', 'infinity', 'epoch', 'now', 'a,b,,c', ','.repeat(300),
];
/** Sent unencoded. */
// prettier-ignore
const RAW = [
  '%', '%0', '%zz', '%00', '%ff', '%C0%AF', '%ED%A0%80', '%u0000', '+', '%2B', '%25', '%2525', '%F4%90%80%80', ';',
  '&', '=', '#', '[', ']', '{', '|', '\\', '^', '`',
];
const text = () => {
  const which = below(20);
  if (which === 0) return 'x'.repeat(pick([63, 64, 65, 100, 101, 255, 256, 500, 501, 513, 2048, 2049, 8192]));
  if (which === 1) return randomBytesOf(1 + below(40)).toString('latin1');
  if (which === 2) return String.fromCodePoint(...times(1 + below(10), () => below(0xd7ff)));
  if (which === 3) return pick(TEXTS) + pick(TEXTS);
  if (which === 4) return String(below(2 ** 32));
  return pick(TEXTS);
};
const encoded = (value) => (chance(0.05) ? pick(RAW) : encodeURIComponent(value.toWellFormed()));
/** A random JSON value. */
function json(depth = 0) {
  const which = below(depth > 4 ? 8 : 11);
  if (which < 4) return text();
  if (which === 4) return pick([0, -0, 1, -1, 1.5, 1e308, 2 ** 31, 2 ** 53, -(2 ** 63), 5e-324]);
  if (which === 5) return pick([null, true, false]);
  if (which === 6) return below(MEMBERS * 3);
  if (which === 7)
    return { raw: pick(['"\\ud800"', '"\\u0000"', '1e999', '1E400', '-0', '"\\uDC00x"', '{"a":1,"a":2}']) };
  if (which === 8) return times(below(4), () => json(depth + 1));
  if (which === 9) return pick([nested(5), nested(9), nested(3000), times(200, () => 1)]);
  return Object.fromEntries(times(below(5), () => [text(), json(depth + 1)]));
}
const nested = (depth) => ({ raw: '['.repeat(depth) + ']'.repeat(depth) });
/** JSON in which `raw` values are unencoded. */
function write(value) {
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  if (typeof value.raw === 'string' && Object.keys(value).length === 1) return value.raw;
  return `{${Object.entries(value)
    .map(([name, one]) => `${JSON.stringify(name)}:${write(one)}`)
    .join(',')}}`;
}
/** The pairs with a few omitted, doubled, renamed, or changed in value. */
function changed(pairs, names) {
  const list = pairs.slice();
  for (let i = below(4); i > 0; i--) {
    const at = below(list.length + 1);
    const name = chance(0.3) || list.length === 0 ? pick(names) : (list[at] ?? pick(list))[0];
    const what = below(5);
    if (what === 0 && at < list.length) list.splice(at, 1);
    else if (what === 1 && at < list.length) list.splice(at, 0, list[at]);
    else if (what === 2) list.splice(at, 0, [text(), text()]);
    else if (what === 3 && at < list.length) list[at] = [name, text()];
    else list.splice(at, 0, [name, text()]);
  }
  return list;
}
/** Removes characters that would end a line of HTTP, or its parser. */
const onOneLine = (value) =>
  Array.from(value, (letter) => (letter < ' ' || letter === '\x7f' ? '' : letter)).join('');
const formOf = (pairs) =>
  pairs.map(([name, value]) => `${encoded(name)}=${encoded(String(value))}`).join('&');

// --------------------------------------------------------------------------------------------------------------------- the server

const folder = mkdtempSync(join(tmpdir(), 'pua-fuzz-'));
const database = await freshDatabase();
const environment = await database.environment({
  LOG_LEVEL: 'error',
  LOG_FORMAT: 'json',
  DEVELOPER_CONSOLE: 'true',
  RATE_LIMIT_READ: '0',
  RATE_LIMIT_WRITE: '0',
  RATE_LIMIT_PLATFORM: '0',
  RATE_LIMIT_AUTH: '0', // requests that a limit rejects would not reach the code behind it
});
const services = await openServices(environment);
const { dataSource } = services;
await services.addMembers(MEMBERS);
await services.addClient();
const key = await services.makeKey(BY_KEY);
const platformKey = await services.makeKey(null);
const routes = await services.routes();
const logFile = join(folder, 'log');
const server = await new Instance('the server', environment, createWriteStream(logFile)).start();
const documents = Object.fromEntries(
  await Promise.all(
    ['/api/public', '/api/platform'].map(async (prefix) => [
      prefix,
      await (await fetch(`${server.url}${prefix}/openapi.json`)).json(),
    ]),
  ),
);
const PORT = Number(environment.PORT);
const ORIGIN = environment.PUBLIC_URL;

/** Currently valid credentials and pages; renewed when requests of the run have ended them. */
const live = { token: '', refresh: '', code: '', browser: new Browser(server), forms: [], interactions: [] };
let renewals = 0;
async function renew() {
  const credential = { username: `member_${BY_BROWSER}`, password: PASSWORD };
  const headers = { Authorization: `Bearer ${live.token}` };
  if ((await fetch(`${server.url}/api/public/me`, { headers })).status !== 200) {
    renewals++;
    const browser = new Browser(server);
    const tokens = await exchange(server, await browser.authorize(credential));
    Object.assign(live, { token: tokens.access_token, refresh: tokens.refresh_token, browser });
  }
  live.code = await live.browser.authorize(credential).catch(() => live.code);
  // prettier-ignore
  const pages = [
    '/account/apps', '/account/sessions', '/account/activity', '/account/security', '/account/keys',
    '/account/calendar', '/account/data', '/developer', '/developer/new-client', '/developer/new-key',
  ];
  const forms = [];
  for (const page of pages) {
    const { body } = await live.browser.open(page);
    for (const form of formsOf(body)) forms.push({ ...form, cookie: live.browser.cookiesAt(form.path) });
  }
  const interactions = [];
  for (const prompt of ['login', 'consent']) {
    const stranger = new Browser(server);
    let path = `${AUTHORIZE}&prompt=${prompt}`;
    for (let step = 0; step < 3; step++) {
      const { headers: answered, body } = await stranger.open(path);
      if (answered.location === undefined) {
        for (const form of formsOf(body, credential))
          interactions.push({ ...form, cookie: stranger.cookiesAt(form.path) });
        break;
      }
      path = answered.location.replace(ORIGIN, '');
    }
  }
  if (forms.length > 0 && interactions.length > 0) Object.assign(live, { forms, interactions });
}
await renew();

// ------------------------------------------------------------------------------------------------------------------- the requests

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'];
// prettier-ignore
const TYPES = [
  'application/json', 'application/x-ndjson', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x',
  'text/plain', 'application/json; charset=utf-16', 'application/json; charset=nonsense',
  'application/JSON;charset="utf-8"', '*/*', ';', '',
];
/** Headers that may be sent with any request. */
const HEADERS = [
  () => [
    'Accept',
    pick(['*/*', 'text/html', 'application/json;q=0', 'image/*', ';;', 'a/b;q=9', ',', text()]),
  ],
  () => ['Accept-Language', pick(['de', '*', 'x'.repeat(500), text()])],
  () => ['Accept-Encoding', pick(['gzip', 'br;q=0', 'identity;q=0', '*;q=0', text()])],
  () => ['Content-Type', pick(TYPES)],
  () => ['Content-Encoding', pick(['gzip', 'deflate', 'br', 'nonsense', 'gzip, gzip'])],
  () => ['If-None-Match', pick(['*', '"x"', 'W/"x"', '"', ',', text()])],
  () => ['If-Match', pick(['*', '"x"', 'W/"x"', '"', ',', text()])],
  () => ['If-Modified-Since', text()],
  () => ['Range', pick(['bytes=0-0', 'bytes=-1', 'bytes=9-1', 'lines=1'])],
  () => ['Origin', pick(['null', 'https://app.example', 'https://evil.example', ORIGIN, text()])],
  () => ['Referer', text()],
  () => ['X-Request-Id', pick(['abc', 'x'.repeat(65), '*/ DROP TABLE users --', text()])],
  () => ['X-Forwarded-For', pick(['1.2.3.4', '::1', 'unknown', text()])],
  () => ['X-Forwarded-Proto', text()],
  () => ['X-Forwarded-Host', 'evil.example'],
  () => ['X-HTTP-Method-Override', 'DELETE'],
  () => ['Sec-Fetch-Site', pick(['cross-site', 'same-origin', text()])],
  () => ['Idempotency-Key', pick(['a', 'x'.repeat(300), text()])],
  () => ['Authorization', authorization()],
  () => ['X-API-Key', pick([key, platformKey, '', 'pua_live_x_y', key.slice(0, -1), text()])],
  () => ['DPoP', pick(['x.y.z', jwt(), `${jwt()}, ${jwt()}`, text()])],
  () => ['Cookie', pick(['_session=x', '=', ';;', 'a=b; '.repeat(100), text()])],
  () => ['Expect', pick(['100-continue', 'nonsense'])],
  () => ['User-Agent', text()],
  () => ['Traceparent', pick(['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', text()])],
  () => ['Upgrade', pick(['websocket', 'h2c'])],
];
const jwt = () =>
  [pick([{ alg: 'none' }, { alg: 'ES256', typ: 'dpop+jwt', jwk: json() }, json()]), json(), 'x']
    .map((part) => Buffer.from(typeof part === 'string' ? part : write(part)).toString('base64url'))
    .join('.');
const authorization = () =>
  pick([
    `Bearer ${live.token}`,
    `bearer  ${live.token}`,
    `Bearer ${key}`,
    'Bearer',
    `DPoP ${live.token}`,
    `Basic ${Buffer.from(`${CLIENT_ID}:${text()}`).toString('base64')}`,
    'Basic !!!',
    `Bearer ${text()}`,
  ]);
const credentials = () =>
  pick([
    [['X-API-Key', key]],
    [['X-API-Key', key]],
    [['Authorization', `Bearer ${live.token}`]],
    [['Authorization', `Bearer ${live.token}`]],
    [['X-API-Key', platformKey]],
    [],
  ]);

/** A value that a parameter's schema allows. */
function valueOf(schema) {
  if (schema.enum) return String(pick(schema.enum));
  if (schema.type === 'array') return times(1 + below(3), () => valueOf(schema.items)).join(',');
  if (schema.type === 'integer') return String(below(200));
  if (schema.type === 'boolean') return pick(['true', 'false']);
  if (schema.format === 'date-time') return '2026-05-01T18:00:00Z';
  return pick(['a', 'event', 'member', text()]);
}

const OPERATIONS = Object.entries(documents).flatMap(([prefix, { paths, components }]) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => METHODS.includes(method.toUpperCase()))
      .map(([method, operation]) => ({
        prefix,
        path,
        method: method.toUpperCase(),
        parameters: (operation.parameters ?? []).map((parameter) =>
          parameter.$ref ? components.parameters[parameter.$ref.split('/').at(-1)] : parameter,
        ),
      })),
  ),
);

// prettier-ignore
const FIELDS = [
  'first_name', 'last_name', 'bio', 'profile_picture', 'id', 'username', '__proto__', 'nickname',
];
const profile = () => {
  const fields = times(below(5), () => [pick(FIELDS), chance(0.5) ? text() : json()]);
  const body = write(Object.fromEntries(fields));
  const which = below(30);
  if (which === 0) return body.slice(0, below(body.length + 1));
  if (which === 1) return `\ufeff${body}`;
  if (which === 2) return `{${times(40, (_, i) => `"k${i}":1`).join(',')}}`;
  if (which === 3) return write(json());
  if (which === 4) return Buffer.concat([Buffer.from('{"bio":"'), randomBytesOf(20), Buffer.from('"}')]);
  if (which === 5) return `{"bio":"${'x'.repeat(pick([16_000, 16_384, 20_000]))}"}`;
  return body;
};
const RECORDS = {
  users: () => ({ id: 1000 + below(50), username: pick([`fed${below(60)}`, text()]), bio: text() }),
  events: () => ({
    id: 1 + below(100),
    title: pick(['An event', text()]),
    status: pick(['scheduled', 'draft', 'cancelled', 'completed', text()]),
    visibility: pick(['public', 'private', 'unlisted']),
    starts_at: pick(['2031-05-01 18:00:00', '2031-03-30 02:30:00', text()]),
    timezone: pick(['Europe/Vienna', 'UTC', text()]),
    organizer_id: 3 + below(MEMBERS),
  }),
  participants: () => ({
    event_id: 1 + below(100),
    user_id: 3 + below(MEMBERS),
    role: pick(['attendee', 'invitee', 'co_organizer', text()]),
    rsvp_status: pick(['going', 'maybe', 'waitlisted', null]),
  }),
  connections: () => ({
    id: 1 + below(100),
    requester_id: 3 + below(MEMBERS),
    addressee_id: 3 + below(MEMBERS),
    status: pick(['accepted', 'pending', text()]),
  }),
  achievements: () => ({ id: 1 + below(50), code: `a${below(60)}`, name: text(), description: text() }),
  user_achievements: () => ({
    user_id: 3 + below(MEMBERS),
    achievement_id: 1 + below(50),
    progress: below(5),
  }),
};
const feedLine = () => {
  const type = pick(Object.keys(RECORDS));
  const record = RECORDS[type]();
  if (chance(0.4))
    record[pick([...Object.keys(record).filter((name) => !name.endsWith('id')), text()])] = json();
  const line = { type, op: pick(['put', 'put', 'put', 'delete']), record };
  if (chance(0.5)) line.version = below(1000);
  if (chance(0.1)) line[pick(['type', 'op', 'record', 'version', text()])] = json();
  // The feed must not erase the calling members.
  return /"(?:user_|organizer_|requester_|addressee_)?id":"?[12]\b/.test(write(line)) ? '{}' : write(line);
};
const feed = () => {
  const lines = times(1 + below(4), () =>
    chance(0.95) ? feedLine() : pick(['', '{', 'null', '[]', write(json())]),
  );
  const body = lines.join(pick(['\n', '\n', '\n', '\r\n', '\n\n']));
  return chance(0.05) ? gzipSync(body) : body;
};

const api = () => {
  const { path, method, parameters } = pick(OPERATIONS);
  const target = path.replace(/\{(\w+)\}/g, () => (chance(0.6) ? String(below(120)) : encoded(text())));
  const asked = parameters.filter((parameter) => parameter.in === 'query' && chance(0.3));
  const pairs = asked.map(({ name, schema = {} }) => [name, valueOf(schema)]);
  const names = parameters.map(({ name }) => name).concat('cursor', 'limit', 'fields');
  const query = formOf(chance(0.6) ? changed(pairs, names) : pairs);
  const headers = [...credentials()];
  let body;
  if (method !== 'GET' || chance(0.02)) {
    const isFeed = path.endsWith('/records');
    body = isFeed ? feed() : profile();
    headers.push(['Content-Type', chance(0.95) ? (isFeed ? TYPES[1] : TYPES[0]) : pick(TYPES)]);
    if (isFeed && chance(0.9)) headers[0] = ['X-API-Key', platformKey];
    if (Buffer.isBuffer(body) && body[0] === 0x1f) headers.push(['Content-Encoding', 'gzip']);
  }
  // No request may wait for a change.
  const bounded = query.replace(/wait=[^&]*/g, 'wait=0');
  return {
    method: chance(0.97) ? method : pick(METHODS),
    target: target + (bounded && `?${bounded}`),
    headers,
    body,
  };
};

const OAUTH_NAMES =
  `acr_values assertion authorization_details claims claims_locales client_assertion client_assertion_type client_id client_secret code
code_challenge code_challenge_method code_verifier display dpop_jkt grant_type id_token_hint login_hint logout_hint max_age nonce
post_logout_redirect_uri prompt redirect_uri refresh_token registration request request_uri resource response_mode response_type scope
state token token_type_hint ui_locales user_code device_code subject_token xsrf logout csrf`.split(/\s+/);
const authorizeForm = () =>
  [...new URLSearchParams(AUTHORIZE.split('?')[1])].concat(chance(0.5) ? [['state', text()]] : []);
// prettier-ignore
const OAUTH = [
  () => ['GET', '/oauth/authorize', authorizeForm()],
  () => ['POST', '/oauth/authorize', authorizeForm()],
  () => ['POST', '/oauth/par', authorizeForm()],
  () => ['POST', '/oauth/token', Object.entries(exchangeForm(chance(0.5) ? live.code : 'x'.repeat(43)))],
  () => ['POST', '/oauth/token', Object.entries(refreshForm(chance(0.5) ? live.refresh : 'x'.repeat(43)))],
  () => ['POST', '/oauth/token', [['grant_type', pick(['client_credentials', 'password', text()])], ['client_id', CLIENT_ID]]],
  () => ['POST', '/oauth/revoke', [['client_id', CLIENT_ID], ['token', chance(0.02) ? live.token : text()]]],
  () => ['POST', '/oauth/introspect', [['client_id', CLIENT_ID], ['token', chance(0.5) ? live.token : text()]]],
  () => ['GET', '/oauth/userinfo', []],
  () => ['POST', '/oauth/userinfo', [['access_token', live.token]]],
  () => ['GET', '/oauth/logout', [['client_id', CLIENT_ID], ['post_logout_redirect_uri', REDIRECT_URI]]],
  () => ['POST', '/oauth/logout/confirm', [['xsrf', 'x'], ['logout', 'yes']]],
  () => ['GET', '/oauth/jwks', []],
  () => ['GET', '/.well-known/openid-configuration', []],
  () => ['GET', '/.well-known/oauth-authorization-server', []],
];
const oauth = () => {
  const [method, path, pairs] = pick(OAUTH)();
  const form = formOf(chance(0.9) ? changed(pairs, OAUTH_NAMES) : pairs);
  const headers = chance(0.3) ? [['Cookie', live.browser.cookiesAt(path)]] : [];
  if (path === '/oauth/userinfo' && chance(0.7)) headers.push(['Authorization', `Bearer ${live.token}`]);
  if (chance(0.05)) headers.push(['Authorization', authorization()]);
  return withForm(method, path, form, headers);
};
const withForm = (method, path, form, headers) => {
  if (method !== 'POST') return { method, target: path + (form && `?${form}`), headers };
  const type = ['Content-Type', chance(0.97) ? TYPES[2] : pick(TYPES)];
  return { method, target: path, headers: [type, ...headers], body: form };
};

/** Paths that cost half a second and a hash, or end the sign-in that all other requests use. */
const RARE = /sign-in$|password|sign-out|end-others|new-key/;
const page = () => {
  const { path, form, cookie } = pick(chance(0.6) ? live.forms : live.interactions);
  if (RARE.test(path) && !chance(0.02)) return routed();
  const pairs = chance(0.9)
    ? changed(form, form.map(([name]) => name).concat('csrf', 'username', 'client_id'))
    : form;
  const target = chance(0.85) ? path : path.replace(/[^/]+$/, () => encoded(text()));
  return withForm('POST', target, formOf(pairs), chance(0.9) ? [['Cookie', cookie]] : []);
};

/** Any route, or a similar path, with any method. */
const routed = () => {
  const route = pick(routes);
  let target = route.path.replace(/:\w+/g, () => (chance(0.3) ? String(below(100)) : encoded(text())));
  if (chance(0.3)) {
    const mutate = pick([
      (path) => path.toUpperCase(),
      (path) => `${path}/`,
      (path) => `/${path}`,
      (path) => path.replace(/\//g, '//'),
      (path) => path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
      (path) => `${path}/..`,
      (path) => `${path}/%2e%2e/`,
      (path) => path + pick(RAW),
      (path) => path.slice(0, below(path.length) + 1),
      (path) => `${ORIGIN}${path}`,
      (path) => `${path}?${formOf(changed([], OAUTH_NAMES))}`,
      (path) => `${path}?${onOneLine(text())}`,
    ]);
    target = mutate(target);
  }
  const method = chance(0.6) ? route.method : pick(METHODS);
  if (RARE.test(target) && method === 'POST' && !chance(0.02)) return api();
  const headers = chance(0.3)
    ? [['Cookie', live.browser.cookiesAt(target)]]
    : chance(0.3)
      ? credentials()
      : [];
  const body =
    method === 'POST' || method === 'PUT' || chance(0.05)
      ? pick([profile, () => formOf(changed([], OAUTH_NAMES)), feed])()
      : undefined;
  if (body !== undefined) headers.push(['Content-Type', pick(TYPES)]);
  return { method, target, headers, body };
};

/** @returns {{kind: string, bytes: Buffer, method: string, target: string}} */
function make() {
  const kind = pick(['api', 'api', 'api', 'oauth', 'oauth', 'page', 'route']);
  const { method, target, headers, body } = { api, oauth, page, route: routed }[kind]();
  const list = headers.concat(times(chance(0.4) ? 1 + below(3) : 0, () => pick(HEADERS)()));
  const payload = body === undefined ? undefined : Buffer.from(body);
  // A request that Node's own parser rejects ends the connection, so control characters are rare.
  const clean = (value) =>
    chance(0.002) ? String(value) : onOneLine(String(value)).replace(/[^ -\xff]/g, '?');
  const sent = [`Host: ${chance(0.98) ? 'localhost' : clean(text())}`];
  for (const [name, value] of list) if (value !== '' || chance(0.5)) sent.push(`${name}: ${clean(value)}`);
  if (payload !== undefined) {
    if (chance(0.1)) sent.push('Transfer-Encoding: chunked');
    else sent.push(`Content-Length: ${payload.length}`);
  }
  const head = Buffer.from(
    `${method} ${onOneLine(target).replaceAll(' ', '')} HTTP/1.1\r\n${sent.join('\r\n')}\r\n\r\n`,
    'utf8',
  );
  const chunked = payload && sent.at(-1).startsWith('Transfer');
  const parts = payload ? [payload] : [];
  if (chunked && payload.length > 0)
    parts.splice(0, 1, Buffer.from(`${payload.length.toString(16)}\r\n`), payload, Buffer.from('\r\n'));
  if (chunked) parts.push(Buffer.from('0\r\n\r\n'));
  return { kind, method, target, bytes: Buffer.concat([head, ...parts]) };
}

/** Bytes that form an invalid request, an incomplete request, or several contradictory requests. */
function garbage() {
  const one = make().bytes;
  const post = (rest) => `POST /oauth/token HTTP/1.1\r\nHost: a\r\n${rest}`;
  const made = pick([
    () => randomBytesOf(1 + below(300)),
    () => one.subarray(0, below(one.length)),
    () => Buffer.concat([one, randomBytesOf(below(50)), make().bytes]),
    () => Buffer.concat(times(2 + below(6), () => make().bytes)),
    () => `GET / HTTP/${pick(['0.9', '1.0', '2.0', '9.9', 'x'])}\r\nHost: a\r\n\r\n`,
    () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    () => post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /livez HTTP/1.1\r\n\r\n'),
    () => post(`Content-Length: ${pick(['-1', '1e3', '5, 6', '99999999999999999999', 'x'])}\r\n\r\nhello`),
    () =>
      post(
        `Transfer-Encoding: chunked\r\n\r\n${pick(['zz', '-1', 'ffffffffffffffff', '5;a=b'])}\r\nhello\r\n0\r\n\r\n`,
      ),
    () =>
      `GET /livez HTTP/1.1\r\n${times(pick([50, 2000]), (_, i) => `X-${i}: ${'y'.repeat(pick([1, 20]))}`).join('\r\n')}\r\n\r\n`,
    () => `GET /${'x'.repeat(pick([1000, 20_000]))} HTTP/1.1\r\nHost: a\r\n\r\n`,
    () =>
      `${pick(['CONNECT a:1', 'OPTIONS *', 'GET a b', 'get /', ' GET /', 'GET\t/'])} HTTP/1.1\r\nHost: a\r\n\r\n`,
  ])();
  return Buffer.from(made);
}

// ------------------------------------------------------------------------------------------------------------------- the judgement

const faults = [];
const seen = { statuses: {}, kinds: {}, comparedWithTheDocument: 0 };
let sent = 0;
function note(what, request, response = '') {
  const key = `${what} ${String(response).slice(0, 60)}`;
  const known = faults.find((fault) => fault.key === key);
  if (known) return void known.count++;
  faults.push({
    key,
    what,
    count: 1,
    request: request.toString('latin1').slice(0, 3000),
    response: String(response).slice(0, 1500),
  });
  console.error(
    `FAULT ${what}\n${request.toString('latin1').slice(0, 600)}\n--> ${String(response).slice(0, 600)}\n`,
  );
}

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
const described = Object.entries(documents).map(([prefix, document]) => {
  ajv.addSchema(document, prefix);
  const paths = Object.keys(document.paths).map((path) => ({
    path,
    pattern: new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  }));
  return { prefix, document, paths };
});
const validators = new Map();
function validatorAt(prefix, pointer) {
  const at = `${prefix}#${pointer}`;
  if (!validators.has(at)) validators.set(at, ajv.getSchema(at));
  return validators.get(at);
}
const escaped = (part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));

function judge({ kind, method, target, bytes }, status, headers, body) {
  seen.statuses[status] = (seen.statuses[status] ?? 0) + 1;
  seen.kinds[kind] = (seen.kinds[kind] ?? 0) + 1;
  const shown = () => `${status} ${body.toString('utf8')}`;
  if (status >= 500 && !(status === 503 && headers['retry-after'])) note(`status ${status}`, bytes, shown());
  if (status >= 400 && /\bat [^\n]{1,200}\.[cm]?[jt]s:\d+/.test(body.toString('latin1')))
    note('a stack', bytes, shown());
  const { location } = headers;
  if (location !== undefined && !/^\/(?!\/)/.test(location)) {
    const origin = URL.canParse(location) ? new URL(location).origin : location;
    const isOurs = [ORIGIN, new URL(REDIRECT_URI).origin].includes(origin);
    if (!isOurs && !location.startsWith('?')) note('a redirect elsewhere', bytes, location);
  }
  const path = target.replace(/^https?:\/\/[^/]+/, '').split('?')[0];
  if (headers['x-request-id'] === undefined) return; // rejected by Node's parser
  const api = described.find(({ prefix }) => path.startsWith(`${prefix}/`));
  if (!api || kind === 'socket') return;
  const type = String(headers['content-type'] ?? '').split(';')[0];
  const known = api.paths.find(({ pattern }) => pattern.test(path));
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
  const operation = known && api.document.paths[known.path][verb];
  let pointer = '/components/schemas/Problem';
  if (operation) {
    if (status === 404 && /[\\#]/.test(target)) return; // no valid path (request-context.ts)
    const declared = operation.responses[status];
    if (!declared) return note(`${method} ${known.path}: ${status} is not documented`, bytes, shown());
    if (method === 'HEAD' || status === 304 || status === 204) return;
    const at = declared.$ref?.slice(2).split('/') ?? ['paths', known.path, verb, 'responses', String(status)];
    pointer = `/${[...at, 'content', type, 'schema'].map(escaped).join('/')}`;
  } else if (status < 400 || method === 'HEAD') return;
  const validate = validatorAt(api.prefix, pointer);
  if (!validate) {
    if (body.length > 0 || operation) note(`no schema for ${type} at ${pointer}`, bytes, shown());
    return;
  }
  let parsed;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    if (type.endsWith('json')) return note('a body that is not JSON', bytes, shown());
    parsed = body.toString('utf8');
  }
  seen.comparedWithTheDocument++;
  if (!validate(parsed))
    note(`not what the document says: ${ajv.errorsText(validate.errors).slice(0, 200)}`, bytes, shown());
}

// ------------------------------------------------------------------------------------------------------------------ the connections

/** Parses one response. @returns undefined while it is incomplete, else the remaining bytes */
function parse(bytes, isHead, isClosed) {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const lines = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const status = Number(lines[0].slice(9, 12));
  const headers = {};
  for (const line of lines.slice(1))
    headers[line.slice(0, line.indexOf(':')).toLowerCase()] = line.slice(line.indexOf(':') + 1).trim();
  const rest = bytes.subarray(end + 4);
  if (status < 200) return parse(rest, isHead, isClosed);
  if (isHead || status === 204 || status === 304) return { status, headers, body: Buffer.alloc(0), rest };
  if (headers['transfer-encoding'] === 'chunked') {
    const parts = [];
    for (let at = 0; ;) {
      const line = rest.indexOf('\r\n', at);
      if (line === -1) return undefined;
      const size = parseInt(rest.subarray(at, line).toString('latin1'), 16);
      if (rest.length < line + 2 + size + 2) return undefined;
      parts.push(rest.subarray(line + 2, line + 2 + size));
      at = line + 2 + size + 2;
      if (size === 0) return { status, headers, body: Buffer.concat(parts), rest: rest.subarray(at) };
    }
  }
  const length = Number(headers['content-length'] ?? (isClosed ? rest.length : Infinity));
  if (rest.length < length) return undefined;
  return { status, headers, body: rest.subarray(0, length), rest: rest.subarray(length) };
}

async function talk() {
  let socket;
  let bytes = Buffer.alloc(0);
  let isClosed = true;
  let wake = () => undefined;
  const open = () =>
    new Promise((resolve, reject) => {
      socket = connect(PORT, '127.0.0.1');
      bytes = Buffer.alloc(0);
      isClosed = false;
      const mine = socket;
      socket.on('data', (data) => {
        bytes = Buffer.concat([bytes, data]);
        wake();
      });
      socket.on('error', reject);
      socket.on('close', () => {
        if (mine === socket) isClosed = true;
        wake();
      });
      socket.on('connect', resolve);
    });
  while (sent < requests) {
    sent++;
    if (isClosed || socket.destroyed) await open().catch(() => undefined);
    if (chance(0.005)) {
      const raw = garbage();
      socket.end(raw);
      // A server waiting for the rest of a request is silent: half a second of silence is the end.
      for (let heard = -1; !isClosed && heard !== bytes.length;) {
        heard = bytes.length;
        await new Promise((resolve) => {
          wake = resolve;
          setTimeout(resolve, 500);
        });
      }
      socket.destroy();
      for (const [, status] of bytes.toString('latin1').matchAll(/^HTTP\/1\.1 (\d{3})/gm)) {
        seen.statuses[status] = (seen.statuses[status] ?? 0) + 1;
        if (Number(status) >= 500 && status !== '503') note(`status ${status} at the socket`, raw, bytes);
      }
      seen.kinds.socket = (seen.kinds.socket ?? 0) + 1;
      isClosed = true;
      continue;
    }
    const request = make();
    bytes = Buffer.alloc(0);
    socket.write(request.bytes);
    const latest = performance.now() + 40_000;
    let response;
    for (;;) {
      response = parse(bytes, request.method === 'HEAD', isClosed);
      if (response || isClosed) break;
      if (performance.now() > latest) {
        note('no response within 40 s', request.bytes);
        break;
      }
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, 1_000).unref();
      });
    }
    if (response) judge(request, response.status, response.headers, response.body);
    else seen.kinds.closed = (seen.kinds.closed ?? 0) + 1;
    if (!response || response.headers.connection === 'close' || response.rest.length > 0) {
      socket.destroy();
      isClosed = true;
    }
  }
  socket.destroy();
}

// --------------------------------------------------------------------------------------------------------------------------- the run

const began = performance.now();
let isOver = false;
const talking = Promise.all(times(Number(options.connections), talk));
const caring = (async () => {
  let said = 0;
  while (!isOver) {
    await Promise.race([pause(2_000), talking]);
    await renew().catch((error) => console.error(`renewing: ${error.message.split('\n')[0]}`));
    if (performance.now() - said > 30_000) {
      said = performance.now();
      console.error(
        `${sent} requests, ${Math.round((sent * 1000) / (performance.now() - began))}/s, ${faults.length} faults, ${renewals} renewals`,
      );
    }
  }
})();
await talking;
isOver = true;
await caring;
const seconds = (performance.now() - began) / 1000;
if (server.child.exitCode !== null) note('the server ended', Buffer.from(''), server.child.exitCode);
else if (!(await fetch(`${server.url}/readyz`)).ok) note('the server is not ready', Buffer.from(''));
await server.kill('SIGTERM');
for (const line of readFileSync(logFile, 'utf8').split('\n'))
  if (line.startsWith('{')) note('a line of the log', Buffer.from(''), line);
const summary = {
  requests: sent,
  seed: options.seed,
  seconds: Math.round(seconds),
  ...seen,
  renewals,
  faults,
};
if (options.out) writeFileSync(options.out, JSON.stringify(summary, undefined, 2));
console.log(JSON.stringify({ ...summary, faults: faults.map(({ what, count }) => ({ what, count })) }));
console.log(faults.length === 0 ? 'good' : `BAD: ${faults.length} kinds of faults`);
await dataSource.destroy();
await database.end();
rmSync(folder, { recursive: true });
process.exitCode = faults.length === 0 ? 0 : 1;
