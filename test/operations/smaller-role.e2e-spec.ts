import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { migrate, rollback } from '../../src/database/schema/migrate.js';
import { TestApi } from '../support/api.js';
import { pua, puaJson } from '../support/command-line.js';
import { asSuperuser, createEmptyDatabase, postgres, testConfig } from '../support/database.js';
import { openDatabase, type OpenDatabase } from '../support/open-database.js';
import { ServerProcess } from '../support/server.js';

const [, DOCUMENTED] = /## The database's role\n[^]*?```sql\n([^]*?)```/.exec(
  readFileSync('docs/operators/operations.md', 'utf8'),
)!;

/** The documented statements for a role of this name, since all databases of a server share roles. */
const statementsFor = (role: string) =>
  DOCUMENTED!.replaceAll('public_user_api_server', role).replace('<password>', 'password');

/** The settings for the same database, as another role. */
const as = (role: string, { DATABASE_URL, ...others }: Record<string, string>) => {
  const url = new URL(DATABASE_URL!);
  [url.username, url.password] = [role, 'password'];
  return { ...others, DATABASE_URL: url.href };
};

interface Report {
  checks: { name: string; status: string; message: string; mend: string | null }[];
}
const doctor = async (environment: Record<string, string>, ...more: string[]) => {
  const { code, stdout, stderr } = await pua(environment, ['doctor', '--json', ...more]);
  const { checks } = JSON.parse(stdout) as Report;
  return { code, stderr, wrong: checks.filter(({ status }) => status !== 'ok') };
};

postgres.describe('the documented smaller role', () => {
  let api: TestApi;
  let role: string;
  let smaller: Record<string, string>;
  let server: ServerProcess;
  beforeAll(async () => {
    api = await TestApi.start();
    role = new URL(api.environment.DATABASE_URL!).pathname.replace('/test', 'smaller');
    smaller = as(role, api.environment);
    await api.query(statementsFor(role));
    server = await ServerProcess.start(smaller);
  });
  afterAll(async () => {
    await server?.kill('SIGKILL');
    await asSuperuser(api, (superuser) => superuser.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
    await api.close();
  });

  const send = async (method: string, path: string, key: string, type: string, body: string) => {
    const headers = { 'X-API-Key': key, 'Content-Type': type };
    const answer = await fetch(server.url + path, { method, headers, body });
    return [answer.status, await answer.json()];
  };

  it('suffices for profile writes, feeds of new ids, and pua users create', async () => {
    const { id } = await puaJson<{ id: number }>(smaller, ['users', 'create', '--username', 'ada']);
    const json = 'application/json';
    expect(await send('PUT', '/api/public/profile', await api.key(id), json, '{"bio":"here"}')).toMatchObject(
      [200, { profile: { bio: 'here' } }],
    );
    const line = JSON.stringify({ type: 'users', record: { id: id + 1_000, username: 'fed' } });
    const key = await api.platformKey();
    expect(
      await send('POST', '/api/platform/records', key, 'application/x-ndjson', `${line}\n`),
    ).toMatchObject([200, { created: 1 }]);
    const next = await puaJson<{ id: number }>(smaller, ['users', 'create', '--username', 'next']);
    expect(next.id).toBe(id + 1_001);
  });

  it('suffices for the doctor, including repairs', async () => {
    expect(await doctor(smaller)).toMatchObject({ code: 0, wrong: [] });
    const last = Math.max(await api.platform.user(), await api.platform.user());
    await api.query(
      `SELECT setval('users_id_seq', 1); INSERT INTO user_totals (user_id, events_count) VALUES (${last}, 7)`,
    );
    expect((await doctor(smaller)).wrong.map(({ name }) => name)).toEqual([
      'user_totals.events_count',
      'users_id_seq',
    ]);
    expect(await doctor(smaller, '--mend')).toMatchObject({ code: 0, wrong: [] });
  });

  it('has its privileges on tables of later migrations', async () => {
    const tables = () =>
      api.query<{ name: string }>(
        `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`,
      );
    const before = await tables();
    while ((await tables()).length > before.length - 2) await rollback(api.dataSource);
    await migrate(api.dataSource);
    expect(await tables()).toHaveLength(before.length);
    expect(await doctor(smaller)).toMatchObject({ code: 0, wrong: [] });
  });

  it('cannot change the schema: pua db migrate fails with a one-line error', async () => {
    await rollback(api.dataSource);
    const { code, stderr } = await pua(smaller, ['db', 'migrate']);
    await migrate(api.dataSource);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^1 of 1: \w+\nThe database role lacks a privilege .*: run the command as the owner[^\n]*\n$/,
    );
  });

  it('cannot write the table schema_versions', async () => {
    const client = await createDataSource(testConfig(smaller), 'maintenance').initialize();
    try {
      await expect(
        client.query(`INSERT INTO schema_versions (digest, objects) VALUES ('forged', '{}')`),
      ).rejects.toThrow(/row-level security/);
      const [, written] = await client.query<[unknown, number]>(`UPDATE schema_versions SET objects = '{}'`);
      expect(written).toBe(0);
      const [, deleted] = await client.query<[unknown, number]>('DELETE FROM schema_versions');
      expect(deleted).toBe(0);
    } finally {
      await client.destroy();
    }
  });

  it('is checked by the doctor, which prints the statements that grant missing rights', async () => {
    await api.query(`REVOKE UPDATE ON users FROM ${role}; REVOKE ALL ON users_id_seq, events_id_seq FROM ${role};
  REVOKE SELECT ON migrations FROM ${role}`);
    const { code, stderr, wrong } = await doctor(smaller);
    expect([code, stderr]).toEqual([1, expect.not.stringContaining('    at ')]);
    expect(wrong.map(({ name, message }) => [name, message])).toEqual([
      ['privileges on tables', `the role ${role} lacks SELECT, UPDATE on migrations, users`],
      [
        'privileges on sequences',
        `the role ${role} lacks SELECT, UPDATE, USAGE on events_id_seq, users_id_seq`,
      ],
    ]);
    for (const { mend } of wrong) await api.query(/GRANT [^;]+/.exec(mend!)![0]);
    expect(await doctor(smaller)).toMatchObject({ code: 0, wrong: [] });
  });
});

postgres.describe('a schema other than public', () => {
  let database: OpenDatabase;
  beforeAll(async () => {
    database = await openDatabase('maintenance', createEmptyDatabase());
    const { pathname } = new URL(database.environment.DATABASE_URL!);
    await database.dataSource.query(
      `CREATE SCHEMA other; ALTER DATABASE ${pathname.slice(1)} SET search_path = other, public`,
    );
  });
  afterAll(() => database.close());

  it.each(['db migrate', 'db status', 'users list', 'doctor'])(
    'is rejected without a stack trace: pua %s',
    async (command) => {
      const { code, stdout, stderr } = await pua(database.environment, command.split(' '));
      expect(code).toBe(1);
      expect(stdout + stderr).toMatch(
        /uses the schema other, but the tables are in public\W+remove search_path from/,
      );
      expect(stdout + stderr).not.toContain('    at ');
      const made = await asSuperuser(database, (superuser) =>
        superuser.query("SELECT FROM pg_class WHERE relname = 'migrations'"),
      );
      expect(made).toEqual([]);
    },
  );
});
