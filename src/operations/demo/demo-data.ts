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
  {
    timezone: 'Europe/Berlin',
    name: 'Kulturhaus',
    city: 'Berlin',
    country_code: 'DE',
    latitude: 52.52,
    longitude: 13.4,
  },
  {
    timezone: 'America/New_York',
    name: 'The Loft',
    city: 'New York',
    country_code: 'US',
    latitude: 40.73,
    longitude: -74,
  },
  {
    timezone: 'Asia/Kathmandu',
    name: 'Garden of Dreams',
    city: 'Kathmandu',
    country_code: 'NP',
    latitude: 27.71,
    longitude: 85.31,
  },
  {
    timezone: 'Asia/Tokyo',
    name: 'Shimokita Hall',
    city: 'Tokyo',
    country_code: 'JP',
    latitude: 35.66,
    longitude: 139.67,
  },
] as const;

interface DemoEvent {
  title: string;
  /** Days from the day of seeding. */
  day: number;
  status: string;
  /** Ada's relation to the event; without one, she does not see it. */
  ada?: [role: string, rsvp: string | null];
  /** Numbers of the members who are going. */
  going?: number[];
  more?: Record<string, unknown>;
}

const EVENTS: DemoEvent[] = [
  {
    title: 'Analytical Engine Night',
    day: 9,
    status: 'scheduled',
    ada: ['organizer', null],
    going: [3, 4, 5, 6],
    more: {
      capacity: 30,
      summary: 'Cards, gears and cake',
      tags: ['history', 'machines'],
      description: 'Bring your own punch cards.',
    },
  },
  {
    title: 'Compilers Online',
    day: 3,
    status: 'scheduled',
    ada: ['attendee', 'going'],
    going: [2, 7, 8],
    more: { is_online: true, online_url: 'https://meet.example.com/compilers' },
  },
  { title: 'Code & Ramen', day: 14, status: 'scheduled', ada: ['attendee', 'maybe'], going: [9, 10] },
  {
    title: 'Board Games (full)',
    day: 5,
    status: 'scheduled',
    ada: ['attendee', 'waitlisted'],
    going: [11, 12, 13],
    more: { capacity: 3 },
  },
  {
    title: 'Sunrise Hike',
    day: 21,
    status: 'scheduled',
    ada: ['invitee', 'pending'],
    going: [14],
    more: { visibility: 'private' },
  },
  { title: 'Karaoke', day: 11, status: 'scheduled', ada: ['invitee', 'declined'], going: [15, 16] },
  {
    title: 'Secret Anniversary',
    day: 40,
    status: 'draft',
    ada: ['co_organizer', null],
    more: { visibility: 'private' },
  },
  {
    title: 'Rooftop Cinema',
    day: 6,
    status: 'cancelled',
    ada: ['attendee', 'going'],
    going: [17],
    more: { cancelled: 'Rain all week' },
  },
  {
    title: 'Hack Weekend',
    day: -1,
    status: 'ongoing',
    ada: ['attendee', 'going'],
    going: [18, 19, 20, 21],
    more: { days: 3 },
  },
  {
    title: 'Reading Circle',
    day: -20,
    status: 'completed',
    ada: ['attendee', 'going'],
    going: [2, 3],
    more: { open_end: true },
  },
  {
    title: 'Summer Fair',
    day: -60,
    status: 'completed',
    ada: ['co_organizer', null],
    going: [4, 5, 6, 7],
    more: { is_all_day: true },
  },
  { title: 'Somebody Else’s Party', day: -100, status: 'completed', going: [22, 23] },
  { title: 'A Draft that Ada does not see', day: 30, status: 'draft', ada: ['invitee', 'pending'] },
  ...Array.from({ length: 24 }, (_, i): DemoEvent => ({
    title: `Weekly Meetup ${24 - i}`,
    day: -7 * (i + 1),
    status: 'completed',
    ada: ['attendee', 'going'],
    going: [2 + (i % 20), 3 + (i % 20)],
  })),
];

/** Makes the events: rows of `events`, some before `today` and some after it. */
export function demoEvents(today: Date) {
  return EVENTS.map(({ title, day, status, going, more = {} }, i) => {
    const place = PLACES[i % PLACES.length]!;
    const { cancelled, days, open_end, ...fields } = more as {
      cancelled?: string;
      days?: number;
      open_end?: boolean;
    };
    const online = 'is_online' in fields;
    return {
      id: id(i + 1),
      title,
      status,
      visibility: 'public',
      starts_at: at(today, day, 17),
      ends_at: open_end ? null : at(today, day + (days ?? 0), days ? 17 : 20),
      timezone: place.timezone,
      organizer_id: id(i === 0 ? 1 : (going?.[0] ?? 2)),
      created_at: at(today, Math.min(day - 30, -3), 8),
      updated_at: cancelled ? at(today, -1, 12) : at(today, Math.min(day - 2, -1), 8),
      ...(online
        ? {}
        : {
            location_name: place.name,
            location_city: place.city,
            location_country_code: place.country_code,
            location_address: '1 Example Street',
            location_latitude: place.latitude,
            location_longitude: place.longitude,
          }),
      ...(cancelled ? { cancelled_at: at(today, -1, 12), cancellation_reason: cancelled } : {}),
      is_all_day: false,
      is_online: false,
      tags: [],
      ...fields,
    };
  });
}

