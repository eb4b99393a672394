import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { SigningKeysService } from '../../src/clients/signing-keys.service.js';
import { Encryption } from '../../src/crypto/encryption.js';
import { onPostgres, postgres } from '../support/database.js';
import { ALL, csrfOf, freePort, OauthTest, PASSWORD, REDIRECT_URI } from '../support/oauth.js';
import { profileAt, ServerProcess } from '../support/server.js';

/**
 * One member, signed in with every method, and callers' mistakes with secrets. On PostgreSQL the server is a separate process with
 * its log; the embedded database serves only this process.
 */
describe('a secret that is issued, sent or typed', () => {
  let oauth: OauthTest;
  let server: ServerProcess | undefined;
  let metrics: string;
  const secrets = new Map<string, string>();
  /** Responses of used refresh tokens, as stored during their grace period. */
  const repeatable: Buffer[] = [];

  beforeAll(async () => {
    const metricsPort = await freePort();
    // No mail server listens at that port.
    const mail = { smtpUrl: 'smtp://127.0.0.1:1', from: 'no-reply@platform.example' };
    oauth = await OauthTest.start({ developerConsole: true, mail, ...(onPostgres ? {} : { metricsPort }) });
    if (onPostgres)
      server = await ServerProcess.start({
        ...oauth.api.environment,
        PUBLIC_URL: oauth.issuer,
        METRICS_PORT: String(metricsPort),
        DEVELOPER_CONSOLE: 'true',
        SMTP_URL: mail.smtpUrl,
        MAIL_FROM: mail.from,
        LOG_LEVEL: 'trace',
        LOG_FORMAT: 'json',
      });
    await journey(server?.url ?? oauth.issuer);
    metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    await server?.kill();
  });
  afterAll(() => oauth.close());

  function keep(name: string, secret: string | null | undefined): void {
    expect([name, secret?.length]).toEqual([name, expect.any(Number)]);
    secrets.set(name, secret!);
  }

  async function journey(at: string): Promise<void> {
    const get = (path: string, headers: Record<string, string> = {}) => fetch(at + path, { headers });
    const { username, id } = await oauth.member();
    const browser = oauth.browser(at);
    keep('SECRET_KEY', process.env.TEST_SECRET_KEY);
    for (const { kid, d } of await new SigningKeysService(oauth.dataSource, oauth.api.config).load())
      keep(`signing key ${kid}`, d as string);

    // An API key: valid, mistyped, and in wrong places.
    const key = await oauth.api.key(id);
    keep('API key', key);
    keep("API key's secret", key.split('_')[3]);
    expect((await get('/api/public/me', { 'X-API-Key': key })).status).toBe(200);
    await get('/api/public/me', { 'X-API-Key': key.slice(0, -1) });
    await get(`/api/public/me?api_key=${key}`);
    await get(`/api/public/${key}`);

    // A public client, from the first page to the second refresh, with a password mistyped on the way.
    const clientId = await oauth.client({ allowed_origins: ['https://app.example'] });
    const { url, verifier } = oauth.request(clientId, {
      state: 'state-'.repeat(8),
      nonce: 'nonce-'.repeat(8),
    });
    keep('verifier', verifier);
    const signIn = await browser.view(url);
    keep('interaction', signIn.url.pathname.split('/').pop());
    keep('form token', csrfOf(signIn));
    keep('mistyped password', 'my-secret-mistyped-password');
    await browser.submit(signIn, { username, password: secrets.get('mistyped password')! }, /sign-in$/);
    await browser.submit(signIn, { username: secrets.get('mistyped password')!, password: 'x' }, /sign-in$/);
    await browser.open(`${signIn.url.pathname}/unknown`);
    keep('password', PASSWORD);
    keep('code', (await browser.authorize(signIn.url, { username })).searchParams.get('code'));
    const form = {
      grant_type: 'authorization_code',
      client_id: clientId,
      code: secrets.get('code')!,
      code_verifier: verifier,
      redirect_uri: REDIRECT_URI,
    };
    await oauth.token({ ...form, code_verifier: 'short' }, {}, at);
    await oauth.token({ ...form, redirect_uri: 'https://app.example/other' }, {}, at);
    const { body } = await oauth.token(form, {}, at);
    keep('access token', body.access_token);
    keep('refresh token', body.refresh_token);
    keep('ID token', body.id_token);
    expect(await oauth.me(body.access_token, at)).toBe(200);
    await get(`/api/public/me?access_token=${body.access_token}`);
    await get(`/oauth/unknown/${body.access_token}`, { Authorization: `Basic ${body.refresh_token}` });
    await oauth.post('/oauth/introspect', { token: body.access_token, client_id: clientId }, {}, at);
    const refreshed = (await oauth.refresh(clientId, body.refresh_token, {}, at)).body;
    keep('second access token', refreshed.access_token);
    keep('second refresh token', refreshed.refresh_token);
    await oauth.refresh(clientId, body.refresh_token, { scope: 'profile:read' }, at);
    const answers = await oauth.query<{ successor: Buffer }>(
      'SELECT successor FROM oauth_tokens WHERE successor IS NOT NULL', // for some seconds
    );
    repeatable.push(...answers.map(({ successor }) => successor));
    await oauth.refresh(clientId, `${refreshed.refresh_token}x`, {}, at);

    // A confidential client that pushes its requests, and binds its tokens to a key.
    const keys = await generateKeyPair('ES256');
    const proofKeys = await generateKeyPair('ES256');
    const publicJwk = await exportJWK(proofKeys.publicKey);
    const server = await oauth.client({ jwks: { keys: [(await exportJWK(keys.publicKey)) as never] } });
    const signed = async (name: string, claims: object, header: object, key = proofKeys.privateKey) => {
      const jwt = await new SignJWT({ jti: crypto.randomUUID(), ...claims })
        .setProtectedHeader({ alg: 'ES256', ...header })
        .setIssuedAt()
        .setExpirationTime('1 min')
        .sign(key);
      keep(name, jwt.split('.')[2]);
      return jwt;
    };
    const assertion = async (name: string) => ({
      client_id: server,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: await signed(
        name,
        { iss: server, sub: server, aud: oauth.issuer },
        {},
        keys.privateKey,
      ),
    });
    const pushed = oauth.request(server, { scope: ALL });
    const par = await oauth.post(
      '/oauth/par',
      { ...Object.fromEntries(pushed.url.searchParams), ...(await assertion('assertion of PAR')) },
      {},
      at,
    );
    const requestUri = par.body.request_uri as string;
    keep('request_uri', requestUri.split(':').pop());
    const byRequest = await browser.authorize(
      `/oauth/authorize?${new URLSearchParams({ client_id: server, request_uri: requestUri })}`,
      { username },
    );
    keep('code of PAR', byRequest.searchParams.get('code'));
    const bound = await oauth.token(
      {
        grant_type: 'authorization_code',
        code: secrets.get('code of PAR')!,
        code_verifier: pushed.verifier,
        redirect_uri: REDIRECT_URI,
        ...(await assertion('assertion of the code')),
      },
      {
        DPoP: await signed(
          'proof of the code',
          { htm: 'POST', htu: `${oauth.issuer}/oauth/token` },
          { typ: 'dpop+jwt', jwk: publicJwk },
        ),
      },
      at,
    );
    expect(bound.body.token_type).toBe('DPoP');
    keep('bound access token', bound.body.access_token);
    const ath = createHash('sha256').update(bound.body.access_token).digest('base64url');
    const proof = await signed(
      'proof of the API',
      { htm: 'GET', htu: `${oauth.issuer}/api/public/me`, ath },
      { typ: 'dpop+jwt', jwk: publicJwk },
    );
    const withProof = { Authorization: `DPoP ${bound.body.access_token}`, DPoP: proof };
    expect((await get('/api/public/me', withProof)).status).toBe(200);
    expect((await get('/api/public/me', withProof)).status).toBe(401);

    // The session's identifier in interactions: it grants no access, but would link tokens to browsers.
    const encryption = new Encryption(oauth.api.config.secrets, 'oauth-state');
    const sessions = await oauth.query<{ payload: Buffer; uid_key: Buffer; key: Buffer }>(
      'SELECT payload, uid_key, key FROM oauth_sessions WHERE user_id = $1',
      [id],
    );
    for (const { payload, uid_key, key } of sessions)
      keep('uid of the session', encryption.open<{ uid: string }>(payload, 'Session', uid_key, key)!.uid);

    // The member's own pages, then a sign-out by the app and by the browser.
    for (const [name, { value }] of browser.cookies) keep(`cookie ${name}`, value);
    await browser.open('/account/apps');
    await browser.open('/account/sessions');
    const logout = await browser.view(`/oauth/logout?id_token_hint=${body.id_token}`);
    await browser.submit(logout, { logout: 'yes' });
    for (const [name, { value }] of browser.cookies) keep(`later cookie ${name}`, value);

    await ownPages(at);

    // A code redeemed twice, and a revoked token. Each belongs to a separate sign-in, since each ends its sign-in.
    const again = await oauth.code(clientId, username, {}, browser);
    keep('code redeemed twice', again.code);
    keep('access token of the code redeemed twice', (await oauth.token(again, {}, at)).body.access_token);
    expect((await oauth.token(again, {}, at)).status).toBe(400);
    const last = await oauth.token(await oauth.code(clientId, username, {}, browser), {}, at);
    keep('revoked access token', last.body.access_token);
    const revoke = { token: last.body.access_token, client_id: clientId };
    expect((await oauth.post('/oauth/revoke', revoke, {}, at)).status).toBe(200);
    await browser.open(oauth.request(clientId, { prompt: 'login' }).url); // remains unchanged
  }

  /** Values that a member creates and types on their own pages, and notices about the changes. */
  async function ownPages(at: string): Promise<void> {
    const other = await oauth.member({ email: 'member@platform.example' });
    const own = oauth.browser(at);
    const submit = async (path: string, fields: Record<string, string | string[]>, action: RegExp) =>
      await own.press(await own.view(path), fields, action);
    await submit('/account/calendar', { username: other.username, password: PASSWORD }, /sign-in$/);
    const made = await submit('/account/calendar', { name: 'Phone' }, /create$/);
    keep('calendar link', /\/calendar\/([\w-]{43})\.ics/.exec(made.html)?.[1]);
    expect((await fetch(`${at}/calendar/${secrets.get('calendar link')}.ics`)).status).toBe(200);
    await fetch(`${at}/calendar/${secrets.get('calendar link')}`);
    const ofKey = { name: 'own', scopes: ['profile:read', 'profile:write'], days: '7' };
    const withKey = await submit('/developer/new-key', ofKey, /\/keys$/);
    const ownKey = /pua_(?:test|live)_\w{12}_\w{49}/.exec(withKey.html)?.[0];
    keep('own key', ownKey);
    await fetch(`${at}/api/public/me`, { headers: { Authorization: `Bearer ${ownKey}` } });
    const webhooks = new WebhooksService(oauth.dataSource, oauth.api.config);
    const hook = { url: 'http://127.0.0.1:1/hook', types: ['profile.updated'], keyId: ownKey!.split('_')[2] };
    keep(
      'webhook secret',
      (await webhooks.create({ ...hook, actor: 'admin' })).secret.slice('whsec_'.length),
    );
    expect((await profileAt(at, ownKey!, 'told of')).status).toBe(200);
    keep('new password', 'another-horse-battery-staple');
    const passwords = {
      current_password: 'not-the-old-password',
      new_password: secrets.get('new password')!,
    };
    keep('wrong old password', passwords.current_password);
    await submit('/account/security', passwords, /\/password$/);
    const changed = await submit(
      '/account/security',
      { ...passwords, current_password: PASSWORD },
      /\/password$/,
    );
    expect(changed.html).toContain('password');
    const asking = oauth.browser(at);
    const forgot = await asking.view('/account/password-reset');
    await asking.submit(forgot, { username: other.username }, /send$/);
    keep('link to a new password', randomBytes(32).toString('base64url'));
    await asking.open(`/account/new-password/${secrets.get('link to a new password')}`);
    for (const [name, { value }] of own.cookies)
      if (!name.startsWith('pua_done')) keep(`own cookie ${name}`, value); // the page that confirms the act
  }

  /** Searches for each secret unchanged, as bytes, and encoded. */
  function expectNone(text: string): void {
    const found = [...secrets].filter(([, secret]) =>
      [
        secret,
        encodeURIComponent(secret),
        Buffer.from(secret).toString('hex'),
        Buffer.from(secret, 'base64url').toString('hex'),
        Buffer.from(secret).toString('base64').replace(/.?=*$/, ''),
      ].some((form) => text.includes(form)),
    );
    expect(found.map(([name]) => name)).toEqual([]);
  }

  it('is in no database row, not even in the audit log', async () => {
    const tables = await oauth.query<{ name: string }>(
      `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'public'`,
    );
    const dumps = await Promise.all(
      tables.map(async ({ name }) => {
        const [dump] = await oauth.query<{ text: string | null }>(
          `SELECT string_agg(t::text, ' ') AS text FROM ${name} t`,
        );
        return dump!.text ?? '';
      }),
    );
    const dump = dumps.join('\n');
    expect(dump).toContain('token.refused'); // proves that the search works
    expectNone(dump);
  });

  it('is encrypted in stored sessions, interactions, signing keys and repeatable token responses', async () => {
    const rows = await oauth.query<{ kind: string; payload: Buffer }>(
      `SELECT 'session' AS kind, payload FROM oauth_sessions
UNION ALL SELECT model, payload FROM oauth_state WHERE payload IS NOT NULL
UNION ALL SELECT 'signing key', private_jwk FROM signing_keys`,
    );
    for (const kind of ['session', 'Interaction', 'signing key'])
      expect(rows.map((row) => row.kind)).toContain(kind);
    expect(repeatable).toHaveLength(1);
    for (const payload of [...rows.map((row) => row.payload), ...repeatable])
      expect(payload.toString('latin1')).not.toMatch(/"kty"|"exp"|accountId|access_token|client_id/);
  });

  it('is in no metric', () => {
    expect(metrics).toContain('http_request_duration_seconds_count');
    expectNone(metrics);
  });

  postgres.it('is in no log line', () => {
    expect(server!.output.trim().split('\n').length).toBeGreaterThan(40);
    expectNone(server!.output);
  });
});
