import type { IncomingMessage, ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair, type CryptoKey } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { parseClient, isDocumentUrl } from '../../src/authorization-server/adapters/client-documents.js';
import { PublicHttps } from '../../src/runtime/public-https.js';
import { isPublicAddress } from '../../src/values/network.js';
import { withoutAudit } from '../support/audit.js';
import { assertionOf } from '../support/client-kinds.js';
import { atOnce } from '../support/concurrent.js';
import { postgres } from '../support/database.js';
import { allowDocuments, DocumentSite, sendJson } from '../support/document-site.js';
import { costsAtMost, eventually, until } from '../support/timing.js';
import { OauthTest, PASSWORD, REDIRECT_URI } from '../support/oauth.js';

const ID = 'https://agent.example/c';
const REDIRECT = 'http://127.0.0.1:8123/callback';
const ELSEWHERE = 'https://other.example/cb';

const documentOf = (clientId: string, more: object = {}) => ({
  client_id: clientId,
  client_name: 'Travelling agent',
  client_uri: 'https://agent.example/',
  redirect_uris: [REDIRECT],
  token_endpoint_auth_method: 'none',
  ...more,
});

/** Parses a document with these members at {@link ID}. */
const parse = (more: object) => parseClient(ID, documentOf(ID, more), true);

const { publicKey, privateKey } = await generateKeyPair('RS256');
const RSA_KEY = { ...(await exportJWK(publicKey)), kid: 'first', alg: 'RS256', use: 'sig' };

const CODE = { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] };
/** Documents that common assistants publish, and how the expected client differs. */
const DOCUMENTS: [{ client_id: string; client_name: string; [said: string]: unknown }, object][] = [
  [
    {
      ...CODE,
      client_id: 'https://chatgpt.com/oauth/connector/client.json',
      client_name: 'ChatGPT',
      client_uri: 'https://chatgpt.com/',
      redirect_uris: ['https://chatgpt.com/connector/oauth/connector'],
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_signing_alg: 'RS256',
      jwks_uri: 'https://chatgpt.com/oauth/jwks.json',
    },
    { type: 'web', jwks_uri: 'https://chatgpt.com/oauth/jwks.json', assertion_optional: false },
  ],
  [
    {
      ...CODE,
      client_id: 'https://chatgpt.com/oauth/newer/client.json',
      client_name: 'ChatGPT (both methods)',
      redirect_uris: ['https://chatgpt.com/connector/oauth/newer'],
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
      jwks_uri: 'https://chatgpt.com/oauth/jwks.json',
    },
    { type: 'web', assertion_optional: true },
  ],
  [
    {
      ...CODE,
      client_id: 'https://claude.ai/oauth/mcp-oauth-client-metadata',
      client_name: 'Claude',
      client_uri: 'https://claude.ai',
      redirect_uris: ['https://claude.ai/api/mcp/auth_callback', 'https://claude.com/api/mcp/auth_callback'],
      token_endpoint_auth_method: 'none',
    },
    { type: 'web', redirect_uris: ['https://claude.ai/api/mcp/auth_callback'] },
  ],
  [
    {
      ...CODE,
      client_id: 'https://claude.ai/oauth/claude-code-client-metadata',
      client_name: 'Claude Code',
      redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
      token_endpoint_auth_method: 'none',
    },
    { type: 'native' },
  ],
  [
    {
      ...CODE,
      grant_types: [...CODE.grant_types, 'urn:ietf:params:oauth:grant-type:device_code'],
      client_id: 'https://vscode.dev/oauth/client-metadata.json',
      client_name: 'Visual Studio Code',
      client_uri: 'https://vscode.dev/product',
      application_type: 'native',
      redirect_uris: ['http://127.0.0.1:33418/', 'https://vscode.dev/redirect'],
      token_endpoint_auth_method: 'none',
    },
    { type: 'native' },
  ],
  [
    {
      ...CODE,
      client_id: 'https://www.cursor.com/oauth/client.json',
      client_name: 'Cursor',
      redirect_uris: [
        'cursor://anysphere.cursor-mcp/oauth/callback',
        'https://www.cursor.com/agents/mcp/oauth/callback',
        'http://localhost:8787/callback',
      ],
    },
    { type: 'native' },
  ],
  [
    {
      ...CODE,
      client_id: 'https://inspector.example/client-metadata.json',
      client_name: 'MCP Inspector',
      redirect_uris: ['http://localhost:6274/oauth/callback', 'http://127.0.0.1:6274/oauth/callback/debug'],
      token_endpoint_auth_method: 'none',
    },
    { type: 'native' },
  ],
];

