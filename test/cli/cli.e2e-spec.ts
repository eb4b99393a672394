import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { ApiKeysService, type KeyDetails, type NewKey } from '../../src/auth/api-keys/api-keys.service.js';
import { makeKey, parseKey } from '../../src/auth/api-keys/api-key-format.js';
import { verifyPassword } from '../../src/accounts/passwords/passwords.js';
import { createProgram } from '../../src/cli/program.js';
import { exampleOf } from '../../src/cli/command.js';
import { onDatabase } from '../../src/cli/database.js';
import { loadConfig } from '../../src/config/config.js';
import { MIGRATIONS } from '../../src/database/schema/tables.js';
import { TestApi } from '../support/api.js';
import { atOnce } from '../support/concurrent.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { PROCESS, pua, puaJson, puaProcess, startPua } from '../support/command-line.js';
import {
  asSuperuser,
  createEmptyDatabase,
  createTestDatabase,
  onPostgres,
  postgres,
  thorough,
} from '../support/database.js';
import { freePort } from '../support/oauth.js';
import { soon } from '../support/timing.js';

type Key = KeyDetails & { key: string };

const CREATE_KEY = 'keys create --user 1 --name x --scopes=';
const SECRET_KEY = Buffer.alloc(32, 'test').toString('base64');
const seconds = (time: string | null) => Date.parse(`${time}Z`) / 1000;

