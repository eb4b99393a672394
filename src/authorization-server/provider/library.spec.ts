import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { errors, Provider, type AdapterPayload, type Configuration } from 'oidc-provider';
import { listen } from '../../../test/support/listen.js';
import { makeSigningKey } from '../../crypto/signing-keys.js';
import {
  alive,
  createLibrary,
  onFailures,
  putBack,
  SynchronousSigningKey,
  type Replacements,
} from './library.js';

const ISSUER = 'https://op.example';
const REDIRECT_URI = 'https://app.example/callback';
const PAYLOADS: Readonly<Record<string, AdapterPayload>> = {
  Client: {
    client_id: 'app',
    redirect_uris: [REDIRECT_URI],
    response_modes: ['form_post'],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'client_secret_basic',
  },
  Session: { jti: 'x', uid: 'x', kind: 'Session', iat: 9_999_999_999, exp: 1 },
};

let configuration: Configuration;
let library: Provider;
let server: Server;
let origin: string;
const replacements = {
  postForm: jest.fn<Replacements['postForm']>().mockResolvedValue(undefined),
  hasSecret: jest.fn<Replacements['hasSecret']>((_client, sent) => sent === 'right'),
  exchange: jest.fn<Replacements['exchange']>((_ctx, handle) => handle()),
  scopesOf: (text: string) => text.split(' '),
};
const failed = jest.fn<(error: Error) => void>();

beforeAll(async () => {
  configuration = {
    jwks: { keys: [{ ...(await makeSigningKey('ES256')) }] },
    cookies: { keys: ['key'] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    features: {
      devInteractions: { enabled: false },
      introspection: { enabled: true },
      revocation: { enabled: true },
    },
    adapter: (model) =>
      ({
        ...alive({
          find: (id) => Promise.resolve(id === 'broken' ? Promise.reject(new Error(id)) : PAYLOADS[model]),
        }),
        upsert: () => Promise.resolve(),
      }) as never,
  };
  library = createLibrary(ISSUER, configuration, replacements);
  library.proxy = true;
  library.silent = true;
  onFailures(library, failed);
  const handle = library.callback();
  server = createServer((request, response) => {
    void buffer(request).then((body) => {
      if (request.method === 'POST') putBack(request, body);
      return handle(request, response);
    });
  });
  origin = await listen(server);
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

/** @param form sent by POST, with the client's secret */
function send(path: string, form?: Record<string, string>, secret = 'right'): Promise<Response> {
  const headers = { Authorization: `Basic ${btoa(`app:${secret}`)}`, 'X-Forwarded-Proto': 'https' };
  const options = form ? { method: 'POST', body: new URLSearchParams(form), headers } : { headers };
  return fetch(origin + path, options);
}

const SOURCE = globSync('node_modules/oidc-provider/lib/**/*.js')
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n');

describe('oidc-provider', () => {
  it.each([
    ['Client.needsSecret', 'static needsSecret(metadata) { if (!nonSecretAuthMethods.has'],
    [
      'Client.compareClientSecret',
      'compareClientSecret(actual) { return constantEquals(this.clientSecret, actual, 1000); }',
    ],
    ['Client.clientAuthMethod', 'get clientAuthMethod() { return this.tokenEndpointAuthMethod; }'],
    ['Client.backchannelLogout', 'client.backchannelLogout(accountId, sid)'],
    ['Session.authTime', 'authTime() { return this.loginTs; }'],
    [
      'Session.resetIdentifier',
      'resetIdentifier() { this.oldId = this.id; this.id = nanoid(); this.touched = true; }',
    ],
    [
      'OIDCContext.requestParamScopes',
      "get requestParamScopes() { return new Set(this.params.scope?.split(' ')); }",
    ],
    ['session.state', 'const { secret } = ctx.oidc.session.state;'],
    ['the error for an expired step', "throw new SessionNotFound('interaction session not found');"],
    [
      'the error for a step without a cookie',
      "throw new errors.SessionNotFound('authorization request has expired');",
    ],
    ['the error for an expired sign-out', "checkXsrf('could not find logout details')"],
  ])('contains the source code that this server replaces or relies on: %s', (_, code) => {
    expect(SOURCE.replaceAll(/\s+/g, ' ')).toContain(code);
  });

  it('has its prototypes patched only in library.ts', () => {
    const changing = globSync('src/{authorization-server,federation,member-pages}/**/*.ts', {
      exclude: ['**/*.spec.ts'],
    }).filter((path) => /\.prototype\b/.test(readFileSync(path, 'utf8')));
    expect(changing).toEqual(['src/authorization-server/provider/library.ts']);
  });

  it('sends form_post responses with the replacement function', async () => {
    const query = { client_id: 'app', redirect_uri: REDIRECT_URI, response_type: 'code', scope: 'openid' };
    await send(`/auth?${new URLSearchParams({ ...query, response_mode: 'form_post', prompt: 'none' })}`);
    const sent = replacements.postForm.mock.calls.map(([, action, { error }]) => [action, error]);
    expect(sent).toEqual([[REDIRECT_URI, 'login_required']]);
  });

  it('checks a client’s secret with the replacement function, even if the body is already read', async () => {
    replacements.hasSecret.mockClear();
    const form = { grant_type: 'refresh_token', refresh_token: 'x' };
    expect(await (await send('/token', form, 'wrong')).json()).toMatchObject({ error: 'invalid_client' });
    expect(await (await send('/token', form)).json()).toMatchObject({ error: 'invalid_grant' });
    expect(replacements.hasSecret.mock.calls.map(([, sent]) => sent)).toEqual(['wrong', 'right']);
  });

  it('runs token request handlers with the replacement function, in the context of the request', async () => {
    const form = { grant_type: 'refresh_token', refresh_token: 'x' };
    replacements.exchange.mockImplementationOnce((ctx, handle) => {
      expect(Provider.ctx === ctx).toBe(true);
      return handle().catch(() => Promise.reject(new errors.InvalidTarget('refused late')));
    });
    const response = await send('/token', form);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: 'invalid_target', error_description: 'refused late' });
  });

  it.each<[string, Record<string, string> | undefined]>([
    ['/auth', undefined],
    ['/token', {}],
    ['/token/introspection', {}],
    ['/token/revocation', {}],
    ['/request', {}],
    ['/session/end?id_token_hint=x', undefined],
    ['/session/end/confirm', {}],
    ['/session/end/success?client_id=broken', undefined],
  ])('reports an error at %s once', async (path, form) => {
    failed.mockClear();
    const { status } = await send(path, form);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(failed.mock.calls.length).toBe(1);
  });

  it('finds a record that only this process’s clock considers expired', async () => {
    expect((await library.Session.find('x'))?.uid).toBe('x');
  });
});

describe('a signing key', () => {
  it('exposes its public half, and never its private half', async () => {
    const jwk = await makeSigningKey('ES256');
    if (jwk.kty !== 'EC') throw new Error(jwk.kty);
    const key = new SynchronousSigningKey(jwk);
    const { x, y, kid } = jwk;
    expect(key).toMatchObject({ kty: 'EC', crv: 'P-256', x, y, kid, alg: 'ES256', use: 'sig' });
    expect('d' in key).toBe(false);
    expect(key.keyObject().type).toBe('public');
  });
});
