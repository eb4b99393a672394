import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import supertest from 'supertest';
import { TestApi } from '../support/api.js';
import { pua } from '../support/command-line.js';
import { thorough } from '../support/database.js';

/* Members' questions about real data, each with the tool calls that an assistant needs and the text that the model must get. */

const MONTANA = join(process.cwd(), '../shared/data/montana-meetups');
const available = existsSync(MONTANA);
if (!available) console.warn(`SKIPPED: the real data of montana-meetups is not at ${MONTANA}`);

const MAX_CALLS = 2;
const MAX_CHARACTERS = 3_000;
/** A member with 55 events and 28 connections: more than nearly all other members have. */
const MEMBER = 9;
const DAY_MS = 86_400_000;
const day = (offset: number) => new Date(Date.now() + offset * DAY_MS).toISOString();

type Values = Record<string, unknown>;
type Call = readonly [tool: string, values?: Values];
/** @param first response of the first call */
type Next = (first: any) => Call;

const ANY_STATUS = ['accepted', 'pending_sent', 'pending_received'];

const QUESTIONS: readonly (readonly [question: string, answer: RegExp, first: () => Call, next?: Next])[] = [
  [
    'What is my next event, and where?',
    /Harvest.*Berlin/,
    () => ['list_events', { time_filter: 'upcoming', limit: 1 }],
  ],
  [
    'What do I have on this week?',
    /Choir/,
    () => ['list_events', { time_filter: 'upcoming', starts_before: day(7) }],
  ],
  [
    'Which invitations have I not answered?',
    /Choir/,
    () => ['list_events', { rsvp_status: ['pending'], time_filter: 'upcoming' }],
  ],
  [
    'How many events did I go to in Missoula in 2012?',
    /"total":\d/,
    () => [
      'list_events',
      {
        city: 'Missoula',
        role: ['attendee'],
        starts_after: '2012-01-01',
        starts_before: '2013-01-01',
        limit: 1,
        fields: ['title'],
      },
    ],
  ],
  [
    'Which events am I organizing?',
    /Harvest/,
    () => ['list_events', { role: ['organizer'], fields: ['title', 'starts_at_local'] }],
  ],
  [
    'What is the Harvest about, and how many places are left?',
    /Bring boots.*"spots_left":10/,
    () => ['list_events', { q: 'harvest', fields: ['id', 'title', 'starts_at_local'] }],
    ({ data: [{ id }] }) => ['get_event', { id }],
  ],
  [
    'Whom did I meet in Missoula, and am I connected with them?',
    /"display_name":"[^"]+"\},"status":"(?:accepted|pending_\w+)"/,
    () => [
      'list_connections',
      { met_in_city: 'Missoula', status: ANY_STATUS, fields: ['user', 'status'], limit: 50 },
    ],
  ],
  [
    'Whom did I meet at the last event in Missoula?',
    /"total":\d/,
    () => ['list_events', { city: 'Missoula', time_filter: 'past', limit: 1, fields: ['id', 'title'] }],
    ({ data: [{ id }] }) => ['list_connections', { met_at_event: id }],
  ],
  ['Do I know a Chidi?', /Chidi/, () => ['list_connections', { q: 'chidi', status: ANY_STATUS }]],
  [
    'Where did I meet most people?',
    /"city":"Missoula"/,
    () => ['list_connections', { fields: ['met_at_event'], limit: 100 }],
  ],
  [
    'What changed since yesterday?',
    /Choir.*"connections":\{"total":1.*"achievements"/,
    () => ['changes_since', { updated_since: day(-1) }],
  ],
  ['What is my last name?', /"last_name":"\w+"/, () => ['get_profile']],
  [
    'Change my bio.',
    /"message":"Profile updated."/,
    () => ['get_profile'],
    ({ version }) => ['update_profile', { bio: 'Here for the hikes', version }],
  ],
  [
    'Which achievements am I close to?',
    /"percentage":[1-9]/,
    () => ['list_all_achievements', { earned: false, sort: '-progress', limit: 5 }],
  ],
  [
    'What do I have to do for Stalwart?',
    /"criteria":"Attend twenty events."/,
    () => ['list_all_achievements', { fields: ['id', 'name'], limit: 100 }],
    ({ data }) => ['get_achievement', { id: data.find(({ name }: Values) => name === 'Stalwart').id }],
  ],
  [
    'What is the rarest that I earned, and how many points have I?',
    /"points_earned":\d+.*"rarest_earned":/,
    () => ['achievement_statistics'],
  ],
  ['What have I pinned?', /"total":\d/, () => ['list_pinned_achievements']],
  [
    'Which events did I attend with Sam last year?', // only the events where they met: other attendees are not visible
    /"display_name":"Sam[^"]*"\}.*"met_at_event":\{"id":\d+,"title":"[^"]+"/,
    () => ['list_connections', { q: 'sam' }],
  ],
  [
    'In which city have I been to most events?',
    /"total":\d\d.*"city":"Missoula"/,
    () => ['list_events', { role: ['attendee'], fields: ['location.city'], limit: 100 }],
  ],
  [
    'When did I meet Sam for the first time?',
    /"connected_at":"20.*"starts_at_local":"20/,
    () => ['list_connections', { q: 'sam', sort: 'connected_at' }],
    ({ data: [{ met_at_event }] }) => ['get_event', { id: met_at_event.id }],
  ],
  [
    'Which of my events had most people?',
    /"attendees_count":\d.*"title":"/,
    () => ['list_events', { time_filter: 'past', fields: ['id', 'attendees_count'], limit: 100 }],
    ({ data }) => [
      'get_event',
      {
        id: data.toSorted((a: Values, b: Values) => Number(b.attendees_count) - Number(a.attendees_count))[0]
          .id,
      },
    ],
  ],
  [
    'Which requests have I sent that nobody has accepted, and since when?',
    /"total":[1-9].*"requested_at":"20/,
    () => ['list_connections', { status: ['pending_sent'], fields: ['user.display_name', 'requested_at'] }],
  ],
  [
    'Which achievements did the fewest members earn?',
    /"rarity_percentage":/,
    () => [
      'list_all_achievements',
      { sort: 'rarity_percentage', limit: 5, fields: ['name', 'earned', 'rarity_percentage'] },
    ],
  ],
];

