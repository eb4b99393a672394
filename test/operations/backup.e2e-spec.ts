import { chmodSync, createWriteStream, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { findBinaries, startPostgres } from '../../bin/postgres.mjs';
import type { TestApi } from '../support/api.js';
import { pua, puaJson, startPua } from '../support/command-line.js';
import { postgres } from '../support/database.js';
import { commandsOf, query, runCommands, statusOf } from '../support/drills.js';
import { freePort, OauthTest, type Browser, PASSWORD, REDIRECT_URI } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';
import { soon, until } from '../support/timing.js';

const PAGE = 'docs/operators/backup.md';
type Cluster = Awaited<ReturnType<typeof startPostgres>>;

postgres.describe('the backup scripts', () => {
  let folder: string;
  const clusters: Cluster[] = [];
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pua-backup-'));
    chmodSync(folder, 0o755); // PostgreSQL runs as another user
  });
  afterAll(async () => {
    await Promise.all(clusters.map((each) => each.stop()));
    rmSync(folder, { recursive: true, force: true });
  });

  const cluster = async (name: string, settings: Record<string, string> = {}) => {
    mkdirSync(join(folder, name), { recursive: true });
    const started = await startPostgres(join(folder, name), settings);
    clusters.push(started);
    return started;
  };
  const run = (commands: string, environment: Readonly<Record<string, string>>) =>
    runCommands(`PATH=${findBinaries()}:$PATH; ${commands}`, environment);
  const owned = (path: string) => run(`if [ "$(id -u)" = 0 ]; then chown -R postgres "${path}"; fi`, {});

  describe('with archived WAL', () => {
    let paths: Record<'BACKUPS' | 'ARCHIVE' | 'TRAIL' | 'TEXTFILES', string>;
    let server: ServerProcess;
    let oauth: OauthTest;
    /** Settings of commands and servers that use the restored database. */
    let environment: Record<string, string>;
    let appId: string;
    let keys: Record<'kept' | 'revoked' | 'rotated' | 'late', string>;
    let tokens: Record<'spent' | 'successor' | 'ended', string>;
    let pending: string[];
    /** Token of a member who was signed out after the restored moment. */
    let browser: Browser;
    const one = async <T>(url: string, sql: string) => (await query<{ is: T }>(url, sql))[0]!.is;

    beforeAll(async () => {
      paths = {
        BACKUPS: join(folder, 'backups'),
        ARCHIVE: join(folder, 'archive'),
        TRAIL: join(folder, 'trail.jsonl'),
        TEXTFILES: join(folder, 'textfiles'),
      };
      for (const path of [paths.BACKUPS, paths.ARCHIVE, paths.TEXTFILES]) mkdirSync(path);
      await owned(paths.ARCHIVE);
      const [, archiving] = /```ini\n([^]*?)```/.exec(readFileSync(PAGE, 'utf8'))!;
      const settings = Object.fromEntries(
        [...archiving!.matchAll(/^(\w+) = '?(.*?)'?$/gm)].map(([, name, value]) => [
          name!,
          value!.replaceAll('/archive/', `${paths.ARCHIVE}/`),
        ]),
      );
      const live = await cluster('live', settings);
      const port = String(await freePort());
      environment = {
        NODE_ENV: 'test',
        SECRET_KEY: process.env.TEST_SECRET_KEY!,
        DATABASE_URL: live.url,
        LOG_LEVEL: 'silent',
        PORT: port,
        PUBLIC_URL: `http://127.0.0.1:${port}`,
        RATE_LIMIT_AUTH: '0',
        SWEEP_INTERVAL: '86400', // a sweep would delete the expired code
      };
      const json = <T>(...parameters: string[]) => puaJson<T>(environment, parameters);
      await json('db', 'migrate');
      for (const name of ['ada', 'bob', 'eve', 'zoe']) {
        await json('users', 'create', '--username', name, '--bio', 'as it was');
        if (name === 'ada' || name === 'zoe')
          await puaJson(environment, ['users', 'set-password', name, '--password-stdin'], PASSWORD);
      }
      const key = (name: string) =>
        json<{ id: string; key: string }>('keys', 'create', '--user', 'ada', '--name', name, '--scopes', 'profile:read,profile:write'); // prettier-ignore
      const [kept, revoked, rotated] = [await key('kept'), await key('revoked'), await key('rotated')];
      ({ client_id: appId } = await json<{ client_id: string }>(
        'clients', 'create', '--name', 'App', '--type', 'web', '--redirect-uri', REDIRECT_URI,
      )); // prettier-ignore
      const other = await json<{ client_id: string }>(
        'clients', 'create', '--name', 'Other', '--type', 'web', '--redirect-uri', 'https://other.example/callback',
      ); // prettier-ignore
      const deleted = await json<{ client_id: string }>(
        'clients', 'create', '--name', 'Deleted', '--type', 'web', '--redirect-uri', 'https://deleted.example/callback',
      ); // prettier-ignore
      server = await ServerProcess.start(environment);
      oauth = new OauthTest({ config: { publicUrl: server.url } } as TestApi);
      const refreshTokenOf = async (answer: Promise<{ body: { refresh_token?: string } }>) =>
        (await answer).body.refresh_token!;
      browser = oauth.browser();
      const first = await refreshTokenOf(oauth.token(await oauth.code(appId, 'ada')));
      const ofZoe = await refreshTokenOf(oauth.token(await oauth.code(appId, 'zoe', {}, browser)));

      const [setUp] = commandsOf(PAGE, 'Set up');
      // With the PATH of a service, which does not include PostgreSQL's own folder.
      const backUp = () => runCommands(setUp!, { ...paths, BACKUP_URL: live.url, KEEP: '1' });
      await backUp();
      await backUp();

      // Changes after the copy, and before the restored moment.
      const trail = startPua(environment, ['audit', '--json', '--follow']);
      trail.stdout.pipe(createWriteStream(paths.TRAIL));
      let updates = 0;
      await until(async () => {
        await json('users', 'update', 'ada', '--bio', `followed ${++updates}`);
        return readFileSync(paths.TRAIL, 'utf8').includes('user.updated');
      }, 'the trail is followed');
      const spent = await refreshTokenOf(oauth.refresh(appId, first));
      await json('webhooks', 'create', '--url', 'https://nobody.example/', '--types', 'profile.updated', '--key', kept.id); // prettier-ignore
      await json('users', 'update', 'ada', '--bio', 'to be restored');
      const messages = 'SELECT id::text FROM webhook_deliveries';
      await until(async () => (await query(live.url, messages)).length > 0, 'there is a message');
      pending = (await query<{ id: string }>(live.url, messages)).map(({ id }) => id);
      const code = await oauth.code(appId, 'ada');
      const moment = await one<string>(live.url, 'SELECT clock_timestamp()::text AS is');

      // Changes after the restored moment: the code, which is valid for a minute, a bad import, and changes that must be repeated.
      expect((await oauth.token(code)).status).toBe(200);
      const successor = await refreshTokenOf(oauth.refresh(appId, spent));
      mkdirSync(join(folder, 'import'));
      const users = await query<{ id: number; username: string }>(
        live.url,
        'SELECT id::int, username FROM users',
      );
      const lines = users.map(({ id, username }) => JSON.stringify({ id, username, bio: 'nonsense' }));
      writeFileSync(join(folder, 'import/users.ndjson'), lines.join('\n'));
      await json('import', join(folder, 'import'));
      expect(await one(live.url, `SELECT count(*)::int AS is FROM users WHERE bio = 'nonsense'`)).toBe(4);
      const late = await key('late');
      await json('keys', 'revoke', revoked.id, '--reason', 'leaked');
      await json('keys', 'rotate', rotated.id, '--overlap', '0s');
      await json('users', 'revoke-access', 'zoe');
      await json('users', 'erase', 'bob', '--yes');
      await json('users', 'disable', 'eve');
      await json('clients', 'delete', deleted.client_id, '--yes');
      await json('clients', 'disable', other.client_id);
      await until(() => readFileSync(paths.TRAIL, 'utf8').includes('client.disabled'), 'the trail is whole');
      trail.kill('SIGINT');
      keys = { kept: kept.key, revoked: revoked.key, rotated: rotated.key, late: late.key };
      tokens = { spent, successor, ended: ofZoe };

      // Waits for this segment by name: the server's own writes begin the next one, which is archived later.
      const segment = await one<string>(live.url, 'SELECT pg_walfile_name(pg_switch_wal()) AS is');
      const archived = `SELECT last_archived_wal >= '${segment}' AS is FROM pg_stat_archiver`;
      await until(() => one<boolean>(live.url, archived), 'the log is archived');
      await server.kill();
      await live.stop();

      mkdirSync(join(folder, 'back'));
      const [restore] = commandsOf(PAGE, 'Restore to a moment');
      const RESTORED = join(folder, 'back/data');
      const BACKUP = join(paths.BACKUPS, readdirSync(paths.BACKUPS)[0]!);
      await run(restore!, { ...paths, BACKUP, RESTORED, MOMENT: moment });
      await owned(join(folder, 'back'));
      const back = await cluster('back');
      environment = { ...environment, DATABASE_URL: back.url };
      await until(
        () => one<boolean>(back.url, 'SELECT NOT pg_is_in_recovery() AS is'),
        'the moment is reached',
      );
      server = await ServerProcess.start(environment);
    });
    afterAll(() => server?.kill());

    const refreshed = async (token: string) => {
      const { status, body } = await oauth.refresh(appId, token);
      return status === 200 ? 200 : (body as { error?: string }).error;
    };

    it('keep only the newest backup and its WAL with KEEP=1, and report its time to node_exporter', () => {
      expect(readdirSync(paths.BACKUPS)).toHaveLength(1);
      const label = readFileSync(join(paths.BACKUPS, readdirSync(paths.BACKUPS)[0]!, 'backup_label'), 'utf8');
      const [, first] = /\(file (\w+)\)/.exec(label)!;
      const logs = readdirSync(paths.ARCHIVE).filter((name) => /^\w{24}$/.test(name));
      expect(logs.toSorted()[0]).toBe(first);
      const [, at] = /^backup_last_success_timestamp_seconds (\d+)\n$/.exec(
        readFileSync(join(paths.TEXTFILES, 'backup.prom'), 'utf8'),
      )!;
      expect(Math.abs(Number(at) - Date.now() / 1000)).toBeLessThan(3_600);
      expect(readdirSync(paths.TEXTFILES)).toEqual(['backup.prom']);
    });

    it('remove a backup that pg_verifybackup rejects, and keep earlier backups', async () => {
      const before = readdirSync(paths.BACKUPS);
      const programs = mkdtempSync(join(folder, 'programs-'));
      writeFileSync(join(programs, 'pg_verifybackup'), '#!/bin/sh\necho unlike >&2; exit 1\n', {
        mode: 0o755,
      });
      const [setUp] = commandsOf(PAGE, 'Set up');
      const variables = { ...paths, BACKUP_URL: environment.DATABASE_URL!, KEEP: '1' };
      await expect(runCommands(`PATH=${programs}:$PATH; ${setUp}`, variables)).rejects.toThrow('unlike');
      expect(readdirSync(paths.BACKUPS)).toEqual(before);
    });

    it('restore members, messages, and credentials that ended later; the audit log ends the credentials again', async () => {
      const bios = await query<{ bio: string }>(
        environment.DATABASE_URL!,
        'SELECT bio FROM users ORDER BY username',
      );
      expect(bios.map(({ bio }) => bio)).toEqual(['to be restored', 'as it was', 'as it was', 'as it was']);
      expect((await pua(environment, ['doctor'])).stdout).not.toMatch(/^fail/m);

      expect(await statusOf(server, keys.kept)).toBe(200);
      expect(await statusOf(server, keys.revoked)).toBe(200);
      expect(await statusOf(server, keys.rotated)).toBe(200);
      expect(await statusOf(server, keys.late)).toBe(401);

      const isSignedIn = async () => !/type="password"/.test((await browser.view('/account/sessions')).html); // prettier-ignore
      expect(await isSignedIn()).toBe(true);
      const codes = await query<{ used: boolean; brief: boolean }>(
        environment.DATABASE_URL!,
        `SELECT consumed_at IS NOT NULL AS used, expires_at - created_at <= interval '61 s' AS brief FROM oauth_tokens
WHERE model = 'AuthorizationCode' ORDER BY created_at DESC LIMIT 1`,
      );
      expect(codes).toEqual([{ used: false, brief: true }]);

      expect(await refreshed(tokens.successor)).toBe('invalid_grant');
      expect(await refreshed(tokens.spent)).toBe(200);
      expect(await refreshed(tokens.ended)).toBe(200);

      const messages = await query<{ id: string; status: string }>(
        environment.DATABASE_URL!,
        'SELECT id::text, status FROM webhook_deliveries',
      );
      expect(messages.map(({ id }) => id)).toEqual(pending);
      expect(messages.map(({ status }) => status)).toEqual(['pending']);

      await run(commandsOf(PAGE, 'Revoke again').join('\n'), { ...environment, ...paths });
      await soon(async () => (await statusOf(server, keys.revoked)) === 401);
      await soon(async () => (await statusOf(server, keys.rotated)) === 401);
      expect(await statusOf(server, keys.kept)).toBe(200);
      expect(await refreshed(tokens.ended)).toBe('invalid_grant');
      expect(await isSignedIn()).toBe(false);
      const rows = (sql: string) => one(environment.DATABASE_URL!, sql);
      expect(await rows(`SELECT count(*)::int AS is FROM users WHERE username = 'bob'`)).toBe(0);
      expect(await rows(`SELECT disabled_at IS NOT NULL AS is FROM users WHERE username = 'eve'`)).toBe(true);
      expect(await rows('SELECT count(*)::int AS is FROM oauth_clients WHERE redirect_uris[1] LIKE \'%deleted.example%\'')).toBe(0); // prettier-ignore
      expect(await rows('SELECT disabled_at IS NOT NULL AS is FROM oauth_clients WHERE redirect_uris[1] LIKE \'%other.example%\'')).toBe(true); // prettier-ignore
    });
  });
});
