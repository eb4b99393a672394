/** Words and bounds of the platform's data. The database's CHECKs repeat many of them. */

export const EVENT_STATUSES = ['draft', 'scheduled', 'ongoing', 'completed', 'cancelled'] as const;
export const EVENT_VISIBILITIES = ['public', 'unlisted', 'private'] as const;

/** A participant's possible RSVP statuses by role; for a role without statuses, the status is null. */
export const RSVP_STATUSES_BY_ROLE = {
  organizer: [],
  co_organizer: [],
  attendee: ['going', 'maybe', 'waitlisted'],
  invitee: ['pending', 'declined'],
} as const;
export const EVENT_ROLES = Object.keys(RSVP_STATUSES_BY_ROLE) as [EventRole, ...EventRole[]];
export const RSVP_STATUSES = Object.values(RSVP_STATUSES_BY_ROLE).flat();

/** Status of a connection for one member; imports have `pending` instead of the last two. */
export const CONNECTION_STATUSES = ['accepted', 'pending_sent', 'pending_received'] as const;
export const CONNECTION_SOURCES = ['event', 'search', 'invite', 'import'] as const;

/** Tiers of achievements, as the database function `rarity_tier` returns them. */
export const RARITIES = ['common', 'uncommon', 'rare', 'epic', 'legendary', 'unrated'] as const;

export type EventStatus = (typeof EVENT_STATUSES)[number];
export type EventRole = keyof typeof RSVP_STATUSES_BY_ROLE;
export type RsvpStatus = (typeof RSVP_STATUSES)[number];
export type Rarity = (typeof RARITIES)[number];

/** Highest id, less than 2^53, so that JavaScript can represent every id exactly. */
export const MAX_ID = 9_000_000_000_000_000;

/** Tells whether a number can be an id. */
export const isId = (number: number): boolean => Number.isInteger(number) && number >= 1 && number <= MAX_ID;

/** Reads the id in a path; returns 0, which no record has, if the id is malformed. */
export const idInPath = (text: string): number =>
  /^[1-9]\d{0,15}$/.test(text) && isId(Number(text)) ? Number(text) : 0;

export const MAX_PINNED = 6;
export const MAX_TAGS = 100;
/** Maximum code points of a URL. */
const MAX_URL_LENGTH = 2048;

/** Minimum and maximum number of code points. */
export type Length = readonly [least: number, most: number];

/** Minimum and maximum lengths of texts in Unicode code points, by table and column. */
export const LENGTHS = {
  users: {
    username: [1, 100],
    external_id: [1, 255],
    email: [3, 254],
    first_name: [0, 100],
    last_name: [0, 100],
    stored_display_name: [0, 200],
    bio: [0, 500],
    profile_picture: [0, MAX_URL_LENGTH],
    password_hash: [0, 500],
  },
  events: {
    title: [1, 300],
    summary: [0, 1000],
    description: [0, 20_000],
    online_url: [0, MAX_URL_LENGTH],
    location_name: [0, 300],
    location_city: [0, 200],
    location_address: [0, 500],
    cover_image: [0, MAX_URL_LENGTH],
    cancellation_reason: [0, 1000],
  },
  achievements: {
    key: [1, 100],
    name: [1, 200],
    description: [0, 2000],
    icon_url: [0, MAX_URL_LENGTH],
    category: [1, 100],
    criteria: [0, 2000],
  },
} as const satisfies Record<string, Record<string, Length>>;

export const TAG_LENGTH = [1, 100] as const satisfies Length;

/** Form of codes of ISO 3166-1 alpha-2. */
export const COUNTRY_CODE_PATTERN = '^[A-Z]{2}$';
export const MAX_LATITUDE = 90;
export const MAX_LONGITUDE = 180;
