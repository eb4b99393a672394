import { createHash, randomBytes } from 'node:crypto';
import { expect } from '@jest/globals';
import * as client from 'openid-client';
import type { DataSource } from 'typeorm';
import { freePort } from '../../bin/postgres.mjs';
import { hashPassword } from '../../src/accounts/passwords/passwords.js';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { ClientsService, type NewClient } from '../../src/clients/clients.service.js';
import { ClientReviews } from '../../src/clients/reviews.js';
import type { Config } from '../../src/config/config.js';
import { Encryption } from '../../src/crypto/encryption.js';
import { TestApi } from './api.js';
import { soon } from './timing.js';

export { freePort };

export const PASSWORD = 'correct horse battery staple';
/** Current parameters: a sign-in would replace any other hash in the background. */
const passwordHash = hashPassword(PASSWORD);

export const REDIRECT_URI = 'https://app.example/callback';
export const ALL = 'openid profile:read profile:write events:read connections:read achievements:read';

/** An application that listens at its PUBLIC_URL, a member, and sign-in helpers. */
export class OauthTest {
  readonly dataSource: DataSource;

  constructor(readonly api: TestApi) {
    this.dataSource = api.dataSource;
  }

  /** @param beside owns the database, and is closed after the new application */
  static async start(
    overrides: Partial<Config> = {},
    beside?: { readonly api: Pick<TestApi, 'environment'> },
  ): Promise<OauthTest> {
    const port = await freePort();
    const config = { port, publicUrl: `http://127.0.0.1:${port}`, ...overrides };
    return new OauthTest(await TestApi.start(config, beside?.api));
  }

  close(): Promise<void> {
    return this.api.close();
  }

  /** Closes the application at the end of the block that declares it by `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get issuer(): string {
    return this.api.config.publicUrl;
  }

  query<Row = unknown>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.dataSource.query<Row[]>(sql, values);
  }

  /** The matching audit events, oldest first. @param type pattern of LIKE */
  events({ user, client, key, type = '%' }: EventFilter): Promise<AuditEvent[]> {
    return this.query(
      `SELECT type, actor, user_id, client_id, host(ip) AS ip, error_id, details FROM auth_events
WHERE type LIKE $4 AND COALESCE(user_id = $1, $1::bigint IS NULL) AND COALESCE(client_id = $2, $2::text IS NULL)
  AND COALESCE(key_id = $3, $3::text IS NULL) ORDER BY id`,
      [user, client, key, type],
    );
  }

  /** The details of the matching audit events, oldest first. */
  async details(filter: EventFilter): Promise<AuditEvent['details'][]> {
    return (await this.events(filter)).map(({ details }) => details);
  }

  async member(fields: Record<string, unknown> = {}): Promise<{ id: number; username: string }> {
    const username = `member-${randomBytes(6).toString('hex')}`;
    const id = await this.api.platform.user({ username, password_hash: await passwordHash, ...fields });
    return { id, username };
  }

  /** A new member with a new browser, and a new client. */
  async memberAndClient() {
    return { ...(await this.member()), clientId: await this.client(), browser: this.browser() };
  }

  /** A new member's tokens for a new client, and the browser with the member's session. */
  async signedIn(parameters: Record<string, string | undefined> = {}) {
    const made = await this.memberAndClient();
    const code = await this.code(made.clientId, made.username, parameters, made.browser);
    const { status, body } = await this.token(code);
    if (status !== 200) throw new Error(JSON.stringify(body));
    return { ...made, ...body };
  }

  /** Registers a client, by default a public web client. */
  async client(fields: Partial<NewClient> = {}): Promise<string> {
    return new ClientsService(this.dataSource, this.api.config).create({
      name: 'Test app',
      type: 'web',
      redirect_uris: [REDIRECT_URI],
      post_logout_redirect_uris: [],
      allowed_origins: [],
      ...fields,
      actor: 'admin',
    });
  }