(available ? thorough.describe : describe.skip)('an assistant', () => {
  let api: TestApi;
  let key: string;
  beforeAll(async () => {
    api = await TestApi.start({ assistants: true });
    await pua(api.environment, ['import', MONTANA]);
    const hike = await api.platform.event({
      title: 'Hike',
      starts_at: day(-300),
      location_city: 'Helena',
      updated_at: '2020-01-01',
    });
    await api.platform.participant(hike, MEMBER);
    const sam = await api.platform.user({ first_name: 'Sam', last_name: 'Lee' });
    await api.platform.connection(MEMBER, sam, { met_at_event_id: hike });
    await api.platform.connection(MEMBER, await api.platform.user(), { status: 'pending_sent' });
    // Makes all other data a week old.
    await api.query('DELETE FROM changes');
    await api.query('UPDATE participants SET changed_in = NULL');
    await api.query('UPDATE events SET changed_in = NULL');
    await api.query(`INSERT INTO change_marks SELECT now() - interval '2 days', pg_current_snapshot()::text`);
    const place = {
      location_name: 'Farm',
      location_city: 'Berlin',
      location_country_code: 'DE',
      location_address: 'Dorfstr. 1',
    };
    const details = { description: 'Bring boots.', capacity: 10, updated_at: '2020-01-01' };
    const harvest = await api.platform.event({
      title: 'Harvest',
      starts_at: day(2),
      organizer_id: MEMBER,
      ...place,
      ...details,
    });
    await api.platform.participant(harvest, MEMBER, { role: 'organizer' });
    const choir = await api.platform.event({ title: 'Choir', starts_at: day(3) });
    await api.platform.participant(choir, MEMBER, { role: 'invitee', rsvp_status: 'pending' });
    await api.platform.connection(MEMBER, await api.platform.user());
    key = await api.key(MEMBER);
  });
  afterAll(() => api.close());

  const use = async ([name, values = {}]: Call): Promise<string> => {
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: values } };
    const { body } = await supertest(api.app.getHttpServer())
      .post('/api/public/mcp')
      .set({ 'X-API-Key': key, 'MCP-Protocol-Version': '2025-11-25' })
      .send(message);
    expect(body.result.isError ?? body.result.content[0].text).not.toBe(true);
    expect(body.result).not.toHaveProperty('structuredContent');
    return body.result.content.map(({ text }: { text: string }) => text).join('');
  };

  it.each(QUESTIONS.map((asked) => [asked[0], asked] as const))(
    'gets the answer in at most two calls and 3,000 characters: %s',
    async (question, [, answer, first, next]) => {
      const texts = [await use(first())];
      if (next) texts.push(await use(next(JSON.parse(texts[0]!))));
      expect(texts.length).toBeLessThanOrEqual(MAX_CALLS);
      expect(texts.join('')).toMatch(answer);
      const characters = texts.join('').length;
      if (process.env.SHOW_CHARACTERS) process.stdout.write(`${characters}\t${texts.length}\t${question}\n`);
      expect(characters).toBeLessThanOrEqual(MAX_CHARACTERS);
    },
  );
});
