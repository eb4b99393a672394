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
} from '../support/import-files.js';

describe('pua import', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());
  beforeEach(() => removeImported(api.dataSource));

  const { load, rows, everything } = importsInto(() => api);

  describe('rejects a bad line and changes nothing:', () => {
    const long = (length: number) => 'x'.repeat(length);
    const cases: [what: string, files: ImportedFiles, line: string, reason: string | RegExp][] = [
      // A line in itself.
      ['what is not JSON', { users: ['{"id":1'] }, 'users.ndjson:1', 'is not JSON'],
      ['what is no object', { users: ['[1]'] }, 'users.ndjson:1', 'must be a JSON object'],
      ['null', { users: ['null'] }, 'users.ndjson:1', 'must be a JSON object'],
      [
        'more than a mebibyte',
        { users: [user(1), `{"id":2,"bio":"${long(1_048_576)}"}`] },
        'users.ndjson:2',
        'is longer than 1048576 bytes',
      ],
      [
        'an unknown field',
        { users: [user(1, { nickname: 'x' })] },
        'users.ndjson:1',
        'nickname: is not a field here',
      ],
      [
        '__proto__',
        { users: ['{"id":1,"username":"u","__proto__":{}}'] },
        'users.ndjson:1',
        '__proto__: is not a field here',
      ],
      ['a missing field', { users: [{ id: 1 }] }, 'users.ndjson:1', 'username: is needed'],
      [
        'null where something is needed',
        { users: [user(1, { username: null })] },
        'users.ndjson:1',
        'username: is needed',
      ],
      [
        'every fault at once',
        { users: [{ id: 'x', bio: 5 }] },
        'users.ndjson:1',
        'id: must be an integer from 1 to 9000000000000000; username: is needed; bio: must be a string',
      ],
      // Values.
      ['id 0', { users: [user(0)] }, 'users.ndjson:1', /^id: must be an integer/],
      [
        'an id beyond 2^53 − 1',
        { users: ['{"id":9007199254740993,"username":"u"}'] },
        'users.ndjson:1',
        /^id: must be an integer/,
      ],
      ['a fraction', { users: [user(1.5)] }, 'users.ndjson:1', /^id: must be an integer/],
      ['a number as text', { users: [user(1, { id: '1' })] }, 'users.ndjson:1', /^id: must be an integer/],
      [
        'an empty username',
        { users: [user(1, { username: '' })] },
        'users.ndjson:1',
        'username: must have 1 to 100 characters, it has 0',
      ],
      [
        'a username of 101',
        { users: [user(1, { username: long(101) })] },
        'users.ndjson:1',
        /^username: must have 1 to 100/,
      ],
      [
        'a first name of 101',
        { users: [user(1, { first_name: long(101) })] },
        'users.ndjson:1',
        'first_name: must have at most 100 characters, it has 101',
      ],
      [
        'a bio of 501 code points',
        { users: [user(1, { bio: '😀'.repeat(501) })] },
        'users.ndjson:1',
        'bio: must have at most 500 characters, it has 501',
      ],
      [
        'U+0000',
        { users: ['{"id":1,"username":"u","bio":"a\\u0000b"}'] },
        'users.ndjson:1',
        /^bio: must not contain U\+0000/,
      ],
      [
        'half of a surrogate pair',
        { users: ['{"id":1,"username":"u","bio":"\\ud83d"}'] },
        'users.ndjson:1',
        /^bio: must not contain/,
      ],
      [
        'a URL that is none',
        { users: [user(1, { profile_picture: 'http:evil.com' })] },
        'users.ndjson:1',
        /^profile_picture: must be an absolute http/,
      ],
      [
        'a URL with a password',
        { users: [user(1, { profile_picture: 'https://a:b@x.com/' })] },
        'users.ndjson:1',
        /^profile_picture: must be an absolute http/,
      ],
      [
        'a URL of 2049',
        { users: [user(1, { profile_picture: `https://x.com/${long(2035)}` })] },
        'users.ndjson:1',
        /^profile_picture: must have 1 to 2048/,
      ],
      [
        'two addresses in place of one',
        { users: [user(1, { email: 'a@b.example, c@d.example' })] },
        'users.ndjson:1',
        /^email: must be an e-mail address$/,
      ],
      [
        'a plain password',
        { users: [user(1, { password_hash: 'secret' })] },
        'users.ndjson:1',
        /^password_hash: must be an argon2 or bcrypt hash/,
      ],
      [
        'bcrypt that takes hours',
        { users: [user(1, { password_hash: BCRYPT_HASH.replace('10', '31') })] },
        'users.ndjson:1',
        /^password_hash: .* of reasonable cost$/,
      ],
      [
        'a time that is none',
        { users: [user(1, { created_at: 'yesterday' })] },
        'users.ndjson:1',
        /^created_at: must be a time/,
      ],
      [
        '30 February',
        { users: [user(1, { created_at: '2024-02-30 10:00:00' })] },
        'users.ndjson:1',
        /^created_at: must be a time/,
      ],
      [
        'a date in place of a time',
        { users: [user(1, { created_at: '2024-02-03' })] },
        'users.ndjson:1',
        /^created_at: must be a time/,
      ],
      [
        'a time as a number',
        { users: [user(1, { created_at: 1_700_000_000 })] },
        'users.ndjson:1',
        /^created_at: must be a time/,
      ],
      [
        'a flag as a number',
        { ...BASE, events: [event(1, { is_online: 1 })] },
        'events.ndjson:1',
        'is_online: must be true or false',
      ],
      [
        'an unknown status',
        { ...BASE, events: [event(1, { status: 'over' })] },
        'events.ndjson:1',
        /^status: must be one of draft, scheduled, /,
      ],
      [
        'an unknown visibility',
        { ...BASE, events: [event(1, { visibility: 'secret' })] },
        'events.ndjson:1',
        /^visibility: must be one of public, /,
      ],
      [
        'an end before the start',
        { ...BASE, events: [event(1, { ends_at: '2024-05-01T17:59:59Z' })] },
        'events.ndjson:1',
        'ends_at: must not be before starts_at',
      ],
      [
        'a title of 301',
        { ...BASE, events: [event(1, { title: long(301) })] },
        'events.ndjson:1',
        /^title: must have 1 to 300/,
      ],
      [
        'a description of 20,001',
        { ...BASE, events: [event(1, { description: long(20_001) })] },
        'events.ndjson:1',
        /^description: must have at most 20000/,
      ],
      [
        'an unknown time zone',
        { ...BASE, events: [event(1, { timezone: 'Mars/Olympus' })] },
        'events.ndjson:1',
        'timezone: must be an IANA time zone',
      ],
      [
        'an offset for a time zone',
        { ...BASE, events: [event(1, { timezone: 'UTC+3' })] },
        'events.ndjson:1',
        'timezone: must be an IANA time zone',
      ],
      [
        'a place that is a text',
        { ...BASE, events: [event(1, { location: 'here' })] },
        'events.ndjson:1',
        'location: must be an object',
      ],
      [
        'an unknown field of a place',
        { ...BASE, events: [event(1, { location: { zip: '1' } })] },
        'events.ndjson:1',
        'location.zip: is not a field here',
      ],
      [
        'a country in small letters',
        { ...BASE, events: [event(1, { location: { country_code: 'us' } })] },
        'events.ndjson:1',
        /^location.country_code: must be two capital letters/,
      ],
      [
        'a latitude beyond the pole',
        { ...BASE, events: [event(1, { location: { latitude: 90.01 } })] },
        'events.ndjson:1',
        'location.latitude: must be a number from -90 to 90',
      ],
      [
        'a capacity below 0',
        { ...BASE, events: [event(1, { capacity: -1 })] },
        'events.ndjson:1',
        /^capacity: must be an integer from 0/,
      ],
      [
        '101 tags',
        { ...BASE, events: [event(1, { tags: Array.from({ length: 101 }, () => 'a') })] },
        'events.ndjson:1',
        /^tags: must be a list of at most 100/,
      ],
      [
        'a tag that is a number',
        { ...BASE, events: [event(1, { tags: ['a', 1] })] },
        'events.ndjson:1',
        'tags: has an item that must be a string',
      ],
      [
        'an attendee who is pending',
        { ...BASE, participants: [participant(1, 1, { rsvp_status: 'pending' })] },
        'participants.ndjson:1',
        'rsvp_status: must be going or maybe or waitlisted for the role attendee',
      ],
      [
        'an attendee without an answer',
        { ...BASE, participants: [participant(1, 1, { rsvp_status: null })] },
        'participants.ndjson:1',
        /^rsvp_status: must be going/,
      ],
      [
        'an organizer with an answer',
        { ...BASE, participants: [participant(1, 1, { role: 'organizer' })] },
        'participants.ndjson:1',
        'rsvp_status: must be null for the role organizer',
      ],
      [
        'an invitee who goes',
        { ...BASE, participants: [participant(1, 1, { role: 'invitee' })] },
        'participants.ndjson:1',
        /^rsvp_status: must be pending or declined/,
      ],
      [
        'accepted without connected_at',
        { ...BASE, connections: [connection(1, 1, 2, { connected_at: null })] },
        'connections.ndjson:1',
        'connected_at: is needed where status is accepted',
      ],
      [
        'pending with connected_at',
        { ...BASE, connections: [connection(1, 1, 2, { status: 'pending' })] },
        'connections.ndjson:1',
        'connected_at: must be null where status is pending',
      ],
      [
        'a connection with oneself',
        { ...BASE, connections: [connection(1, 2, 2)] },
        'connections.ndjson:1',
        'addressee_id: nobody can be connected with themselves',
      ],
      [
        'a negative progress',
        { ...BASE, user_achievements: [earned(1, 1, { progress: -1 })] },
        'user_achievements.ndjson:1',
        /^progress: must be an integer from 0/,
      ],
      [
        'a seventh pin',
        { ...BASE, user_achievements: [earned(1, 1, { pin_position: 7 })] },
        'user_achievements.ndjson:1',
        'pin_position: must be an integer from 1 to 6',
      ],
      [
        'a pin on what is not earned',
        { ...BASE, user_achievements: [earned(1, 1, { earned_at: null, pin_position: 1 })] },
        'user_achievements.ndjson:1',
        'pin_position: only what is earned can be pinned',
      ],
      [
        'a target of 0',
        { achievements: [achievement(1, { target: 0 })] },
        'achievements.ndjson:1',
        /^target: must be an integer from 1/,
      ],
      // Among the lines of the folder.
      [
        'an id twice',
        { users: [user(1), user(1, { username: 'other' })] },
        'users.ndjson:2',
        'id: the same already stands in line 1',
      ],
      [
        'a username twice, in another case',
        { users: [user(1, { username: 'Zoë' }), user(2, { username: 'zOË' })] },
        'users.ndjson:2',
        'username: line 1 has the same',
      ],
      [
        'an external id twice',
        { users: [user(1, { external_id: 'sub' }), user(2, { external_id: 'sub' })] },
        'users.ndjson:2',
        'external_id: line 1 has the same',
      ],
      ['an event twice', { ...BASE, events: [event(1), event(1)] }, 'events.ndjson:2', /^id: the same/],
      [
        'an achievement’s key twice',
        { achievements: [achievement(1, { key: 'k' }), achievement(2, { key: 'k' })] },
        'achievements.ndjson:2',
        'key: the same already stands in line 1',
      ],
      [
        'a participation twice',
        { ...BASE, participants: [participant(1, 2), participant(1, 2, { rsvp_status: 'maybe' })] },
        'participants.ndjson:2',
        'event_id, user_id: the same pair already stands in line 1',
      ],
      [
        'a connection id twice',
        {
          ...BASE,
          users: [user(1), user(2), user(3)],
          connections: [connection(1, 1, 2), connection(1, 1, 3)],
        },
        'connections.ndjson:2',
        /^id: the same/,
      ],
      [
        'a pair twice',
        { ...BASE, connections: [connection(1, 1, 2), connection(2, 1, 2)] },
        'connections.ndjson:2',
        'requester_id, addressee_id: line 1 connects the two already',
      ],
      [
        'a pair in both directions',
        { ...BASE, connections: [connection(1, 1, 2), connection(2, 2, 1)] },
        'connections.ndjson:2',
        /line 1 connects the two already/,
      ],
      [
        'an achievement earned twice',
        { ...BASE, user_achievements: [earned(1, 1), earned(1, 1)] },
        'user_achievements.ndjson:2',
        /^user_id, achievement_id: the same pair/,
      ],
      [
        'a pin twice',
        {
          ...BASE,
          achievements: [achievement(1), achievement(2)],
          user_achievements: [earned(1, 1, { pin_position: 3 }), earned(1, 2, { pin_position: 3 })],
        },
        'user_achievements.ndjson:2',
        'pin_position: the same of this member already stands in line 1',
      ],
      [
        'an organizer who is nobody',
        { ...BASE, events: [event(1, { organizer_id: 9 })] },
        'events.ndjson:1',
        'organizer_id: there is no such record in users: 9',
      ],
      [
        'a participant who is nobody',
        { ...BASE, participants: [participant(1, 9)] },
        'participants.ndjson:1',
        'user_id: there is no such record in users: 9',
      ],
      [
        'a participation in nothing',
        { ...BASE, participants: [participant(9, 1)] },
        'participants.ndjson:1',
        'event_id: there is no such record in events: 9',
      ],
      [
        'a connection with nobody',
        { ...BASE, connections: [connection(1, 1, 9)] },
        'connections.ndjson:1',
        'addressee_id: there is no such record in users: 9',
      ],
      [
        'a connection of nobody',
        { ...BASE, connections: [connection(1, 9, 1)] },
        'connections.ndjson:1',
        'requester_id: there is no such record in users: 9',
      ],
      [
        'a meeting at no event',
        { ...BASE, connections: [connection(1, 1, 2, { met_at_event_id: 9 })] },
        'connections.ndjson:1',
        'met_at_event_id: there is no such record in events: 9',
      ],
      [
        'nobody’s achievement',
        { ...BASE, user_achievements: [earned(9, 1)] },
        'user_achievements.ndjson:1',
        'user_id: there is no such record in users: 9',
      ],
      [
        'no achievement',
        { ...BASE, user_achievements: [earned(1, 9)] },
        'user_achievements.ndjson:1',
        'achievement_id: there is no such record in achievements: 9',
      ],
    ];
    thorough.it.each(cases)('%s', async (_, files, line, reason) => {
      const before = await everything();
      const { imported, rejected, firstRejects } = await load(files);
      expect({ imported, rejected }).toEqual({ imported: false, rejected: 1 });
      expect(firstRejects.map(({ file, line }) => `${file}:${line}`)).toEqual([line]);
      expect(firstRejects[0]!.reason).toEqual(
        typeof reason === 'string' ? reason : expect.stringMatching(reason),
      );
      expect(await everything()).toEqual(before);
    });

    it('text that is not UTF-8', async () => {
      const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'import-'));
      writeFileSync(join(folder, 'users.ndjson'), Buffer.from('{"id":1,"username":"Zo\xeb"}\n', 'latin1'));
      const { firstRejects } = await importRecords(api.dataSource, folderSource(folder));
      expect(firstRejects).toEqual([{ file: 'users.ndjson', line: 1, reason: 'is not UTF-8' }]);
    });
  });

  describe('rejects conflicts with existing data:', () => {
    const present: ImportedFiles = {
      users: [user(1, { external_id: 'sub-1' }), user(2), user(3)],
      events: [event(1)],
      achievements: [achievement(1, { key: 'one' }), achievement(2)],
      connections: [connection(5, 1, 2)],
      user_achievements: [earned(1, 1, { pin_position: 2 })],
    };
    const cases: [what: string, files: ImportedFiles, reason: string][] = [
      [
        'a username that is taken',
        { users: [user(9, { username: 'U1' })] },
        'username: is taken by member 1',
      ],
      [
        'an external id that is taken',
        { users: [user(9, { external_id: 'sub-1' })] },
        'external_id: is taken by member 1',
      ],
      [
        'an achievement’s key that is taken',
        { achievements: [achievement(9, { key: 'one' })] },
        'key: is taken by achievement 1',
      ],
      [
        'the id of another pair’s connection',
        { connections: [connection(5, 1, 3)] },
        'id: is that of a connection between other members',
      ],
      [
        'a pin that is taken',
        { user_achievements: [earned(1, 2, { pin_position: 2 })] },
        'pin_position: is taken by achievement 1',
      ],
    ];
    thorough.it.each(cases)('%s', async (_, files, reason) => {
      await load(present);
      const before = await everything();
      const { imported, firstRejects } = await load(files);
      expect(imported).toBe(false);
      expect(firstRejects).toEqual([expect.objectContaining({ line: 1, reason })]);
      expect(await everything()).toEqual(before);
    });

    thorough.it('a username that only a bad line would have freed', async () => {
      await load({ users: [user(1, { username: 'ann' }), user(2, { username: 'zed' })] });
      const { firstRejects } = await load({
        users: [user(2, { username: 'ann' }), user(3, { username: 'zed' }), user(4)],
      });
      expect(firstRejects).toEqual([
        { file: 'users.ndjson', line: 1, reason: 'username: is taken by member 1' },
        { file: 'users.ndjson', line: 2, reason: 'username: is taken by member 2' },
      ]);
    });

    thorough.it('keeps the external id if the file omits it, and lets members exchange ids', async () => {
      const externalIds = () => rows('SELECT external_id FROM users WHERE id < 4 ORDER BY id');
      await load({ users: [user(1, { external_id: 'a' }), user(2, { external_id: 'b' }), user(3)] });
      await load({ users: [user(1, { first_name: 'Ada' }), user(2), user(3, { external_id: 'c' })] });
      expect(await externalIds()).toEqual([{ external_id: 'a' }, { external_id: 'b' }, { external_id: 'c' }]);
      await load({
        users: [user(1, { external_id: 'b' }), user(2, { external_id: null }), user(3, { external_id: 'a' })],
      });
      expect(await externalIds()).toEqual([
        { external_id: 'b' },
        { external_id: null },
        { external_id: 'a' },
      ]);
    });

    thorough.it('stores the email address, and keeps it if the file omits it', async () => {
      const addresses = () => rows('SELECT email FROM users WHERE id < 4 ORDER BY id');
      const email = 'ada@example.com';
      await load({ users: [user(1, { email }), user(2, { email }), user(3)] });
      await load({
        users: [
          user(1, { first_name: 'Ada' }),
          user(2, { email: null }),
          user(3, { email: 'b@example.com' }),
        ],
      });
      expect(await addresses()).toEqual([{ email }, { email: null }, { email: 'b@example.com' }]);
    });

    thorough.it(
      'accepts values freed by the same folder: usernames, keys and pins change places',
      async () => {
        await load({
          ...BASE,
          achievements: [achievement(1, { key: 'a' }), achievement(2, { key: 'b' })],
          user_achievements: [earned(1, 1, { pin_position: 1 }), earned(1, 2, { pin_position: 2 })],
        });
        const { imported, files } = await load({
          users: [user(1, { username: 'u2' }), user(2, { username: 'U1' })],
          achievements: [achievement(1, { key: 'b' }), achievement(2, { key: 'a' })],
          user_achievements: [earned(1, 1, { pin_position: 2 }), earned(1, 2, { pin_position: 1 })],
        });
        expect(imported).toBe(true);
        expect(files).toMatchObject({
          users: { updated: 2 },
          achievements: { updated: 2 },
          user_achievements: { updated: 2 },
        });
        expect(await rows('SELECT id, username FROM users ORDER BY id')).toEqual([
          { id: 1, username: 'u2' },
          { id: 2, username: 'U1' },
        ]);
        expect(await rows('SELECT pin_position FROM user_achievements ORDER BY achievement_id')).toEqual([
          { pin_position: 2 },
          { pin_position: 1 },
        ]);
      },
    );
  });
});