  /** A member's app that waits for a review. */
  async appToReview(userId: number): Promise<string> {
    const owner = { userId, ip: null };
    const id = await this.client({ owner, scopes: ['profile:read'] });
    const reasons = { 'profile:read': 'To greet you.' };
    const application = { purpose: 'Shows a name.', policy_uri: 'https://app.example/privacy', reasons };
    await new ClientReviews(this.dataSource).apply(id, application, owner);
    return id;
  }

  /** openid-client with its defaults, except that it may use http in tests. */
  configuration(
    clientId: string,
    authentication: client.ClientAuth = client.None(),
    metadata: Partial<client.ClientMetadata> = {},
  ): Promise<client.Configuration> {
    return client.discovery(new URL(this.issuer), clientId, metadata, authentication, {
      execute: [client.allowInsecureRequests],
    });
  }

  /** @param server the actual server of the connection, by default the test's application */
  browser(server = this.issuer): Browser {
    return new Browser(this.issuer, server);
  }

  /** Creates an authorization request with PKCE; `redeem` exchanges the code of its response. `undefined` omits a parameter. */
  request(clientId: string, parameters: Record<string, string | undefined> = {}) {
    const { verifier, challenge } = pkcePair();
    const url = new URL('/oauth/authorize', this.issuer);
    const all = {
      client_id: clientId,
      response_type: 'code',
      redirect_uri: REDIRECT_URI,
      scope: ALL,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      ...parameters,
    };
    for (const [name, value] of Object.entries(all))
      if (value !== undefined) url.searchParams.set(name, value);
    const formOf = (back: FormPage | URL): Record<string, string> => {
      const code = back instanceof URL ? back.searchParams.get('code') : null;
      if (code === null) throw new Error(`no code: ${back instanceof URL ? back.href : back.html}`);
      return {
        grant_type: 'authorization_code',
        client_id: clientId,
        code,
        code_verifier: verifier,
        redirect_uri: parameters.redirect_uri ?? REDIRECT_URI,
      };
    };
    const redeem = (back: FormPage | URL, form: Record<string, string> = {}, origin?: string) =>
      this.token({ ...formOf(back), ...form }, {}, origin);
    return { url, verifier, formOf, redeem };
  }

  /** The URL of a pushed authorization request. */
  pushedUrl(clientId: string, { body }: Answer): URL {
    const query = new URLSearchParams({ client_id: clientId, request_uri: body.request_uri as string });
    return new URL(`/oauth/authorize?${query}`, this.issuer);
  }

  /** Signs in and consents. @returns a code and the values that redeem it */
  async code(
    clientId: string,
    username: string,
    parameters: Record<string, string | undefined> = {},
    browser = this.browser(),
  ): Promise<Record<string, string>> {
    const { url, formOf } = this.request(clientId, parameters);
    return formOf(await browser.authorize(url, { username }));
  }

