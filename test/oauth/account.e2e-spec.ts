import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SignInThrottle, type ReservedAttempt } from '../../src/accounts/sign-in/sign-in-throttle.js';
import { Usage } from '../../src/auth/usage/usage.js';
import { readActivity } from '../../src/clients/activity.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import { CalendarLinks } from '../../src/calendar/calendar-links.js';
import { pua } from '../support/command-line.js';
import { atOnce } from '../support/concurrent.js';
import { postgres, thorough } from '../support/database.js';
import { asksForPassword, OauthTest, PASSWORD, REDIRECT_URI, type FormPage } from '../support/oauth.js';
import { timeIn } from '../support/timing.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

/** Index of the form that revokes the client's access. */
function formOf(page: FormPage, clientId: string): number {
  const forms = [...page.html.matchAll(/<form[^>]*>[^]*?<\/form>/g)];
  return forms.findIndex(([form]) => form.includes(`name="client_id" value="${clientId}"`));
}

describe('GET and POST /account/apps', () => {
  it('sign the member in, list the apps, and revoke one app’s access immediately', async () => {
    const member = await oauth.member();
    const [cut, kept] = [await oauth.client({ name: 'Cut me' }), await oauth.client({ name: 'Keep me' })];
    const devices = [
      await oauth.tokens(cut, member.username),
      await oauth.tokens(cut, member.username),
      await oauth.tokens(kept, member.username),
    ];
    expect(await oauth.me(devices[0]!.access_token)).toBe(200);
    await oauth.api.app.get(Usage).flush();

    const browser = oauth.browser();
    const page = await browser.signIn('/account/apps', member.username);
    expect([page.status, page.url.pathname]).toEqual([200, '/account/apps']);
    expect(page.html).toContain('Cut me');
    expect(page.html).toContain('Keep me');

    const after = await browser.press(page, {}, formOf(page, cut));
    expect(after.html).toContain('The app no longer has access to your account.');
    expect(after.html).not.toContain('Cut me');
    const statuses = await Promise.all(devices.map(({ access_token }) => oauth.me(access_token)));
    expect(statuses).toEqual([401, 401, 200]);
    expect((await oauth.refresh(cut, devices[0]!.refresh_token)).status).toBe(400);
  });

  it('list scopes in one order, which the consent page and the page of keys also use', async () => {
    const { id, username, clientId, browser } = await oauth.memberAndClient();
    const scope = 'achievements:read openid profile:read events:read';
    await oauth.tokens(clientId, username, { scope });
    await oauth.api.key(id, ['achievements:read', 'profile:read', 'events:read']);
    const apps = await browser.signIn('/account/apps', username);
    const consent = await browser.view(oauth.request(clientId, { scope, prompt: 'consent' }).url);
    const keys = await browser.view('/account/keys');
    for (const [{ html }, own] of [
      [apps, ['Know who you are']],
      [consent, ['Know who you are']],
      [keys, []],
    ] as const) {
      const shown = [...own, 'See your profile', 'See the events', 'See your achievements'];
      const places = shown.map((text) => html.indexOf(text));
      expect(places).not.toContain(-1);
      expect(places).toEqual(places.toSorted((a, b) => a - b));
    }
  });

  it('show an app’s last use within 30 seconds', async () => {
    const member = await oauth.member();
    const { access_token } = await oauth.tokens(await oauth.client(), member.username);
    const browser = oauth.browser();
    expect((await browser.signIn('/account/apps', member.username)).html).toContain('Not used yet');
    expect(await oauth.me(access_token)).toBe(200);
    const page = await browser.view('/account/apps');
    expect(page.html).not.toContain('Not used yet');
    expect(page.html).toContain('Use appears here within a minute.');
    const [, used, exact, ago] =
      /<dt>Last used<\/dt><dd><time datetime="([^"]+)" title="([^"]+)">([^<]+)</.exec(page.html)!;
    expect(Math.abs(Date.now() - Date.parse(used!))).toBeLessThan(30_000);
    expect(exact).toMatch(/^\d+ \w+ \d{4}, \d\d:\d\d UTC$/);
    expect(ago).toBe('now');
  });

  it('neither show another member’s apps nor revoke their access', async () => {
    const [mine, theirs] = [await oauth.member(), await oauth.member()];
    const clientId = await oauth.client({ name: 'Their app' });
    const tokens = await oauth.tokens(clientId, theirs.username);
    const own = await oauth.client();
    await oauth.tokens(own, mine.username);
    const browser = oauth.browser();
    const page = await browser.signIn('/account/apps', mine.username);
    expect(page.html).not.toContain('Their app');
    const forged = { ...page, html: page.html.replaceAll(own, clientId) };
    await browser.submit(forged, {}, formOf(forged, clientId));
    expect(await oauth.me(tokens.access_token)).toBe(200);
  });

  thorough.it('do not lose an app’s last use if other buffered uses have unknown grant ids', async () => {
    const member = await oauth.member();
    const { access_token } = await oauth.tokens(await oauth.client(), member.username);
    const { grants } = oauth.api.app.get(Usage);
    grants.count('gone-since');
    grants.count('\0');
    expect(await oauth.me(access_token)).toBe(200);
    grants.count('\ud800');
    await grants.flush();
    const written = await oauth.query<object>(
      'SELECT 1 FROM oauth_grant_usage u JOIN oauth_grants g ON g.id = u.grant_id WHERE g.user_id = $1',
      [member.id],
    );
    expect(written).toHaveLength(1);
  });
});

