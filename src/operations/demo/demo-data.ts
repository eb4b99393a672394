/**
 * The demo's data: fixed except for times, which are relative to the day of seeding. Ids and keys are chosen so that imports do not
 * collide with them.
 */

export const FIRST_ID = 900_000_001;
/** The demo's last possible id, in every table. */
export const LAST_ID = 900_000_999;
/** Printed at start, so the demo is refused where others than this machine's user could reach it. */
export const DEMO_PASSWORD = 'correct-horse-battery';
export const DEMO_USERNAMES = ['ada', 'grace'] as const;

const NAMES =
  `Ada Lovelace, Grace Hopper, Alan Turing, Katherine Johnson, Edsger Dijkstra, Barbara Liskov, Donald Knuth, Radia Perlman,
Tim Lee, Margaret Hamilton, Ken Thompson, Frances Allen, Dennis Ritchie, Hedy Lamarr, Niklaus Wirth, Adele Goldberg,
Linus Oja, Karen Jones, Bjarne Olsen, Lynn Conway, John Kay, Sophie Wilson, Claude Shannon, Annie Easley`
    .split(/,\s+/)
    .map((name) => name.split(' ') as [string, string]);

/** The last member's id. */
export const LAST_MEMBER_ID = FIRST_ID + NAMES.length - 1;

const BIOS = [
  'Here for the hikes and the coffee.',
  'Books, boards & bikes. 🚲',
  null,
  'Ask me about sourdough.',
];

const DAY = 86_400_000;

/** The id of the n-th member, event, connection or achievement. */
const id = (n: number) => FIRST_ID + n - 1;

/** Makes the members: rows of `users`, who joined before `today` and share one password. */
export function demoUsers(today: Date, passwordHash: string) {
  return NAMES.map(([first_name, last_name], i) => ({
    id: id(i + 1),
    username: first_name.toLowerCase() + (i < 2 ? '' : i + 1),
    first_name,
    last_name,
    bio: BIOS[i % BIOS.length],
    profile_picture: i % 3 === 2 ? null : `https://cdn.example.com/avatars/${i + 1}.jpg`,
    password_hash: passwordHash,
    created_at: at(today, -400 + i * 7, 9),
  }));
}

const PLACES = [
  ['Europe/Berlin', 'Kulturhaus', 'Berlin', 'DE', 52.52, 13.4],
  ['America/New_York', 'The Loft', 'New York', 'US', 40.73, -74],
  ['Asia/Kathmandu', 'Garden of Dreams', 'Kathmandu', 'NP', 27.71, 85.31],
  ['Asia/Tokyo', 'Shimokita Hall', 'Tokyo', 'JP', 35.66, 139.67],
] as const;

/** An event, by days from the day of seeding. Ada does not see it where she has no role; those who go have their numbers. */
type DemoEvent = readonly [
  title: string,
  day: number,
  status: string,
  ada: readonly [role: string, rsvp: string | null] | undefined,
  going?: readonly number[],
  more?: { days?: number; open_end?: true; cancelled?: string } & Record<string, unknown>,
];