  /** Sends a form to an endpoint unchanged. */
  async post(
    path: string,
    form: Record<string, string>,
    headers: Record<string, string> = {},
    origin = this.issuer,
  ): Promise<Answer> {
    const response = await fetch(new URL(path, origin), {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams(form),
      headers,
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (text.startsWith('{') ? JSON.parse(text) : {}) as TokenBody,
    };
  }

  token(form: Record<string, string>, headers?: Record<string, string>, origin?: string): Promise<Answer> {
    return this.post('/oauth/token', form, headers, origin);
  }

  refresh(clientId: string, refreshToken: string, form: Record<string, string> = {}, origin?: string) {
    return this.token(
      { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken, ...form },
      {},
      origin,
    );
  }

  /** Signs a member in, in a new browser, and redeems the code. */
  async tokens(
    clientId: string,
    username: string,
    parameters: Record<string, string | undefined> = {},
  ): Promise<TokenBody> {
    const { status, body } = await this.token(await this.code(clientId, username, parameters));
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body;
  }

  /** Sends a GET request with an access token. */
  get(path: string, accessToken: string, origin = this.issuer): Promise<Response> {
    return fetch(new URL(path, origin), { headers: { Authorization: `Bearer ${accessToken}` } });
  }

  /** The JSON of a document, such as a metadata document. */
  async json<Document = Record<string, unknown>>(path: string): Promise<Document> {
    return (await (await fetch(new URL(path, this.issuer))).json()) as Document;
  }

  /** The status of GET /me with an access token. */
  async me(accessToken: string, origin?: string): Promise<number> {
    const response = await this.get('/api/public/me', accessToken, origin);
    await response.arrayBuffer();
    return response.status;
  }

  /** Asserts that an access token is rejected within a second, and stays rejected. */
  async rejectedSoon(accessToken: string, origin?: string): Promise<void> {
    await soon(async () => (await this.me(accessToken, origin)) === 401);
    expect(await this.me(accessToken, origin)).toBe(401);
  }

  /** Makes the sign-ins of a member's sessions older. */
  async ageSignIns(userId: number, seconds: number): Promise<void> {
    const encryption = new Encryption(this.api.config.secrets, 'oauth-state');
    const rows = await this.dataSource.query<{ key: Buffer; uid_key: Buffer; payload: Buffer }[]>(
      'SELECT key, uid_key, payload FROM oauth_sessions WHERE user_id = $1',
      [userId],
    );
    for (const { key, uid_key, payload } of rows) {
      const session = encryption.open<{ loginTs: number }>(payload, 'Session', uid_key, key)!;
      const older = { ...session, loginTs: session.loginTs - seconds };
      await this.dataSource.query('UPDATE oauth_sessions SET payload = $2 WHERE key = $1', [
        key,
        encryption.seal(older, 'Session', uid_key, key),
      ]);
    }
  }

  /** Advances time for all access, its tokens and consents, by the database's clock. */
  async passTime(seconds: number): Promise<void> {
    const tables = {
      oauth_grants: ['created_at', 'expires_at', 'access_ends_at', 'ending_notified_at', 'ending_told_at'],
      oauth_tokens: ['created_at', 'expires_at', 'consumed_at'],
      oauth_consents: ['access_ends_at'],
      oauth_grant_usage: ['last_used_at'],
    };
    await this.dataSource.transaction(async (manager) => {
      for (const [table, columns] of Object.entries(tables)) {
        const changes = columns.map((column) => `${column} = ${column} - make_interval(secs => $1)`);
        await manager.query(`UPDATE ${table} SET ${changes.join(', ')}`, [seconds]);
      }
      // No end changed, so no app is notified.
      await manager.query('DELETE FROM access_changes WHERE xmin = pg_current_xact_id()::xid');
    });
    this.api.app.get(RevocationChannel).announce('all');
  }

  /** Makes stored rows older, by the database's clock. */
  async age(table: 'oauth_tokens' | 'oauth_state' | 'oauth_sessions', seconds: number): Promise<void> {
    const consumed =
      table === 'oauth_sessions' ? '' : ', consumed_at = consumed_at - make_interval(secs => $1)';
    await this.dataSource.query(
      `UPDATE ${table} SET expires_at = expires_at - make_interval(secs => $1)${consumed}`,
      [seconds],
    );
    // Cached credentials contain their expiry, which was changed here.
    this.api.app.get(RevocationChannel).announce('all');
  }
}

export interface EventFilter {
  readonly user?: number;
  readonly client?: string;
  readonly key?: string;
  readonly type?: string;
}

export interface AuditEvent {
  readonly type: string;
  readonly actor: string;
  readonly user_id: number | null;
  readonly client_id: string | null;
  readonly ip: string | null;
  readonly error_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface TokenBody {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly id_token?: string;
  readonly expires_in: number;
  readonly scope: string;
  readonly token_type: string;
  readonly error?: string;
  readonly [name: string]: unknown;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: TokenBody;
}

export interface SignInOptions {
  readonly username: string;
  readonly password?: string;
  /** Scopes to untick on the consent page. */
  readonly untick?: readonly string[];
  readonly deny?: boolean;
  /** Duration of the app's access; by default the duration that the page suggests. */
  readonly duration?: string;
}

export interface FormPage {
  readonly status: number;
  readonly html: string;
  readonly headers: Headers;
  readonly url: URL;
}

/** A browser without JavaScript: cookies, redirects, refreshes and forms. It follows redirects only to the issuer. */
export class Browser {
  readonly cookies = new Map<string, { value: string; path: string }>();
  /** Headers of every request. */
  readonly headers: Record<string, string> = { Accept: 'text/html' };