describe('pua', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  const run = (command: string, ...more: string[]) => pua(api.environment, [...command.split(' '), ...more]);
  const json = <T>(command: string, ...more: string[]) =>
    puaJson<T>(api.environment, [...command.split(' '), ...more]);
  /** Without a new process, except in tests of `keys create`. */
  const createKey = async (userId: number, more: Partial<NewKey> = {}): Promise<Key> => {
    const keys = new ApiKeysService(api.dataSource, api.config);
    const { key, id } = await keys.create({
      userId,
      name: 'test',
      scopes: ['profile:read'],
      environment: 'test',
      cidrs: [],
      actor: 'admin',
      ...(more.noExpiryReason ? {} : { expiresInSeconds: 90 * 86_400 }),
      ...more,
    });
    return { ...(await keys.find(id))!, key };
  };
  const createByCommand = (user: number, ...args: string[]) =>
    json<Key>(`keys create --user ${user} --name test --scopes profile:read`, ...args);
  /** Asserts that the API rejects the key within a second. */
  const refused = (key: string) => soon(async () => (await api.get('/me', key)).status === 401);

  describe('in general', () => {
    it('names every command in its help, for which it loads no command and no library except Commander', async () => {
      const url = new URL('../../dist/src/cli/program.js', import.meta.url).href;
      const script = `
        import { registerHooks } from 'node:module';
        const loaded = [];
        registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
        const { createProgram } = await import('${url}');
        const help = (await createProgram({ args: ['--help'] })).helpInformation();
        console.log(JSON.stringify({ loaded, help }));`;
      const shown = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
        encoding: 'utf8',
      });
      const { loaded, help } = JSON.parse(shown) as { loaded: string[]; help: string };
      expect(loaded).toContain(url);
      const others = loaded.filter((file) => /\/commands\/|\/node_modules\/(?!@?commander)/.test(file));
      expect(others).toEqual([]);
      for (const command of (await createProgram()).commands)
        expect(help).toContain(`\n  ${command.name()} `);
    });

    it('has --json and an example for every command', async () => {
      const commands = (await createProgram()).commands.flatMap((command) =>
        command.commands.length > 0 ? command.commands : command,
      );
      expect(commands.length).toBeGreaterThanOrEqual(17);
      for (const command of commands) {
        expect(command.options.map(({ long }) => long)).toContain('--json');
        expect(exampleOf(command)).toMatch(/pua /);
      }
    });

    it.each<[string, string, RegExp]>([
      ['a missing command', '', /Usage: npx pua/],
      ['a group without a command', 'keys', /Usage: npx pua keys/],
      ['an unknown command', 'kyes', /unknown command 'kyes'/],
      ['an unknown option', 'keys list --all', /unknown option '--all'/],
      ['a missing option', 'keys create --user 1 --name x', /required option '--scopes/],
      [
        'several missing options',
        'keys create --user 1',
        /^error: required options '--name <text>', '--scopes <list>' not specified\n/,
      ],
      ['a missing argument', 'keys show', /missing required argument 'id'/],
      ['one argument too many', 'keys show a b', /too many arguments/],
      ['a revocation without a reason', 'keys revoke a', /required option '--reason/],
      ['a period without unit', 'audit --since 24', /whole number followed by s, m, h or d/],
      ['a rejection of an app without a reason', 'clients reject a', /required option '--reason/],
      [
        'an access duration that is not offered',
        'clients update a --longest-access 31',
        /Allowed choices are once, 30, 180, unlimited/,
      ],
      [
        'an unknown event type',
        'audit --type key.made',
        /The types are: user\.created, .*; for all types of one object: user, /,
      ],
      ['pruning without an age', 'audit prune', /--before/],
      ['pruning of recent events', 'audit prune --before 6d', /from 7d/],
      ['a password as an argument', 'users set-password ada secret', /required option '--password-stdin'/],
      ['a username of digits only', 'users create --username 12345', /--username/],
      ['a bio of 501 characters', `users create --username x --bio ${'x'.repeat(501)}`, /--bio/],
      [
        'a picture that is not a URL',
        'users create --username x --profile-picture ftp://example.com/x',
        /--profile-picture/,
      ],
      ['both repair and watch mode', 'doctor --watch --mend', /--mend/],
      ['a watch mode with an invalid period', 'doctor --watch often', /--watch/],
      [
        'an unknown scope of a key',
        `${CREATE_KEY} --scopes profile:read,admin`,
        /no scope admin\. The scopes are: profile:read, profile:write/,
      ],
      ['a key’s lifetime of more than a year', `${CREATE_KEY} --expires 366d`, /from 1s to 365d/],
      ['a key’s lifetime of zero', `${CREATE_KEY} --expires 0s`, /from 1s to 365d/],
      ['a key without expiry and reason', `${CREATE_KEY} --no-expiry`, /--no-expiry requires --reason/],
      [
        'no expiry and a lifetime',
        `${CREATE_KEY} --no-expiry --reason x --expires 1d`,
        /cannot be used with/,
      ],
      ['a reason for a key that expires', `${CREATE_KEY} --reason x`, /--reason is only for --no-expiry/],
      ['a key’s invalid network', `${CREATE_KEY} --cidr 203.0.113.0/33`, /must be a network such as/],
      ['a key’s unknown environment', `${CREATE_KEY} --env staging`, /Allowed choices are live, test/],
      ['a key’s empty name', `${CREATE_KEY} --name=`, /1 to 100 characters/],
    ])('reports %s as a usage error on stderr', async (_, command, message) => {
      const { code, stdout, stderr } = await pua(api.environment, command);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(message);
    });

    it.each<[string, string, number, string, string | RegExp]>([
      [
        'a failure',
        'users show nobody',
        1,
        'failed',
        /^There is no member .* nobody: create one with `npx pua users create`$/,
      ],
      ['missing options', 'keys create', 2, 'wrong_use', /^required options '--name/],
      ['an unknown command', 'kyes', 2, 'wrong_use', /^unknown command/],
      ['an unknown type', 'audit --type key.made', 2, 'wrong_use', /There is no type key\.made\./],
      ['a command that requires --yes', 'users erase ID', 2, 'wrong_use', /--yes is missing/],
    ])('reports %s in one line of JSON on stderr, with --json', async (_, command, status, kind, message) => {
      const user = String(await api.platform.user());
      const { code, stdout, stderr } = await run(command.replace('ID', user), '--json');
      expect({ code, stdout }).toEqual({ code: status, stdout: '' });
      expect(stderr).toMatch(/^[^\n]+\n$/);
      expect(JSON.parse(stderr)).toEqual({ error: { code: kind, message: expect.stringMatching(message) } });
    });

    it('prints the package’s version', async () => {
      const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
      expect(await run('--version')).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
    });

    thorough.it('shows examples with `npx pua` in a checkout, and with `pua` if installed', async () => {
      const bin = mkdtempSync(join(process.env.TEST_FOLDER!, 'bin-'));
      symlinkSync(join(process.cwd(), 'bin/pua.mjs'), join(bin, 'pua'));
      const example = (file: string, environment = {}) =>
        /\$ (.*pua) /.exec(
          execFileSync(process.execPath, [file, 'keys', 'create', '--help'], {
            env: { ...PROCESS, ...environment },
            encoding: 'utf8',
          }),
        )![1];
      expect(example('bin/pua.mjs')).toBe('npx pua');
      expect(example(join(bin, 'pua'))).toBe('pua');
      expect(example(join(bin, 'pua'), { npm_command: 'exec' })).toBe('npx pua');
    });

    it('reports in one line that the database is unavailable, with the code `unavailable`', async () => {
      const DATABASE_URL = `postgres://postgres@127.0.0.1:${await freePort()}/x`;
      const message =
        /^The database cannot be reached \(.*ECONNREFUSED.*\): start it, or correct DATABASE_URL\n?$/;
      const ended = { code: 1, stdout: '', stderr: expect.stringMatching(message) };
      expect(await pua({ ...api.environment, DATABASE_URL }, 'keys list')).toEqual(ended);
      const { code, stderr } = await pua({ ...api.environment, DATABASE_URL }, 'keys list --json');
      expect(code).toBe(1);
      expect(JSON.parse(stderr)).toEqual({
        error: { code: 'unavailable', message: expect.stringMatching(message) },
      });
    });

    it('names a wrong setting and never its value', async () => {
      const { code, stderr } = await pua({ ...api.environment, SECRET_KEY: 'tooshort' }, 'keys list');
      expect(code).toBe(1);
      expect(stderr).toMatch(/^A setting is wrong: SECRET_KEY must be at least 32 random bytes.*\n$/);
      expect(stderr).not.toContain('tooshort');
    });

    it('writes no color into a pipe, and no control characters from a member’s name', async () => {
      const user = await api.platform.user({ first_name: 'Red \u001b[31m', username: 'red' });
      const { stdout } = await pua({ ...api.environment, CI: 'true' }, `users show ${user}`);
      expect(stdout).toContain('Red \ufffd[31m');
      expect(stdout).not.toContain('\u001b');
    });

    it('escapes control characters in JSON without changing the value', async () => {
      const first_name = 'Red \u009b31m \u202e \u007f\u{e0041} é 😀';
      const { stdout } = await run(`users show ${await api.platform.user({ first_name })} --json`);
      expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
      expect(stdout).toContain('\\u009b31m \\u202e \\u007f\\udb40\\udc41 é 😀');
      expect(JSON.parse(stdout)).toMatchObject({ first_name });
    });

    postgres.it('exits silently when the reader of its output closes the pipe', async () => {
      const child = startPua(api.environment, 'keys list');
      child.stdout.destroy();
      const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    });
  });

  describe('keys create', () => {
    it('prints only the key on stdout, and instructions without the key on stderr; the server accepts the key', async () => {
      const user = await api.platform.user({ username: 'key_owner' });
      const command = 'keys create --user=KEY_owner --name=Partner --scopes=profile:read';
      const { code, stdout, stderr } = await run(command);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^pua_test_\w{62}\n$/); // `pua_live_` only in production
      const usage = /^Use it: export API_KEY=<the key>; curl -H "X-API-Key: \$API_KEY" (http:\S+)\n$/;
      expect(usage.exec(stderr)![1]).toBe(`${api.config.publicUrl}/api/public/credential`);
      expect(stderr).not.toContain(stdout.trim().slice(22));
      const { body } = await api.get('/me', stdout.trim());
      expect(body.id).toBe(user);
      expect((await api.get('/events', stdout.trim())).status).toBe(403);
    });

    it('prints the key and its details with --json', async () => {
      const user = await api.platform.user();
      const more = '--env test --cidr 203.0.113.7/24 2001:DB8::1'.split(' ');
      const { key, ...details } = await createByCommand(user, ...more);
      expect(parseKey(key)).toEqual({ id: details.id, environment: 'test' });
      expect(details).toMatchObject({
        user_id: user,
        name: 'test',
        environment: 'test',
        status: 'active',
        scopes: ['profile:read'],
        last_four: key.slice(-4),
        no_expiry_reason: null,
        revoked_at: null,
      });
      expect(details.allowed_cidrs.toSorted()).toEqual(['2001:db8::1/128', '203.0.113.0/24']);
      expect(seconds(details.expires_at) - seconds(details.created_at)).toBe(90 * 86_400);
    });

    it('grants no scope for an empty list: the key can read /credential, but not /me', async () => {
      const user = await api.platform.user();
      const { key, scopes } = await json<Key>(`keys create --user ${user} --name x --scopes`, '');
      expect(scopes).toEqual([]);
      expect((await api.get('/credential', key)).status).toBe(200);
      expect((await api.get('/me', key)).status).toBe(403);
    });

    thorough.it('sets the requested lifetime, or no expiry if a reason is given', async () => {
      const user = await api.platform.user();
      const short = await createByCommand(user, '--expires', '2h');
      expect(seconds(short.expires_at) - seconds(short.created_at)).toBe(7200);
      const reason = 'a device that cannot be reached';
      const endless = await createByCommand(user, '--no-expiry', '--reason', reason);
      expect(endless).toMatchObject({ expires_at: null, no_expiry_reason: reason });
    });

    thorough.it('warns if the owner is disabled', async () => {
      const user = await api.platform.user({ disabled_at: '2024-01-01T00:00:00Z' });
      const args = ['--name', 'x', '--scopes', ''];
      const { code, stdout, stderr } = await run(`keys create --user ${user}`, ...args);
      expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^pua_test_/) });
      expect(stderr).toContain('is disabled');
    });
  });

  describe('keys list and show', () => {
    thorough.it('list --ending prints keys that expire soon without a successor, soonest first', async () => {
      const user = await api.platform.user();
      const make = (days: number) => createKey(user, { expiresInSeconds: days * 86_400 });
      const [later, sooner, far] = [await make(29), await make(1), await make(31)];
      const [rotated, revoked] = [await make(2), await make(2)];
      await createKey(user, { noExpiryReason: 'a device' });
      const successor = await json<Key>('keys rotate', rotated.id);
      await run('keys revoke', revoked.id, '--reason', 'test');
      const listed = async (within: string, option = '--ending') => {
        const { data } = await json<{ data: Key[] }>(`keys list --user ${user}`, option, within);
        return data.map(({ id }) => id);
      };
      expect(await listed('30d', '--expiring')).toEqual(await listed('30d'));
      expect(await listed('30d')).toEqual([sooner.id, successor.id, later.id]);
      expect(await listed('60d')).toEqual([sooner.id, successor.id, later.id, far.id]);
      expect(await listed('1h')).toEqual([]);
    });

    it('show where a key was exposed, and never print the key’s secret', async () => {
      const user = await api.platform.user();
      const older = await createKey(user);
      const newer = await createKey(user);
      await api.get('/me', newer.key, { Origin: 'https://shop.example' });
      const list = await json<{ data: KeyDetails[] }>(`keys list --user ${user}`);
      expect(list.data.map(({ id }) => id).toSorted()).toEqual([older.id, newer.id].toSorted());
      const { stdout } = await run('keys show', newer.id);
      expect(stdout).toMatch(/exposed_at +\d{4}-/);
      expect(stdout).toMatch(/exposed_origin +https:\/\/shop.example/);
      for (const secret of [older.key.slice(-49, -6), newer.key.slice(-49, -6)])
        expect(JSON.stringify(list) + stdout).not.toContain(secret);
    });

    it('accept a complete key instead of its id, and never repeat the secret of an unknown or truncated key', async () => {
      const { id, key } = await createKey(await api.platform.user());
      expect(await json('keys show', key)).toMatchObject({ id });
      expect(await json('keys show', `X-API-Key: ${key}`)).toMatchObject({ id });
      const unknown = makeKey('live').key;
      for (const sent of [unknown, unknown.slice(0, 40), unknown.slice(9), unknown.slice(30)]) {
        const { code, stderr } = await run('keys revoke', sent, '--reason', 'leaked');
        expect([code, stderr]).toEqual([1, expect.stringMatching(/^There is no key /)]);
        expect(/[0-9A-Za-z]{13}/.exec(stderr)).toBe(null);
      }
    });
  });

  describe('keys rotate', () => {
    it('creates a key with the same settings, and keeps the old key valid for a day', async () => {
      const old = await createKey(await api.platform.user(), { cidrs: ['127.0.0.0/8'] });
      const { key, ...made } = await json<Key>('keys rotate', old.id);
      const { id, last_four, created_at, expires_at, key: _key, ...same } = old;
      expect(made).toMatchObject(same);
      expect(seconds(made.expires_at) - seconds(made.created_at)).toBe(90 * 86_400);
      expect((await api.get('/me', key)).status).toBe(200);
      expect((await api.get('/me', old.key)).status).toBe(200);
      const replaced = await json<KeyDetails>('keys show', id);
      expect(replaced).toMatchObject({ status: 'replaced', replaced_by: made.id });
      expect(seconds(replaced.expires_at) - seconds(made.created_at)).toBe(86_400);
      expect([last_four, created_at, expires_at]).not.toContain(undefined);
    });

    thorough.it('ends the old key within a second with --overlap 0s', async () => {
      const old = await createKey(await api.platform.user());
      expect((await api.get('/me', old.key)).status).toBe(200);
      const { stdout } = await run('keys rotate', old.id, '--overlap', '0s');
      await refused(old.key);
      expect((await api.get('/me', stdout.trim())).status).toBe(200);
    });

    thorough.it('does not extend the old key’s lifetime if --overlap is longer', async () => {
      const old = await createKey(await api.platform.user(), { expiresInSeconds: 3600 });
      await run('keys rotate', old.id, '--overlap', '2d');
      expect(await json('keys show', old.id)).toMatchObject({ expires_at: old.expires_at });
    });

    thorough.it('keeps the reason of a key without expiry, and lets the old key expire', async () => {
      const old = await createKey(await api.platform.user(), { noExpiryReason: 'device' });
      const made = await json<Key>('keys rotate', old.id, '--overlap', '1h');
      expect(made).toMatchObject({ expires_at: null, no_expiry_reason: 'device' });
      const { expires_at } = await json<KeyDetails>('keys show', old.id);
      expect(seconds(expires_at) - seconds(made.created_at)).toBe(3600);
    });

    it('rejects a revoked, expired or rotated key, and creates nothing', async () => {
      const user = await api.platform.user();
      const make = () => createKey(user);
      const [revoked, rotated, expired] = [await make(), await make(), await make()];
      await run('keys revoke', revoked.id, '--reason', 'x');
      const successor = await json<Key>('keys rotate', rotated.id);
      await api.query('UPDATE api_keys SET expires_at = now() WHERE id = $1', [expired.id]);
      const told = async (id: string) => {
        const { code, stdout, stderr } = await run('keys rotate', id);
        expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
        return stderr;
      };
      expect(await told(revoked.id)).toMatch(/is revoked: create a new one/);
      expect(await told(expired.id)).toMatch(/has expired: create a new one/);
      expect(await told(rotated.id)).toMatch(`rotate its successor ${successor.id}`);
      expect(await told('AAAAAAAAAAAA')).toBe(
        'There is no key AAAAAAAAAAAA: `npx pua keys list` shows all\n',
      );
      expect((await json<{ data: [] }>(`keys list --user ${user}`)).data).toHaveLength(4);
    });

    postgres.it('creates one successor for concurrent rotations', async () => {
      const user = await api.platform.user();
      const { id } = await createKey(user);
      const ended = await atOnce(4, () => puaProcess(api.environment, ['keys', 'rotate', id]));
      expect(ended.filter(({ code }) => code === 0)).toHaveLength(1);
      expect(ended.filter(({ code }) => code === 1)).toHaveLength(3);
      expect((await json<{ data: [] }>(`keys list --user ${user}`)).data).toHaveLength(2);
    });
  });

  describe('keys revoke', () => {
    it('accepts a complete exposed key, and records only its id', async () => {
      const { id, key } = await createKey(await api.platform.user());
      expect(await json('keys revoke', key, '--reason', 'leaked')).toMatchObject({ id, changed: true });
      expect((await api.get('/me', key)).status).toBe(401);
      const { data } = await json<{ data: object[] }>('audit --key', key, '--type', 'key.revoked');
      expect(data).toMatchObject([{ actor: 'admin', key_id: id, details: { reason: 'leaked' } }]);
      expect(JSON.stringify(data)).not.toContain(key.slice(22));
    });

    it('revokes a key within a second, and changes nothing when repeated', async () => {
      const { id, key } = await createKey(await api.platform.user());
      expect((await api.get('/me', key)).status).toBe(200);
      expect(await json('keys revoke', id, '--reason', 'leaked')).toMatchObject({ id, changed: true });
      await refused(key);
      const again = await pua(api.environment, ['keys', 'revoke', id, '--reason', 'other', '--json']);
      expect(again.code).toBe(0);
      expect(JSON.parse(again.stdout)).toMatchObject({ changed: false, reason: 'leaked' });
      expect(again.stderr).toMatch(/was already revoked at .* UTC: leaked/);
    });
  });

  describe('users', () => {
    const listed = async (...args: string[]) =>
      (await json<{ data: { username: string }[] }>('users list', ...args)).data.map(
        ({ username }) => username,
      );

    it('list finds members by username or name ignoring case, the newest first', async () => {
      await api.platform.user({ username: 'findable_1' });
      await api.platform.user({ username: 'other', first_name: 'FINDABLE' });
      expect(await listed('--search', 'Findable')).toEqual(['other', 'findable_1']);
      expect(await listed('--search', 'findable%')).toEqual([]);
      expect(await listed()).toEqual(expect.arrayContaining(['other', 'findable_1']));
      const { stdout } = await run('users list --search findable_1');
      expect(stdout).toMatch(/^ID +USERNAME +NAME +STATUS +PASSWORD +CREATED$/m);
      expect(stdout).toMatch(/^\d+ +findable_1 +\S.* enabled +no +20/m);
    });

    it('list returns at most 1,000 members, and explains how to get more', async () => {
      await api.query(
        `INSERT INTO users (username, first_name) SELECT 'paged_' || i, 'Paged' FROM generate_series(1, 1001) i`,
      );
      const { stdout, stderr } = await run('users list --search paged_');
      expect(stdout.trimEnd().split('\n')).toHaveLength(1 + 1000);
      const [, before] =
        /^There are more members: continue with --before (\d+), or narrow the list down with --search\n$/.exec(
          stderr,
        )!;
      expect(await json('users list --search paged_ --before', before!)).toEqual({
        data: [expect.objectContaining({ username: 'paged_1' })],
        truncated: false,
      });
    });

    it('update changes only the given fields, clears a field by an empty text, and records the changes in the audit log', async () => {
      const user = await api.platform.user({ username: 'changeable', first_name: 'Ada', bio: 'Old' });
      await run('users update changeable --first-name Augusta --bio', '');
      expect(await json('users show changeable')).toMatchObject({ first_name: 'Augusta', bio: null });
      expect(await json('users update changeable --username changed')).toMatchObject({
        id: user,
        username: 'changed',
      });
      const { data } = await json<{ data: object[] }>('audit --user changed --type user.updated');
      expect(data).toMatchObject([
        { actor: 'admin', details: { changed: ['username'] } },
        { actor: 'admin', details: { changed: ['first_name', 'bio'] } },
      ]);
    });

    thorough.it('create and update reject a username that is taken, ignoring case', async () => {
      await api.platform.user({ username: 'taken_name' });
      const user = await api.platform.user();
      for (const command of ['create', `update ${user}`])
        expect(await run(`users ${command} --username TAKEN_name`)).toEqual({
          code: 1,
          stdout: '',
          stderr: 'The username TAKEN_name is taken: choose another\n',
        });
    });

    thorough.it('update reports no change without a field or with unchanged values', async () => {
      const user = String(await api.platform.user({ username: 'wants_name' }));
      expect(await run('users update', user)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('nothing to change'),
      });
      expect((await run('users update', user, '--username', 'wants_name')).stderr).toBe(
        'wants_name already has these values: nothing changed\n',
      );
    });

    it('delete erases a member, and requires --yes without a terminal', async () => {
      const user = String(await api.platform.user({ username: 'deletable' }));
      const { code, stderr } = await run('users delete deletable');
      expect(code).toBe(2);
      expect(stderr).toMatch(
        /nothing was done: --yes is missing\. Everything about deletable \(id \d+\) would be erased permanently/,
      );
      expect(await json('users delete deletable --yes')).toMatchObject({ id: Number(user) });
      expect(await run('users update', user, '--bio', 'x')).toMatchObject({
        code: 1,
        stderr: `The member ${user} was erased: that cannot be undone\n`,
      });
    });

    const stored = async (id: number) => {
      const [row] = await api.query<{ password_hash: string }>(
        'SELECT password_hash FROM users WHERE id = $1',
        [id],
      );
      return row!.password_hash;
    };

    it('create adds a member with a password from stdin', async () => {
      const names = 'users create --username grace --first-name Grace --last-name Hopper';
      const more = '--bio Compilers. --profile-picture https://example.com/g.jpg --password-stdin';
      const user = await puaJson<{ id: number }>(api.environment, `${names} ${more}`, 'nanoseconds\n');
      expect(user).toEqual({
        id: user.id,
        username: 'grace',
        external_id: null,
        email: null,
        first_name: 'Grace',
        last_name: 'Hopper',
        display_name: 'Grace Hopper',
        bio: 'Compilers.',
        profile_picture: 'https://example.com/g.jpg',
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
        disabled_at: null,
        erased_at: null,
        has_password: true,
        password_off_at: null,
        passkeys_count: 0,
        events_count: 0,
        connections_count: 0,
        achievements_count: 0,
        live_keys_count: 0,
      });
      expect(await verifyPassword(await stored(user.id), 'nanoseconds')).toMatchObject({ matches: true });
    });

    thorough.it('create and update set an external id, which no other member can have', async () => {
      const user = await json('users create --username known --external-id sub|Known');
      expect(user).toMatchObject({ external_id: 'sub|Known' });
      await json('users create --username unknown');
      for (const command of ['create --username third', 'update unknown']) {
        const stderr = 'The external id sub|Known belongs to another member: choose another\n';
        expect(await run(`users ${command} --external-id sub|Known`)).toMatchObject({ code: 1, stderr });
      }
      const lower = await json('users update known --external-id sub|known');
      expect(lower).toMatchObject({ external_id: 'sub|known' });
      expect(await json('users update known --external-id', '')).toMatchObject({ external_id: null });
      expect(await json('users show known')).toMatchObject({ username: 'known', external_id: null });
    });

    thorough.it('create adds no member if the password is too short', async () => {
      const args = ['users', 'create', '--username', 'short', '--password-stdin'];
      const { code, stderr } = await pua(api.environment, args, 'seven77\n');
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: 'The password must have 10 to 128 characters, but has 7\n',
      });
      expect(await run('users show short')).toMatchObject({ code: 1 });
    });

    it('set-password replaces the password, and does not print it', async () => {
      const id = await api.platform.user({ username: 'forgetful' });
      const args = ['users', 'set-password', 'forgetful', '--password-stdin'];
      const { code, stdout, stderr } = await pua(api.environment, args, 'remember this');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toBe('forgetful has a new password, and all sessions have ended\n');
      expect(await verifyPassword(await stored(id), 'remember this')).toMatchObject({ matches: true });
    });

    it('passkeys lists a member’s passkeys, and remove-passkey removes a lost passkey, even the last one', async () => {
      const id = await api.platform.user({ username: 'phoneless' });
      await api.platform.passkey(id, 'Phone');
      expect(await json('users show phoneless')).toMatchObject({
        passkeys_count: 1,
        has_password: false,
      });
      const { data } = await json<{ data: { id: number }[] }>('users passkeys phoneless');
      expect(data).toMatchObject([{ name: 'Phone', synced: true, last_used_at: null }]);
      expect((await run('users passkeys phoneless')).stdout).toMatch(/Phone +yes/);
      const passkey = String(data[0]!.id);
      const other = await api.platform.user({ username: 'not-phoneless' });
      expect(await run(`users remove-passkey ${other}`, passkey)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('has no passkey'),
      });
      expect(await json('users remove-passkey phoneless', passkey)).toMatchObject({
        id,
        removed: true,
      });
      expect(await json('users passkeys phoneless')).toEqual({ data: [] });
      expect(await run('users remove-passkey phoneless x')).toMatchObject({ code: 2 });
    });

    thorough.it('show treats digits first as an id, then as a username', async () => {
      const id = await api.platform.user({ username: 'first' });
      await api.platform.user({ username: String(id) });
      expect(await json(`users show ${id}`)).toMatchObject({ username: 'first' });
      await api.platform.user({ username: '0009999999' });
      expect(await json('users show 0009999999')).toMatchObject({ username: '0009999999' });
    });

    it('disable ends the member’s keys, enable restores them, and repeating either command changes nothing', async () => {
      const id = await api.platform.user({ username: 'onoff' });
      const { key } = await createKey(id);
      expect((await api.get('/me', key)).status).toBe(200);
      expect(await json('users disable onoff')).toMatchObject({ id, changed: true });
      await refused(key);
      expect(await json('users show onoff')).toMatchObject({ live_keys_count: 0 });
      expect(await json('users disable onoff')).toMatchObject({ changed: false });
      expect(await json('users enable onoff')).toEqual({
        id,
        username: 'onoff',
        changed: true,
        disabled_at: null,
      });
      expect((await api.get('/me', key)).status).toBe(200);
      expect(await run('users enable onoff')).toMatchObject({
        code: 0,
        stderr: 'onoff was already enabled: nothing changed\n',
      });
    });
  });

  describe('audit', () => {
    thorough.it('filters by type, object and time', async () => {
      const user = await api.platform.user({ username: 'filtered' });
      const { id } = await createKey(user);
      await run('keys revoke', id, '--reason', 'x');
      await api.query(
        "INSERT INTO auth_events (type, actor, user_id, occurred_at) VALUES ('user.old', 'system', $1, now() - interval '3 days')",
        [user],
      );
      const types = async (...args: string[]) =>
        (await json<{ data: { type: string }[] }>('audit --user filtered', ...args)).data.map(
          ({ type }) => type,
        );
      expect(await types('--type', 'key.created')).toEqual(['key.created']);
      expect(await types('--type', 'key')).toEqual(['key.revoked', 'key.created']);
      expect(await types()).toEqual(['key.revoked', 'key.created']);
      expect(await types('--since', '4d')).toEqual(['key.revoked', 'key.created', 'user.old']);
    });

    thorough.it('finds the events of one key, one app, and one error id', async () => {
      const user = await api.platform.user({ username: 'searched' });
      const [{ id }] = [await createKey(user), await createKey(user)];
      const record = (columns: string, values: string) =>
        api.query(
          `INSERT INTO auth_events (type, actor, ${columns}) VALUES ('token.refused', 'client', ${values})`,
        );
      await record('client_id, error_id', `'app-1', 'error-1'`);
      await record('client_id, error_id', `'app-2', 'error-2'`);
      await api.query(
        `INSERT INTO oauth_refusals (error_id, route, error, reason, client_id, redirect_uri, occurred_at)
VALUES ('error-3', '/oauth/authorize', 'invalid_client', 'unknown_client', 'typo', 'https://app.example/', now() - interval '3 days')`,
      );
      const find = async (...args: string[]) =>
        (await json<{ data: Record<string, unknown>[] }>('audit', ...args)).data;
      expect((await find('--key', id)).map(({ key_id, type }) => [key_id, type])).toEqual([
        [id, 'key.created'],
      ]);
      expect((await find('--client', 'app-1')).map(({ error_id }) => error_id)).toEqual(['error-1']);
      expect((await find('--error-id', 'error-2')).map(({ client_id }) => client_id)).toEqual(['app-2']);
      expect(await find('--error-id', 'error-2', '--client', 'app-1')).toEqual([]);
      expect(await find('--error-id', 'error-3')).toEqual([
        {
          id: null,
          occurred_at: expect.any(String),
          type: 'authorization.refused',
          actor: 'client',
          user_id: null,
          client_id: 'typo',
          key_id: null,
          ip: null,
          error_id: 'error-3',
          details: {
            error: 'invalid_client',
            reason: 'unknown_client',
            route: '/oauth/authorize',
            redirect_uri: 'https://app.example/',
          },
        },
      ]);
      const { stdout } = await run('audit --error-id error-1');
      expect(stdout).toMatch(/ERROR ID/);
      expect(stdout).toMatch(/error-1/);
    });

    it('prunes events older than the given age, prints their number, and records the pruning', async () => {
      await api.query(
        `INSERT INTO auth_events (type, actor, occurred_at)
SELECT 'user.created', 'system', now() - days * interval '1 day' FROM generate_series(1, 3), unnest('{100,20}'::int[]) days`,
      );
      expect(await json('audit prune --before 90d')).toEqual({ deleted: 3 });
      expect(await run('audit prune --before 8d')).toMatchObject({
        code: 0,
        stdout: '3 events deleted\n',
      });
      const [{ details } = { details: {} }] = (
        await json<{ data: { details: object }[] }>('audit --type audit.pruned')
      ).data;
      expect(details).toEqual({ older_than_seconds: 8 * 86_400 });
    });

    it('prints 2,500 earlier events in order with --follow', async () => {
      const user = await api.platform.user({ username: 'busy' });
      await api.query(
        `INSERT INTO auth_events (type, actor, user_id, occurred_at, details)
SELECT 'user.created', 'admin', $1, now() - interval '1 hour' + n / 3 * interval '1 second', jsonb_build_object('number', n) FROM generate_series(1, 2500) n`,
        [user],
      );
      const child = startPua(api.environment, 'audit --follow --json --user busy');
      const numbers: number[] = [];
      try {
        for await (const line of createInterface(child.stdout)) {
          numbers.push((JSON.parse(line) as { details: { number: number } }).details.number);
          if (numbers.length === 2500) break;
        }
      } finally {
        child.kill('SIGKILL');
      }
      expect(numbers).toEqual(Array.from({ length: 2500 }, (_, n) => n + 1));
    });

    thorough.it('prints new events with --follow, each once, and ends with Ctrl-C', async () => {
      const user = await api.platform.user({ username: 'followed' });
      const record = (name: string, by: Pick<DataSource, 'query'> = api.dataSource) =>
        by.query(
          `INSERT INTO auth_events (type, actor, user_id, details) VALUES ('user.created', 'admin', $1, jsonb_build_object('name', $2::text))`,
          [user, name],
        );
      await record('before');
      using child = startPua(api.environment, 'audit --follow --json --user followed');
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
      const next = async () =>
        (JSON.parse((await lines.next()).value as string) as { details: { name: string } }).details.name;
      expect(await next()).toBe('before');
      await record('one');
      expect(await next()).toBe('one');
      // The transaction of this event commits after the transaction of a later event.
      await api.dataSource.transaction(async (manager) => {
        await record('late', manager);
        if (!onPostgres) return; // the embedded database has one session: no other client writes meanwhile
        await record('two');
        expect(await next()).toBe('two');
      });
      expect(await next()).toBe('late');
      child.kill('SIGINT');
      expect((await lines.next()).done).toBe(true);
      await (child.exitCode ?? once(child, 'close'));
      expect([child.exitCode, child.signalCode]).toEqual([0, null]);
    });

    postgres.it('exits silently with --follow when the reader of its output closes the pipe', async () => {
      const user = await api.platform.user({ username: 'cut' });
      const record = () =>
        api.query(`INSERT INTO auth_events (type, actor, user_id) VALUES ('user.created', 'admin', $1)`, [
          user,
        ]);
      await record();
      const child = startPua(api.environment, 'audit --follow --json --user cut');
      const errors = text(child.stderr);
      await once(child.stdout, 'data');
      child.stdout.destroy();
      await record();
      const [code] = (await once(child, 'exit')) as [number | null];
      expect([code, await errors]).toEqual([0, '']);
    });
  });
});

