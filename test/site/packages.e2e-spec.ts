import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { VERSION } from '../../src/config/version.js';
import { OauthTest } from '../support/oauth.js';

const GO = '/clients/go/public-user-api.example/publicuserapi/@v';
const WHEEL = `/clients/public_user_api_client-${VERSION}-py3-none-any.whl`;

describe('the clients’ packages', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start()));
  afterAll(() => oauth.close());
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(oauth.issuer + path, { headers, redirect: 'manual' });

  it('are archives with the expected Content-Type, and respond 304 to their ETag', async () => {
    const version = (await (await get(`${GO}/list`)).text()).trim();
    expect(version).toMatch(new RegExp(`^v${VERSION}-h[0-9a-f]{12}$`));
    expect(await (await get(`${GO}/${version}.info`)).json()).toEqual({ Version: version });
    expect(await (await get(`${GO}/${version}.mod`)).text()).toBe(readFileSync('clients/go/go.mod', 'utf8'));
    for (const [path, type, start] of [
      ['/clients/typescript.tgz', 'application/gzip', '\x1f\x8b'],
      [WHEEL, 'application/zip', 'PK'],
      [`${GO}/${version}.zip`, 'application/zip', 'PK'],
    ] as const) {
      const response = await get(path);
      expect([path, response.status, response.headers.get('content-type')]).toEqual([path, 200, type]);
      expect(Buffer.from(await response.arrayBuffer()).toString('latin1', 0, 2)).toBe(start);
      expect((await get(path, { 'If-None-Match': response.headers.get('etag')! })).status).toBe(304);
    }
  });

  it('have the project’s license in their source folders', () => {
    for (const client of ['typescript', 'python', 'go'])
      expect(readFileSync(`clients/${client}/LICENSE`, 'utf8')).toBe(readFileSync('LICENSE', 'utf8'));
  });

  it('redirect from python.whl to the complete file name', async () => {
    const response = await get('/clients/python.whl');
    expect([response.status, response.headers.get('location')]).toEqual([302, WHEEL]);
  });

  it('respond 404 at five other URLs, such as another module or version for Go', async () => {
    for (const path of [
      '/clients/other.tgz',
      '/clients/go/golang.org/x/@v/list',
      `${GO}/v9.9.9.info`,
      '/clients/..%2f..%2fpackage.json',
      '/clients/go/..%2f..%2f/x/@v/list',
    ])
      expect([path, (await get(path)).status]).toEqual([path, 404]);
  });

  it.each(['typescript', 'python', 'go', 'first-program', 'browser-app'])(
    'are at the URLs in the install lines of /docs/%s',
    async (guide) => {
      const text = (await (await get(`/docs/${guide}`)).text()).replaceAll(/<[^>]+>/g, '');
      const lines = Array.from(
        text.matchAll(/(?:npm i|pip install|GOPROXY=)\s*(https?:\S+)/g),
        ([, url]) => url!,
      );
      expect(lines.length).toBeGreaterThan(0);
      for (const line of lines) {
        const url = line.replace(/,.*/, '');
        expect(url.startsWith(`${oauth.issuer}/clients/`)).toBe(true);
        expect((await fetch(url.endsWith('/go') ? oauth.issuer + GO + '/list' : url)).status).toBe(200);
      }
    },
  );
});