  constructor(
    readonly origin: string,
    private readonly server: string,
  ) {}

  async send(url: URL | string, init: RequestInit = {}): Promise<Response> {
    const target = new URL(url, this.origin);
    const cookie = [...this.cookies]
      .filter(
        ([, { path }]) => target.pathname === path || target.pathname.startsWith(path.replace(/\/?$/, '/')),
      )
      .sort(([, one], [, other]) => other.path.length - one.path.length) // RFC 6265 §5.4
      .map(([key, { value }]) => `${key.split(';')[0]}=${value}`)
      .join('; ');
    const response = await fetch(new URL(target.pathname + target.search, this.server), {
      redirect: 'manual',
      ...init,
      headers: { ...this.headers, ...(cookie ? { Cookie: cookie } : {}), ...(init.headers as object) },
    });
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(';').map((part) => part.trim());
      const [name, value] = [pair!.slice(0, pair!.indexOf('=')), pair!.slice(pair!.indexOf('=') + 1)];
      const path = attributes.find((part) => /^path=/i.test(part))?.slice(5) ?? '/';
      const gone = attributes.some((part) => /^expires=Thu, 01 Jan 1970/i.test(part));
      if (gone) this.cookies.delete(`${name};${path}`);
      else this.cookies.set(`${name};${path}`, { value, path });
    }
    return response;
  }

  /** @returns the page after all redirects, or the first URL outside the issuer */
  async open(url: URL | string, init: RequestInit = {}): Promise<FormPage | URL> {
    let target = new URL(url, this.origin);
    let response = await this.send(target, init);
    for (let hop = 0; hop < 20; hop++) {
      const { status, headers } = response;
      const html = await response.text();
      const location = headers.get('location') ?? refreshOf(html);
      if (location === undefined) return { status, html, headers, url: target };
      target = new URL(location, target);
      if (target.origin !== this.origin) return target;
      response = await this.send(target);
    }
    throw new Error('redirects do not end');
  }

  /** @param form the form's position on the page, or its action */
  submit(
    page: FormPage,
    fields: Record<string, string | string[]>,
    form: number | RegExp = 0,
  ): Promise<FormPage | URL> {
    const { action, body } = fill(page, fields, form);
    return this.open(new URL(action, page.url), {
      method: 'POST',
      body,
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: 'null' },
    });
  }

  /** Opens a page of the issuer. */
  async view(url: URL | string, init?: RequestInit): Promise<FormPage> {
    return pageOf(await this.open(url, init));
  }

  /** Opens a URL of the issuer that redirects to another origin, such as the app's. @returns the redirect's target */
  async leave(url: URL | string): Promise<URL> {
    return targetOf(await this.open(url));
  }

  /** Submits a form whose response redirects to another origin. @returns the redirect's target */
  async submitAndLeave(
    page: FormPage,
    ...form: [Record<string, string | string[]>, (number | RegExp)?]
  ): Promise<URL> {
    return targetOf(await this.submit(page, ...form));
  }

  /** Allows the scopes of a consent page, by default those that it shows. @returns the redirect's target */
  async allow(consent: FormPage, scope: string | string[] = scopesOn(consent.html)): Promise<URL> {
    return this.submitAndLeave(consent, { decision: 'allow', scope }, /\/consent$/);
  }

  /** Submits a form whose response is a page of the issuer. */
  async press(page: FormPage, ...form: [Record<string, string | string[]>, (number | RegExp)?]) {
    return pageOf(await this.submit(page, ...form));
  }

  /** Signs in with the password on the page to which a URL redirects. @returns the next page */
  async signIn(url: URL | string, username: string, password = PASSWORD): Promise<FormPage> {
    return this.press(await this.view(url), { username, password }, /\/sign-in$/);
  }

