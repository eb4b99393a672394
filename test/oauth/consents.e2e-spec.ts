import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ClientsService } from '../../src/clients/clients.service.js';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { atOnce } from '../support/concurrent.js';
import { postgres } from '../support/database.js';
import {
  OauthTest,
  PASSWORD,
  REDIRECT_URI,
  scopesOn,
  type Browser,
  type FormPage,
} from '../support/oauth.js';
import { soon } from '../support/timing.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

const SCOPE = 'openid profile:read events:read achievements:read';
const codeIn = (back: FormPage | URL) => (back instanceof URL ? back.searchParams.get('code') : null);

async function status(path: string, accessToken: string, origin?: string): Promise<number> {
  const response = await oauth.get(`/api/public/${path}`, accessToken, origin);
  await response.arrayBuffer();
  return response.status;
}

const SCOPES = { scope: 'profile:read', decision: 'allow' };

/** Signs a member in, and allows all scopes. */
async function consented() {
  const { id, username, clientId, browser } = await oauth.memberAndClient();
  await browser.authorize(oauth.request(clientId, { scope: SCOPE }).url, { username });
  return { id, username, clientId, browser };
}

/** The response to `prompt=none`. */
const silently = async (browser: Browser, clientId: string, redirect_uri = REDIRECT_URI) =>
  (await browser.leave(oauth.request(clientId, { scope: SCOPE, redirect_uri, prompt: 'none' }).url))
    .searchParams;

describe('a sign-in or consent form sent several times at once', () => {
  async function counts(clientId: string) {
    const [found] = await oauth.query<Record<string, number>>(
      `SELECT (SELECT count(*) FROM oauth_grants WHERE client_id = $1)::int AS grants,
  (SELECT count(*) FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id WHERE g.client_id = $1)::int AS codes,
  (SELECT count(*) FROM auth_events WHERE client_id = $1 AND type IN ('consent.granted', 'consent.denied'))::int AS decisions`,
      [clientId],
    );
    return found;
  }

  async function atConsent() {
    const { username, clientId, browser } = await oauth.memberAndClient();
    const consent = await browser.signIn(oauth.request(clientId, { scope: SCOPE }).url, username);
    return { username, clientId, browser, consent };
  }

  it('makes one decision, with one grant and one code; a page of another copy says that it is done already', async () => {
    for (let round = 0; round < 5; round++) {
      const { clientId, browser, consent } = await atConsent();
      const ends = await atOnce(3, () => browser.submit(consent, SCOPES, /consent$/));
      expect(ends.map(codeIn).filter((code) => code !== null)).toHaveLength(1);
      for (const end of ends) if (!(end instanceof URL)) expect(end.html).toContain('This is done already');
      expect(await counts(clientId)).toEqual({ grants: 1, codes: 1, decisions: 1 });
    }
  });

  it('makes one decision even if one copy allows and another copy denies', async () => {
    for (let round = 0; round < 5; round++) {
      const { clientId, browser, consent } = await atConsent();
      const ends = await Promise.all([
        browser.submit(consent, SCOPES, /consent$/),
        browser.submit(consent, { decision: 'deny' }, /consent$/),
      ]);
      const answers = ends.filter((end) => end instanceof URL);
      expect(answers).toHaveLength(1);
      const allowed = codeIn(answers[0]!) === null ? 0 : 1;
      expect(await counts(clientId)).toEqual({ grants: allowed, codes: allowed, decisions: 1 });
    }
  });

  it('results in one code if it is a sign-in form', async () => {
    const { username, clientId } = await oauth.memberAndClient();
    await oauth.code(clientId, username, { scope: SCOPE });
    const browser = oauth.browser();
    const page = await browser.view(oauth.request(clientId, { scope: SCOPE }).url);
    const ends = await atOnce(3, () => browser.submit(page, { username, password: PASSWORD }, /sign-in$/));
    expect(ends.map(codeIn).filter((code) => code !== null)).toHaveLength(1);
  });

  it('redirects the second request to the app if the first response was lost', async () => {
    const { browser, consent } = await atConsent();
    await browser.post(consent, `${consent.url.pathname}/consent`, SCOPES); // the browser does not follow the redirect
    expect(codeIn(await browser.submit(consent, SCOPES, /consent$/))).not.toBeNull();
  });
});

/** Requests consent again; the member now unticks some scopes. */
const narrow = (clientId: string, username: string, untick: string[], browser = oauth.browser()) =>
  browser.authorize(oauth.request(clientId, { scope: SCOPE, prompt: 'consent' }).url, { username, untick });