it('pua secrets generate prints a SECRET_KEY of 32 random bytes, without a database', async () => {
  const broken = { DATABASE_URL: 'nonsense' };
  const { stdout } = await pua(broken, 'secrets generate');
  expect(Buffer.from(stdout, 'base64')).toHaveLength(32);
  const { secret_key } = await puaJson<{ secret_key: string }>(broken, 'secrets generate');
  expect(Buffer.from(secret_key, 'base64')).toHaveLength(32);
  expect(secret_key).not.toBe(stdout.trim());
});

describe('pua on a database without a server', () => {
  let environment: Record<string, string>;
  let drop: () => Promise<void>;
  afterEach(() => drop());

  const run = (command: string, ...more: string[]) => pua(environment, [...command.split(' '), ...more]);
  type Status = { applied: string[]; pending: string[]; unknown: string[] };
  const status = () => puaJson<Status>(environment, 'db status');

  thorough.it('migrates, reports the migrations, and can undo and repeat the last one', async () => {
    ({ environment, drop } = await createEmptyDatabase());
    const { pending } = await status();
    const applied = pending.slice(0, -1);
    expect([applied.length > 1, pending.at(-1)]).toEqual([true, 'schema/']);
    const { stdout, stderr } = await run('db migrate --json');
    expect(JSON.parse(stdout)).toEqual({ applied: pending });
    const total = pending.length;
    expect(stderr).toBe(pending.map((name, i) => `${i + 1} of ${total}: ${name}\n`).join(''));
    expect(await status()).toEqual({ applied, pending: [], unknown: [], incompatible: [] });
    const last = applied.at(-1)!;
    expect((await run('db rollback')).stderr).toContain(last);
    expect(await puaJson(environment, 'db rollback --yes')).toEqual({ undone: last });
    const undone = (await status()).pending;
    expect(undone[0]).toBe(last);
    const refusal = await run('keys list');
    expect(refusal).toEqual({
      code: 1,
      stdout: '',
      stderr: `The database lacks migrations (${undone.length === 1 ? last : `2, from ${last} to schema/`}): run \`npx pua db migrate\`\n`,
    });
    expect(await run('doctor')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('→ run `npx pua db migrate`'),
    });
    expect(await run('db migrate')).toEqual({
      code: 0,
      stdout: undone.map((name) => `${name}\n`).join(''),
      stderr: undone.map((name, i) => `${i + 1} of ${undone.length}: ${name}\n`).join(''),
    });
    expect(await run('db migrate')).toEqual({ code: 0, stdout: '', stderr: 'Nothing was pending\n' });
  });

  thorough.it('rejects an incompatible newer schema, except in four commands that end access', async () => {
    ({ environment, drop } = await createTestDatabase());
    await run('users create --username one');
    const makeKey = () =>
      puaJson<{ id: string }>(environment, 'keys create --user one --name k --scopes profile:read');
    const [key, other] = [await makeKey(), await makeKey()];
    const client = await puaJson<{ client_id: string }>(
      environment,
      'clients create --name x --type web --scopes profile:read --redirect-uri https://app.example/callback',
    );
    await withDatabase(environment, (query) =>
      query("INSERT INTO migrations (timestamp, name) VALUES (9999999999999, 'Future9999999999999')"),
    );
    const { code, stderr } = await run('keys list');
    expect(code).toBe(1);
    expect(stderr).toMatch(/newer than this version \(Future9999999999999\): use the newer version/);
    for (const yes of [[], ['--yes']])
      expect(await run('db rollback', ...yes)).toMatchObject({ code: 1, stdout: '' });
    // Commands that end access work with any version.
    expect(await run('keys revoke', key.id, '--reason', 'leaked')).toMatchObject({ code: 0 });
    expect(await run('clients disable', client.client_id)).toMatchObject({ code: 0 });
    expect(await run('users disable one')).toMatchObject({ code: 0, stdout: 'one is disabled\n' });
    expect(await run('users revoke-access one')).toMatchObject({ code: 0 });
    // With a compatible newer schema, every command works.
    await withDatabase(environment, (query) =>
      query("INSERT INTO compatible_migrations VALUES ('Future9999999999999')"),
    );
    expect((await run('db status')).stdout.match(/^.* Future9999999999999$/gm)).toEqual([
      expect.stringMatching(/^unknown /),
    ]);
    expect(await run('keys list')).toMatchObject({ code: 0 });
    expect(await run('keys revoke', other.id, '--reason', 'leaked')).toMatchObject({ code: 0 });
    expect(await run('clients enable', client.client_id)).toMatchObject({ code: 0 });
    expect(await run('clients disable', client.client_id)).toMatchObject({ code: 0 });
  });
});

