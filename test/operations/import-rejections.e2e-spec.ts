import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { importRecords } from '../../src/import/import-records.js';
import { folderSource } from '../../src/import/sources.js';
import { TestApi } from '../support/api.js';
import { thorough } from '../support/database.js';
import {
  achievement,
  connection,
  earned,
  event,
  importsInto,
  participant,
  removeImported,
  user,
  BASE,
  BCRYPT_HASH,
  type ImportedFiles,
  type ImportedRecord,
} from '../support/import-files.js';

describe('pua import', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());
  beforeEach(() => removeImported(api.dataSource));

  const { load, rows, everything } = importsInto(() => api);

  describe('rejects a bad line:', () => {
    const long = (length: number) => 'x'.repeat(length);
    const around: ImportedFiles = {
      users: [user(1), user(2), user(3)],
      events: [event(1)],
      achievements: [achievement(1), achievement(2)],
    };
    const GOOD: Record<string, (fields: ImportedRecord) => ImportedRecord> = {
      users: (fields) => user(1, fields),
      achievements: (fields) => achievement(1, fields),
      events: (fields) => event(1, fields),
      participants: (fields) => participant(1, 1, fields),
      connections: (fields) => connection(1, 1, 2, fields),
      user_achievements: (fields) => earned(1, 1, fields),
    };
    type Line = ImportedRecord | string;
    /** A complete line as text, or the fields that differ from a valid line. Of several lines, the last line is bad. */
    type Case = [what: string, bad: Line | Line[], reason: string | RegExp];
    const CASES: Record<string, Case[]> = {
      users: [
        ['text that is not JSON', '{"id":1', 'is not JSON'],
        ['JSON that is not an object', '[1]', 'must be a JSON object'],
        ['null', 'null', 'must be a JSON object'],
        ['a line over 1 MiB', [{}, `{"id":2,"bio":"${long(1_048_576)}"}`], 'is longer than 1048576 bytes'],
        ['an unknown field', { nickname: 'x' }, 'nickname: is not a field here'],
        ['__proto__', '{"id":1,"username":"u","__proto__":{}}', '__proto__: is not a field here'],
        ['a missing field', '{"id":1}', 'username: is required'],
        ['null for a required field', { username: null }, 'username: is required'],
        [
          'several faults in one line',
          '{"id":"x","bio":5}',
          'id: must be an integer from 1 to 9000000000000000; username: is required; bio: must be a string',
        ],
        ['id 0', { id: 0 }, /^id: must be an integer/],
        ['an id beyond 2^53 − 1', '{"id":9007199254740993,"username":"u"}', /^id: must be an integer/],
        ['a fraction', { id: 1.5 }, /^id: must be an integer/],
        ['a number as text', { id: '1' }, /^id: must be an integer/],
        ['an empty username', { username: '' }, 'username: must have 1 to 100 characters, but has 0'],
        ['a username of 101 characters', { username: long(101) }, /^username: must have 1 to 100/],
        ['a first name of 101', { first_name: long(101) }, /^first_name: .* at most 100 .* has 101$/],
        ['a bio of 501 code points', { bio: '😀'.repeat(501) }, /^bio: .* at most 500 .* has 501$/],
        ['U+0000', { bio: 'a\0b' }, /^bio: must not contain U\+0000/],
        ['half of a surrogate pair', { bio: '\ud83d' }, /^bio: must not contain/],
        ['an invalid URL', { profile_picture: 'http:evil.com' }, /^profile_picture: must be an absolute/],
        ['a URL with a password', { profile_picture: 'https://a:b@x.com/' }, /^profile_picture: must be an /],
        [
          'a URL of 2,049 characters',
          { profile_picture: `https://x.com/${long(2035)}` },
          /^profile_picture: must have 1 to 2048/,
        ],
        ['two email addresses', { email: 'a@b.example, c@d.example' }, 'email: must be an email address'],
        ['a plain password', { password_hash: 'secret' }, /^password_hash: must be an argon2 or bcrypt hash/],
        [
          'a bcrypt hash that takes hours',
          { password_hash: BCRYPT_HASH.replace('10', '31') },
          /^password_hash: .* of reasonable cost$/,
        ],
        ['an invalid time', { created_at: 'yesterday' }, /^created_at: must be a time/],
        ['30 February', { created_at: '2024-02-30 10:00:00' }, /^created_at: must be a time/],
        ['a date instead of a time', { created_at: '2024-02-03' }, /^created_at: must be a time/],
        ['a time as a number', { created_at: 1_700_000_000 }, /^created_at: must be a time/],
        ['an id twice', [{}, { username: 'other' }], 'id: line 1 already has this id'],
        [
          'a username twice, in another case',
          [{ username: 'Zoë' }, { id: 2, username: 'zOË' }],
          'username: line 1 already has this username',
        ],
        [
          'an external id twice',
          [{ external_id: 'sub' }, user(2, { external_id: 'sub' })],
          'external_id: line 1 already has this external_id',
        ],
      ],
      events: [
        ['a flag as a number', { is_online: 1 }, 'is_online: must be true or false'],
        ['an unknown status', { status: 'over' }, /^status: must be one of draft, scheduled, /],
        ['an unknown visibility', { visibility: 'secret' }, /^visibility: must be one of public, /],
        [
          'an event’s end before its start',
          { ends_at: '2024-05-01T17:59:59Z' },
          'ends_at: must not be before starts_at',
        ],
        ['a title of 301 characters', { title: long(301) }, /^title: must have 1 to 300/],
        ['a description of 20,001', { description: long(20_001) }, /^description: must have at most 20000/],
        ['an unknown time zone', { timezone: 'Mars/Olympus' }, 'timezone: must be an IANA time zone'],
        ['an offset instead of a time zone', { timezone: 'UTC+3' }, 'timezone: must be an IANA time zone'],
        ['a location that is a text', { location: 'here' }, 'location: must be an object'],
        ['an unknown field of a location', { location: { zip: '1' } }, 'location.zip: is not a field here'],
        [
          'a country in small letters',
          { location: { country_code: 'us' } },
          /^location.country_code: must be two capital letters/,
        ],
        [
          'a latitude beyond the pole',
          { location: { latitude: 90.01 } },
          'location.latitude: must be a number from -90 to 90',
        ],
        ['a capacity below 0', { capacity: -1 }, /^capacity: must be an integer from 0/],
        ['101 tags', { tags: [...long(101)] }, /^tags: must be a list of at most 100/],
        ['a tag that is a number', { tags: ['a', 1] }, 'tags: has an item that must be a string'],
        ['an event twice', [{}, {}], /^id: line 1 already has this id/],
        ['an unknown organizer', { organizer_id: 9 }, 'organizer_id: there is no such record in users: 9'],
      ],
      participants: [
        [
          'an attendee who is pending',
          { rsvp_status: 'pending' },
          'rsvp_status: must be going or maybe or waitlisted for the role attendee',
        ],
        ['an attendee without an RSVP', { rsvp_status: null }, /^rsvp_status: must be going/],
        ['an organizer with an RSVP', { role: 'organizer' }, /^rsvp_status: must be null for .* organizer$/],
        ['an invitee who is going', { role: 'invitee' }, /^rsvp_status: must be pending or declined/],
        [
          'a participation twice',
          [{}, { rsvp_status: 'maybe' }],
          /_id, user_id: line 1 already has this pair/,
        ],
        ['an unknown participant', { user_id: 9 }, 'user_id: there is no such record in users: 9'],
        ['an unknown event', { event_id: 9 }, 'event_id: there is no such record in events: 9'],
      ],
      connections: [
        [
          'an accepted connection without connected_at',
          { connected_at: null },
          'connected_at: is required if status is accepted',
        ],
        [
          'a pending connection with connected_at',
          { status: 'pending' },
          'connected_at: must be null if status is pending',
        ],
        [
          'a connection of a member to the same member',
          { requester_id: 2 },
          'addressee_id: members cannot be connected with themselves',
        ],
        ['a connection id twice', [{}, { addressee_id: 3 }], /^id: line 1 already has this id/],
        ['a connection twice', [{}, { id: 2 }], /^requester_id, addressee_id: line 1 already connects /],
        ['a pair in both directions', [{}, connection(2, 2, 1)], /line 1 already connects these members/],
        ['an unknown addressee', { addressee_id: 9 }, 'addressee_id: there is no such record in users: 9'],
        ['an unknown requester', { requester_id: 9 }, 'requester_id: there is no such record in users: 9'],
        [
          'an unknown meeting',
          { met_at_event_id: 9 },
          'met_at_event_id: there is no such record in events: 9',
        ],
      ],
      achievements: [
        ['a target of 0', { target: 0 }, /^target: must be an integer from 1/],
        ['a key twice', [{ key: 'k' }, { id: 2, key: 'k' }], 'key: line 1 already has this key'],
      ],
      user_achievements: [
        ['a negative progress', { progress: -1 }, /^progress: must be an integer from 0/],
        ['a seventh pin', { pin_position: 7 }, 'pin_position: must be an integer from 1 to 6'],
        [
          'a pin on an unearned achievement',
          { earned_at: null, pin_position: 1 },
          'pin_position: only earned achievements can be pinned',
        ],
        ['an achievement earned twice', [{}, {}], /^user_id, achievement_id: line 1 already has this pair/],
        [
          'a pin twice',
          [{ pin_position: 3 }, { achievement_id: 2, pin_position: 3 }],
          'pin_position: line 1 already has this position for this member',
        ],
        ['an unknown earner', { user_id: 9 }, 'user_id: there is no such record in users: 9'],
        ['an unknown achievement', { achievement_id: 9 }, /^achievement_id: .* record in achievements: 9$/],
      ],
    };
    const cases = Object.entries(CASES).flatMap(([file, rows]) =>
      rows.map(([what, bad, reason]) => [what, file, [bad].flat(), reason] as const),
    );
    thorough.it.each(cases)('%s', async (_, file, bad, reason) => {
      const before = await everything();
      const lines = bad.map((line) => (typeof line === 'string' ? line : GOOD[file]!(line)));
      const { imported, rejected, firstRejects } = await load({
        ...(file === 'users' || file === 'achievements' ? {} : around),
        [file]: lines,
      });
      expect({ imported, rejected }).toEqual({ imported: false, rejected: 1 });
      expect(firstRejects).toEqual([
        {
          file: `${file}.ndjson`,
          line: lines.length,
          reason: typeof reason === 'string' ? reason : expect.stringMatching(reason),
        },
      ]);
      expect(await everything()).toEqual(before);
    });

    it('text that is not UTF-8', async () => {
      const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'import-'));
      writeFileSync(join(folder, 'users.ndjson'), Buffer.from('{"id":1,"username":"Zo\xeb"}\n', 'latin1'));
      const { firstRejects } = await importRecords(api.dataSource, folderSource(folder));
      expect(firstRejects).toEqual([{ file: 'users.ndjson', line: 1, reason: 'is not UTF-8' }]);
    });
  });

  describe('with existing data', () => {
    const present: ImportedFiles = {
      users: [user(1, { external_id: 's' }), user(2), user(3)],
      events: [event(1)],
      achievements: [achievement(1, { key: 'one' }), achievement(2)],
      connections: [connection(5, 1, 2)],
      user_achievements: [earned(1, 1, { pin_position: 2 })],
    };
    const cases: [what: string, files: ImportedFiles, reason: string][] = [
      ['a taken username', { users: [user(9, { username: 'U1' })] }, 'username: is taken by member 1'],
      [
        'a taken external id',
        { users: [user(9, { external_id: 's' })] },
        'external_id: is taken by member 1',
      ],
      [
        'a taken key of an achievement',
        { achievements: [achievement(9, { key: 'one' })] },
        'key: is taken by achievement 1',
      ],
      [
        'the id of another pair’s connection',
        { connections: [connection(5, 1, 3)] },
        'id: belongs to a connection between other members',
      ],
      [
        'a taken pin',
        { user_achievements: [earned(1, 2, { pin_position: 2 })] },
        'pin_position: is taken by achievement 1',
      ],
    ];
    thorough.it.each(cases)('rejects %s', async (_, files, reason) => {
      await load(present);
      const before = await everything();
      const { imported, firstRejects } = await load(files);
      expect(imported).toBe(false);
      expect(firstRejects).toEqual([expect.objectContaining({ line: 1, reason })]);
      expect(await everything()).toEqual(before);
    });

    thorough.it('rejects a username that only a bad line would have freed', async () => {
      await load({ users: [user(1, { username: 'ann' }), user(2, { username: 'zed' })] });
      const { firstRejects } = await load({
        users: [user(2, { username: 'ann' }), user(3, { username: 'zed' }), user(4)],
      });
      expect(firstRejects).toEqual([
        { file: 'users.ndjson', line: 1, reason: 'username: is taken by member 1' },
        { file: 'users.ndjson', line: 2, reason: 'username: is taken by member 2' },
      ]);
    });

    thorough.it('stores email address and external id, and keeps both if the file omits them', async () => {
      const stored = () => rows('SELECT email, external_id FROM users WHERE id < 4 ORDER BY id');
      const [a, b] = ['a', 'b'].map((name) => ({ email: `${name}@example.com`, external_id: name }));
      await load({ users: [user(1, a), user(2, b), user(3)] });
      await load({ users: [user(1, { first_name: 'Ada' }), user(2), user(3, { external_id: 'c' })] });
      expect(await stored()).toEqual([a, b, { email: null, external_id: 'c' }]);
      const none = { email: null, external_id: null };
      await load({ users: [user(2, none), user(3, b)] });
      expect(await stored()).toEqual([a, none, b]);
    });

    thorough.it('lets records in one folder exchange keys and pins', async () => {
      await load({
        ...BASE,
        achievements: [achievement(1, { key: 'a' }), achievement(2, { key: 'b' })],
        user_achievements: [earned(1, 1, { pin_position: 1 }), earned(1, 2, { pin_position: 2 })],
      });
      const { imported, files } = await load({
        achievements: [achievement(1, { key: 'b' }), achievement(2, { key: 'a' })],
        user_achievements: [earned(1, 1, { pin_position: 2 }), earned(1, 2, { pin_position: 1 })],
      });
      expect(imported).toBe(true);
      expect(files).toMatchObject({ achievements: { updated: 2 }, user_achievements: { updated: 2 } });
      expect(await rows('SELECT pin_position FROM user_achievements ORDER BY achievement_id')).toEqual([
        { pin_position: 2 },
        { pin_position: 1 },
      ]);
    });
  });
});