describe('a narrowed consent', () => {
  it('removes the unticked scope from the app’s earlier access and refresh tokens', async () => {
    const { id, username, clientId } = await oauth.memberAndClient();
    const tokens = await oauth.tokens(clientId, username, { scope: SCOPE });
    const untouched = await oauth.tokens(await oauth.client(), username, { scope: SCOPE });
    expect(await status('events', tokens.access_token)).toBe(200);
    await narrow(clientId, username, ['events:read']);
    expect(await status('events', tokens.access_token)).toBe(403);
    expect(await status('events', untouched.access_token)).toBe(200);
    for (const path of ['me', 'achievements'])
      expect([path, await status(path, tokens.access_token)]).toEqual([path, 200]);
    const sync = await oauth.get('/api/public/sync', tokens.access_token);
    expect(await sync.json()).toMatchObject({ resources: ['profile', 'achievements'] });

    const refreshed = await oauth.refresh(clientId, tokens.refresh_token);
    expect([refreshed.status, refreshed.body.scope]).toEqual([200, 'profile:read achievements:read']);
    expect(await status('events', refreshed.body.access_token)).toBe(403);
    const wider = await oauth.refresh(clientId, refreshed.body.refresh_token, { scope: 'events:read' });
    expect(await status('events', wider.body.access_token ?? '')).not.toBe(200);

    const [grants] = await oauth.query<{ held: string[] }>(
      `SELECT array_agg(DISTINCT scope) AS held FROM oauth_grants g, jsonb_each_text(g.payload->'resources'),
  unnest(string_to_array(value, ' ')) scope WHERE g.user_id = $1 AND g.client_id = $2`,
      [id, clientId],
    );
    expect(grants!.held.toSorted()).toEqual(['achievements:read', 'profile:read']);
  });

  it('may contain no API scope; a refreshed token then still reads userinfo', async () => {
    const { username, clientId } = await oauth.memberAndClient();
    const { access_token, refresh_token } = await oauth.tokens(clientId, username, { scope: SCOPE });
    await narrow(clientId, username, ['profile:read', 'events:read', 'achievements:read']);
    expect(await status('me', access_token)).toBe(403);
    const { status: refreshed, body } = await oauth.refresh(clientId, refresh_token);
    expect(refreshed).toBe(200);
    expect(await status('me', body.access_token)).toBe(403);
    expect((await oauth.get('/oauth/userinfo', body.access_token)).status).toBe(200);
  });

  it('does not change the access end on /account/apps, even if the sign-in with that end has no scope left', async () => {
    const { username, clientId, browser } = await oauth.memberAndClient();
    const allow = (scope: string, duration: string) => {
      const { url, redeem } = oauth.request(clientId, {
        scope: 'profile:read events:read',
        prompt: 'consent',
      });
      const untick = ['profile:read', 'events:read'].filter((other) => other !== scope);
      return browser.authorize(url, { username, duration, untick }).then(redeem);
    };
    await allow('profile:read', '180');
    await allow('events:read', '30');
    const { html } = await browser.view('/account/apps');
    const [, end] = /<dt>Until<\/dt><dd><time datetime="([^"]+)"/.exec(html)!;
    expect(Math.round((Date.parse(end!) - Date.now()) / 86_400_000)).toBe(180);
  });

  it('applies to a code that is not redeemed yet', async () => {
    const { username, clientId } = await oauth.memberAndClient();
    const code = await oauth.code(clientId, username, { scope: SCOPE });
    await narrow(clientId, username, ['events:read']);
    const { body } = await oauth.token(code);
    expect(body.scope).toBe('profile:read achievements:read');
  });

  it('does not result from a request for fewer scopes, or from a denial', async () => {
    const { username, clientId } = await oauth.memberAndClient();
    const { access_token } = await oauth.tokens(clientId, username, { scope: SCOPE });
    const less = oauth.request(clientId, { scope: 'openid profile:read', prompt: 'consent' }).url;
    await oauth.browser().authorize(less, { username });
    const denied = oauth.request(clientId, { scope: SCOPE, prompt: 'consent' }).url;
    await oauth.browser().authorize(denied, { username, deny: true });
    expect(await status('events', access_token)).toBe(200);
  });

  postgres.it('also applies on another instance that cached the token', async () => {
    await using other = await OauthTest.start({ publicUrl: oauth.issuer }, oauth);
    const origin = await other.api.app.getUrl();
    const { username, clientId } = await oauth.memberAndClient();
    const { access_token } = await oauth.tokens(clientId, username, { scope: SCOPE });
    for (const at of [oauth.issuer, origin]) expect(await status('events', access_token, at)).toBe(200);
    await narrow(clientId, username, ['events:read']);
    expect(await status('events', access_token)).toBe(403); // immediately on the instance that stored the consent
    await soon(async () => (await status('events', access_token, origin)) === 403);
    expect(await status('events', access_token, origin)).toBe(403);
  });

  postgres.it('leaves no wider grant if codes are issued concurrently', async () => {
    const { username } = await oauth.member();
    for (let round = 0; round < 10; round++) {
      const clientId = await oauth.client();
      const browser = oauth.browser();
      await browser.authorize(oauth.request(clientId, { scope: SCOPE }).url, { username });
      const other = oauth.browser();
      const consent = await other.signIn(
        oauth.request(clientId, { scope: SCOPE, prompt: 'consent' }).url,
        username,
      );
      const silent = oauth.request(clientId, { scope: SCOPE }).url;
      await Promise.all([
        other.submit(consent, SCOPES, /\/consent$/),
        atOnce(4, () => browser.send(silent).then((answer) => answer.arrayBuffer())),
      ]);
      const wider = await oauth.query(
        `SELECT FROM oauth_grants WHERE client_id = $1 AND (payload->'resources')::text LIKE '%events%'`,
        [clientId],
      );
      expect(wider).toEqual([]);
    }
  });
});

