import { describe, expect, it } from '@jest/globals';
import { checkClient, parseKeySet } from './client-rules.js';

const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

const client = (fields: object) => ({
  name: 'App',
  type: 'web' as const,
  redirect_uris: ['https://app.example/cb'],
  actor: 'admin' as const,
  ...fields,
});

describe('checkClient', () => {
  it.each([
    ['web', 'http://app.example/cb', 'must be https'],
    ['web', 'https://app.example/cb#x', 'fragment'],
    ['web', 'https://*.example/cb', 'wildcard'],
    ['web', 'https://user@app.example/cb', 'user or password'],
    ['web', 'https://app.example/c b', 'white space'],
    ['web', '/cb', 'not an absolute URI'],
    ['web', 'com.example.app:/cb', 'must be https'],
    ['native', 'http://192.168.0.1/cb', '127.0.0.1'],
    ['native', 'app:/cb', 'reversed domain name'],
    ['native', 'cursors:/cb', 'reversed domain name'],
    ['native', 'javascript:alert(1)', 'reversed domain name'],
  ])('for a %s client rejects the redirect URI %s', (type, uri, why) => {
    expect(() => checkClient(client({ type, redirect_uris: [uri] }), false)).toThrow(why);
  });

  it.each([
    ['web', 'https://app.example/cb?tenant=1'],
    ['web', 'http://localhost:5173/cb'],
    ['native', 'http://localhost/cb'],
    ['native', 'com.example.app:/cb'],
    ['native', 'cursor://anysphere.cursor-mcp/oauth/callback'],
    ['native', 'http://127.0.0.1/cb'],
    ['native', 'http://[::1]/cb'],
    ['native', 'https://app.example/claimed'],
  ])('for a %s client accepts the redirect URI %s', (type, uri) => {
    expect(() => checkClient(client({ type, redirect_uris: [uri] }), false)).not.toThrow();
  });

  it('rejects http on loopback for a web client in production', () => {
    expect(() => checkClient(client({ redirect_uris: ['http://localhost/cb'] }), true)).toThrow(
      'must be https',
    );
  });

  it.each([
    [{ redirect_uris: [] }, 'at least one'],
    [{ name: ' ' }, 'name'],
    [{ name: 'a\u0000b' }, 'name'],
    [{ scopes: ['events:write'] }, 'events:write'],
    [{ allowed_origins: ['https://app.example/'] }, 'not an origin'],
    [{ allowed_origins: ['*'] }, 'not an origin'],
    [{ jwks: { keys: [] } }, 'at least one public key'],
    [{ jwks: { keys: [{ kty: 'EC', crv: 'P-256', x: 'x', y: 'y', d: 'd' }] } }, 'private key'],
    [{ jwks: { keys: [{ kty: 'oct', k: 'k' }] } }, 'private key'],
    [{ post_logout_redirect_uris: ['http://app.example/'] }, 'must be https'],
    [{ client_uri: 'http://app.example/' }, 'not a page URL'],
    [{ policy_uri: 'javascript:alert(1)' }, 'not a page URL'],
    [
      { logo: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>') },
      'the logo must be a PNG',
    ],
    [{ logo: Buffer.concat([PNG, Buffer.alloc(65_536)]) }, 'the logo must be'],
  ])('rejects %j', (fields, why) => {
    expect(() => checkClient(client(fields), false)).toThrow(why);
  });

  it.each(['client_uri', 'policy_uri'])(
    'accepts a %s of 2,048 characters, and rejects a longer value',
    (field) => {
      const longest = 'https://app.example/'.padEnd(2048, 'x');
      expect(() => checkClient(client({ [field]: longest }), false)).not.toThrow();
      expect(() => checkClient(client({ [field]: `${longest}x` }), false)).toThrow('not a page URL');
    },
  );
});

describe('the key set of a client', () => {
  it.each(['', 'null', '{', 'undefined'])('is rejected if its text contains no list of keys: %j', (text) => {
    expect(() => parseKeySet(text)).toThrow('the key set must be {"keys": […]}');
  });

  it.each([false, 0, '', 'keys', [], {}])('is rejected if it is %j', (jwks) => {
    expect(() => checkClient(client({ jwks: jwks as never }), false)).toThrow('the key set must be');
  });
});