const EVENTS: readonly DemoEvent[] = [
  [
    'Analytical Engine Night',
    9,
    'scheduled',
    ['organizer', null],
    [3, 4, 5, 6],
    {
      capacity: 30,
      summary: 'Cards, gears and cake',
      tags: ['history', 'machines'],
      description: 'Bring your own punch cards.',
    },
  ],
  [
    'Compilers Online',
    3,
    'scheduled',
    ['attendee', 'going'],
    [2, 7, 8],
    { online_url: 'https://meet.example.com/compilers' },
  ],
  ['Code & Ramen', 14, 'scheduled', ['attendee', 'maybe'], [9, 10]],
  ['Board Games (full)', 5, 'scheduled', ['attendee', 'waitlisted'], [11, 12, 13], { capacity: 3 }],
  ['Sunrise Hike', 21, 'scheduled', ['invitee', 'pending'], [14], { visibility: 'private' }],
  ['Karaoke', 11, 'scheduled', ['invitee', 'declined'], [15, 16]],
  ['Secret Anniversary', 40, 'draft', ['co_organizer', null], [], { visibility: 'private' }],
  ['Rooftop Cinema', 6, 'cancelled', ['attendee', 'going'], [17], { cancelled: 'Rain all week' }],
  ['Hack Weekend', -1, 'ongoing', ['attendee', 'going'], [18, 19, 20, 21], { days: 3 }],
  ['Reading Circle', -20, 'completed', ['attendee', 'going'], [2, 3], { open_end: true }],
  ['Summer Fair', -60, 'completed', ['co_organizer', null], [4, 5, 6, 7], { is_all_day: true }],
  ['Somebody Else’s Party', -100, 'completed', undefined, [22, 23]],
  ['A Draft that Ada does not see', 30, 'draft', ['invitee', 'pending']],
  ...Array.from({ length: 24 }, (_, i): DemoEvent => [
    `Weekly Meetup ${24 - i}`,
    -7 * (i + 1),
    'completed',
    ['attendee', 'going'],
    [2 + (i % 20), 3 + (i % 20)],
  ]),
];

/** Makes the events: rows of `events`, some before `today` and some after it. */
export function demoEvents(today: Date) {
  return EVENTS.map(
    ([title, day, status, , going = [], { cancelled, days = 0, open_end, ...more } = {}], i) => {
      const [timezone, name, city, country_code, latitude, longitude] = PLACES[i % PLACES.length]!;
      const is_online = 'online_url' in more;
      return {
        id: id(i + 1),
        title,
        status,
        visibility: 'public',
        starts_at: at(today, day, 17),
        ends_at: open_end ? null : at(today, day + days, days > 0 ? 17 : 20),
        timezone,
        organizer_id: id(i === 0 ? 1 : (going[0] ?? 2)),
        created_at: at(today, Math.min(day - 30, -3), 8),
        updated_at: cancelled ? at(today, -1, 12) : at(today, Math.min(day - 2, -1), 8),
        ...(!is_online && {
          location_name: name,
          location_city: city,
          location_country_code: country_code,
          location_address: '1 Example Street',
          location_latitude: latitude,
          location_longitude: longitude,
        }),
        ...(cancelled && { cancelled_at: at(today, -1, 12), cancellation_reason: cancelled }),
        is_all_day: false,
        is_online,
        tags: [],
        ...more,
      };
    },
  );
}

/** Makes the events' participants: rows of `participants`. */
export function demoParticipants(today: Date) {
  return EVENTS.flatMap(([, day, , ada, going = []], i) => {
    const starts_at = at(today, day, 17);
    const relation = (user: number, role: string, rsvp_status: string | null) => ({
      user_id: id(user),
      event_id: id(i + 1),
      role,
      rsvp_status,
      responded_at: rsvp_status && rsvp_status !== 'pending' ? at(today, Math.min(day - 3, -2), 10) : null,
      checked_in_at: rsvp_status === 'going' && day < 0 ? starts_at : null,
      starts_at,
      changed_in: null, // seeded with the members, so not a change for them
    });
    return [
      ...(ada ? [relation(1, ...ada)] : []),
      ...going.map((user) => relation(user, 'attendee', 'going')),
    ];
  });
}

/** Makes the connections of the members: rows of `connections`, two for each, one per side. */
export function demoConnections(today: Date) {
  const sources = ['event', 'search', 'invite', 'import', null];
  const between = (n: number, requester: number, addressee: number, accepted: boolean) => {
    const both = {
      id: id(n),
      source: sources[n % sources.length],
      met_at_event_id: n % sources.length === 0 ? id(n % 2 === 0 ? 26 : 12) : null,
      requested_at: at(today, -100 + n, 12),
      connected_at: accepted ? at(today, -90 + n, 18) : null,
    };
    const status = (side: string) => (accepted ? 'accepted' : `pending_${side}`);
    return [
      { ...both, user_id: id(requester), peer_id: id(addressee), status: status('sent') },
      { ...both, user_id: id(addressee), peer_id: id(requester), status: status('received') },
    ];
  };
  return [
    ...Array.from({ length: 16 }, (_, i) => between(i + 1, i % 2 ? 1 : i + 2, i % 2 ? i + 2 : 1, true)),
    between(17, 1, 18, false),
    between(18, 1, 19, false),
    between(19, 20, 1, false),
    between(20, 21, 1, false),
    between(21, 2, 3, true),
    between(22, 4, 5, true),
  ].flat();
}