  /** Whether a member is signed in: the account pages do not request the password. */
  async isSignedIn(): Promise<boolean> {
    const page = await this.view('/account/apps');
    if (page.status !== 200) throw new Error(`${page.status}: ${page.html}`);
    return !asksForPassword(page);
  }

  /** Posts a form with the token of a page, without following redirects. */
  post(page: FormPage, path: string, fields: Record<string, string> = {}): Promise<Response> {
    const body = new URLSearchParams({ csrf: csrfOf(page), ...fields });
    return this.send(path, { method: 'POST', body, headers: { Origin: 'null' } });
  }

  /**
   * Completes the sign-in and consent pages, if required.
   *
   * @returns the URL to which the last page redirects
   */
  async authorize(url: URL | string, options: SignInOptions): Promise<URL> {
    let at = await this.open(url);
    for (let step = 0; step < 4; step++) {
      if (at instanceof URL) return at;
      if (!at.url.pathname.startsWith('/interaction/') && at.status === 200) return at.url;
      if (at.status !== 200) throw new Error(`${at.status} at ${at.url.pathname}: ${at.html}`);
      at = /type="password"/.test(at.html)
        ? await this.submit(
            at,
            { username: options.username, password: options.password ?? PASSWORD },
            /\/sign-in$/,
          )
        : await this.submit(
            at,
            {
              scope: scopesOn(at.html).filter((scope) => !options.untick?.includes(scope)),
              decision: options.deny ? 'deny' : 'allow',
              ...(options.duration === undefined ? {} : { duration: options.duration }),
            },
            /\/consent$/,
          );
    }
    throw new Error('sign-in does not end');
  }
}

function pageOf(at: FormPage | URL): FormPage {
  if (at instanceof URL) throw new Error(`this is no page, but leads to ${at.href}`);
  return at;
}

function targetOf(at: FormPage | URL): URL {
  if (!(at instanceof URL)) throw new Error(`${at.status} at ${at.url.pathname}: ${at.html}`);
  return at;
}

/** Whether the result is a page that requests the password. */
export const asksForPassword = (at: FormPage | URL): boolean =>
  !(at instanceof URL) && /type="password"/.test(at.html);

export const csrfOf = ({ html }: FormPage): string => /name="csrf" value="([^"]+)"/.exec(html)![1]!;

/** The URL to which a page redirects at once. */
export function refreshOf(html: string): string | undefined {
  const [, url] = /<meta http-equiv="refresh" content="0;url=([^"]*)">/.exec(html) ?? [];
  return url === undefined ? undefined : unescapeHtml(url);
}

/** The scopes that a consent page shows. */
export function scopesOn(html: string): string[] {
  return [...html.matchAll(/<input[^>]*type="checkbox"[^>]*>/g)].map(
    ([tag]) => /value="([^"]*)"/.exec(tag)![1]!,
  );
}

function fill(page: FormPage, fields: Record<string, string | string[]>, which: number | RegExp) {
  const forms = [...page.html.matchAll(/<form[^>]*action="([^"]*)"[^>]*>[\s\S]*?<\/form>/g)];
  const form = (typeof which === 'number' ? forms[which] : forms.find(([, at]) => which.test(at!)))?.[0];
  if (!form) throw new Error(`there is no form ${which}: ${page.html}`);
  const body = new URLSearchParams();
  for (const [tag] of form.matchAll(/<input[^>]*type="hidden"[^>]*>/g))
    body.set(unescapeHtml(/name="([^"]*)"/.exec(tag)![1]!), unescapeHtml(/value="([^"]*)"/.exec(tag)![1]!));
  for (const [name, values] of Object.entries(fields)) {
    body.delete(name); // the given values replace the values on the page
    for (const value of [values].flat()) body.append(name, value);
  }
  return { action: unescapeHtml(/action="([^"]*)"/.exec(form)![1]!), body };
}

function unescapeHtml(text: string): string {
  return text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))).replaceAll('&amp;', '&');
}

/** Creates a PKCE pair by hand, for requests that openid-client would not send. */
export function pkcePair() {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}