thorough.describe('the sign-in page', () => {
  it('responds 503 while too many sign-ins are in progress, and then accepts the member', async () => {
    await using patience = await OauthTest.start({ signInPatience: 50 }, oauth);
    const throttle = patience.api.app.get(SignInThrottle);
    const { username } = await patience.member();
    const underWay = await atOnce(10, () =>
      throttle.take([{ kind: 'account', of: username }], timeIn(60_000)),
    );
    const browser = patience.browser();
    const page = await browser.signIn('/account/apps', username);
    expect([page.status, page.headers.get('retry-after')]).toEqual([503, '2']);
    expect(page.html).toContain('Too many people are signing in.');
    for (const place of underWay) await (place as ReservedAttempt).settle('signed-in');
    const again = await browser.press(page, { username, password: PASSWORD });
    expect([again.status, again.url.pathname]).toEqual([200, '/account/apps']);
  });
});

thorough.describe('GET /account/apps for a member with many apps', () => {
  it('shows 100 of 1,000 apps, and counts the rest', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    await browser.signIn('/account/apps', member.username);
    await oauth.query(
      `WITH made AS (INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes)
  SELECT 'many-' || n, 'App ' || n, 'web', '{https://app.example/}', '{}' FROM generate_series(1, 1000) n RETURNING id
), granted AS (INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
  SELECT id, $1, id, '{"openid": {"scope": "openid"}}', now() + interval '1 day' FROM made RETURNING id
) INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
  SELECT sha256(id::bytea), 'RefreshToken', id, '{}', now() + interval '1 day' FROM granted`,
      [member.id],
    );
    const page = await browser.view('/account/apps');
    expect(page.html.match(/class="card"/g)).toHaveLength(100);
    expect(page.html).toContain('And 900 more');
  });
});

