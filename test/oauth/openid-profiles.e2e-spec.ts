import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { basic, clientWithSecret } from '../support/client-kinds.js';
import { OauthTest, PASSWORD, REDIRECT_URI, type FormPage } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

describe('PKCE', () => {
  const without = { code_challenge: undefined, code_challenge_method: undefined };

  it('may be omitted with a nonce by a client registered for that, and counts if sent', async () => {
    const { id, secret } = await clientWithSecret(oauth, { pkce: 'off' });
    const { username } = await oauth.member();
    const form = { grant_type: 'authorization_code', redirect_uri: REDIRECT_URI };
    const codeOf = async (url: URL) =>
      (await oauth.browser().authorize(url, { username })).searchParams.get('code')!;
    const bare = await codeOf(oauth.request(id, { ...without, scope: 'openid' }).url);
    const { status, body } = await oauth.token({ ...form, code: bare }, basic(id, secret));
    expect([status, typeof body.id_token]).toEqual([200, 'string']);
    const { url, verifier } = oauth.request(id);
    const bound = { ...form, code: await codeOf(url) };
    expect((await oauth.token(bound, basic(id, secret))).body.error).toBe('invalid_grant');
    expect((await oauth.token({ ...bound, code_verifier: verifier }, basic(id, secret))).status).toBe(200);
  });

  it.each([
    ['a nonce', { nonce: undefined }, undefined],
    ['an empty nonce', { nonce: '' }, undefined],
    [
      'the scope openid',
      { nonce: 'n', scope: 'profile:read' },
      'openid scope must be requested when using the nonce parameter',
    ],
  ])('is required without one: %s', async (_what, parameters, said) => {
    const { id } = await clientWithSecret(oauth, { pkce: 'optional' });
    const back = (await oauth.browser().open(oauth.request(id, { ...without, ...parameters }).url)) as URL;
    expect(Object.fromEntries(back.searchParams)).toMatchObject({
      error: 'invalid_request',
      error_description: said ?? 'PKCE may be left out only with a nonce',
    });
  });

  it.each(['a verifier without a challenge', 'a challenge without a verifier'])(
    'cannot be downgraded: %s',
    async (which) => {
      const { id, secret } = await clientWithSecret(oauth, { pkce: 'optional' });
      const { username } = await oauth.member();
      const isLeftOut = which.startsWith('a verifier');
      const request = oauth.request(id, { ...(isLeftOut ? without : {}), nonce: 'n' });
      const back = await oauth.browser().authorize(request.url, { username });
      const { status, body } = await oauth.token(
        {
          grant_type: 'authorization_code',
          redirect_uri: REDIRECT_URI,
          code: back.searchParams.get('code')!,
          ...(isLeftOut ? { code_verifier: request.verifier } : {}),
        },
        basic(id, secret),
      );
      expect([status, body.error]).toEqual([400, 'invalid_grant']);
    },
  );
});

describe('form_post', () => {
  async function response() {
    const id = await oauth.client({ profile: 'oidc' });
    const { username } = await oauth.member();
    const browser = oauth.browser();
    const { url, verifier } = oauth.request(id, { response_mode: 'form_post', state: `"><x` });
    let page = (await browser.open(url)) as FormPage;
    page = (await browser.submit(page, { username, password: PASSWORD }, /\/sign-in$/)) as FormPage;
    const scope = [...page.html.matchAll(/name="scope" value="([^"]+)"/g)].map(([, value]) => value!);
    page = (await browser.submit(page, { scope, decision: 'allow' }, /\/consent$/)) as FormPage;
    const fields = Object.fromEntries(
      [...page.html.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [
        name,
        value,
      ]),
    ) as Record<string, string>;
    return { id, page, fields, verifier };
  }

  it('sends the code in a form, submitted by one hashed script or a button', async () => {
    const { id, page, fields, verifier } = await response();
    const policy = page.headers.get('content-security-policy')!;
    expect(/script-src ([^;]+)/.exec(policy)![1]!.match(/'sha256-[^']+'/g)).toHaveLength(1);
    expect(policy).not.toContain('form-action'); // the app may redirect anywhere
    expect(policy).toContain("default-src 'none'");
    expect(page.headers.get('cache-control')).toBe('no-store');
    expect(page.html).toMatch(new RegExp(`<form id="response" method="post" action="${REDIRECT_URI}">`));
    expect(page.html).toMatch(/<button [^>]*type="submit">/);
    expect(fields).toMatchObject({ state: '&quot;&gt;&lt;x', iss: oauth.issuer });
    const { status } = await oauth.token({
      grant_type: 'authorization_code',
      client_id: id,
      code: fields.code!,
      code_verifier: verifier,
      redirect_uri: REDIRECT_URI,
    });
    expect(status).toBe(200);
  });

  it('shows a button instead for a member’s app that the member does not know', async () => {
    const id = await oauth.client({ profile: 'oidc' });
    const { id: owner } = await oauth.member();
    await oauth.dataSource.query('UPDATE oauth_clients SET owner_id = $2 WHERE id = $1', [id, owner]);
    const { url } = oauth.request(id, { response_mode: 'form_post', prompt: 'none' });
    const page = (await oauth.browser().open(url)) as FormPage;
    expect(page.html).toContain('login_required');
    expect(page.html).not.toContain('<script');
    expect(page.html).toMatch(/<button [^>]*type="submit">/);
  });
});