describe('a consent', () => {
  const ELSEWHERE = [
    'https://evil.example/callback',
    'https://sub.app.example/callback',
    'https://app.example:8443/callback',
  ];

  async function change(clientId: string, redirect_uris: string[]): Promise<void> {
    await new ClientsService(oauth.dataSource, oauth.api.config).update(
      clientId,
      () => ({ redirect_uris }),
      'admin',
    );
    oauth.api.app.get(RevocationChannel).announce({ kind: 'client', id: clientId });
  }

  it.each(ELSEWHERE)('does not apply to the added redirect URI %s', async (added) => {
    const { clientId, browser } = await consented();
    await change(clientId, [REDIRECT_URI, added]);
    expect((await silently(browser, clientId, added)).get('error')).toBe('consent_required');
    const page = await browser.view(oauth.request(clientId, { scope: SCOPE, redirect_uri: added }).url);
    expect(scopesOn(page.html)).toContain('profile:read');
    expect(page.html).toContain(new URL(added).host);

    // The consent still applies to its origin and, after the next consent, to both origins.
    expect((await silently(browser, clientId)).has('code')).toBe(true);
    await browser.allow(page);
    for (const redirect_uri of [REDIRECT_URI, added])
      expect((await silently(browser, clientId, redirect_uri)).has('code')).toBe(true);
  });

  it('applies to another path of the same origin', async () => {
    const { clientId, browser } = await consented();
    const redirect_uri = 'https://app.example/other';
    await change(clientId, [redirect_uri]);
    expect((await silently(browser, clientId, redirect_uri)).has('code')).toBe(true);
  });

  it('stored without origins does not apply to an origin that the app adds later', async () => {
    const { clientId, browser } = await consented();
    await oauth.query('UPDATE oauth_consents SET redirect_origins = NULL WHERE client_id = $1', [clientId]);
    expect((await silently(browser, clientId)).has('code')).toBe(true);
    await change(clientId, [REDIRECT_URI, ELSEWHERE[0]!]);
    expect((await silently(browser, clientId)).has('code')).toBe(true);
    expect((await silently(browser, clientId, ELSEWHERE[0])).has('code')).toBe(false);
  });
});