describe('GET and POST /account/sessions', () => {
  it('list the member’s browsers, and end one session', async () => {
    const member = await oauth.member();
    const [phone, laptop] = [oauth.browser(), oauth.browser()];
    await phone.signIn('/account/sessions', member.username);
    const page = await laptop.signIn('/account/sessions', member.username);
    expect([...page.html.matchAll(/action="(\/account\/sessions\/[0-9a-f]{64}\/end)"/g)]).toHaveLength(2);
    const rows = await oauth.query<{ id: string }>(
      `SELECT encode(uid_key, 'hex') AS id FROM oauth_sessions WHERE user_id = $1 ORDER BY signed_in_at, last_seen_at LIMIT 1`,
      [member.id],
    );
    await laptop.submit(page, {}, new RegExp(rows[0]!.id));
    expect(asksForPassword(await phone.view('/account/sessions'))).toBe(true);
    expect(asksForPassword(await laptop.view('/account/sessions'))).toBe(false);
  });

  it('end no session, app or link if one calendar link cannot be deleted', async () => {
    const member = await oauth.member();
    const [laptop, phone] = [oauth.browser(), oauth.browser()];
    await phone.signIn('/account/sessions', member.username);
    await oauth.tokens(await oauth.client(), member.username);
    await oauth.api.app.get(CalendarLinks).create(member.id, 'Phone', { actor: 'user' });
    const page = await laptop.signIn('/account/sessions', member.username);
    const counts = () =>
      oauth.query<object>(
        `SELECT (SELECT count(*) FROM oauth_sessions WHERE user_id = $1) AS sessions,
  (SELECT count(*) FROM oauth_grants WHERE user_id = $1) AS grants,
  (SELECT count(*) FROM calendar_links WHERE user_id = $1) AS links`,
        [member.id],
      );
    const before = await counts();
    await oauth.query(`CREATE FUNCTION keep_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE lock_not_available; END $$;
CREATE TRIGGER keep_links BEFORE DELETE ON calendar_links FOR EACH ROW EXECUTE FUNCTION keep_links()`);
    const send = () => laptop.press(page, { also: ['apps', 'links'] }, /end-others$/);
    try {
      expect((await send()).status).toBe(503);
    } finally {
      await oauth.query('DROP FUNCTION keep_links CASCADE');
    }
    expect(await counts()).toEqual(before);
    expect((await send()).status).toBe(200);
    expect(await counts()).toEqual([{ sessions: 1, grants: 0, links: 0 }]);
  });

  it('suggest no password change if this server offers none', async () => {
    const { username } = await oauth.member();
    const page = await oauth.browser().signIn('/account/sessions', username);
    expect(page.html).toContain('tell the platform');
    expect(page.html).not.toMatch(/change your password/i);
  });

  thorough.it(
    'show 100 of 8,000 sessions, this browser’s first, and end all others of the member',
    async () => {
      const member = await oauth.member();
      const [browser, neighbour] = [oauth.browser(), oauth.browser()];
      await browser.signIn('/account/sessions', member.username);
      await neighbour.signIn('/account/sessions', (await oauth.member()).username);
      await oauth.query(
        `INSERT INTO oauth_sessions (uid_key, key, user_id, payload, signed_in_at, last_seen_at, expires_at, user_agent)
SELECT sha256(('uid' || n)::bytea), sha256(('key' || n)::bytea), $1, '', now(), now() + n * interval '1 s', now() + interval '1 day', repeat('x', 300)
FROM generate_series(1, 7999) n`,
        [member.id],
      );
      const page = await browser.view('/account/sessions');
      expect(page.html.match(/class="card"/g)).toHaveLength(100);
      expect(page.html.indexOf('This browser')).toBeGreaterThan(0);
      expect(page.html.indexOf('This browser')).toBeLessThan(
        page.html.search(/action="\/account\/sessions\/[0-9a-f]{64}/),
      );
      expect(page.html.indexOf('Sign out of all others')).toBeLessThan(page.html.indexOf('This browser'));
      expect(page.html).toContain('And 7900 more, last seen earlier');
      expect(page.html.length).toBeLessThan(150_000);

      const command = ['users', 'sessions', member.username, '--json'];
      const { stdout, stderr } = await pua(oauth.api.environment, command);
      const listed = JSON.parse(stdout) as { sessions: object[]; sessions_count: number };
      expect([listed.sessions.length, listed.sessions_count]).toEqual([100, 8000]);
      expect(stderr).toBe('7900 more sessions are not shown\n');

      const after = await browser.press(page, {}, /end-others/);
      expect(after.html.match(/class="card"/g)).toHaveLength(1);
      expect(after.html).not.toContain('more, seen');
      expect(await oauth.details({ user: member.id, type: 'session.ended' })).toEqual([{ sessions: 7999 }]);
      expect(asksForPassword(await neighbour.view('/account/sessions'))).toBe(false);
    },
  );
});

describe('GET and POST /account/activity', () => {
  it('sign the member in, and show an app’s use of data and the changes of access', async () => {
    const [member, other] = [await oauth.member(), await oauth.member()];
    const client = await oauth.client({ name: 'Reads <b>me</b>' });
    const { access_token } = await oauth.tokens(client, member.username);
    const theirs = await oauth.tokens(await oauth.client({ name: 'Reads others' }), other.username);
    expect(await oauth.me(theirs.access_token)).toBe(200);
    for (let i = 0; i < 3; i++) expect(await oauth.me(access_token)).toBe(200);
    const page = await oauth.browser().signIn('/account/activity', member.username);
    expect([page.status, page.url.pathname]).toEqual([200, '/account/activity']);
    expect(page.html).toMatch(
      /<td[^>]*><bdi>Reads &lt;b&gt;me&lt;\/b&gt;<\/bdi>\s*<\/td><td[^>]*>Profile<\/td><td[^>]*>3<\/td><td[^>]*><time/,
    );
    expect(page.html).toContain('You allowed <bdi>Reads &lt;b&gt;me&lt;/b&gt;</bdi> to use your account');
    // The chart and its table have one day and one app.
    expect(page.html).toContain('aria-label="Requests per day over the last 90 days, by app or key"');
    expect(page.html.match(/<rect x=/g)).toHaveLength(1);
    expect(page.html).toMatch(/<tr><th scope="row">\d+ \w+ \d{4}<\/th><td>3<\/td><\/tr>/);
    expect(page.html).not.toContain('Reads others');
    await oauth.api.app.get(ConnectedApps).revokeAll(member.id, { actor: 'system', ip: null });
    expect((await oauth.browser().signIn('/account/activity', member.username)).html).toContain(
      'Access was revoked: all apps',
    );
  });

  it('list an accepted and a rejected sign-in with device, network and method', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    browser.headers['User-Agent'] = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
    const form = await browser.view('/account/activity');
    await browser.submit(form, { username: member.username, password: 'wrong' });
    const page = await browser.press(form, { username: member.username, password: PASSWORD });
    const rows = [...page.html.matchAll(/<tr>(<td data-label="When">[^]*?)<\/tr>/g)].map(([, row]) =>
      row!.replace(/\s*<[^>]*>\s*/g, '|').replace(/\|+/g, '|'),
    );
    expect(rows).toEqual([
      '|now|Firefox on Linux|The server’s computer|Your password|Signed in|',
      '|now|Firefox on Linux|The server’s computer|Your password|Rejected|The password was wrong|',
    ]);
    expect(await oauth.details({ user: member.id, type: 'sign_in.succeeded' })).toEqual([
      { method: 'password', browser: 'Firefox', system: 'Linux', language: 'en' },
    ]);
  });

  it('show networks, not addresses, and keep accepted sign-ins despite many rejections', async () => {
    const member = await oauth.member();
    const record = (type: string, ip: string, count = 1) =>
      oauth.query(
        `INSERT INTO auth_events (type, actor, user_id, ip, details)
SELECT $1, 'user', $2, $3, '{"method": "passkey"}' FROM generate_series(1, $4)`,
        [type, member.id, ip, count],
      );
    await record('sign_in.succeeded', '203.0.113.77');
    await record('sign_in.succeeded', '2001:db8:5:6::77');
    await record('sign_in.refused', '198.51.100.9', 30);
    const { signIns } = await readActivity(oauth.dataSource, member.id);
    expect(new Set(signIns.map(({ network }) => network))).toEqual(
      new Set(['198.51.100.0/24', '2001:db8:5::/48', '203.0.113.0/24']),
    );
    expect(signIns).toHaveLength(27);
  });

  thorough.it('state that no data was used if apps used no data', async () => {
    const member = await oauth.member();
    const page = await oauth.browser().signIn('/account/activity', member.username);
    expect(page.html).toContain('No app or key used your data in the last 90 days.');
  });
});

