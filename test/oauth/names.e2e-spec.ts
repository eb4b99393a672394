import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { CalendarLinks } from '../../src/calendar/calendar-links.js';
import { importRecords } from '../../src/import/import-records.js';
import { folderSource } from '../../src/import/sources.js';
import { ClientsService } from '../../src/clients/clients.service.js';
import { pua, puaJson } from '../support/command-line.js';
import { writeFolder } from '../support/import-files.js';
import { OauthTest, PASSWORD, REDIRECT_URI, type Browser } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start({ developerConsole: true })));
afterAll(() => oauth.close());

/** Names that pages show as `ann`, or that readers cannot distinguish from `ann`. */
const LOOK_ALIKES = ['ann\u200b', '\u202eann\u202c', 'ann\u009b', 'ann\u3164', 'ann\u00a0', 'ａｎｎ'];

const run = (...args: string[]) => pua(oauth.api.environment, args);
const usernameOf = async (id: number) =>
  (await oauth.query<{ username: string }>('SELECT username FROM users WHERE id = $1', [id]))[0]?.username;

describe('white space around a username', () => {
  const SPACES = '\t \u0085\u00a0\u1680\u2003\u2028\u202f\u205f\u3000\ufeff';
  const around = (text: string) => SPACES + text + SPACES;

  it('is ignored at the sign-in for apps and account pages, unlike around a password', async () => {
    const { username } = await oauth.member();
    const code = await oauth.code(await oauth.client(), around(username));
    expect((await oauth.token(code)).status).toBe(200);
    const signIn = async (password: string) =>
      (await oauth.browser().signIn('/account/apps', around(username), password)).status;
    expect([await signIn(`${PASSWORD} `), await signIn(PASSWORD)]).toEqual([401, 200]);
  });

  it('is ignored in the member argument of keys list and users disable', async () => {
    const { id, username } = await oauth.member();
    await oauth.api.key(id);
    const listed = await run('keys', 'list', '--user', around(username), '--json');
    expect(listed.stdout).toMatch(new RegExp(`"user_id": ?${id}\\b`));
    expect((await run('users', 'disable', around(username))).code).toBe(0);
  });
});

describe('an ambiguous username', () => {
  it.each([...LOOK_ALIKES, '4711', 'erased-4711'])(
    'is rejected by commands, imports and feeds: %j',
    async (username) => {
      const created = await run('users', 'create', '--username', username);
      expect([created.code, created.stderr]).toEqual([2, expect.stringContaining('NFKC')]);
      const { id } = await oauth.member();
      expect((await run('users', 'update', String(id), '--username', username)).code).toBe(2);

      const folder = folderSource(writeFolder({ users: [{ id: 7_000_001, username }] }));
      const { imported, firstRejects } = await importRecords(oauth.dataSource, folder);
      expect([imported, firstRejects[0]?.reason]).toEqual([false, expect.stringMatching(/^username: must /)]);

      const key = await oauth.api.platformKey(['platform:write']);
      const record = { id: 7_000_001, username };
      const fed = await oauth.api.feed(key, [{ type: 'users', op: 'put', record }]);
      expect([fed.status, fed.body.errors]).toEqual([
        422,
        [expect.objectContaining({ pointer: '#/record/username', code: 'invalid_characters' })],
      ]);
      expect(await usernameOf(7_000_001)).toBeUndefined();
    },
  );

  it('stays valid for its existing member, and the doctor reports the name', async () => {
    const username = 'old\u200bname';
    const { id } = await oauth.member({ username });
    const key = await oauth.api.platformKey(['platform:write']);
    const record = { id, username, first_name: 'Fed' };
    const fed = await oauth.api.feed(key, [{ type: 'users', op: 'put', record }]);
    expect([fed.status, await usernameOf(id)]).toEqual([200, username]);
    expect(await puaJson<object>(oauth.api.environment, ['users', 'show', username])).toMatchObject({ id });

    const digits = await oauth.member({ username: '4711' });
    const { stdout } = await run('doctor', '--json');
    const { checks } = JSON.parse(stdout) as { checks: { name: string; message: string }[] };
    const message = `member ${id}, shown as “oldname”; .*member ${digits.id}, shown as “4711”`;
    expect(checks.find(({ name }) => name === 'names')).toMatchObject({
      status: 'warn',
      message: expect.stringMatching(message),
    });
    await run('users', 'update', String(digits.id), '--username', 'no-digits');
    await run('users', 'update', String(id), '--username', 'old-name');
    expect((await run('doctor', '--json')).stdout).toContain('all names are shown as stored');
  });
});

describe('the name of an app, key or calendar link', () => {
  const odd = ' Ac\u200bme\u202e  Travel\u00a0';

  it('with invisible characters is rejected by keys create and clients create', async () => {
    const { id } = await oauth.member();
    const key = ['keys', 'create', '--user', String(id), '--scopes', ''];
    const app = ['clients', 'create', '--type', 'web', '--redirect-uri', REDIRECT_URI];
    for (const command of [key, app]) {
      const { code, stderr } = await run(...command, '--name', odd);
      expect([code, stderr]).toEqual([2, expect.stringContaining('invisible characters')]);
    }
  });

  it('entered on a page is stored without invisible characters and extra spaces', async () => {
    const { id, username } = await oauth.member();
    const browser = oauth.browser();
    await browser.signIn('/developer', username);
    const app = { redirect_uris: REDIRECT_URI, scopes: 'profile:read' };
    await fillIn(browser, '/developer/new-client', /clients$/, app);
    await fillIn(browser, '/developer/new-key', /keys$/, { scopes: 'profile:read', days: '7' });
    await fillIn(browser, '/account/calendar', /create$/);
    const owner = { userId: id, ip: null };
    const clients = new ClientsService(oauth.dataSource, oauth.api.config);
    const keys = new ApiKeysService(oauth.dataSource, oauth.api.config);
    const named = [
      ...(await clients.list(owner)),
      ...(await keys.list({ userId: id })),
      ...(await oauth.api.app.get(CalendarLinks).list(id)),
    ];
    expect(named.map(({ name }) => name)).toEqual(['Acme Travel', 'Acme Travel', 'Acme Travel']);
  });

  it('with invisible characters does not prevent a change of another field of an existing app', async () => {
    const clientId = await oauth.client();
    await oauth.query('UPDATE oauth_clients SET name = $2 WHERE id = $1', [clientId, odd]);
    const { code } = await run('clients', 'update', clientId, '--client-uri', 'https://acme.example/');
    expect(code).toBe(0);
    await run('clients', 'update', clientId, '--name', 'Acme');
  });

  const fillIn = async (browser: Browser, path: string, form: RegExp, fields: Record<string, string> = {}) =>
    browser.submit(await browser.view(path), { name: odd, ...fields }, form);
});