// Tests the embedded database, but starts many processes.
postgres.describe('pua on an embedded database without a server', () => {
  it('migrates the database once, even if five commands start at the same moment', async () => {
    for (let round = 1; round <= 3; round++) {
      const DATA_DIR = mkdtempSync(join(process.env.TEST_FOLDER!, 'nobody-serves-'));
      const run = (command: string) => puaProcess({ NODE_ENV: 'test', SECRET_KEY, DATA_DIR }, command);
      const names = ['one', 'two', 'three', 'four', 'five'];
      const made = await Promise.all(names.map((name) => run(`users create --username ${name}`)));
      expect(made.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
        names.map(() => ({ code: 0, stderr: '' })),
      );
      const { stdout } = await run('audit --type user.created --json');
      expect((JSON.parse(stdout) as { data: unknown[] }).data).toHaveLength(names.length);
      const { applied } = JSON.parse((await run('db status --json')).stdout) as { applied: string[] };
      expect(applied).toEqual(MIGRATIONS.map((migration) => migration.name));
    }
  });
});

postgres.describe('pua on an empty PostgreSQL database', () => {
  it('reports missing migrations, and the command that runs them', async () => {
    const { environment, drop } = await createEmptyDatabase();
    const { code, stderr } = await pua(environment, 'users create --username first');
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^The database lacks migrations \(\d+, from InlineFunctionsOfLists\d+ to .+\): run `npx pua db migrate`\n$/,
    );
    await drop();
  });
});

