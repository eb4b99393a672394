import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { OauthTest } from '../support/oauth.js';

describe('the style sheet', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start({ seedDemo: true })));
  afterAll(() => oauth.close());

  /** One page for members, one public page, and the demo. */
  it.each([
    ['/account/apps', '/nothing', '/account/security/nothing'],
    ['/', '/docs', '/docs/times'],
    ['/demo', '/demo/callback'],
  ])('is inline, equal on all pages of one kind, and allowed only by its hash: %s', async (...paths) => {
    const styles = new Set<string>();
    for (const path of paths) {
      const response = await fetch(oauth.issuer + path, { headers: { Accept: 'text/html' } });
      const html = await response.text();
      expect([path, html.match(/<style\b|rel="stylesheet"|\sstyle=/g)]).toEqual([path, ['<style']]);
      const [, style] = /<style>([^]*?)<\/style>/.exec(html)!;
      const hash = createHash('sha256').update(style!).digest('base64');
      expect(response.headers.get('content-security-policy')).toContain(`; style-src 'sha256-${hash}'; `);
      styles.add(style!);
    }
    expect(styles.size).toBe(1);
  });
});
