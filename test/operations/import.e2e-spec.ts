import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { hash } from '@node-rs/argon2';
import { verifyPassword } from '../../src/accounts/passwords/passwords.js';
import { ADVISORY_LOCKS } from '../../src/database/schema/advisory-locks.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { totalOfMember } from '../../src/database/sql.js';
import { importRecords } from '../../src/import/import-records.js';
import { ImportSet } from '../../src/import/import-set.js';
import { beginImport, Staging } from '../../src/import/staging.js';
import { SigningKeysService } from '../../src/clients/signing-keys.service.js';
import { folderSource, readFeedLine } from '../../src/import/sources.js';
import { TestApi } from '../support/api.js';
import { PROCESS, pua, puaJson, startPua } from '../support/command-line.js';
import { hold, lockWaits, postgres, thorough, waitingForLock } from '../support/database.js';
import {
  achievement,
  BASE,
  BCRYPT_HASH,
  connection,
  earned,
  event,
  importsInto,
  participant,
  removeImported,
  user,
  writeFolder,
  type ImportedFiles,
  type ImportedRecord,
} from '../support/import-files.js';
import { until } from '../support/timing.js';

describe('pua import', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());
  beforeEach(() => removeImported(api.dataSource));

  const { load, rows, everything } = importsInto(() => api);
  const recordsIn = (file: string) =>
    readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((text) => JSON.parse(text) as ImportedRecord);
  /** Rows of all members, by id. */
  const totals = async (column: 'events_count' | 'connections_count') =>
    (await rows<{ n: number }>(`SELECT ${totalOfMember(column, 'u.id')} AS n FROM users u ORDER BY id`)).map(
      ({ n }) => n,
    );

  describe('writes', () => {
    it('fields of members, events and achievements, and the defaults of absent fields', async () => {
      const passwordHash = await hash('imported secret');
      const place = { name: 'Hall', city: 'Bozeman', country_code: 'US' };
      await load({
        users: [
          user(7, {
            first_name: 'Ada',
            last_name: 'L',
            display_name: 'The Countess',
            bio: '',
            profile_picture: 'https://x.com/a.png',
            password_hash: passwordHash,
            created_at: '2020-01-02 03:04:05',
            disabled_at: '2024-01-01T01:00:00.5+01:00',
          }),
          user(8),
        ],
        events: [
          event(3, {
            organizer_id: 7,
            ends_at: '2024-05-01 20:00:00',
            is_online: true,
            online_url: 'https://meet.example.com/x',
            location: { ...place, address: '1 Main', latitude: 45.5, longitude: -111 },
            capacity: 0,
            tags: ['a', 'b'],
            created_at: '2024-01-01 00:00:00',
            updated_at: '2024-01-02 00:00:00',
            cancelled_at: '2024-04-01 00:00:00',
            cancellation_reason: 'rain',
            deleted_at: '2024-06-01 00:00:00',
          }),
          event(4, { organizer_id: 8 }),
        ],
        achievements: [
          achievement(2, { retired_at: '2024-01-01 00:00:00', target: 5, position: -1, is_hidden: true }),
        ],
        user_achievements: [{ user_id: 8, achievement_id: 2 }],
      });
      const [ada] = await rows<{ password_hash: string }>('SELECT * FROM users WHERE id = 7');
      expect(ada).toMatchObject({
        display_name: 'The Countess',
        bio: '',
        created_at: new Date('2020-01-02T03:04:05Z'),
        disabled_at: new Date('2024-01-01T00:00:00.500Z'),
      });
      expect(await verifyPassword(ada!.password_hash, 'imported secret')).toMatchObject({ matches: true });
      expect((await rows('SELECT * FROM users WHERE id = 8'))[0]).toMatchObject({
        display_name: 'u8',
        first_name: null,
        password_hash: null,
        disabled_at: null,
        created_at: expect.any(Date),
      });
      const [full, bare] = await rows('SELECT * FROM events ORDER BY id');
      expect(full).toMatchObject({
        starts_at: new Date('2024-05-01T18:00:00Z'),
        location_city: 'Bozeman',
        location_longitude: -111,
        capacity: 0,
        tags: ['a', 'b'],
        cancellation_reason: 'rain',
        deleted_at: new Date('2024-06-01T00:00:00Z'),
      });
      expect(bare).toMatchObject({
        location_name: null,
        tags: [],
        is_all_day: false,
        is_online: false,
        ends_at: null,
      });
      expect((await rows('SELECT * FROM achievements'))[0]).toMatchObject({
        target: 5,
        position: -1,
        is_hidden: true,
      });
      expect((await rows('SELECT * FROM user_achievements'))[0]).toMatchObject({
        progress: 0,
        earned_at: null,
      });
    });

    thorough.it('a connection as two rows, one for each member', async () => {
      await load({
        ...BASE,
        users: [user(1), user(2), user(3)],
        connections: [
          connection(4, 1, 2, { source: 'event', met_at_event_id: 1 }),
          connection(5, 3, 1, { status: 'pending', connected_at: null }),
        ],
      });
      expect(
        await rows('SELECT id, user_id, peer_id, status, source FROM connections ORDER BY id, user_id'),
      ).toEqual([
        { id: 4, user_id: 1, peer_id: 2, status: 'accepted', source: 'event' },
        { id: 4, user_id: 2, peer_id: 1, status: 'accepted', source: 'event' },
        { id: 5, user_id: 1, peer_id: 3, status: 'pending_received', source: null },
        { id: 5, user_id: 3, peer_id: 1, status: 'pending_sent', source: null },
      ]);
      const { files } = await load({ connections: [connection(5, 3, 1)] });
      expect(files.connections).toMatchObject({ updated: 1 });
      expect(await totals('connections_count')).toEqual([2, 1, 1]);
    });

    thorough.it('ids up to 9,000,000,000,000,000, which leaves room for new ids', async () => {
      const highest = 9_000_000_000_000_000;
      await load({ users: [user(highest)] });
      expect(await api.platform.user()).toBe(highest + 1);
      const { imported } = await load({ users: [user(Number.MAX_SAFE_INTEGER)] });
      expect(imported).toBe(false);
      await api.query('DELETE FROM users; ALTER SEQUENCE users_id_seq RESTART WITH 100');
    });

    thorough.it('records with their ids; new ids are higher than imported ids', async () => {
      await load({ users: [user(5000)], achievements: [achievement(600)] });
      expect(await api.platform.user()).toBeGreaterThan(5000);
      expect(await api.platform.achievement()).toBeGreaterThan(600);
      const before = await everything();
      await load({ users: [user(3)] });
      expect((await everything()).users_id_seq).toBe(before.users_id_seq);
      await api.query('DELETE FROM users; ALTER SEQUENCE users_id_seq RESTART');
      await load({ users: [user(1)] });
      expect(await api.platform.user()).toBe(2);
    });

    it('only changed rows when a folder is imported again', async () => {
      const files: ImportedFiles = {
        ...BASE,
        participants: [participant(1, 1, { role: 'organizer', rsvp_status: null }), participant(1, 2)],
        connections: [connection(1, 1, 2, { requested_at: null })],
        user_achievements: [earned(1, 1, { pin_position: 1 })],
      };
      const first = await load(files);
      for (const report of Object.values(first.files))
        expect(report).toMatchObject({ updated: 0, unchanged: 0 });
      const before = await everything();
      const audited = (await rows('SELECT * FROM auth_events')).length;
      const again = await load(files);
      const none = { inserted: 0, updated: 0, deleted: 0, rejected: 0 };
      for (const report of Object.values(again.files))
        expect(report).toEqual({ ...none, read: report.read, unchanged: report.read });
      expect(await everything()).toEqual(before);
      expect(await rows('SELECT * FROM auth_events')).toHaveLength(audited);
      const place = () => rows('SELECT ctid, xmin FROM users WHERE id = 1');
      const unmoved = await place();
      const one = await load({ ...files, users: [user(1), user(2, { bio: 'new' })] });
      expect(one.files.users).toMatchObject({ updated: 1, unchanged: 1 });
      expect(await place()).toEqual(unmoved);
      expect(await rows('SELECT id, version FROM users ORDER BY id')).toEqual([
        { id: 1, version: 1 },
        { id: 2, version: 2 },
      ]);
    });

    thorough.it('the current time as a changed event’s updated_at if the file omits this field', async () => {
      await load({ ...BASE, events: [event(1, { updated_at: '2020-01-01 00:00:00' })] });
      await load({ events: [event(1)] });
      expect(await rows('SELECT updated_at::text FROM events')).toEqual([
        { updated_at: expect.stringMatching(/^2020-01-01/) },
      ]);
      await load({ events: [event(1, { title: 'Other' })] });
      const fresh = "SELECT updated_at > now() - interval '1 minute' AS fresh FROM events";
      expect(await rows(fresh)).toEqual([{ fresh: true }]);
    });

    thorough.it('values over members’ changes; omitted passwords and disabled states remain', async () => {
      const kept = { password_hash: BCRYPT_HASH, disabled_at: '2024-01-01 00:00:00' };
      await load({ users: [user(1, { bio: 'platform', ...kept })] });
      await api.query("UPDATE users SET bio = 'mine'");
      await load({ users: [user(1, { bio: 'platform' })] });
      const stored = () => rows('SELECT bio, password_hash, disabled_at IS NULL AS active FROM users');
      expect(await stored()).toEqual([{ bio: 'platform', password_hash: BCRYPT_HASH, active: false }]);
      await load({ users: [user(1, { password_hash: null, disabled_at: null })] });
      expect(await stored()).toEqual([{ bio: null, password_hash: null, active: true }]);
    });

    thorough.it('a new password hash without ending sign-ins; disabling a member ends them', async () => {
      const since = () => rows('SELECT sign_ins_valid_since IS NOT NULL AS ended FROM users');
      await load({ users: [user(1, { password_hash: BCRYPT_HASH })] });
      await load({ users: [user(1, { password_hash: BCRYPT_HASH.replace('$10$', '$11$') })] });
      expect(await since()).toEqual([{ ended: false }]);
      await load({ users: [user(1, { disabled_at: '2024-01-01 00:00:00' })] });
      expect(await since()).toEqual([{ ended: true }]);
    });
  });

  describe('with --keep-profile', () => {
    const stored = () =>
      rows('SELECT first_name, last_name, bio, profile_picture, username FROM users ORDER BY id');

    it('keeps only the fields that the member changed through the API', async () => {
      const platform = user(1, { first_name: 'Ada', last_name: 'L.', bio: 'old' });
      await load({ users: [platform] });
      await api.put('/profile', await api.key(1), { bio: 'mine', first_name: null, last_name: 'L.' });
      const later = { ...platform, first_name: 'A.', last_name: 'Lovelace', bio: 'new', username: 'ada' };
      const { files } = await load({ users: [later, user(2, { bio: 'b' })] }, { keepProfile: true });
      expect(files.users).toMatchObject({ inserted: 1, updated: 1 });
      expect(await stored()).toEqual([
        { first_name: null, last_name: 'Lovelace', bio: 'mine', profile_picture: null, username: 'ada' },
        { first_name: null, last_name: null, bio: 'b', profile_picture: null, username: 'u2' },
      ]);
      const again = await load({ users: [later] }, { keepProfile: true });
      expect(again.files.users).toMatchObject({ updated: 0, unchanged: 1 });
    });

    thorough.it('overwrites changes that members made before an import without the option', async () => {
      await load({ users: [user(1, { bio: 'old' })] });
      await api.put('/profile', await api.key(1), { bio: 'mine' });
      await load({ users: [user(1, { bio: 'new' })] });
      await load({ users: [user(1, { bio: 'newer' })] }, { keepProfile: true });
      expect(await stored()).toMatchObject([{ bio: 'newer' }]);
    });
  });

  describe('reads', () => {
    it('gzip, Windows line ends, blank lines, a byte order mark and a last line without end', async () => {
      const folder = writeFolder({ achievements: [achievement(1)] }, true);
      const text = `\u{feff}${JSON.stringify(user(1))}\r\n\r\n  \n${JSON.stringify(user(2))}`;
      writeFileSync(join(folder, 'users.ndjson'), text);
      writeFileSync(join(folder, 'events.ndjson'), '');
      const { imported, files } = await importRecords(api.dataSource, folderSource(folder));
      expect(imported).toBe(true);
      expect(files).toMatchObject({
        users: { inserted: 2 },
        achievements: { inserted: 1 },
        events: { read: 0 },
      });
    });

    thorough.it('lines that span blocks of the file, with correct line numbers', async () => {
      const people = Array.from({ length: 3000 }, (_, i) => user(i + 1, { bio: 'é'.repeat((i * 7) % 450) }));
      const { files, firstRejects } = await load(
        { users: [...people, user(4000, { bio: 'x'.repeat(501) })] },
        { dryRun: true },
      );
      expect(files.users).toMatchObject({ read: 3001, inserted: 3000, rejected: 1 });
      expect(firstRejects[0]).toMatchObject({ line: 3001 });
    });

    it.each<[what: string, file: string, content: string | Buffer | undefined, message: RegExp]>([
      [
        'a file in both forms',
        'users.ndjson.gz',
        gzipSync(''),
        /has both users.ndjson and users.ndjson.gz: /,
      ],
      [
        'truncated gzip',
        'events.ndjson.gz',
        gzipSync(JSON.stringify(event(1))).subarray(0, 40),
        /events.ndjson.gz cannot be read \(unexpected end of file\)/,
      ],
      [
        'a .gz file that is not gzip',
        'events.ndjson.gz',
        'plain',
        /events.ndjson.gz cannot be read \(incorrect header check\)/,
      ],
      ['a folder instead of a file', 'events.ndjson', undefined, /events.ndjson cannot be read \(EISDIR/],
    ])('nothing into the database if there is %s', async (_, file, content, message) => {
      const folder = writeFolder({ users: [user(1)] });
      if (content === undefined) mkdirSync(join(folder, file));
      else writeFileSync(join(folder, file), content);
      const before = await everything();
      await expect(async () => importRecords(api.dataSource, folderSource(folder))).rejects.toThrow(message);
      expect(await everything()).toEqual(before);
    });
  });

  describe('removes', () => {
    const people = { users: [user(1), user(2), user(3)], events: [event(1), event(2)] };
    const pairs = () =>
      rows(
        'SELECT id, user_id, peer_id, status, api_time(requested_at) AS requested_at FROM connections ORDER BY id, user_id',
      );

    it('a participation, and updates the report and the totals', async () => {
      await load({ ...people, participants: [participant(1, 1), participant(1, 2), participant(2, 1)] });
      const { files } = await load({
        participants: [
          { event_id: 1, user_id: 1, deleted: true },
          { event_id: 2, user_id: 1, deleted: true, role: 'nonsense', whatever: 5 },
          { event_id: 2, user_id: 2, deleted: true },
          { event_id: 77, user_id: 88, deleted: true },
          { ...participant(1, 2), deleted: false },
        ],
      });
      expect(files.participants).toEqual({
        read: 5,
        inserted: 0,
        updated: 0,
        deleted: 2,
        unchanged: 3,
        rejected: 0,
      });
      expect(await rows('SELECT event_id, user_id FROM participants')).toEqual([{ event_id: 1, user_id: 2 }]);
      expect(await totals('events_count')).toEqual([0, 1, 0]);
    });

    thorough.it('a connection by its id, or by its two members, for both members', async () => {
      await load({ ...people, connections: [connection(1, 1, 2), connection(2, 2, 3), connection(3, 1, 3)] });
      const { files } = await load({
        connections: [
          { id: 1, deleted: true },
          { requester_id: 3, addressee_id: 2, deleted: true },
          { id: 99, deleted: true },
          { requester_id: 50, addressee_id: 51, deleted: true },
        ],
      });
      expect(files.connections).toMatchObject({ read: 4, deleted: 2, unchanged: 2, rejected: 0 });
      expect(await pairs()).toMatchObject([
        { id: 3, user_id: 1 },
        { id: 3, user_id: 3 },
      ]);
    });

    thorough.it.each<[what: string, files: ImportedFiles, reject: RegExp]>([
      [
        'a connection with only one member',
        { connections: [{ requester_id: 1, deleted: true }] },
        /^connections.ndjson:1: .*to delete a connection/,
      ],
      [
        'a connection without id or pair',
        { connections: [{ deleted: true }] },
        /^connections.ndjson:1: .*to delete a connection/,
      ],
      [
        'a participant without an event',
        { participants: [{ user_id: 1, deleted: true }] },
        /^participants.ndjson:1: .*event_id: is required/,
      ],
      [
        'a participant with an unknown deleted value',
        { participants: [{ ...participant(1, 1), deleted: 'yes' }] },
        /^participants.ndjson:1: deleted: must be true or false/,
      ],
      ['a member', { users: [{ id: 1, deleted: true }] }, /^users.ndjson:1: .*deleted: is not a field here/],
      [
        'a participant whom another line adds',
        { participants: [participant(1, 1), { event_id: 1, user_id: 1, deleted: true }] },
        /^participants.ndjson:2: .*line 1 already has this pair/,
      ],
      [
        'a pair that another line connects',
        { connections: [connection(1, 1, 2), { requester_id: 2, addressee_id: 1, deleted: true }] },
        /^connections.ndjson:2: .*line 1 already connects these members/,
      ],
    ])('no record for the invalid removal of %s', async (_, files, reject) => {
      await load(people);
      const before = await everything();
      const { imported, firstRejects } = await load(files);
      expect(imported).toBe(false);
      expect(firstRejects.map(({ file, line, reason }) => `${file}:${line}: ${reason}`)).toEqual([
        expect.stringMatching(reject),
      ]);
      expect(await everything()).toEqual(before);
    });

    thorough.it('a pair’s old id when an import connects the pair again with a new id', async () => {
      await load({ ...people, connections: [connection(1, 1, 2)] });
      const { requested_at: _, ...again } = connection(7, 2, 1);
      const { files } = await load({ connections: [again] });
      expect(files.connections).toMatchObject({ inserted: 0, updated: 1 });
      expect(await pairs()).toEqual([
        { id: 7, user_id: 1, peer_id: 2, status: 'accepted', requested_at: '2024-01-01 10:00:00' },
        { id: 7, user_id: 2, peer_id: 1, status: 'accepted', requested_at: '2024-01-01 10:00:00' },
      ]);
      expect(await totals('connections_count')).toEqual([1, 1, 0]);
    });

    thorough.it('a connection whose id another pair takes over', async () => {
      await load({
        ...people,
        connections: [connection(1, 1, 2), connection(2, 1, 3), connection(3, 2, 3)],
      });
      await load({
        connections: [
          connection(2, 1, 2),
          connection(3, 1, 3),
          { requester_id: 2, addressee_id: 3, deleted: true },
        ],
      });
      expect(await pairs()).toMatchObject([
        { id: 2, user_id: 1, peer_id: 2 },
        { id: 2, user_id: 2, peer_id: 1 },
        { id: 3, user_id: 1, peer_id: 3 },
        { id: 3, user_id: 3, peer_id: 1 },
      ]);
    });
  });

  describe('from standard input', () => {
    it('causes no deprecation warning about concurrent statements on one connection', async () => {
      const long = 'x'.repeat(500);
      const lines = Array.from({ length: 1_100 }, (_, i) => i + 1).flatMap((id) => [
        { type: 'users', record: user(id, { bio: long }) },
        { type: 'achievements', record: achievement(id, { description: long }) },
        { type: 'events', record: event(id, { description: long }) },
        { type: 'users', record: { id: long } },
      ]);
      const command = 'import - --dry-run --json --skip-invalid rejects-of-dry-run.ndjson';
      const child = spawn(process.execPath, [join(process.cwd(), 'bin/pua.mjs'), ...command.split(' ')], {
        cwd: process.env.TEST_FOLDER,
        env: { ...PROCESS, ...api.environment },
      });
      child.stdin.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
      expect(JSON.parse(stdout)).toMatchObject({ files: { users: { inserted: 1_100, rejected: 1_100 } } });
      expect(stderr).not.toContain('DeprecationWarning');
    });

    const line = (type: string, record: unknown, op?: string) =>
      `${JSON.stringify({ type, ...(op ? { op } : {}), record })}\n`;
    const input = [
      line('participants', participant(1, 1)),
      line('users', user(1), 'put'),
      '\n',
      line('events', event(1)),
    ].join('');

    it('accepts a participant before its event and member, and removals', async () => {
      const { code, stdout } = await pua(api.environment, ['import', '-', '--json'], input);
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({
        imported: true,
        files: { users: { inserted: 1 }, events: { inserted: 1 }, participants: { inserted: 1 } },
      });
      await pua(api.environment, 'import -', line('participants', { event_id: 1, user_id: 1 }, 'delete'));
      expect(await rows('SELECT FROM participants')).toEqual([]);
    });

    thorough.it.each<[what: string, text: string, reason: RegExp]>([
      ['text that is not JSON', 'what?', /^-:1: is not JSON/],
      ['JSON that is not an object', '5', /must be a JSON object/],
      ['an unknown type', '{"type":"badges","record":{}}', /type: must be one of users, achievements/],
      ['an unknown op', '{"type":"users","op":"drop","record":{}}', /op: must be put or delete/],
      ['no record', '{"type":"users"}', /record: must be an object/],
      ['an unknown field', '{"type":"users","record":{"id":1,"username":"a"},"x":1}', /x: is not a field/],
      [
        'a delete of a member whom other lines add',
        '{"type":"users","op":"delete","record":{"id":1}}',
        /line 5 deletes the member 1/,
      ],
      ['a bad record', '{"type":"users","record":{"id":0,"username":"a"}}', /id: must be an integer/],
      ['U+0000 in a name', '{"type":"users","record":{"\\u0000":1}}', /\ufffd: is not a field here/],
    ])('rejects %s, and changes nothing', async (_, text, reason) => {
      const before = await everything();
      const { code, stderr } = await pua(api.environment, ['import', '-'], `${input}${text}`);
      expect(code).toBe(1);
      expect(stderr.replace(/^-:5/, '-:1')).toMatch(reason);
      expect(await everything()).toEqual(before);
    });

    thorough.it('writes a rejected line to the rejects file unchanged, including U+0000', async () => {
      const rejects = join(process.env.TEST_FOLDER!, 'stdin-rejects.ndjson');
      const { code } = await pua(api.environment, `import - --skip-invalid ${rejects}`, `a\0b\n${input}`);
      expect(code).toBe(0);
      expect(JSON.parse(readFileSync(rejects, 'utf8'))).toEqual({
        file: '-',
        line: 1,
        reason: 'is not JSON',
        record: 'a\0b',
      });
    });
  });

  describe('in batches', () => {
    it('commits each batch, and a repeated record overwrites the earlier one', async () => {
      const source = { users: [user(1), user(2), user(1, { bio: 'later' }), user(3)], events: [event(1)] };
      const [begun] = await rows<{ at: string }>('SELECT clock_timestamp()::text AS at');
      const report = await load(source, { batch: 3 });
      expect(report).toMatchObject({
        imported: true,
        committed_through: { file: 'events.ndjson', line: 1 },
        files: { users: { read: 4, inserted: 3, updated: 1 }, events: { inserted: 1 } },
      });
      expect(await rows('SELECT bio FROM users WHERE id = 1')).toEqual([{ bio: 'later' }]);
      const lines = await rows(
        `SELECT actor, details FROM auth_events WHERE type = 'platform.imported' AND occurred_at >= '${begun!.at}' ORDER BY id`,
      );
      expect(lines).toMatchObject([
        { actor: 'admin', details: { users: { inserted: 2 } } },
        { details: { users: { inserted: 1, updated: 1 } } },
        { details: { events: { inserted: 1 } } },
      ]);
    });

    thorough.it('stops at a bad line and reports its progress; the next run writes the rest', async () => {
      const folder = writeFolder({ users: [user(1), user(2), user(3), user(4, { bio: 5 }), user(5)] });
      const { code, stderr } = await pua(api.environment, ['import', folder, '--batch', '2']);
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /^users.ndjson:4: bio: must be a string\n1 bad line: everything up to line 2 of users.ndjson is imported, and nothing after it/,
      );
      expect(await rows('SELECT id FROM users ORDER BY id')).toEqual([{ id: 1 }, { id: 2 }]);
      const corrected = [1, 2, 3, 4].map((id) => JSON.stringify(user(id)));
      writeFileSync(join(folder, 'users.ndjson'), corrected.join('\n'));
      expect(await puaJson(api.environment, ['import', folder, '--batch', '2'])).toMatchObject({
        files: { users: { inserted: 2, unchanged: 2 } },
        committed_through: { file: 'users.ndjson', line: 4 },
      });
    });

    thorough.it('imports all but the bad lines with --skip-invalid', async () => {
      const folder = writeFolder({ users: [user(1), user(2, { bio: 1 }), user(3), 'what?', user(5)] });
      const rejects = join(folder, '..', 'batch-rejects.ndjson');
      const args = ['import', folder, '--batch', '2', '--skip-invalid', rejects];
      expect(await puaJson(api.environment, args)).toMatchObject({
        rejected: 2,
        files: { users: { inserted: 3 } },
      });
      expect(recordsIn(rejects).map(({ line }) => line)).toEqual([2, 4]);
    });

    it.each(['0', '-1', '1.5', 'many', '1000001', '5 --dry-run'])('rejects --batch %s', async (size) => {
      expect(await pua(api.environment, `import . --batch ${size}`)).toMatchObject({ code: 2 });
    });
  });

  it('an import that is aborted before its start changes nothing', async () => {
    const before = await everything();
    const signal = AbortSignal.abort();
    await expect(load({ users: [user(1)] }, { signal })).rejects.toThrow(
      'The import was canceled: nothing was imported',
    );
    expect(await everything()).toEqual(before);
  });

  describe('on the command line', () => {
    it('prints a summary, and names unread files', async () => {
      const folder = writeFolder(BASE);
      writeFileSync(join(folder, 'user.ndjson'), '');
      const { code, stdout, stderr } = await pua(api.environment, ['import', folder]);
      expect({ code, stderr }).toEqual({
        code: 0,
        stderr: expect.stringMatching(
          /^user.ndjson was ignored: it is not an import file\n\d+ enabled members cannot sign in, .*: import their password_hash, use `npx pua users set-password`, or connect .*\n$/,
        ),
      });
      expect(stdout).toMatch(
        /^FILE +READ +INSERTED +UPDATED +DELETED +UNCHANGED +REJECTED\nusers +2 +2 +0 +0 +0 +0\n/,
      );
    });

    it('prints where new members sign in if the import adds members', async () => {
      const folder = writeFolder({ users: [user(1)] });
      const UPSTREAM = {
        UPSTREAM_ISSUER: 'https://login.example',
        UPSTREAM_CLIENT_ID: 'here',
        UPSTREAM_CLIENT_SECRET: 'secret',
      };
      const { stderr } = await pua({ ...api.environment, ...UPSTREAM }, ['import', folder]);
      expect(stderr).toBe(
        'Members sign in at https://login.example, or here with their password or passkey. Its claim sub must equal their external_id\n',
      );
      expect((await pua(api.environment, ['import', folder])).stderr).toBe('');
    });

    it('fails with the first 20 bad lines on stderr, and changes nothing', async () => {
      const bad = Array.from({ length: 24 }, (_, i) => user(i + 10, { bio: 1 }));
      const folder = writeFolder({ users: [user(1), ...bad] });
      const before = await everything();
      const { code, stdout, stderr } = await pua(api.environment, ['import', folder]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      const lines = stderr.trimEnd().split('\n');
      expect(lines).toHaveLength(21);
      expect(lines[0]).toBe('users.ndjson:2: bio: must be a string');
      expect(lines[20]).toMatch(/^24 bad lines \(the first 20 are above\): nothing was imported\..*--skip-/);
      expect(await everything()).toEqual(before);
    });

    it('imports the other lines with --skip-invalid, without records that depend on a bad line', async () => {
      const folder = writeFolder({
        users: [user(1), '{"id":2,  "username":"u2", "age":5}', user(3, { username: 'U1' }), 'what?'],
        events: [event(1), event(2, { organizer_id: 2 })],
        participants: [participant(1, 1), participant(1, 2), participant(2, 1)],
      });
      const rejects = join(folder, '..', 'rejects.ndjson');
      const command = `import ${folder} --skip-invalid ${rejects} --json`;
      const { code, stdout, stderr } = await pua(api.environment, command);
      expect(code).toBe(0);
      expect(stderr).toBe(`6 bad lines are in ${rejects}, each with its reason\n`);
      expect(JSON.parse(stdout)).toMatchObject({
        imported: true,
        dry_run: false,
        rejected: 6,
        files: {
          users: { read: 4, inserted: 1, rejected: 3 },
          events: { read: 2, inserted: 1, rejected: 1 },
          participants: { read: 3, inserted: 1, rejected: 2 },
        },
      });
      expect(recordsIn(rejects)).toEqual([
        {
          file: 'users.ndjson',
          line: 2,
          reason: 'age: is not a field here',
          record: { id: 2, username: 'u2', age: 5 },
        },
        {
          file: 'users.ndjson',
          line: 3,
          reason: 'username: line 1 already has this username',
          record: user(3, { username: 'U1' }),
        },
        { file: 'users.ndjson', line: 4, reason: 'is not JSON', record: 'what?' },
        {
          file: 'events.ndjson',
          line: 2,
          reason: 'organizer_id: there is no such record in users: 2',
          record: event(2, { organizer_id: 2 }),
        },
        {
          file: 'participants.ndjson',
          line: 2,
          reason: 'user_id: there is no such record in users: 2',
          record: participant(1, 2),
        },
        {
          file: 'participants.ndjson',
          line: 3,
          reason: 'event_id: there is no such record in events: 2',
          record: participant(2, 1),
        },
      ]);
      expect(statSync(rejects).mode & 0o777).toBe(0o600);
      expect(await rows('SELECT id FROM users')).toEqual([{ id: 1 }]);
    });

    thorough.it('writes 9,000 rejected lines to the rejects file', async () => {
      const folder = writeFolder({
        users: Array.from({ length: 9001 }, (_, i) => user(i + 1, i === 5000 ? {} : { bio: 1 })),
      });
      const rejects = join(folder, '..', 'many.ndjson');
      const report = await importRecords(api.dataSource, folderSource(folder), { rejectsFile: rejects });
      expect(report.files.users).toMatchObject({ inserted: 1, rejected: 9000 });
      const lines = recordsIn(rejects);
      expect(lines).toHaveLength(9000);
      expect(lines.at(-1)).toMatchObject({ line: 9001, record: { id: 9001 } });
    });

    it('prints a dry run’s effects, and changes nothing', async () => {
      await load({ users: [user(1)] });
      const folder = writeFolder({
        ...BASE,
        users: [user(1, { bio: 'new' }), user(2)],
        participants: [participant(1, 1)],
      });
      const before = await everything();
      const { stdout, stderr, code } = await pua(api.environment, ['import', folder, '--dry-run', '--json']);
      expect({ code, stderr }).toEqual({ code: 0, stderr: 'This was a dry run: nothing was changed\n' });
      expect(JSON.parse(stdout)).toMatchObject({
        imported: false,
        dry_run: true,
        files: { users: { inserted: 1, updated: 1 }, participants: { inserted: 1 } },
      });
      expect(await everything()).toEqual(before);
      const bad = writeFolder({ users: [user(1, { bio: 5 })] });
      expect(await pua(api.environment, ['import', bad, '--dry-run'])).toMatchObject({ code: 1 });
    });

    it.each([
      ['a missing folder', 'FOLDER/none', /cannot be read \(ENOENT\): name a folder of NDJSON files/],
      ['a file instead of a folder', 'FOLDER/users.ndjson', /cannot be read \(ENOTDIR\)/],
      [
        'rejects that would overwrite the input',
        'FOLDER --skip-invalid FOLDER/./users.ndjson',
        /is a file of the import itself/,
      ],
      ['rejects into a missing folder', 'FOLDER --skip-invalid FOLDER/none/rejects', /\(ENOENT/],
      ['a folder instead of a rejects file', 'FOLDER --skip-invalid FOLDER', /is not a file/],
    ])('fails for %s, and changes nothing', async (_, args, message) => {
      const command = `import ${args.replaceAll('FOLDER', writeFolder({ users: [user(1)] }))}`;
      const { code, stdout, stderr } = await pua(api.environment, command);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(message);
      expect(await rows('SELECT id FROM users')).toEqual([]);
    });
  });

  postgres.describe('with concurrent sessions', () => {
    it('does not block foreign key checks on a changed member', async () => {
      await load(BASE);
      const runner = api.dataSource.createQueryRunner();
      await runner.startTransaction();
      await beginImport(runner.manager);
      const set = new ImportSet(new Staging(runner.manager), [{ name: 'users' }], {
        feedBy: { actor: 'admin' },
      });
      const line = { type: 'users', record: user(1, { bio: 'imported' }) };
      const lines = [readFeedLine({ number: 1, text: JSON.stringify(line) })];
      expect(await set.run([{ position: 0, lines }], undefined)).toBe(true);
      expect(set.counts.get('users')).toMatchObject({ updated: 1 });
      // The lock that a foreign key check acquires.
      expect(await api.query('SELECT id FROM users WHERE id = 1 FOR KEY SHARE NOWAIT')).toEqual([{ id: 1 }]);
      await runner.rollbackTransaction();
      await runner.release();
    });

    it('disables JIT compilation for its statements', async () => {
      await api.dataSource.transaction(async (manager) => {
        await beginImport(manager);
        expect(await manager.query('SHOW jit')).toEqual([{ jit: 'off' }]);
      });
    });

    it('rejects a second concurrent import', async () => {
      const other = await hold(api.dataSource, 'SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.import]);
      const { code, stderr } = await pua(api.environment, ['import', writeFolder(BASE)]);
      await other.rollback();
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: 'Another import is running: wait until it has ended\n',
      });
    });

    it('does not block servers that create their signing keys', async () => {
      const other = await hold(api.dataSource, 'SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.import]);
      await api.query('DELETE FROM signing_keys');
      expect(await new SigningKeysService(api.dataSource, api.config).load()).toHaveLength(2);
      await other.rollback();
    });

    it('completes after a deadlock with another writer of the same events', async () => {
      await load({ users: [user(1)], events: [event(1), event(2)] });
      const second = await createDataSource(api.config, 'maintenance').initialize();
      const other = await hold(second, 'UPDATE events SET capacity = 1 WHERE id = 2');
      // The import has locked event 1, and waits for event 2.
      const running = load({ events: [event(1, { title: 'New' }), event(2, { title: 'New' })] });
      await waitingForLock(second, 'JOIN events');
      // PostgreSQL aborts the session that detects the deadlock first: nearly always the import, which has waited longer.
      await other.query('UPDATE events SET capacity = 1 WHERE id = 1').then(
        () => other.commit(),
        () => other.rollback(),
      );
      expect(await running).toMatchObject({ imported: true });
      expect(await rows('SELECT title FROM events')).toEqual([{ title: 'New' }, { title: 'New' }]);
      await second.destroy();
    });

    /** Runs `begun` after `sql` of another transaction, which commits when the statement `waits` of `begun` waits for it. */
    async function beside<T>(sql: string, waits: string, begun: () => Promise<T>): Promise<T> {
      const second = await createDataSource(api.config, 'maintenance').initialize();
      try {
        const other = await hold(second, sql);
        const running = begun();
        await waitingForLock(second, waits);
        await other.commit();
        return await running;
      } finally {
        await second.destroy();
      }
    }

    it('rejects a username that was taken at the same moment, and names the line', async () => {
      const report = await beside(
        "INSERT INTO users (id, username) VALUES (90, 'U2')",
        'INSERT INTO users',
        () => load({ users: [user(1), user(2)] }),
      );
      expect(report).toMatchObject({ imported: false, rejected: 1 });
      expect(report.firstRejects).toEqual([
        { file: 'users.ndjson', line: 2, reason: 'username: is taken by member 90' },
      ]);
      expect(await rows('SELECT id FROM users')).toEqual([{ id: 90 }]);
    });

    it('updates a connection that another session created at the same moment, and counts it once', async () => {
      await load(BASE);
      const report = await beside(
        "INSERT INTO connections (user_id, id, peer_id, status, connected_at) VALUES (1, 50, 2, 'accepted', now()), (2, 50, 1, 'accepted', now())",
        'INSERT INTO connections',
        () => load({ users: [user(3)], connections: [connection(7, 2, 1)] }),
      );
      expect(report).toMatchObject({ imported: true, files: { users: { inserted: 1 } } });
      expect(await rows('SELECT id FROM connections')).toEqual([{ id: 7 }, { id: 7 }]);
      expect((await totals('connections_count'))[0]).toBe(1);
    });

    it.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)(
      'ends its database session when its process gets %s, and changes nothing',
      async (signal) => {
        // A member with a higher id: an aborted import that raises a sequence leaves it raised.
        await load({ ...BASE, users: [user(1), user(2), user(9)] });
        const before = await everything();
        const blocker = await hold(api.dataSource, 'SELECT FROM events WHERE id = 1 FOR UPDATE');
        const files = { users: [user(1, { bio: 'new' }), user(4)], events: [event(1, { title: 'New' })] };
        const child = startPua(api.environment, ['import', writeFolder(files)]);
        const errors = text(child.stderr);
        const closed = once(child, 'close');
        await waitingForLock(api.dataSource, 'events');
        child.kill(signal);
        await until(async () => (await lockWaits(api.dataSource, 'events')).length === 0); // the blocker holds its lock
        await blocker.rollback();
        const [code] = (await closed) as [number | null];
        if (signal !== 'SIGKILL') {
          expect(await errors).toBe('The import was canceled: nothing was imported\n');
          expect(code).toBe(1);
        }
        expect(await everything()).toEqual(before);
      },
    );
  });
});