describe('pua doctor', () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await TestApi.start();
    const [ada, bob] = [await api.platform.user(), await api.platform.user()];
    await api.platform.participant(await api.platform.event({ organizer_id: ada }), bob);
    await api.platform.connection(ada, bob);
    await api.platform.progress(ada, await api.platform.achievement(), { earned_at: '2024-01-01T00:00:00Z' });
  });
  // Each test begins with one event, the first of its sequence.
  afterEach(() =>
    api.query(
      `DELETE FROM events WHERE id > 1; ALTER SEQUENCE events_id_seq NO MAXVALUE; SELECT setval('events_id_seq', 1)`,
    ),
  );
  afterAll(() => api.close());

  type Report = {
    healthy: boolean;
    checks: { name: string; status: string; message: string; mend: string | null }[];
  };
  const examine = async (
    more: Record<string, string> = {},
    args: readonly string[] = [],
  ): Promise<Report & { code: number | null }> => {
    const { code, stdout } = await pua({ ...api.environment, ...more }, ['doctor', ...args, '--json']);
    return { code, ...(JSON.parse(stdout) as Report) };
  };
  const bad = ({ checks }: Report) => checks.filter(({ status }) => status !== 'ok');

  it('finds no fault on a healthy platform', async () => {
    const report = await examine();
    expect(report).toMatchObject({ code: 0, healthy: true });
    expect(report.checks.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['settings', 'proxy', 'database', 'migrations', 'keys', 'totals']),
    );
    expect(bad(report)).toEqual([]);
  });

  thorough.it.each<[string, string]>([
    ['user_totals.events_count', 'UPDATE user_totals SET events_count = events_count + 1'],
    ['user_totals.connections_count', 'INSERT INTO user_totals (user_id, connections_count) VALUES (1, 5)'],
    ['user_totals.achievements_count', 'UPDATE user_totals SET achievements_count = achievements_count + 1'],
    ['event_totals.attendees_count', 'DELETE FROM event_totals'],
    ['achievements.earners_count', 'UPDATE achievements SET earners_count = -3'],
    ['platform_totals.active_users_count', 'UPDATE platform_totals SET active_users_count = 99'],
  ])('finds that %s is wrong, and repairs it', async (name, sql) => {
    await api.platform.fold();
    await api.query(sql);
    const report = await examine();
    expect(report).toMatchObject({ code: 1, healthy: false });
    expect(bad(report)).toEqual([
      {
        name,
        status: 'fail',
        message: expect.stringMatching(
          /^is wrong in \d+ rows: the row with id \w+ has -?\d+, but the recount is \d+$/,
        ),
        mend: expect.stringContaining('pua doctor --mend'),
      },
    ]);
    expect(await examine({}, ['--mend'])).toMatchObject({ code: 0, healthy: true });
    expect(await examine()).toMatchObject({ code: 0, healthy: true });
  });

  thorough.it.each([
    ['participants', "starts_at = starts_at + interval '1 day', event_is_draft = true"],
    ['connections', "peer_name = 'zz', peer_is_disabled = true"],
    ['user_achievements', 'user_is_disabled = true'],
  ])('finds wrong denormalized columns in %s, and repairs them', async (table, columns) => {
    await api.dataSource.transaction(async (manager) => {
      await manager.query('SET LOCAL session_replication_role = replica');
      await manager.query(`UPDATE ${table} SET ${columns}`);
    });
    const report = await examine();
    expect(bad(report).map(({ name }) => name)).toEqual([expect.stringContaining(`${table} (`)]);
    expect(await examine({}, ['--mend'])).toMatchObject({ code: 0, healthy: true });
  });

  thorough.it('finds a sequence behind its table, and moves it forward', async () => {
    await api.query(`SELECT setval('events_id_seq', 1)`);
    await api.platform.event({ id: 500 });
    expect(bad(await examine())).toEqual([
      expect.objectContaining({ name: 'events_id_seq', message: expect.stringContaining('has the id 500') }),
    ]);
    expect(await examine({}, ['--mend'])).toMatchObject({ code: 0, healthy: true });
    expect(await api.platform.event()).toBe(501);
  });

  thorough.it.each([
    ['an explicitly set value', `SELECT setval('events_id_seq', ${Number.MAX_SAFE_INTEGER})`],
    ['its MAXVALUE', `ALTER SEQUENCE events_id_seq MAXVALUE 600; SELECT setval('events_id_seq', 600)`],
    [
      'a row with the greatest id',
      `INSERT INTO events (id, title, status, visibility, starts_at, timezone, organizer_id)
  SELECT ${Number.MAX_SAFE_INTEGER}, 'Last', 'scheduled', 'public', now(), 'UTC', id FROM users LIMIT 1;
SELECT setval('events_id_seq', ${Number.MAX_SAFE_INTEGER})`,
    ],
  ])('finds a sequence exhausted by %s, and resets it to its next free value', async (_, sql) => {
    const last = await api.platform.event();
    await api.query(sql);
    const report = bad(await examine());
    expect(report).toEqual([
      expect.objectContaining({
        name: 'events_id_seq',
        message: expect.stringContaining('has reached its end'),
      }),
    ]);
    expect(await examine({}, ['--mend'])).toMatchObject({ code: 0, healthy: true });
    expect(await api.platform.event()).toBe(last + 1);
  });

  thorough.it('explains how to continue a sequence whose range ends below the table’s ids', async () => {
    await api.query(`ALTER SEQUENCE events_id_seq MAXVALUE 400 RESTART 400`);
    await api.platform.event({ id: 1_000 });
    const [check] = bad(await examine({}, ['--mend']));
    expect(check).toMatchObject({ name: 'events_id_seq', status: 'fail' });
    await api.query(/ALTER [^;]+/.exec(check!.mend!)![0]);
    expect(await examine({}, ['--mend'])).toMatchObject({ code: 0, healthy: true });
    expect(await api.platform.event()).toBe(1_001);
  });

  thorough.it('ignores an event of the demo, whose id is above all values of the sequence', async () => {
    await api.platform.event({ id: 900_000_001 });
    expect(await examine()).toMatchObject({ code: 0, healthy: true });
  });

  thorough.it.each([
    ['change trigger that no longer fires for replicated rows', 'events', 'ENABLE', 'events_record_change'],
    ['disabled trigger', 'participants', 'DISABLE', 'participants_removed'],
  ])('finds a %s, and prints the statement that restores the trigger', async (_, table, how, trigger) => {
    await api.query(`ALTER TABLE ${table} ${how} TRIGGER ${trigger}`);
    const [check, ...others] = bad(await examine());
    expect([check!.name, others]).toEqual([`trigger ${table}.${trigger}`, []]);
    await api.query(/ALTER [^;]+/.exec(check!.mend!)![0]);
    expect(await examine()).toMatchObject({ code: 0, healthy: true });
  });

  thorough.it.each([
    ['trigger participants.participants_removed', 'DROP TRIGGER participants_removed ON participants'],
    ['index events_organizer_id_idx', 'DROP INDEX events_organizer_id_idx'],
    ['constraint events.events_title_check', 'ALTER TABLE events DROP CONSTRAINT events_title_check'],
  ])('finds that the %s was dropped, and prints the statement that creates it again', async (name, sql) => {
    await api.query(sql);
    const [check, ...others] = bad(await examine());
    expect([check, others]).toEqual([expect.objectContaining({ name, message: 'is missing' }), []]);
    await api.query(/^run in psql: ([^]+); then/.exec(check!.mend!)![1]!);
    expect(await examine()).toMatchObject({ code: 0, healthy: true });
  });

  thorough.it('finds a replaced function and a dropped function', async () => {
    const statement = /^-- function rarity_tier\(.*\n([^]*?);\n\n/m.exec(
      readFileSync('docs/schema.sql', 'utf8'),
    )![1]!;
    await api.query(statement.replace("'common'", "'usual'"));
    expect(bad(await examine())).toEqual([
      expect.objectContaining({
        name: 'function rarity_tier(bigint,bigint)',
        message: 'differs from the migrations',
      }),
    ]);
    await api.query('DROP FUNCTION rarity_tier');
    expect(bad(await examine())).toEqual([expect.objectContaining({ message: 'is missing' })]);
    await api.query(statement);
    expect(await examine()).toMatchObject({ code: 0, healthy: true });
  });

  postgres.it('finds an invalid index', async () => {
    await asSuperuser(api, (superuser) =>
      superuser.query(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'events_organizer_id_idx'::regclass",
      ),
    );
    const [check, ...others] = bad(await examine());
    expect([check!.name, others]).toEqual(['index events_organizer_id_idx', []]);
    await api.query(/REINDEX .*/.exec(check!.mend!)![0]);
    expect(await examine()).toMatchObject({ code: 0, healthy: true });
  });

  thorough.it('with --watch prints quick checks and changes, and exits with 1 if one fails', async () => {
    type Line = { time: string; name: string; was: string | null; status: string; mend: string | null };
    using child = startPua(api.environment, 'doctor --watch 1s --json');
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const next = async () => JSON.parse((await lines.next()).value as string) as Line;
    /** Skips lines of other checks, which may fail for a moment on a busy host. */
    const nextOf = async (name: string) => {
      for (let line = await next(); ; line = await next()) if (line.name === name) return line;
    };
    const disable = () => api.query('ALTER TABLE participants DISABLE TRIGGER participants_removed');
    const names = new Set<string>();
    while (!names.has('webhooks')) {
      const { time, name } = await next();
      expect(time).toMatch(/^\d{4}.*Z$/);
      names.add(name);
    }
    expect([...names]).toEqual(
      expect.arrayContaining(['settings', 'database', 'migrations', 'signing keys', 'schema']),
    );
    expect(names).not.toContain('totals'); // slow with much data
    await disable();
    const broken = await nextOf('trigger participants.participants_removed');
    expect(broken).toMatchObject({ was: null, status: 'fail' });
    await api.query(/ALTER [^;]+/.exec(broken.mend!)![0]);
    expect(await nextOf(broken.name)).toMatchObject({ was: 'fail', status: 'ok', mend: null });
    await disable();
    expect(await nextOf(broken.name)).toMatchObject({ was: 'ok', status: 'fail' });
    child.kill('SIGINT');
    while (!(await lines.next()).done);
    await (child.exitCode ?? once(child, 'close'));
    expect([child.exitCode, child.signalCode]).toEqual([1, null]);
    await api.query(/ALTER [^;]+/.exec(broken.mend!)![0]);
  });

  postgres.it('with --watch reports that the database is unavailable, and available again', async () => {
    await using proxy = await TcpProxy.start(api.environment.DATABASE_URL!);
    using child = startPua({ ...api.environment, DATABASE_URL: proxy.url }, 'doctor --watch 1s');
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const untilIsSaid = async (what: RegExp) => {
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error(`it ended, and never said ${what}`);
        if (what.test(value)) return;
      }
    };
    await untilIsSaid(/^\S+Z ok +webhooks: /);
    proxy.cut();
    await untilIsSaid(/^\S+Z ok → fail +database: The database cannot be reached/);
    proxy.mend();
    await untilIsSaid(/^\S+Z fail → ok +database: PostgreSQL/);
    child.kill('SIGTERM');
    await (child.exitCode ?? once(child, 'close'));
    expect([child.exitCode, child.signalCode]).toEqual([0, null]);
  });

  it('writes its findings for Prometheus into a file, and leaves the other files unchanged', async () => {
    const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'textfile-'));
    const file = join(folder, 'doctor.prom');
    const began = Math.floor(Date.now() / 1000);
    const victim = join(folder, 'victim');
    writeFileSync(victim, 'untouched');
    symlinkSync(victim, `${file}.draft`); // the temporary file's former name
    await api.query(`SELECT setval('events_id_seq', 1, false)`);
    await api.platform.event({ id: 5, organizer_id: await api.platform.user() });
    const { code } = await examine({}, ['--textfile', file]);
    expect(code).toBe(1);
    const text = readFileSync(file, 'utf8');
    expect(text).toContain('doctor_finding{check="settings"} 0\n');
    expect(text).toContain('doctor_finding{check="events_id_seq"} 2\n');
    expect(Number(/^doctor_last_run_timestamp_seconds (\d+)$/m.exec(text)![1])).toBeGreaterThanOrEqual(began);
    expect(readdirSync(folder).toSorted()).toEqual(['doctor.prom', 'doctor.prom.draft', 'victim']);
    expect(readFileSync(victim, 'utf8')).toBe('untouched');
    await examine({}, ['--mend', '--textfile', file]);
    expect(readFileSync(file, 'utf8')).toContain('doctor_finding{check="sequences"} 0\n');
    const { stderr } = await pua(api.environment, ['doctor', '--textfile', join(folder, 'none/doctor.prom')]);
    expect(stderr).toContain('name a file that this user can write to');
  });

  // A sample consists of ranges of existing ids.
  postgres.it('recounts 10 % of 52,000 members, or all with --full, and states the share', async () => {
    const own = await createTestDatabase();
    const look = async (...args: string[]) => {
      const { stdout } = await pua(own.environment, ['doctor', '--json', ...args]);
      const { checks } = JSON.parse(stdout) as Report;
      return checks.find(({ name }) => name === 'totals' || name === 'user_totals.events_count')!;
    };
    await withDatabase(own.environment, async (query) => {
      await query(`INSERT INTO users (username) SELECT 'many' || n FROM generate_series(1, 52000) n`);
      expect((await look()).message).toMatch(
        /equals its recount \(for a random 10 % of members; --full checks all\)$/,
      );
      expect((await look('--full')).message).toMatch(/equals its recount$/);
      // If every row is wrong, the sample finds its share of them, and --full finds all.
      await query(`INSERT INTO user_totals (user_id, events_count) SELECT id, 1 FROM users`);
      const [, some] = /^is wrong in (\d+) rows/.exec((await look()).message)!;
      expect(Number(some)).toBeGreaterThanOrEqual(5_000);
      expect(Number(some)).toBeLessThanOrEqual(6_000);
      expect((await look('--full')).message).toMatch(/^is wrong in 52000 rows/);
    });
    await own.drop();
  });

  postgres.it(
    'warns if the pools of all processes need more connections than the database accepts',
    async () => {
      const pools = async (WORKERS: string) =>
        bad(await examine({ WORKERS, DATABASE_POOL_SIZE: '100' })).filter(({ name }) => name === 'pool');
      const [server] = await api.query<{ max_connections: string }>('SHOW max_connections');
      const most = Math.floor((Number(server!.max_connections) - 3) / 100);
      expect(await pools(String(most))).toEqual([]);
      expect(await pools(String(most + 1))).toEqual([
        {
          name: 'pool',
          status: 'warn',
          message: expect.stringContaining(`WORKERS × DATABASE_POOL_SIZE is ${most + 1}00, but`),
          mend: expect.stringContaining('max_connections'),
        },
      ]);
    },
  );

  thorough.it('finds a connection that is stored for only one of its two members', async () => {
    const [ada, bob] = [await api.platform.user(), await api.platform.user()];
    const id = await api.platform.connection(ada, bob);
    await api.query('DELETE FROM connections WHERE id = $1 AND user_id = $2', [id, bob]);
    const names = bad(await examine()).map(({ name, message }) => `${name}: ${message}`);
    expect(names).toEqual(['connections: 1 rows have no matching row in the other direction']);
    await api.query('DELETE FROM connections WHERE id = $1', [id]);
    expect(await examine()).toMatchObject({ code: 0 });
  });

  thorough.it('finds keys that were created with another SECRET_KEY', async () => {
    await api.key(await api.platform.user());
    const other = Buffer.alloc(32, 'other').toString('base64');
    const lost = await examine({ SECRET_KEY: other });
    expect(lost.code).toBe(1);
    expect(bad(lost)).toEqual([
      expect.objectContaining({ name: 'signing keys', status: 'fail' }),
      expect.objectContaining({ name: 'keys', status: 'fail' }),
    ]);
    const rotating = await examine({ SECRET_KEY: other, SECRET_KEY_PREVIOUS: SECRET_KEY });
    expect(rotating.code).toBe(0);
    expect(bad(rotating)).toEqual(
      ['signing keys', 'keys'].map((name) =>
        expect.objectContaining({
          name,
          status: 'warn',
          message: expect.stringContaining('SECRET_KEY_PREVIOUS'),
        }),
      ),
    );
  });

  it.each<[string, string, Record<string, string>]>([
    ['https without a trusted proxy', 'proxy', { PUBLIC_URL: 'https://localhost' }],
    ['a trusted proxy on a developer’s machine', 'proxy', { TRUST_PROXY: '1' }],
    [
      'a public server in development mode',
      'settings',
      { PUBLIC_URL: 'https://api.example.com', TRUST_PROXY: '1' },
    ],
  ])('warns of %s', async (_, name, settings) => {
    const report = await examine(settings);
    expect(report.code).toBe(0);
    expect(bad(report)).toEqual([expect.objectContaining({ name, status: 'warn' })]);
  });

  it('names a wrong setting, and exits with 1', async () => {
    const report = await examine({ TRUST_PROXY: 'yes' });
    expect(report).toMatchObject({ code: 1, healthy: false });
    expect(bad(report)).toEqual([
      expect.objectContaining({
        name: 'settings',
        message: 'A setting is wrong',
        mend: expect.stringContaining('TRUST_PROXY'),
      }),
    ]);
  });

  it('reports that the database is unavailable, and exits with 1', async () => {
    const url = `postgres://postgres@127.0.0.1:${await freePort()}/x`;
    const report = await examine({ DATABASE_URL: url });
    expect(report.code).toBe(1);
    expect(bad(report)).toEqual([
      expect.objectContaining({
        name: 'database',
        status: 'fail',
        mend: 'start it, or correct DATABASE_URL',
      }),
    ]);
  });
});

/** Opens a database without a server in this process, and runs SQL. */
async function withDatabase(
  environment: Record<string, string>,
  work: (query: (sql: string) => Promise<unknown>) => Promise<unknown>,
): Promise<void> {
  const config = loadConfig(environment);
  await onDatabase(({ dataSource }) => work((sql) => dataSource.query(sql)), 'anything', config);
}
