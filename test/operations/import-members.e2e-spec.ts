import { once } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { QueryRunner } from 'typeorm';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { importRecords } from '../../src/import/import-records.js';
import { streamSource } from '../../src/import/sources.js';
import { TestApi } from '../support/api.js';
import { atOnce } from '../support/concurrent.js';
import { startPua } from '../support/command-line.js';
import { postgres } from '../support/database.js';
import { BASE, event, importsInto, removeImported, user, writeFolder } from '../support/import-files.js';
import { eventually } from '../support/timing.js';

postgres.describe('an import of existing members', () => {
  let api: TestApi;
  let holder: QueryRunner;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());
  beforeEach(async () => {
    await removeImported(api.dataSource);
    holder = api.dataSource.createQueryRunner();
  });

  const { load, rows } = importsInto(() => api);
  const stored = (columns: string) => rows(`SELECT ${columns} FROM users WHERE id = 1`);
  const pending = () => rows<{ user_id: number }>('SELECT user_id FROM pending_members ORDER BY user_id');
  const isOver = () => eventually(async () => (await pending()).length === 0 || undefined);
  /** Locks members, so that their changes stay pending. */
  const hold = async (ids: readonly number[]) => {
    await holder.startTransaction();
    await holder.query('SELECT FROM users WHERE id = ANY ($1) FOR UPDATE', [ids]);
  };
  const letGo = async () => {
    await holder.rollbackTransaction();
    await holder.release();
  };
  /** Waits until the import has committed and only these members are pending. */
  const isHeldUpBy = (ids: readonly number[]) =>
    eventually(
      async () =>
        JSON.stringify((await pending()).map(({ user_id }) => user_id)) === JSON.stringify(ids) || undefined,
    );

  it('exchanges usernames and external ids between members, and with a new member', async () => {
    const named = (id: number, name: string) => user(id, { username: name, external_id: name });
    await load({ users: [named(1, 'ada'), named(2, 'bea'), named(3, 'cea'), named(4, 'dea')] });
    const report = await load({
      users: [named(1, 'bea'), named(2, 'ada'), named(3, 'dea'), named(4, 'eva'), named(5, 'cea')],
    });
    expect(report.files.users).toMatchObject({ inserted: 1, updated: 4 });
    expect(await rows('SELECT username, external_id FROM users ORDER BY id')).toEqual(
      ['bea', 'ada', 'dea', 'eva', 'cea'].map((name) => ({ username: name, external_id: name })),
    );
  });

  it('changes nothing if the database would reject one of the members', async () => {
    await load(BASE);
    await rows(`ALTER TABLE users ADD CONSTRAINT no_secrets CHECK (bio <> 'secret')`);
    const report = await load({ users: [user(1, { bio: 'new' }), user(2, { bio: 'secret' })] });
    await rows('ALTER TABLE users DROP CONSTRAINT no_secrets');
    expect(report).toMatchObject({
      imported: false,
      firstRejects: [{ line: 2, reason: 'record: violates the database rule no_secrets' }],
    });
    expect(await rows('SELECT bio FROM users')).toEqual([{ bio: null }, { bio: null }]);
  });

  it('keeps a field that the member changed before the import wrote it, with --keep-profile', async () => {
    await load(BASE);
    await hold([1]);
    const loaded = load({ users: [user(1, { bio: 'old', first_name: 'Ada' })] }, { keepProfile: true });
    await isHeldUpBy([1]);
    await holder.query(`UPDATE users SET bio = 'mine', edited_fields = '{bio}' WHERE id = 1`);
    await holder.commitTransaction();
    await holder.release();
    await loaded;
    expect(await stored('bio, first_name')).toEqual([{ bio: 'mine', first_name: 'Ada' }]);
  });

  it('keeps a member’s username and external id if another member took the new ones meanwhile, and writes the bio', async () => {
    await load(BASE);
    await hold([1]);
    const loaded = load({ users: [user(1, { username: 'wanted', external_id: 'x', bio: 'new' })] });
    await isHeldUpBy([1]);
    await rows(`INSERT INTO users (id, username, external_id) VALUES (90, 'Wanted', 'x')`);
    await letGo();
    await loaded;
    expect(await stored('username, external_id, bio')).toEqual([
      { username: 'u1', external_id: null, bio: 'new' },
    ]);
  });

  it('writes nothing about a member who was erased meanwhile', async () => {
    await load(BASE);
    await hold([1]);
    const loaded = load({ users: [user(1, { bio: 'new', username: 'newer' })] });
    await isHeldUpBy([1]);
    const erased = eraseMembers(api.dataSource, [1], { actor: 'admin' });
    await letGo();
    await Promise.all([erased, loaded]);
    expect(await pending()).toEqual([]);
    expect(await stored('username, bio')).toEqual([{ username: 'erased-1', bio: null }]);
  });

  it('completes even if another transaction deletes one of the members meanwhile', async () => {
    await load({ users: [user(1), user(2)] });
    await hold([2]);
    const loaded = load({ users: [user(2, { bio: 'new' })] });
    await isHeldUpBy([2]);
    await holder.query('DELETE FROM users WHERE id = 2');
    await holder.commitTransaction();
    await holder.release();
    expect(await loaded).toMatchObject({ imported: true });
    expect(await pending()).toEqual([]);
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'is completed by a server if %s ended the command after its commit, and delays other imports until then',
    async (signal) => {
      await load(BASE);
      await hold([1]);
      const users = [user(1, { bio: 'new' }), user(2, { bio: 'new' })];
      const folder = writeFolder({ events: [event(1, { title: 'New' })], users });
      const child = startPua(api.environment, ['import', folder]);
      const errors = text(child.stderr);
      const closed = once(child, 'close');
      await isHeldUpBy([1]);
      child.kill(signal);
      const [code] = (await closed) as [number | null];
      if (signal === 'SIGTERM')
        expect([code, await errors]).toEqual([
          1,
          'The records are imported, but some affected members are not updated yet: a running server or the next import updates them\n',
        ]);
      expect(await rows('SELECT title FROM events')).toEqual([{ title: 'New' }]);
      const next = importRecords(
        api.dataSource,
        streamSource(
          Readable.from([Buffer.from(JSON.stringify({ type: 'users', record: user(1, { bio: 'last' }) }))]),
        ),
      );
      await letGo();
      await isOver();
      expect((await next).files.users).toMatchObject({ updated: 1 });
      expect(await rows('SELECT bio FROM users ORDER BY id')).toEqual([{ bio: 'last' }, { bio: 'new' }]);
    },
  );

  it('has its pending members updated by a server', async () => {
    await load(BASE);
    await rows(
      `INSERT INTO pending_members SELECT id, false, jsonb_build_object('id', id, 'username', 'left', 'bio', 'new') FROM users WHERE id = 1`,
    );
    await isOver();
    expect(await stored('username, bio')).toEqual([{ username: 'left', bio: 'new' }]);
  });

  it('lets members save profiles meanwhile, and other transactions refer to members', async () => {
    const members = 20_000;
    // The state of the first import into a database after an autovacuum.
    await rows('ANALYZE users, pending_members');
    await rows(`INSERT INTO users (id, username) SELECT n, 'u' || n FROM generate_series(1, ${members}) n`);
    const keys = await atOnce(40, (n) => api.key(1 + n * 500));
    let isRunning = true;
    const put = async (n: number) =>
      (await api.put('/profile', keys[n % keys.length]!, { bio: `I am number ${n}` })).status;
    // The lock that a foreign key check acquires.
    const refer = (n: number) =>
      rows(`SELECT FROM users WHERE id = ${1 + ((n * 500) % members)} FOR KEY SHARE`);
    const writers = async () => {
      const outcomes = [];
      for (let n = 0; isRunning; n++) {
        outcomes.push(put(n), refer(n));
        await setTimeout(50);
      }
      return Promise.all(outcomes);
    };
    const written = writers();
    const report = await load({
      users: Array.from({ length: members }, (_, n) =>
        user(n + 1, { username: `renamed${n + 1}`, external_id: `e${n + 1}`, first_name: 'Ada' }),
      ),
    }).finally(() => (isRunning = false));
    expect(report).toMatchObject({ imported: true, files: { users: { read: members, updated: members } } });
    expect((await written).filter((outcome) => outcome !== 200 && !Array.isArray(outcome))).toEqual([]);
    expect(
      await rows(
        `SELECT count(*) AS n FROM users WHERE username = 'renamed' || id AND external_id = 'e' || id`,
      ),
    ).toEqual([{ n: members }]);
    await api.platform.settle(); // otherwise the next test would wait for the background work
  });
});