describe('GET and POST /account/keys', () => {
  const idOf = (key: string) => key.split('_')[2]!;

  it('list the member’s keys with scopes and last use, and revoke one key immediately', async () => {
    const member = await oauth.member();
    const [cut, kept] = [
      await oauth.api.key(member.id, ['profile:read', 'events:read']),
      await oauth.api.key(member.id, []),
    ];
    const gone = await oauth.api.key(member.id);
    await oauth.query(`UPDATE api_keys SET revoked_at = now(), revocation_reason = 'x' WHERE id = $1`, [
      idOf(gone),
    ]);
    expect((await oauth.api.get('/me', cut)).status).toBe(200);
    const browser = oauth.browser();
    const page = await browser.signIn('/account/keys', member.username);
    expect([page.status, page.url.pathname]).toEqual([200, '/account/keys']);
    expect(page.html).toContain(`pua_live_${idOf(cut)}_…`);
    expect(page.html).toContain('See the events you organize, attend or are invited to');
    expect(page.html).toContain('Only show whose key it is.');
    expect(page.html.match(/Not used yet/g)).toHaveLength(1);
    expect(page.html).not.toContain(idOf(gone));
    for (const key of [cut, kept]) expect(page.html).not.toContain(key.split('_')[3]!.slice(0, 8));

    const after = await browser.press(page, {}, new RegExp(`/${idOf(cut)}/revoke$`));
    expect(after.html).toContain('That key no longer works.');
    expect(after.html).not.toContain(idOf(cut));
    expect((await oauth.api.get('/me', cut)).status).toBe(401);
    expect((await oauth.api.get('/credential', kept)).status).toBe(200);
    expect(await oauth.events({ key: idOf(cut), type: 'key.revoked' })).toMatchObject([
      { actor: 'user', user_id: member.id, details: { reason: 'revoked by the member' } },
    ]);
  });

  it('show and revoke only the member’s own keys, and revoke them only with this server’s form', async () => {
    const [owner, other] = [await oauth.member(), await oauth.member()];
    const key = await oauth.api.key(owner.id);
    const platform = await oauth.api.platformKey();
    const own = await oauth.api.key(other.id);
    const browser = oauth.browser();
    const page = await browser.signIn('/account/keys', other.username);
    for (const foreign of [key, platform]) {
      expect(page.html).not.toContain(idOf(foreign));
      const aimed = { ...page, html: page.html.replaceAll(idOf(own), idOf(foreign)) };
      expect((await browser.press(aimed, {}, /\/revoke$/)).html).not.toContain('no longer works');
    }
    expect((await browser.press(page, { csrf: 'x' }, /\/revoke$/)).status).toBe(403);
    const revoked = await oauth.query('SELECT FROM api_keys WHERE id = ANY ($1) AND revoked_at IS NOT NULL', [
      [key, platform, own].map(idOf),
    ]);
    expect(revoked).toEqual([]);
  });
});