describe('a client document', () => {
  it.each([
    'http://agent.example/client.json',
    'https://agent.example',
    'https://agent.example/',
    'https://user@agent.example/c',
    'https://agent.example/c#x',
    'https://agent.example/a/../c',
    'https://AGENT.example/c',
    'https://agent.example:443/c',
    'https://agent.example/a b',
    `https://agent.example/${'x'.repeat(100)}`,
  ])('must not have the URL %s', (clientId) => expect(isDocumentUrl(clientId)).toBe(false));

  it('may have an https URL with a path, a port and a query', () => {
    expect(isDocumentUrl('https://agent.example/client.json')).toBe(true);
    expect(isDocumentUrl('https://agent.example:8443/c?v=1')).toBe(true);
  });

  it.each([
    ['Pay\u200bpal \u202e', 'Paypal'],
    ['\u200b', 'agent.example'],
    [7, 'agent.example'],
    ['x'.repeat(200), 'x'.repeat(100)],
  ])('with the name %j describes a client with the name %j', (client_name, name) => {
    expect(parse({ client_name }).name).toBe(name);
  });

  it('with 60 times as many keys and redirect URIs takes at most 480 times the processor time to parse', async () => {
    const { publicKey } = await generateKeyPair('ES256');
    const key = await exportJWK(publicKey);
    const read = (size: number) => () =>
      parse({
        redirect_uris: Array.from({ length: 15 * size }, (_, at) => `a.b:${at}`),
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: { keys: Array.from({ length: size }, () => key) },
      }).redirect_uris.length;
    expect(read(60)()).toBeGreaterThan(0);
    expect(await costsAtMost(8 * 60, read(60), read(1))).toBe(true);
  });

  it.each([undefined, null, false, 0, '', 'keys', {}, { keys: [] }])(
    'is rejected if its keys are %j',
    (jwks) => {
      const keys = { token_endpoint_auth_method: 'private_key_jwt', jwks };
      expect(() => parse(keys)).toThrow(/jwks|key set/);
    },
  );

  it.each(DOCUMENTS.map(([said, described]) => [said.client_name, said, described] as const))(
    'of %s describes a usable client',
    (_name, said, described) => {
      const jwks = 'jwks_uri' in said ? { keys: [RSA_KEY] } : undefined;
      const client = parseClient(said.client_id, said, true, jwks);
      const { client_name: name, redirect_uris } = said;
      expect(client).toMatchObject({ name, redirect_uris, jwks: jwks ?? null, ...described });
    },
  );

  it('describes a client without any links to other origins', () => {
    const pagesOf = (uri: unknown) => {
      const { client_uri, policy_uri } = parse({ client_uri: uri, policy_uri: uri });
      return [client_uri, policy_uri];
    };
    const own = 'https://agent.example/about';
    expect(pagesOf(own)).toEqual([own, own]);
    const others = ['https://claude.ai/', 'https://www.agent.example/', 'https://agent.example:8443/', 7];
    for (const other of others) expect(pagesOf(other)).toEqual([null, null]);
  });

  it('with both authentication methods needs no keys; with the profile fapi2 the client must sign', () => {
    const both = { token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'] };
    expect(parse(both)).toMatchObject({ jwks: null });
    const pushing = { require_pushed_authorization_requests: true, dpop_bound_access_tokens: true };
    const fapi2 = parse({ ...both, ...pushing, jwks: { keys: [RSA_KEY] } });
    expect(fapi2).toMatchObject({ profile: 'fapi2', assertion_optional: false });
    expect(parse({ ...both, jwks: { keys: [RSA_KEY] } }).profile).toBe('oauth21');
    expect(() => parse(pushing)).toThrow('cannot authenticate with none');
  });

  it('is rejected if the keys at its jwks_uri are unusable', () => {
    const said = DOCUMENTS[0]![0];
    for (const keys of [{}, { keys: [] }, { keys: [{ kty: 'oct', k: 'x' }] }, [], 'keys'])
      expect(() => parseClient(said.client_id, said, true, keys as object)).toThrow('key set');
  });

  it('describes a client without a logout URI at another origin', () => {
    const told = (backchannel_logout_uri: unknown) =>
      parse({ backchannel_logout_uri }).backchannel_logout_uri;
    expect(told('https://agent.example/logout?a=b')).toBe('https://agent.example/logout?a=b');
    for (const other of [
      'https://other.example/',
      'https://agent.example:8443/',
      'http://agent.example/',
      '/',
      1,
      null,
    ])
      expect(told(other)).toBeNull();
    expect(() => told('https://agent.example/#here')).toThrow('cannot receive logout messages');
  });

  it('describes a client that redirects only to its own origin and the member’s device', () => {
    const client = parse({
      redirect_uris: [
        'https://agent.example/callback',
        'https://other.example/callback',
        'HTTPS://other.example/callback',
        'http://192.168.0.1/callback',
        'javascript:alert(1)',
        REDIRECT,
      ],
      scope: 'openid profile:read events:write',
      client_uri: 'javascript:alert(1)',
    });
    expect(client).toMatchObject({
      type: 'native',
      redirect_uris: ['https://agent.example/callback', REDIRECT],
      scopes: ['profile:read'],
      client_uri: null,
      allowed_origins: ['https://agent.example'],
    });
  });
});

postgres.describe('client documents on a server', () => {
  let oauth: OauthTest;
  let site: DocumentSite;
  let at: string;

  beforeAll(async () => {
    site = await DocumentSite.start(describing);
    ({ at } = site);
    oauth = await OauthTest.start({ clientIdMetadataDocuments: true });
  });
  afterAll(async () => {
    site.close();
    await oauth.close();
  });

  const describing = ({ headers, url }: IncomingMessage, response: ServerResponse) => {
    if (headers['user-agent'] === 'public-user-api')
      sendJson(response, documentOf(`https://${headers.host}${url}`));
    else response.writeHead(403).end(); // many sites reject requests without a User-Agent
  };

  const ask = (clientId: string, parameters: Record<string, string> = {}) =>
    oauth.request(clientId, { redirect_uri: REDIRECT, scope: 'profile:read events:read', ...parameters });

  beforeEach(() => {
    site.connections = 0;
    site.answer = describing;
    oauth.api.app.get(PublicHttps).isAllowed = isPublicAddress;
  });
  /** Allows a server to read documents at private addresses. */
  const allowAll = (of = oauth) => allowDocuments(of.api.app.get(PublicHttps));
  /** Lets this many hours pass since the document was read. */
  const readEarlier = (clientId: string, hours: number) =>
    oauth.query(
      `UPDATE oauth_clients SET document_read_at = now() - make_interval(hours => $2) WHERE id = $1`,
      [clientId, hours],
    );
  /** Whether the document was read within the last minute. */
  const isFresh = async (clientId: string) => {
    const fresh = `SELECT FROM oauth_clients WHERE id = $1 AND document_read_at > now() - interval '1 minute'`;
    return (await oauth.query(fresh, [clientId])).length === 1;
  };
  /** Serves a document at the path, and at other paths these keys, if there are any. */
  const signing = (path: string, members: object, keysOf: () => object[]) => {
    site.answer = ({ url }, response) => {
      const keys = keysOf();
      const signed = {
        token_endpoint_auth_method: 'private_key_jwt',
        jwks_uri: `${at}/keys.json`,
        ...members,
      };
      if (url === path) sendJson(response, documentOf(at + path, signed));
      else if (keys.length > 0) sendJson(response, { keys });
      else response.writeHead(404).end();
    };
    return at + path;
  };
  const codeFor = (clientId: string, username: string) =>
    oauth.code(clientId, username, { redirect_uri: REDIRECT, scope: 'profile:read' });
  const signedBy = (clientId: string, key: CryptoKey, kid: string) =>
    assertionOf(clientId, key, 'RS256', { aud: oauth.issuer }, { kid });

  describe('a client with a document', () => {
    beforeEach(() => allowAll());

    it('is not stored without its audit event', async () => {
      const clientId = `${at}/unrecorded.json`;
      const { username } = await oauth.member();
      const allow = () => oauth.browser().authorize(ask(clientId).url, { username });
      await expect(withoutAudit(oauth.dataSource, 'client.created', allow)).rejects.toThrow(/^500 at /);
      const stored = 'SELECT FROM oauth_clients WHERE id = $1';
      expect(await oauth.query(stored, [clientId])).toEqual([]);
      await allow();
      expect(await oauth.query(stored, [clientId])).toHaveLength(1);
    });

    it('lets the member choose unlimited access, even as a public web app', async () => {
      const clientId = `${at}/hosted-assistant.json`;
      const redirect_uri = `${at}/callback`;
      site.answer = (_, response) =>
        sendJson(response, documentOf(clientId, { redirect_uris: [redirect_uri] }));
      const { username } = await oauth.member();
      const { html } = await oauth.browser().signIn(ask(clientId, { redirect_uri }).url, username);
      const durations = Array.from(
        html.matchAll(/name="duration" value="(\w+)"( checked)?/g),
        ([, value, checked]) => value + (checked ?? ''),
      );
      expect(durations).toEqual(['once', '30', '180 checked', 'unlimited']);
    });

    it('shows its document’s host on the sign-in and consent pages, and is stored at the consent', async () => {
      const clientId = `${at}/client.json`;
      const { username } = await oauth.member();
      const { url, redeem } = ask(clientId);
      const browser = oauth.browser();
      const page = await browser.view(url);
      expect(page.html).toContain(`App on this device, ${new URL(at).host}`);
      const stored = () => oauth.query<object>('SELECT name FROM oauth_clients WHERE id = $1', [clientId]);
      expect(await stored()).toEqual([]);
      const consent = await browser.press(page, { username, password: PASSWORD });
      expect(consent.html).toContain('<bdi>Travelling agent</bdi>');
      expect(consent.html).toContain(
        `<strong>This app is not registered here. Its description comes from <bdi>${new URL(at).host}</bdi>.</strong> Allow only what`,
      );
      expect(consent.html).toContain('An assistant may share the data that it reads.');
      const back = await browser.allow(consent);
      expect(await stored()).toEqual([{ name: 'Travelling agent' }]);
      const { status, body } = await redeem(back);
      expect([status, body.scope]).toEqual([200, 'profile:read events:read']);
      expect((await oauth.refresh(clientId, body.refresh_token)).status).toBe(200);
      expect(site.connections).toBe(1);
      expect(await oauth.events({ client: clientId, type: 'client.created' })).toMatchObject([
        { actor: 'client' },
      ]);
    });

    it('has its document read again two hours after the last read, and is rejected once it is disabled', async () => {
      const clientId = `${at}/hourly.json`;
      const { username } = await oauth.member();
      await oauth.browser().authorize(ask(clientId).url, { username });
      await readEarlier(clientId, 2);
      const status = async () => (await oauth.browser().view(ask(clientId).url)).status;
      // The server caches a client for a second.
      await until(async () => {
        expect(await status()).toBe(200);
        return isFresh(clientId);
      });
      await oauth.query('UPDATE oauth_clients SET disabled_at = now() WHERE id = $1', [clientId]);
      await until(async () => (await status()) === 400);
    });

    it('stays usable for one day after the last read of its document, if the document becomes unreadable', async () => {
      const clientId = `${at}/short-lived.json`;
      const { username } = await oauth.member();
      await oauth.browser().authorize(ask(clientId).url, { username });
      site.answer = (_, response) => response.destroy();
      // Another instance, which has not read the document.
      const settings = { clientIdMetadataDocuments: true, publicUrl: oauth.issuer };
      await using other = await OauthTest.start(settings, oauth);
      allowAll(other);
      const open = async () => (await oauth.browser(other.api.url).view(ask(clientId).url)).status;
      for (const [hours, status] of [
        [23, 200],
        [25, 400],
      ] as const) {
        await readEarlier(clientId, hours);
        await until(async () => (await open()) === status); // the server caches a client for a second
      }
    });

    it.each([
      ['is not in its document', REDIRECT_URI, '<code>invalid_redirect_uri</code>'],
      [
        'has another origin than its document',
        ELSEWHERE,
        `${ELSEWHERE} has another origin than the document`,
      ],
    ])('is rejected with a redirect URI that %s, as the error page says', async (_, redirect_uri, why) => {
      const { html } = await oauth.browser().view(ask(`${at}/other.json`, { redirect_uri }).url);
      expect(html).toContain(why);
    });

    type Respond = (response: ServerResponse, clientId: string) => void;
    const saying =
      (more: object): Respond =>
      (response, clientId) =>
        sendJson(response, documentOf(clientId, more));
    it.each<[string, string, Respond]>([
      ['a redirect', 'the response is 302', (response) => response.writeHead(302, { Location: at }).end()],
      [
        'a page',
        'the response is not JSON',
        (response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>'),
      ],
      [
        'a body that is not JSON',
        'in JSON at position 1',
        (response) => response.writeHead(200, { 'Content-Type': 'application/json' }).end('{'),
      ],
      ['more than 16 KB', 'more than 16384 bytes', saying({ padding: 'x'.repeat(20_000) })],
      [
        'about another client',
        'its client_id must be its URL',
        saying({ client_id: 'https://other.example/c' }),
      ],
      ['a secret', 'it must not contain a client_secret', saying({ client_secret: 'x' })],
      [
        'a client that has a secret',
        'its token_endpoint_auth_method must be none or private_key_jwt',
        saying({ token_endpoint_auth_method: 'client_secret_post' }),
      ],
      [
        'a client with an unsafe scheme',
        'URI app:/callback has a scheme',
        saying({ redirect_uris: ['app:/callback'] }),
      ],
      ['an error', 'the response is 500', (response) => response.writeHead(500).end()],
      ['a broken connection', 'socket hang up', (response) => response.destroy()],
    ])('is unknown if the response is %s, and developers see the cause', async (what, why, respond) => {
      site.answer = (request, response) => respond(response, at + request.url);
      const clientId = `${at}/${encodeURIComponent(what)}.json`;
      const { url } = ask(clientId);
      for (const time of ['read', 'remembered']) {
        const page = await oauth.browser().view(url);
        expect([time, page.status]).toEqual([time, 400]);
        expect(page.html).toContain('<code>invalid_client</code>');
        const said = /<p lang="en">(.*)<\/p>/.exec(page.html)?.[1];
        expect(said).toContain('The client document cannot be used: ');
        expect(said).toContain(why);
      }
      const { body } = await oauth.refresh(clientId, 'x');
      expect(body).toMatchObject({
        error: 'invalid_client',
        error_description: expect.stringContaining(why),
      });
      expect(site.connections).toBe(1);
    });

    it('signs with keys at its jwks_uri; the server reads them again for one unknown key, but not immediately for another', async () => {
      let keys: object[] = [RSA_KEY];
      let reads = 0; // of the document and of its keys
      const clientId = signing('/signing.json', {}, () => (reads++, keys));
      const code = await codeFor(clientId, (await oauth.member()).username);
      expect(reads).toBe(2);
      const signed = (key: CryptoKey, kid: string) => signedBy(clientId, key, kid);
      expect((await oauth.token(code)).body.error).toBe('invalid_client'); // without a signature
      const { status, body } = await oauth.token({ ...code, ...(await signed(privateKey, 'first')) });
      expect(status).toBe(200);

      const second = await generateKeyPair('RS256');
      keys = [{ ...(await exportJWK(second.publicKey)), kid: 'second' }];
      const bySecond = await signed(second.privateKey, 'second');
      const renewed = await oauth.refresh(clientId, body.refresh_token, bySecond);
      expect([renewed.status, reads]).toEqual([200, 4]);
      const [row] = await oauth.query<{ jwks: object }>('SELECT jwks FROM oauth_clients WHERE id = $1', [
        clientId,
      ]);
      expect(row).toMatchObject({ jwks: { keys: [{ kid: 'second' }] } });

      // Anyone can name another key, so the server reads the keys again at most once a minute.
      const form = await signed(privateKey, 'third');
      const refused = await oauth.refresh(clientId, renewed.body.refresh_token, form);
      expect([refused.status, refused.body.error, reads]).toEqual([401, 'invalid_client', 4]);
    });

    it('that signs with an unknown key learns why its jwks_uri is unreadable, and keeps its stored keys', async () => {
      let keys: object[] = [RSA_KEY];
      const clientId = signing('/losing.json', {}, () => keys);
      const code = await codeFor(clientId, (await oauth.member()).username);
      keys = [];
      const tokenWith = async (kid: string) =>
        oauth.token({ ...code, ...(await signedBy(clientId, privateKey, kid)) });
      const { status, body } = await tokenWith('other');
      expect([status, body.error]).toEqual([401, 'invalid_client']);
      expect(body.error_description).toBe(
        'the client document cannot be used: jwks_uri: the response is 404',
      );
      expect((await tokenWith('first')).status).toBe(200);
    });

    it('that may omit its signature gets tokens without a signature, but not with a wrong signature', async () => {
      const both = { token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'] };
      const clientId = signing('/both.json', both, () => [RSA_KEY]);
      const { username } = await oauth.member();
      const code = () => codeFor(clientId, username);
      const signed = (key: CryptoKey) => signedBy(clientId, key, 'first');
      expect((await oauth.token({ ...(await code()), ...(await signed(privateKey)) })).status).toBe(200);
      const { status, body } = await oauth.token(await code());
      expect(status).toBe(200);
      expect((await oauth.refresh(clientId, body.refresh_token)).status).toBe(200);
      const wrong = await generateKeyPair('RS256');
      const refused = await oauth.token({ ...(await code()), ...(await signed(wrong.privateKey)) });
      expect([refused.status, refused.body.error]).toEqual([401, 'invalid_client']);
    });

    it('has its document fetched once for concurrent requests', async () => {
      const { url } = ask(`${at}/popular.json`);
      const pages = await atOnce(10, () => oauth.browser().view(url));
      expect(pages.map(({ status }) => status)).toEqual(Array(10).fill(200));
      expect(site.connections).toBe(1);
    });
  });

  describe('requests of anonymous clients', () => {
    /** An instance that has not read any document yet. */
    let server: OauthTest;

    beforeEach(async () => {
      server = await OauthTest.start({ clientIdMetadataDocuments: true, trustProxy: 1 }, oauth);
      allowAll(server);
    });
    afterEach(() => server.close());

    /** URL of a document at the given subdomain. */
    const clientAt = (host: string, path = '/client.json') =>
      `https://${host}.agents.localhost:${site.port}${path}`;
    /** The status of an authorization request from an address: 303 redirects to the sign-in. */
    const statusFor = async (clientId: string, address: string, redirectUri = REDIRECT) => {
      const { url } = server.request(clientId, { redirect_uri: redirectUri, scope: 'profile:read' });
      const response = await fetch(url, { headers: { 'X-Forwarded-For': address }, redirect: 'manual' });
      await response.arrayBuffer();
      return response.status;
    };

    /** Whether the limit rejects the read (503). */
    const isRefused = async (clientId: string, address: string) =>
      (await statusFor(clientId, address)) === 503;

    it('use up only the limit of their address', async () => {
      const refused: boolean[] = [];
      for (let i = 0; i < 70; i++) refused.push(await isRefused(clientAt(`stranger-${i}`), '192.0.2.1'));
      expect(refused).toEqual([...Array<boolean>(30).fill(false), ...Array<boolean>(40).fill(true)]);
      expect(await isRefused(clientAt('somebody-else'), '192.0.2.2')).toBe(false);
      // All addresses of an IPv6 network share one limit.
      for (let i = 1; i <= 30; i++) await statusFor(clientAt(`network-${i}`), `2001:db8::${i}`);
      expect(await isRefused(clientAt('network'), '2001:db8::ffff')).toBe(true);
    });

    it('cause at most 60 document reads per minute and host, without limiting other hosts', async () => {
      const address = (i: number) => `192.0.2.${Math.floor(i / 30)}`;
      for (let i = 0; i < 60; i++)
        expect(await isRefused(clientAt('flooded', `/${i}.json`), address(i))).toBe(false);
      expect(await isRefused(clientAt('flooded', '/60.json'), address(60))).toBe(true);
      expect(await isRefused(clientAt('flooded', '/0.json'), address(60))).toBe(false); // the document is cached
      expect(await isRefused(clientAt('spared'), address(60))).toBe(false);
    });

    it('do not block sign-ins to a registered app, even if no document arrives', async () => {
      const registered = await oauth.client();
      site.answer = () => undefined;
      const clock = new AbortController();
      server.api.app.get(PublicHttps).timeLimit = () => clock.signal;
      const ended: Promise<number>[] = [];
      // 20 at a time: until it waits for its document, a request needs one of 32 places.
      while (ended.length < 80) {
        for (let i = 0; i < 20; i++)
          ended.push(statusFor(clientAt(`silent-${ended.length}`), `192.0.2.${i}`));
        await eventually(() => site.connections >= ended.length || undefined);
      }
      // The server is already reading four documents for this address.
      expect(await statusFor(clientAt('another'), '192.0.2.0')).toBe(503);
      const statuses: number[] = [];
      for (let i = 0; i < 40; i++) statuses.push(await statusFor(registered, '192.0.2.99', REDIRECT_URI));
      expect(new Set(statuses)).toEqual(new Set([303]));
      clock.abort(new DOMException('The time is over', 'TimeoutError'));
      expect(new Set(await Promise.all(ended))).toEqual(new Set([400]));
    });

    it('do not delay apps in use: the server reads their documents again in the background', async () => {
      const clientId = clientAt('in-use');
      const { username } = await oauth.member();
      allowAll();
      await oauth.browser().authorize(ask(clientId).url, { username });
      await readEarlier(clientId, 23);
      const held: (() => void)[] = [];
      site.answer = (request, response) =>
        void held.push(() => sendJson(response, documentOf(`https://${request.headers.host}${request.url}`)));
      expect(await statusFor(clientId, '192.0.2.1')).toBe(303);
      await eventually(() => held.length > 0 || undefined);
      for (const go of held) go();
      await until(() => isFresh(clientId));
    });
  });

  describe('a URL inside the private network', () => {
    it('gets no connection, by name or by IP address', async () => {
      const { port } = new URL(at);
      for (const host of ['localhost', '127.0.0.1', '[::1]', '[::ffff:7f00:1]']) {
        const clientId = new URL(`https://${host}:${port}/inside.json`).href;
        expect([clientId, (await oauth.browser().view(ask(clientId).url)).status]).toEqual([clientId, 400]);
      }
      expect(site.connections).toBe(0);
    });

    it('gets no connection if the address of its name is not allowed', async () => {
      const guard = oauth.api.app.get(PublicHttps);
      const asked: string[] = [];
      guard.isAllowed = (address) => {
        asked.push(address);
        return false;
      };
      await expect(guard.readJson(new URL(`${at}/x.json`))).rejects.toThrow('not on the internet');
      guard.isAllowed = isPublicAddress;
      expect(asked.length).toBeGreaterThan(0);
      expect(site.connections).toBe(0);
    });
  });

  it('are disabled unless the operator allows them, as the metadata states', async () => {
    await using closed = await OauthTest.start({}, oauth);
    const metadata = '/.well-known/oauth-authorization-server';
    const name = 'client_id_metadata_document_supported';
    expect(await closed.json(metadata)).not.toHaveProperty(name);
    expect(await oauth.json(metadata)).toMatchObject({ [name]: true });
    allowAll(closed);
    const { url } = closed.request(`${at}/never-stored.json`, { redirect_uri: REDIRECT });
    const page = await closed.browser().view(url);
    expect(page.status).toBe(400);
    expect(page.html).toContain('does not accept client documents');
    expect(site.connections).toBe(0);
  });
});