describe('a consent to an unreviewed app', () => {
  let described: OauthTest;
  beforeAll(async () => void (described = await OauthTest.start({ clientIdMetadataDocuments: true }, oauth)));
  afterAll(() => described.close());

  const OTHER_KEYS = {
    keys: [{ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }],
  };

  /** Creates an app that a document describes, or that a member registered. */
  async function unreviewed(kind: string): Promise<string> {
    const clientId = await described.client({ name: 'Before' });
    const { id } = await described.member();
    const [column, value] = kind === 'a document' ? ['document_read_at', 'now()'] : ['owner_id', String(id)];
    const own = kind === 'a document' ? `https://app.example/${clientId}` : clientId;
    await described.query(`UPDATE oauth_clients SET id = $2, ${column} = ${value} WHERE id = $1`, [
      clientId,
      own,
    ]);
    return own;
  }

  async function change(clientId: string, column: string, value: unknown): Promise<void> {
    await described.query(
      `UPDATE oauth_clients SET ${column} = (SELECT ${column} FROM jsonb_populate_record(NULL::oauth_clients, $2)) WHERE id = $1`,
      [clientId, { [column]: value }],
    );
    described.api.app.get(RevocationChannel).announce({ kind: 'client', id: clientId });
  }

  const request = (clientId: string, more = {}) =>
    described.request(clientId, { scope: 'profile:read events:read', ...more }).url;
  const isSilent = async (browser: Browser, clientId: string) =>
    codeIn(await browser.open(request(clientId, { prompt: 'none' }))) !== null;
  /** A consent to an app of this kind. */
  async function allowed(kind: string) {
    const { username, id } = await described.member();
    const clientId = await unreviewed(kind);
    const browser = described.browser();
    await browser.authorize(request(clientId), { username });
    return { username, id, clientId, browser };
  }

  describe.each(['a document', 'a member'])('that comes from %s', (kind) => {
    it.each<[string, unknown]>([
      ['name', 'After'],
      ['redirect_uris', [REDIRECT_URI, 'https://app.example/other']],
      ['jwks', OTHER_KEYS],
      ['profile', 'oidc'],
      ['assertion_optional', true],
    ])('expires once the app’s %s has changed, until the member consents again', async (column, value) => {
      const { clientId, browser } = await allowed(kind);
      expect(await isSilent(browser, clientId)).toBe(true);
      await change(clientId, column, value);
      expect(await isSilent(browser, clientId)).toBe(false);
      expect(codeIn(await browser.allow(await browser.view(request(clientId))))).not.toBeNull();
      expect(await isSilent(browser, clientId)).toBe(true);
    });

    it('does not apply once an app that was native is a web app', async () => {
      const { clientId, browser } = await allowed(kind);
      await change(clientId, 'type', 'native');
      await browser.allow(await browser.view(request(clientId)));
      await change(clientId, 'type', 'web');
      expect(await isSilent(browser, clientId)).toBe(false);
    });

    it('keeps no scope of an earlier consent if the app has changed', async () => {
      const { id, clientId, browser } = await allowed(kind);
      await change(clientId, 'name', 'After');
      await browser.allow(await browser.view(request(clientId, { scope: 'profile:read' })));
      expect(await described.query('SELECT granted FROM oauth_consents WHERE user_id = $1', [id])).toEqual([
        { granted: ['profile:read'] },
      ]);
    });

    it('is requested again if the app changes while the member reads the page', async () => {
      const { username } = await described.member();
      const clientId = await unreviewed(kind);
      const browser = described.browser();
      const before = await browser.signIn(request(clientId), username);
      expect(before.html).toContain('Before');
      await change(clientId, 'name', 'After');
      const after = await browser.press(before, SCOPES, /\/consent$/);
      expect(after.html).toContain('After');
      expect(codeIn(await browser.allow(after))).not.toBeNull();
    });

    it('does not apply if the server has not stored the values that the member saw', async () => {
      const { id, clientId, browser } = await allowed(kind);
      await described.query('UPDATE oauth_consents SET seen_as = NULL WHERE user_id = $1', [id]);
      expect(await isSilent(browser, clientId)).toBe(false);
    });
  });

  it.each([
    ['an unreviewed', null],
    ['a reviewed', '2026-01-01T00:00:00Z'],
  ])('to %s app is requested on a page that shows the host of each link', async (_, approvedAt) => {
    const { username } = await described.member();
    const clientId = await unreviewed('a member');
    await change(clientId, 'approved_at', approvedAt);
    await change(clientId, 'client_uri', 'https://claude.ai/');
    await change(clientId, 'policy_uri', 'https://policies.example/');
    const browser = described.browser();
    const signIn = await browser.view(request(clientId));
    const consent = await browser.press(signIn, { username, password: PASSWORD }, /\/sign-in$/);
    expect(consent.html).toContain('>Website (<bdi>claude.ai</bdi>)<');
    expect(consent.html).toContain('>Privacy policy (<bdi>policies.example</bdi>)<');
    await browser.allow(consent);
    expect((await browser.view(signIn.url)).html).toMatch(/href="https:\/\/claude.ai\/">Go to claude.ai</);
  });

  it('remains valid if the keys at the app’s jwks_uri change', async () => {
    const { username } = await described.member();
    const clientId = await unreviewed('a document');
    await change(clientId, 'jwks_uri', 'https://app.example/keys.json');
    await change(clientId, 'jwks', { keys: [] });
    const browser = described.browser();
    await browser.authorize(request(clientId), { username });
    await change(clientId, 'jwks', OTHER_KEYS);
    expect(await isSilent(browser, clientId)).toBe(true);
  });
});