describe('GET /account/data and the data export', () => {
  interface MemberData {
    readonly [section: string]: readonly Record<string, unknown>[];
  }

  async function download(username: string, browser = oauth.browser()) {
    return browser.post(await browser.signIn('/account/data', username), '/account/data/download');
  }

  it('contain the member’s data in the API and on the account pages, without secrets and others’ private data', async () => {
    const { platform } = oauth.api;
    const member = await oauth.member({ first_name: 'Ada', bio: 'Ünïcode "bio"\n🎉' });
    const peer = await platform.user({
      bio: 'private words',
      first_name: 'Privy',
      stored_display_name: 'A peer',
    });
    await platform.connection(member.id, peer);
    await platform.connection(await platform.user(), member.id, { status: 'pending' });
    for (const [title, role] of [
      ['Mine', 'organizer'],
      ['Theirs', 'attendee'],
    ]) {
      const event = await platform.event({ title, description: 'x'.repeat(100) });
      await platform.participant(event, member.id, { role });
    }
    await platform.event({ title: 'Not mine' });
    await platform.progress(member.id, await platform.achievement(), { earned_at: '2026-01-01T00:00:00Z' });
    const client = await oauth.client({ name: 'Known app' });
    const tokens = await oauth.tokens(client, member.username);
    expect(await oauth.me(tokens.access_token)).toBe(200);
    const key = await oauth.api.key(member.id);
    await oauth.client({ name: 'My own app', owner: { userId: member.id, ip: null } });
    await oauth.query(
      `INSERT INTO passkeys (user_id, credential_id, user_handle, public_key, sign_count, backup_eligible, backed_up, name)
VALUES ($1, $2, $2, $2, 0, true, true, 'Laptop')`,
      [member.id, Buffer.from(`credential of ${member.id}`)],
    );
    const link = await oauth.api.app.get(CalendarLinks).create(member.id, 'Phone', { actor: 'user' });

    const response = await download(member.username);
    expect([response.status, response.headers.get('content-disposition')]).toEqual([
      200,
      `attachment; filename="member-${member.id}.json"`,
    ]);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const text = await response.text();
    const data = JSON.parse(text) as MemberData;
    expect(Object.keys(data).slice(0, 2)).toEqual(['exported_at', 'profile']);
    expect(data.profile).toMatchObject({ id: member.id, first_name: 'Ada', bio: 'Ünïcode "bio"\n🎉' });
    const listed = (await oauth.api.get('/events', key)).body.data as { id: number }[];
    expect(data.events).toHaveLength(2);
    for (const [i, { id }] of listed.entries())
      expect(data.events![i]).toEqual((await oauth.api.get(`/events/${id}`, key)).body);
    expect(data.connections).toEqual((await oauth.api.get('/connections', key)).body.data);
    expect(data.pending_connections).toEqual(
      (await oauth.api.get('/connections?status=pending_sent,pending_received', key)).body.data,
    );
    // The server recounts rarities between requests.
    const stable = ({ rarity, rarity_percentage, ...rest }: Record<string, unknown>) => {
      expect([rarity, rarity_percentage]).not.toContain(undefined);
      return rest;
    };
    const all = (await oauth.api.get('/achievements?action=all', key)).body.data as Record<string, unknown>[];
    expect(data.achievements!.map(stable)).toEqual(all.map(stable));
    expect(data.connected_apps).toMatchObject([{ client_id: client, client_name: 'Known app' }]);
    expect(data.sessions).toHaveLength(2);
    expect(data.keys).toMatchObject([{ id: key.split('_')[2], name: 'test' }]);
    expect(data.passkeys).toMatchObject([{ name: 'Laptop', synced: true }]);
    expect(data.own_apps).toMatchObject([{ name: 'My own app', redirect_uris: [REDIRECT_URI] }]);
    expect(data.calendar_links).toMatchObject([{ name: 'Phone' }]);
    expect(data.usage).toContainEqual(
      expect.objectContaining({ app_id: client, scope: 'profile:read', uses: 1 }),
    );
    expect(data.account_events![0]).toMatchObject({ type: 'user.exported', actor: 'user' });
    expect(data.account_events).toContainEqual(expect.objectContaining({ type: 'token.issued' }));
    const secrets = [
      tokens.access_token,
      tokens.refresh_token,
      key.split('_')[3]!.slice(0, 43),
      /calendar\/([\w-]+)/.exec(link)![1]!,
      'argon2',
      'credential of',
      Buffer.from('credential of').toString('base64url'),
      'private words',
      'Privy',
      'Not mine',
    ];
    for (const secret of secrets) expect(text).not.toContain(secret);
  });

  it('are available only to the member, by this server’s form', async () => {
    const member = await oauth.member();
    const browser = oauth.browser();
    await browser.signIn('/account/data', member.username);
    for (const csrf of ['', 'x']) {
      const body = new URLSearchParams({ csrf });
      expect((await browser.send('/account/data/download', { method: 'POST', body })).status).toBe(403);
    }
    const stranger = oauth.browser();
    const page = await stranger.view('/account/data');
    expect((await stranger.post(page, '/account/data/download')).status).toBe(401);
  });

  postgres.it('are complete for a member with many connections, and do not block other members', async () => {
    const member = await oauth.member();
    const many = 20_000;
    await oauth.query(
      `INSERT INTO users (username) SELECT 'peer-of-${member.id}-' || n FROM generate_series(1, $1::int) n`,
      [many],
    );
    await oauth.query('ANALYZE users');
    await oauth.query(
      `WITH c AS (SELECT nextval('connections_id_seq') AS id, id AS peer FROM users WHERE username LIKE 'peer-of-${member.id}-%')
INSERT INTO connections (id, user_id, peer_id, status, requested_at, connected_at)
SELECT c.id, s.user_id, s.peer_id, 'accepted', '2024-01-01', '2024-01-02' FROM c, LATERAL (VALUES ($1::bigint, c.peer), (c.peer, $1)) s (user_id, peer_id)`,
      [member.id],
    );
    await oauth.query('ANALYZE connections');
    const other = await oauth.api.key(await oauth.api.platform.user());
    let sending = true;
    let answered = 0;
    const asking = (async () => {
      while (sending) {
        expect((await oauth.api.get('/me', other)).status).toBe(200);
        answered++;
      }
    })();
    const response = await download(member.username);
    const before = answered;
    const data = (await response.json()) as MemberData;
    sending = false;
    await asking;
    expect(new Set(data.connections!.map(({ id }) => id)).size).toBe(many);
    // The server answers other members' requests between the export's chunks.
    expect(answered - before).toBeGreaterThan(5);
  });
});
