import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Layout } from '../../src/layout/layout.js';
import { OauthTest } from '../support/oauth.js';

describe('The style sheet', () => {
  let oauth: OauthTest;
  let address: string;
  beforeAll(async () => {
    oauth = await OauthTest.start();
    address = oauth.api.app.get(Layout).styleAddress;
  });
  afterAll(() => oauth.close());

  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(oauth.issuer + path, { headers: { Accept: 'text/html', ...headers } });

  it.each(['/', '/docs', '/docs/times', '/nothing', '/account/apps', '/account/security/nothing'])(
    'is one for all pages, at the same address: %s',
    async (path) => {
      const html = await (await get(path)).text();
      expect(html).toContain(`<link rel="stylesheet" href="${address}">`);
      expect(html).not.toMatch(/<style|\sstyle=/);
    },
  );

  it('is kept by browsers for a year, since its address changes with it', async () => {
    const response = await get(address);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8']);
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const again = await get(address, { 'If-None-Match': response.headers.get('etag')! });
    expect(again.status).toBe(304);
  });

  it('is there for a page of another version of the server, and not kept', async () => {
    const current = await (await get(address)).text();
    for (const path of ['/style.css?of-another-version', '/style.css']) {
      const response = await get(path);
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-cache']);
      expect(await response.text()).toBe(current);
    }
  });
});
