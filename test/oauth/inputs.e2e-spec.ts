import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { thorough } from '../support/database.js';
import { csrfOf, OauthTest, pkcePair, REDIRECT_URI } from '../support/oauth.js';
import { clientWithKey } from '../support/client-kinds.js';

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const FORM = 'application/x-www-form-urlencoded';
/** Maximum size of a stored request, in bytes. */
const LARGEST_ROW = 8192;

let oauth: OauthTest;
let clientId: string;
let username: string;
beforeAll(async () => {
  oauth = await OauthTest.start();
  clientId = await oauth.client();
  ({ username } = await oauth.member());
});
afterAll(() => oauth.close());

/** Sends an anonymous request to the authorization endpoint. */
const authorize = async (parameters: Record<string, string | undefined>) => {
  const { url } = oauth.request(clientId, parameters);
  const response = await fetch(url, { redirect: 'manual', headers: { Accept: 'text/html' } });
  return { status: response.status, location: response.headers.get('location'), text: await response.text() };
};
const push = (parameters: Record<string, string | undefined>) =>
  oauth.post('/oauth/par', Object.fromEntries(oauth.request(clientId, parameters).url.searchParams));

/** Sends bytes in pieces over one connection. @returns the response */
const exchange = (head: string, pieces: readonly string[] = []) =>
  new Promise<string>((resolve, reject) => {
    const socket = connect(Number(new URL(oauth.issuer).port), '127.0.0.1', () => {
      socket.setNoDelay(true);
      socket.write(Buffer.from(`POST ${head}\r\nHost: x\r\nConnection: close\r\n\r\n`, 'latin1'));
      const next = (i: number) => {
        if (i < pieces.length) socket.write(pieces[i]!, () => setImmediate(next, i + 1));
      };
      next(0);
    });
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')));
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });

/** [fault, parameter, value] */
const WRONG: [string, string, string][] = [
  ['U+0000', 'nonce', 'a\0b'],
  ['U+0000', 'acr_values', '\0'],
  ['U+0000', 'dpop_jkt', `${'x'.repeat(42)}\0`],
  ['U+0000', 'state', '\0'],
  ['U+0000', 'login_hint', 'ada\0'],
  ['a line break', 'ui_locales', 'en\r\nSet-Cookie: a=b'],
  ['a text that is not UTF-8', 'nonce', '\ufffd'],
  ['8 KB', 'state', 'x'.repeat(8192)],
  ['2,049 characters', 'state', 'x'.repeat(2049)],
  ['513 characters', 'nonce', 'x'.repeat(513)],
  ['101 characters', 'login_hint', 'x'.repeat(101)],
  ['8 KB', 'id_token_hint', 'x'.repeat(8192)],
  ['8 KB', 'resource', `https://example.com/${'x'.repeat(8192)}`],
];

