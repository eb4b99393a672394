import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { basic } from '../support/client-kinds.js';
import { OauthTest, PASSWORD, REDIRECT_URI, type FormPage } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start({ developerConsole: true, developerOidc: true })));
afterAll(() => oauth.close());

/** A member at the console, and the form of a new app. */
async function atForm(of = oauth) {
  const member = await of.member();
  const browser = of.browser();
  const signIn = (await browser.open('/developer')) as FormPage;
  await browser.submit(signIn, { username: member.username, password: PASSWORD });
  const form = (await browser.open('/developer/new-client')) as FormPage;
  const register = async (fields: Record<string, string>) =>
    (await browser.submit(
      form,
      { name: 'Own app', type: 'web', redirect_uris: REDIRECT_URI, scopes: ['profile:read'], ...fields },
      /^\/developer\/clients$/,
    )) as FormPage;
  return { member, browser, form, register };
}

const profileOf = async (of: OauthTest, ownerId: number) =>
  of.dataSource.query('SELECT profile, secret_auth_method FROM oauth_clients WHERE owner_id = $1', [ownerId]);

describe('/developer, with DEVELOPER_OIDC', () => {
  it('registers an app with a secret, which is shown once and works, and replaces it', async () => {
    const { browser, register } = await atForm();
    const page = await register({ profile: 'oidc', secret_auth_method: 'client_secret_basic' });
    const [, id] = /^\/developer\/clients\/([\w-]{36})$/.exec(page.url.pathname)!;
    const make = async () => {
      const client = (await browser.open(`/developer/clients/${id}`)) as FormPage;
      const made = (await browser.submit(client, {}, /\/rotate-secret$/)) as FormPage;
      const [secret] = /pua_secret_[0-9A-Za-z]{43}/.exec(made.html)!;
      expect(((await browser.open(made.url)) as FormPage).html).not.toContain(secret);
      return secret;
    };
    const [first, second] = [await make(), await make()];
    expect(first).not.toBe(second);
    for (const secret of [first, second])
      expect((await oauth.post('/oauth/revoke', { token: 'x' }, basic(id!, secret))).status).toBe(200);
    const { html } = (await browser.open(`/developer/clients/${id}`)) as FormPage;
    expect(html).toContain(`…${second.slice(-4)}`);
    expect(html).not.toContain(second);
  });

  it('offers oauth21 and oidc, and accepts no other profile from a form', async () => {
    const { member, form, register } = await atForm();
    const offered = [...form.html.matchAll(/name="profile" value="(\w+)"/g)].map(([, profile]) => profile);
    expect(offered).toEqual(['oauth21', 'oidc']);
    await register({ profile: 'fapi2' });
    expect(await profileOf(oauth, member.id)).toEqual([{ profile: 'oauth21', secret_auth_method: null }]);
  });

  it('explains the conflict between a profile and a secret', async () => {
    const { register } = await atForm();
    const page = await register({ profile: 'oauth21', secret_auth_method: 'client_secret_post' });
    expect([page.status, page.html]).toEqual([
      400,
      expect.stringContaining('may not authenticate by client_secret_post'),
    ]);
  });

  it('creates no secret for an app of another member, or for an app without one', async () => {
    const [one, other] = [await atForm(), await atForm()];
    const page = await one.register({ profile: 'oidc', secret_auth_method: 'client_secret_basic' });
    const [, csrf] = /name="csrf" value="([^"]+)"/.exec(other.form.html)!;
    const foreign = await other.browser.send(`${page.url.pathname}/rotate-secret`, {
      method: 'POST',
      body: new URLSearchParams({ csrf: csrf! }),
    });
    expect(foreign.status).toBe(404);
    const bare = await other.register({});
    const none = await other.browser.send(`${bare.url.pathname}/rotate-secret`, {
      method: 'POST',
      body: new URLSearchParams({ csrf: csrf! }),
    });
    expect(none.status).toBe(404);
  });
});

describe('/developer, without DEVELOPER_OIDC', () => {
  it('offers no profile, and accepts none', async () => {
    const without = await OauthTest.start({ developerConsole: true }, oauth);
    const { member, form, register } = await atForm(without);
    expect(form.html).not.toContain('name="profile"');
    await register({ profile: 'oidc', secret_auth_method: 'client_secret_basic' });
    expect(await profileOf(without, member.id)).toEqual([{ profile: 'oauth21', secret_auth_method: null }]);
    await without.close();
  });
});
