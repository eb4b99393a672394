import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DEMO_CLIENT, registerDemoClient } from '../src/oauth/demo.js';
import { OauthTest } from './support/oauth.js';

describe('/demo', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start({ seedDemo: true })));
  afterAll(() => oauth.close());

  it('serves the demo app, with a policy that lets it load and call nothing but this server', async () => {
    for (const path of ['/demo', '/demo/callback?code=x&state=y', '/demo/app.js', '/demo/app.css']) {
      const response = await fetch(oauth.issuer + path);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-security-policy')).toMatch(
        /default-src 'none'; script-src 'self'/,
      );
      expect(await response.text()).not.toMatch(/https?:\/\/(?!www\.w3\.org)|<script>|style="/);
    }
    expect((await fetch(`${oauth.issuer}/demo/package.json`)).status).toBe(404);
  });

  it('is a client that signs members in, wherever PUBLIC_URL is', async () => {
    const { dataSource, api } = oauth;
    await registerDemoClient(dataSource, { ...api.config, publicUrl: 'http://localhost:1' });
    await registerDemoClient(dataSource, api.config);
    const { username } = await oauth.member();
    const redirect_uri = `${oauth.issuer}/demo/callback`;
    const { url } = oauth.request(DEMO_CLIENT, { redirect_uri, scope: 'profile:read events:read' });
    const back = await oauth.browser().authorize(url, { username });
    expect(back.origin + back.pathname).toBe(redirect_uri);
    expect(back.searchParams.get('code')).not.toBeNull();
  });
});