describe('an authorization request', () => {
  it.each(WRONG)('with %s in %s is rejected by a redirect to the verified URI', async (_, name, value) => {
    const { status, location } = await authorize({ [name]: value });
    expect(status).toBe(303);
    const back = new URL(location!);
    expect(back.origin + back.pathname).toBe(REDIRECT_URI);
    expect(back.searchParams.get('error')).toBe('invalid_request');
    expect(back.searchParams.get('error_description')).toMatch(new RegExp(`^${name} must `));
    expect(back.searchParams.get('iss')).toBe(oauth.issuer);
  });

  it.each(WRONG)('that is pushed with %s in %s is rejected with JSON', async (_, name, value) => {
    const { status, body, headers } = await push({ [name]: value });
    expect([status, body.error]).toEqual([400, 'invalid_request']);
    expect(body.error_description).toMatch(new RegExp(`^${name} must `));
    expect(body.error_id).toBe(headers.get('x-request-id'));
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('is validated despite a second question mark, many parameters or an encoded name', async () => {
    const { search } = oauth.request(clientId).url;
    for (const query of [
      `?${search}&nonce=%00`,
      `${search}${'&a'.repeat(90)}&nonce=%00`,
      `${search}&non%63e=%00`,
    ]) {
      const response = await fetch(`${oauth.issuer}/oauth/authorize${query}`, { redirect: 'manual' });
      expect([query.slice(0, 20), response.status]).toEqual([query.slice(0, 20), 303]);
      expect(response.headers.get('location')).toMatch(/[?&]error=invalid_request&/);
    }
    const form = {
      method: 'POST',
      headers: { 'Content-Type': FORM },
      body: `${'a&'.repeat(90)}${search.slice(1)}&nonce=%00`,
    };
    const response = await fetch(`${oauth.issuer}/oauth/par`, form);
    expect([response.status, await response.json()]).toMatchObject([400, { error: 'invalid_request' }]);
  });

  it('causes no redirect to an unverified URI, even with a second fault', async () => {
    for (const [, name, value] of WRONG)
      for (const redirect_uri of [
        'https://evil.example/callback',
        `${REDIRECT_URI}\0`,
        `${REDIRECT_URI}/${'x'.repeat(3000)}`,
      ]) {
        const { status, location } = await authorize({ redirect_uri, [name]: value });
        const what = `${redirect_uri.slice(0, 40)} ${name}`;
        expect([what, status, location]).toEqual([what, 400, null]);
      }
    for (const client_id of ['x'.repeat(101), 'a\0b', undefined])
      expect(await authorize({ client_id, state: '\0' })).toMatchObject({ status: 400, location: null });
  });

  it('is rejected if its parameters are too long in total', async () => {
    const many = { state: '"'.repeat(2048), nonce: '\\'.repeat(512) };
    expect((await authorize({ state: many.state })).location).toContain('/interaction/');
    const error_description = 'the authorization request is too long';
    const { location } = await authorize(many);
    expect(new URL(location!).searchParams.get('error_description')).toBe(error_description);
    expect((await push(many)).body).toMatchObject({ error: 'invalid_request', error_description });
  });

  it('is accepted with long unsupported parameters, which are not stored', async () => {
    const largest = async (model: string) => {
      const [row] = await oauth.query<{ bytes: number }>(
        'SELECT max(octet_length(payload))::int AS bytes FROM oauth_state WHERE model = $1',
        [model],
      );
      await oauth.query('DELETE FROM oauth_state');
      return row!.bytes;
    };
    await oauth.query('DELETE FROM oauth_state'); // long requests of other tests
    await authorize({});
    const interaction = await largest('Interaction');
    await push({});
    const pushed = await largest('PushedAuthorizationRequest');
    const unknown = {
      utm_source: 'x'.repeat(5000),
      claims: `{"userinfo":{"a":"${'x'.repeat(2000)}"}}`,
      zero: '\0',
    };
    expect((await authorize(unknown)).location).toContain('/interaction/');
    expect(await largest('Interaction')).toBeLessThan(interaction + 100);
    expect((await push(unknown)).status).toBe(201);
    expect(await largest('PushedAuthorizationRequest')).toBeLessThan(pushed + 100);
  });

  thorough.it(
    'occupies at most 8 KB as an interaction or a pushed request, even with the longest values and with escapes',
    async () => {
      await oauth.query('DELETE FROM oauth_state');
      for (const character of ['x', '"', '\\', 'é', '💙']) {
        // Find the longest accepted value by bisection.
        let [low, high] = [0, 2048 / character.length];
        const parameters = (length: number) => {
          const text = character.repeat(length);
          return {
            state: text,
            id_token_hint: undefined,
            nonce: text.slice(0, 512),
            login_hint: text.slice(0, 100),
            ui_locales: text.slice(0, 100),
            acr_values: text.slice(0, 200),
          };
        };
        while (low + 1 < high) {
          const middle = Math.floor((low + high) / 2);
          if ((await push(parameters(middle))).status === 201) low = middle;
          else high = middle;
        }
        expect(low).toBeGreaterThan(400 / character.length);
        expect((await push(parameters(low))).status).toBe(201);
        expect((await authorize(parameters(low))).location).toContain('/interaction/');
      }
      const [row] = await oauth.query<{ bytes: number }>(
        'SELECT max(octet_length(payload))::int AS bytes FROM oauth_state',
      );
      expect(row!.bytes).toBeGreaterThan(4000);
      expect(row!.bytes).toBeLessThan(LARGEST_ROW);
    },
  );

  it('signs the member in with the longest state and nonce', async () => {
    const parameters = {
      state: 's'.repeat(2048),
      nonce: 'n'.repeat(512),
      login_hint: username,
      ui_locales: 'de en',
    };
    const { url, redeem } = oauth.request(clientId, parameters);
    const back = await oauth.browser().authorize(url, { username });
    expect(back.searchParams.get('state')).toBe(parameters.state);
    expect((await redeem(back)).status).toBe(200);
  });
});

describe('a form sent to an OAuth endpoint', () => {
  const PATHS = ['/oauth/token', '/oauth/revoke', '/oauth/introspect', '/oauth/par'];
  const send = async (path: string, type: string, body: string | Uint8Array<ArrayBuffer>) => {
    const headers = { 'Content-Type': type };
    const response = await fetch(oauth.issuer + path, { method: 'POST', headers, body });
    return [response.status, ((await response.json()) as { error: string }).error];
  };

  it.each(PATHS)('gets invalid_request if empty, too long, or not a UTF-8 form: %s', async (path) => {
    const utf16 = Uint8Array.from(Buffer.from(`client_id=${clientId}&nonce=\0`, 'utf16le'));
    for (const [type, body] of [
      [FORM, ''],
      [FORM, `client_id=${clientId}&token=${'x'.repeat(16_384)}`],
      [`${FORM}; charset=utf-16le`, utf16],
      [`${FORM};charset=UTF-8;charset=utf-16le`, utf16],
      [`${FORM}; charset=nonsense`, `client_id=${clientId}`],
      ['application/json', '{"client_id":"\\u0000"}'],
      ['multipart/form-data; boundary=x', '--x--'],
    ] as const)
      expect([type, ...(await send(path, type, body))]).toEqual([type, 400, 'invalid_request']);
  });

  it.each(PATHS)('may declare the charset UTF-8: %s', async (path) => {
    const body = 'client_id=nobody&grant_type=refresh_token&refresh_token=x';
    for (const charset of ['; charset=UTF-8', ';charset="utf-8"'])
      expect(await send(path, FORM + charset, body)).toEqual([401, 'invalid_client']);
  });

  it('is read completely from many small packets, with Content-Length or chunked', async () => {
    const newBody = async () => {
      const { refresh_token } = await oauth.tokens(clientId, username);
      return `grant_type=refresh_token&client_id=${clientId}&refresh_token=${refresh_token}`;
    };
    const send = (length: string, pieces: string[]) =>
      exchange(`/oauth/token HTTP/1.1\r\nContent-Type: ${FORM}\r\n${length}`, pieces);
    const split = (body: string) => body.match(/[^]{1,9}/g)!;
    const ok = /^HTTP\/1\.1 200 [^]*"refresh_token"/;
    const body = await newBody();
    expect(await send(`Content-Length: ${body.length}`, split(body))).toMatch(ok);
    const chunks = split(await newBody()).map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
    const chunked = 'Transfer-Encoding: chunked';
    expect(await send(chunked, [...chunks, '0\r\n\r\n'])).toMatch(ok);
    expect(await send(chunked, ['0\r\n\r\n'])).toMatch(/^HTTP\/1\.1 400 [^]*"invalid_request"/);
  });

  it('gets an error response at /oauth/token that a page of any origin may read (CORS)', async () => {
    const response = await fetch(`${oauth.issuer}/oauth/token`, {
      method: 'POST',
      headers: { Origin: 'https://app.example' },
      body: new URLSearchParams({ client_id: clientId, code: '\0' }),
    });
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([400, '*']);
    expect(response.headers.get('access-control-allow-credentials')).toBeNull();
  });
});

describe('a client assertion', () => {
  let confidential: string;
  let sign: (claims: Record<string, unknown>) => Promise<string>;
  beforeAll(async () => {
    const { id, assertion } = await clientWithKey(oauth);
    confidential = id;
    sign = async (claims) => (await assertion({ iat: undefined, ...claims })).client_assertion!;
  });
  /** Sends the assertion. @returns status and error, which is `invalid_grant` if the client has authenticated */
  const errorWith = async (client_assertion: string) => {
    const { status, body } = await oauth.token({
      grant_type: 'refresh_token',
      refresh_token: 'x'.repeat(43),
      client_assertion_type: ASSERTION_TYPE,
      client_assertion,
    });
    return [status, body.error];
  };
  const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

  it.each<[string, () => Record<string, unknown>]>([
    ['that expires within 5 minutes', () => ({ exp: inSeconds(295) })],
    ['that expires at a fraction of a second', () => ({ exp: Date.now() / 1000 + 30.5 })],
    ['that is valid only after 8 seconds', () => ({ nbf: inSeconds(8) })],
    ['issued by a clock that is 50 seconds ahead', () => ({ iat: inSeconds(50) })],
    ['with an id of 256 characters', () => ({ jti: 'é'.repeat(246) + crypto.randomUUID().slice(0, 10) })],
    ['with an id that PostgreSQL cannot store', () => ({ jti: `\0\ud800${crypto.randomUUID()}` })],
  ])('%s is accepted', async (_, claims) => {
    expect(await errorWith(await sign(claims()))).toEqual([400, 'invalid_grant']);
  });

  it.each<[string, () => Record<string, unknown>]>([
    ['that expires in over 5 minutes', () => ({ exp: inSeconds(420) })],
    ['that expires in 10 years', () => ({ exp: inSeconds(315_360_000) })],
    ['that expires in the year 31,690,708', () => ({ exp: 1e15 })],
    ['that expires at the largest JavaScript number', () => ({ exp: Number.MAX_VALUE })],
    ['with a string as the expiry', () => ({ exp: String(inSeconds(60)) })],
    ['for another endpoint of this server', () => ({ aud: `${oauth.issuer}/oauth/par` })],
    ['with an audience list that contains the issuer', () => ({ aud: [oauth.issuer] })],
    ['with an object as the audience', () => ({ aud: { toString: oauth.issuer } })],
    ['with an id of 257 characters', () => ({ jti: 'x'.repeat(257) })],
    ['with an id that is a number', () => ({ jti: 5 })],
    ['without a subject', () => ({ sub: undefined })],
    ['with a number as the subject', () => ({ sub: 5 })],
    ['with an object as the subject', () => ({ sub: { length: 1 } })],
    ['with a list as the subject', () => ({ sub: [confidential] })],
    ['with U+0000 as the subject', () => ({ sub: '\0', iss: '\0' })],
    ['with a lone surrogate as the subject', () => ({ sub: '\ud800', iss: '\ud800' })],
  ])('%s is rejected', async (_, claims) => {
    const [status, error] = await errorWith(await sign(claims()));
    expect([400, 401]).toContain(status);
    expect(['invalid_client', 'invalid_request']).toContain(error);
  });

  it('for the endpoint /oauth/par is rejected even at /oauth/par', async () => {
    const { searchParams } = oauth.request(confidential).url;
    const push = async (aud: string) =>
      oauth.post('/oauth/par', {
        ...Object.fromEntries(searchParams),
        client_assertion_type: ASSERTION_TYPE,
        client_assertion: await sign({ aud }),
      });
    expect((await push(`${oauth.issuer}/oauth/par`)).body.error).toBe('invalid_client');
    for (const aud of [oauth.issuer, `${oauth.issuer}/oauth/token`])
      expect((await push(aud)).status).toBe(201);
  });

  it('with its exp changed to 1e999, -1e999 or 1e15 is rejected', async () => {
    const [header, , signature] = (await sign({})).split('.');
    for (const exp of ['1e999', '-1e999', '1e15']) {
      const claims = `{"iss":"${confidential}","sub":"${confidential}","aud":"${oauth.issuer}","jti":"a","exp":${exp}}`;
      const [status] = await errorWith(`${header}.${Buffer.from(claims).toString('base64url')}.${signature}`);
      expect([exp, status]).toEqual([exp, 401]);
    }
  });

  it('is stored until at most 10 seconds after its expiry, and not if it was rejected', async () => {
    await oauth.query(`DELETE FROM oauth_state WHERE model = 'ReplayDetection'`);
    const ends = [120, 295].map((most) => ({ most, exp: inSeconds(most) }));
    for (const { exp } of ends) await errorWith(await sign({ exp }));
    await errorWith(await sign({ exp: inSeconds(1000) }));
    const rows = await oauth.query<{ until: number; seconds: number }>(
      `SELECT extract(epoch FROM expires_at)::float8 AS until, extract(epoch FROM expires_at - now())::float8 AS seconds
FROM oauth_state WHERE model = 'ReplayDetection' ORDER BY expires_at`,
    );
    expect(rows).toHaveLength(2);
    for (const [i, { most, exp }] of ends.entries()) {
      expect(rows[i]!.seconds).toBeLessThanOrEqual(most + 10); // the tolerance for the client's clock
      expect(rows[i]!.until).toBeGreaterThan(exp);
    }
  });
});

describe('a request with an invalid parameter', () => {
  const SEGMENTS = ['%ff', '%00', '%2e%2e%2f', '%2f', '%', '%ED%A0%80', 'ü', '..;', 'x'.repeat(7000)];
  let browser: ReturnType<typeof oauth.browser>;
  let csrf: string;
  beforeAll(async () => {
    browser = oauth.browser();
    csrf = csrfOf(await browser.signIn('/account/apps', username));
  });

  it.each([
    ['GET', '/interaction/:id'],
    ['POST', '/interaction/:id/sign-in'],
    ['POST', '/interaction/:id/consent'],
    ['POST', '/interaction/:id/cancel'],
    ['POST', '/interaction/:id/switch-user'],
    ['POST', '/account/sessions/:id/end'],
    ['GET', '/account/:id'],
    ['GET', '/oauth/authorize/:id'],
  ])('gets a 4xx if the id is invalid, with and without a sign-in: %s %s', async (method, route) => {
    for (const who of [browser, oauth.browser()])
      for (const segment of SEGMENTS) {
        const path = route.replace(':id', segment);
        const body = method === 'POST' ? new URLSearchParams({ csrf }) : undefined;
        const response = await who.send(path, { method, ...(body ? { body } : {}) });
        const text = await response.text();
        const isClientError = response.status >= 400 && response.status < 500;
        expect([path.slice(0, 60), isClientError, text.length > 20]).toEqual([path.slice(0, 60), true, true]);
        expect(text).not.toMatch(/internal_error|Error:|at \w+ \(/);
      }
  });

  it('causes no server error if it revokes the access of an unknown or malformed client', async () => {
    for (const clientId of ['', 'x'.repeat(101), 'a\0b', '\ud800', '../x', 'nobody']) {
      const body = new URLSearchParams({ csrf, client_id: clientId });
      const response = await browser.send('/account/apps/revoke', { method: 'POST', body });
      expect([clientId, [303, 400].includes(response.status)]).toEqual([clientId, true]);
      expect(await response.text()).not.toMatch(/internal_error|Error:|at \w+ \(/);
    }
    const body = `csrf=${encodeURIComponent(csrf)}&client_id=a&client_id=b`;
    const twice = { method: 'POST', body, headers: { 'Content-Type': FORM } };
    expect((await browser.send('/account/apps/revoke', twice)).status).toBe(400);
  });

  it('gets a 4xx response if the path contains raw bytes or malformed UTF-8', async () => {
    for (const target of ['/interaction/\xff', '/account/sessions/%ff/end', '/interaction/%C0%AF']) {
      const answer = await exchange(`${target} HTTP/1.1\r\nContent-Length: 0`);
      expect([target, answer]).toEqual([target, expect.stringMatching(/^HTTP\/1\.1 4/)]);
    }
  });
});

describe('generated input', () => {
  const TEXTS = ['\0', '\ufffd', '\r\n', 'é', '💙', '', ' ', '%', '[]', '{"a":1}', 'null', '-1', '1e999'];
  const hostile = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...TEXTS, '__proto__', "'; DROP TABLE users", '<script>') },
    { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 300 }) },
    { weight: 1, arbitrary: fc.constantFrom(513, 2049, 8192).map((length) => 'x'.repeat(length)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('%ff', '%00', '%ED%A0%80', '%C0%AF', '%', '%u0000').map((raw) => ({ raw })),
    },
  );
  const NAMES =
    `acr_values claims claims_locales client_assertion client_assertion_type client_id client_secret code code_challenge code_challenge_method
code_verifier display dpop_jkt grant_type id_token_hint login_hint logout logout_hint max_age nonce
post_logout_redirect_uri prompt redirect_uri refresh_token registration request request_uri resource response_mode response_type
scope state token token_type_hint ui_locales xsrf csrf username password decision
__proto__ unknown`.split(/\s/);
  const changes = fc.array(
    fc.record({ name: fc.constantFrom(...NAMES), value: hostile, twice: fc.boolean() }),
    { minLength: 1, maxLength: 3 },
  );
  const encode = (value: string | { raw: string }) =>
    typeof value === 'string' ? encodeURIComponent(value.toWellFormed()) : value.raw;

  /** Endpoints, each with a well-formed request. */
  const endpoints = (): [method: string, path: string, good: Record<string, string>][] => {
    const request = Object.fromEntries(oauth.request(clientId).url.searchParams);
    const redeem = {
      grant_type: 'authorization_code',
      client_id: clientId,
      code: 'x'.repeat(43),
      code_verifier: pkcePair().verifier,
      redirect_uri: REDIRECT_URI,
    };
    const token = { client_id: clientId, token: 'x'.repeat(43) };
    return [
      ['GET', '/oauth/authorize', request],
      ['POST', '/oauth/par', request],
      ['POST', '/oauth/token', redeem],
      [
        'POST',
        '/oauth/token',
        { grant_type: 'refresh_token', client_id: clientId, refresh_token: 'x'.repeat(43) },
      ],
      ['POST', '/oauth/revoke', token],
      ['POST', '/oauth/introspect', token],
      ['GET', '/oauth/logout', { client_id: clientId }],
      ['POST', '/oauth/logout/confirm', { xsrf: 'x', logout: 'yes' }],
      ['GET', '/oauth/userinfo', {}],
      ['POST', '/oauth/userinfo', {}],
      ['POST', '/account/apps/sign-in', { username: 'nobody', password: 'x' }],
      ['POST', '/account/sign-out', { csrf: 'x' }],
      ['GET', '/account/sessions', {}],
    ];
  };

  thorough.it('causes no 5xx, and redirects only to the server or the client', async () => {
    const numRuns = 25;
    let asked = 0;
    await fc.assert(
      fc.asyncProperty(changes, async (changed) => {
        for (const [method, path, good] of endpoints()) {
          const pairs = Object.entries(good)
            .filter(([name]) => !changed.some((change) => change.name === name && !change.twice))
            .map(([name, value]) => `${name}=${encode(value)}`);
          const query = [...pairs, ...changed.map(({ name, value }) => `${name}=${encode(value)}`)].join('&');
          const post = { method, body: query, headers: { 'Content-Type': FORM } };
          const response = await fetch(oauth.issuer + (method === 'GET' ? `${path}?${query}` : path), {
            redirect: 'manual',
            ...(method === 'POST' ? post : {}),
          });
          const text = await response.text();
          asked += 1;
          const what = `${method} ${path} ${query}: ${text}`;
          expect([what, response.status < 500]).toEqual([what, true]);
          const location = response.headers.get('location');
          if (location !== null)
            expect([oauth.issuer, new URL(REDIRECT_URI).origin]).toContain(
              new URL(location, oauth.issuer).origin,
            );
        }
      }),
      { numRuns },
    );
    expect(asked).toBe(numRuns * endpoints().length);
  });

  thorough.it('in a parameter of a complete sign-in causes no 5xx response', async () => {
    const texts = ['\0', '\ufffd\r\n', 'x'.repeat(511), '💙'.repeat(50), '"\\'.repeat(50)];
    const names =
      'state nonce acr_values login_hint ui_locales claims_locales display claims dpop_jkt id_token_hint';
    for (const name of names.split(' '))
      for (const text of texts) {
        const signingIn = oauth
          .browser()
          .authorize(oauth.request(clientId, { [name]: text }).url, { username });
        const back = await signingIn.catch((error: Error) => error.message);
        // An error page, or a redirect to the client with or without a code.
        expect([name, text, typeof back === 'string' ? back.slice(0, 3) : back.origin]).toEqual([
          name,
          text,
          expect.stringMatching(/^(4\d\d|https:\/\/app\.example)$/),
        ]);
      }
  });
});