/** Its key begins with `demo_`: keys are unique, and a platform has its own. Members earned it from the first (Ada) or the second on. */
type DemoAchievement = readonly [
  key: string,
  name: string,
  category: string,
  points: number,
  target: number | null,
  earners: number,
  ada: 'earned' | 'not earned' | number,
  more?: { pin?: number; hidden?: true; retired?: true },
];

/** Where Ada has not earned one, a number is her progress. */
const ACHIEVEMENTS: readonly DemoAchievement[] = [
  ['demo_first_event', 'First Steps', 'events', 10, 1, 20, 'earned', { pin: 3 }],
  ['demo_ten_events', 'Regular', 'events', 50, 10, 9, 'earned'],
  ['demo_fifty_events', 'Always There', 'events', 200, 50, 0, 27],
  ['demo_first_host', 'Host', 'hosting', 30, 1, 6, 'earned'],
  ['demo_ten_hosts', 'Impresario', 'hosting', 80, 10, 1, 2],
  ['demo_connector', 'Connector', 'social', 40, 10, 3, 'earned', { pin: 1 }],
  ['demo_polyglot', 'Polyglot', 'social', 60, null, 2, 'not earned'],
  ['demo_storyteller', 'Storyteller', 'profile', 5, 1, 14, 'earned'],
  ['demo_night_owl', 'Night Owl', 'special', 100, null, 1, 'earned', { hidden: true, pin: 5 }],
  ['demo_time_traveller', 'Time Traveller', 'special', 500, 3, 0, 1, { hidden: true }],
  ['demo_founder', 'Founder', 'special', 150, null, 4, 'earned', { retired: true }],
  ['demo_beta', 'Beta Tester', 'special', 20, null, 5, 'not earned', { retired: true }],
];

/** Makes the catalogue of achievements: rows of `achievements`. */
export function demoAchievements(today: Date) {
  return ACHIEVEMENTS.map(([key, name, category, points, target, , , { hidden, retired } = {}], i) => {
    const often = target !== null && target > 1 ? `${target} times` : 'once';
    return {
      id: id(i + 1),
      key,
      name,
      category,
      points,
      target,
      description: `${name}: ${often}.`,
      criteria: `Do it ${often}.`,
      icon_url: `https://cdn.example.com/badges/${key}.svg`,
      is_hidden: hidden ?? false,
      position: i + 1,
      retired_at: retired ? at(today, -30, 0) : null,
    };
  });
}

/** Makes the members' earned achievements and progress: rows of `user_achievements`. */
export function demoProgress(today: Date) {
  return ACHIEVEMENTS.flatMap(([, , , , target, earners, ada, { pin } = {}], i) => {
    const row = (user: number, progress: number, earned_at: string | null, pin_position: number | null) => ({
      user_id: id(user),
      achievement_id: id(i + 1),
      progress,
      earned_at,
      pin_position,
    });
    const first = ada === 'earned' ? 1 : 2;
    return [
      ...Array.from({ length: earners }, (_, n) => {
        const user = first + n;
        return row(user, target ?? 1, at(today, -150 + 5 * i + user, 15), user === 1 ? (pin ?? null) : null);
      }),
      ...(typeof ada === 'number' ? [row(1, ada, null, null)] : []),
    ];
  });
}

function at(today: Date, days: number, hour: number): string {
  return new Date(
    Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate(), hour) + days * DAY,
  ).toISOString();
}