/** Makes the events' participants: rows of `participants`. */
export function demoParticipants(today: Date) {
  return EVENTS.flatMap(({ day, ada, going = [] }, i) => {
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

interface DemoAchievement {
  /** Begins with `demo_`: keys are unique, and a platform has its own. */
  key: string;
  name: string;
  category: string;
  points: number;
  target?: number;
  hidden?: boolean;
  retired?: boolean;
  /** How many members earned it, from the first (Ada) or the second on. */
  earners: number;
  adaEarned: boolean;
  adaProgress?: number;
  pin?: number;
}

const ACHIEVEMENTS: DemoAchievement[] = [
  {
    key: 'demo_first_event',
    name: 'First Steps',
    category: 'events',
    points: 10,
    target: 1,
    earners: 20,
    adaEarned: true,
    pin: 3,
  },
  {
    key: 'demo_ten_events',
    name: 'Regular',
    category: 'events',
    points: 50,
    target: 10,
    earners: 9,
    adaEarned: true,
  },
  {
    key: 'demo_fifty_events',
    name: 'Always There',
    category: 'events',
    points: 200,
    target: 50,
    earners: 0,
    adaEarned: false,
    adaProgress: 27,
  },
  {
    key: 'demo_first_host',
    name: 'Host',
    category: 'hosting',
    points: 30,
    target: 1,
    earners: 6,
    adaEarned: true,
  },
  {
    key: 'demo_ten_hosts',
    name: 'Impresario',
    category: 'hosting',
    points: 80,
    target: 10,
    earners: 1,
    adaEarned: false,
    adaProgress: 2,
  },
  {
    key: 'demo_connector',
    name: 'Connector',
    category: 'social',
    points: 40,
    target: 10,
    earners: 3,
    adaEarned: true,
    pin: 1,
  },
  { key: 'demo_polyglot', name: 'Polyglot', category: 'social', points: 60, earners: 2, adaEarned: false },
  {
    key: 'demo_storyteller',
    name: 'Storyteller',
    category: 'profile',
    points: 5,
    target: 1,
    earners: 14,
    adaEarned: true,
  },
  {
    key: 'demo_night_owl',
    name: 'Night Owl',
    category: 'special',
    points: 100,
    hidden: true,
    earners: 1,
    adaEarned: true,
    pin: 5,
  },
  {
    key: 'demo_time_traveller',
    name: 'Time Traveller',
    category: 'special',
    points: 500,
    target: 3,
    hidden: true,
    earners: 0,
    adaEarned: false,
    adaProgress: 1,
  },
  {
    key: 'demo_founder',
    name: 'Founder',
    category: 'special',
    points: 150,
    retired: true,
    earners: 4,
    adaEarned: true,
  },
  {
    key: 'demo_beta',
    name: 'Beta Tester',
    category: 'special',
    points: 20,
    retired: true,
    earners: 5,
    adaEarned: false,
  },
];

/** Makes the catalogue of achievements: rows of `achievements`. */
export function demoAchievements(today: Date) {
  return ACHIEVEMENTS.map(({ key, name, category, points, target, hidden, retired }, i) => ({
    id: id(i + 1),
    key,
    name,
    category,
    points,
    target: target ?? null,
    description: `${name}: ${target && target > 1 ? `${target} times` : 'once'}.`,
    criteria: `Do it ${target && target > 1 ? `${target} times` : 'once'}.`,
    icon_url: `https://cdn.example.com/badges/${key}.svg`,
    is_hidden: hidden ?? false,
    position: i + 1,
    retired_at: retired ? at(today, -30, 0) : null,
  }));
}

/** Makes the members' earned achievements and progress: rows of `user_achievements`. */
export function demoProgress(today: Date) {
  return ACHIEVEMENTS.flatMap(({ target, earners, adaEarned, adaProgress, pin }, i) => {
    const earned = (user: number, pin_position: number | null) => ({
      user_id: id(user),
      achievement_id: id(i + 1),
      progress: target ?? 1,
      earned_at: at(today, -150 + 5 * i + user, 15),
      pin_position,
    });
    const first = adaEarned ? 1 : 2;
    return [
      ...Array.from({ length: earners }, (_, n) => earned(first + n, first + n === 1 ? (pin ?? null) : null)),
      ...(adaProgress
        ? [
            {
              user_id: id(1),
              achievement_id: id(i + 1),
              progress: adaProgress,
              earned_at: null,
              pin_position: null,
            },
          ]
        : []),
    ];
  });
}

function at(today: Date, days: number, hour: number): string {
  return new Date(
    Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate(), hour) + days * DAY,
  ).toISOString();
}
