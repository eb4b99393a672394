import type { Database } from '../database/database.js';
import { ONLINE_URL } from '../database/sql.js';
import { EVENT_ACCESS } from '../resources/resources.js';
import type { EventRole, EventStatus, RsvpStatus } from '../values/vocabulary.js';

/** An event as a calendar shows it, with the member's relation to it. Times are in the API's format. */
export interface CalendarEvent {
  readonly id: number;
  readonly title: string;
  /** The first 2,000 characters. */
  readonly description: string | null;
  readonly status: EventStatus;
  readonly starts_at: string;
  readonly ends_at: string | null;
  /** IANA name. */
  readonly timezone: string;
  /** In `timezone`; in UTC where the database does not know it. */
  readonly starts_at_local: string;
  readonly ends_at_local: string | null;
  readonly is_all_day: boolean;
  readonly location_name: string | null;
  readonly location_address: string | null;
  readonly location_city: string | null;
  readonly location_country_code: string | null;
  readonly location_latitude: number | null;
  readonly location_longitude: number | null;
  readonly online_url: string | null;
  readonly organizer: string;
  readonly role: EventRole;
  readonly rsvp_status: RsvpStatus | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly revision: number;
}

/** Maximum number of events that have not started: the next ones. */
const MOST_TO_COME = 1_000;
/** Maximum number of events that have started: the latest ones within a year. */
const MOST_PAST = 500;

const RELATIONS = 'SELECT p.event_id, p.role, p.rsvp_status, p.starts_at FROM participants p';

/** By the same rule as lists of the API ({@link EVENT_ACCESS}); each half is one range of an index. */
const EVENTS = `WITH p AS MATERIALIZED (
  (${RELATIONS} WHERE ${EVENT_ACCESS} AND p.starts_at > now() ORDER BY p.starts_at, p.event_id LIMIT ${MOST_TO_COME})
  UNION ALL
  (${RELATIONS} WHERE ${EVENT_ACCESS} AND p.starts_at <= now() AND p.starts_at > now() - interval '1 year'
    ORDER BY p.starts_at DESC, p.event_id LIMIT ${MOST_PAST})
)`;
const JOINED = 'FROM p JOIN events e ON e.id = p.event_id JOIN users o ON o.id = e.organizer_id';

const READ = `${EVENTS} SELECT e.id, e.title, left(COALESCE(NULLIF(e.description, ''), e.summary), 2000) AS description, e.status,
  api_time(e.starts_at) AS starts_at, api_time(e.ends_at) AS ends_at, e.timezone,
  local_time_or_utc(e.starts_at, e.timezone) AS starts_at_local, local_time_or_utc(e.ends_at, e.timezone) AS ends_at_local,
  e.is_all_day, e.location_name, e.location_address, e.location_city, e.location_country_code,
  e.location_latitude, e.location_longitude, ${ONLINE_URL} AS online_url, o.display_name AS organizer,
  p.role, p.rsvp_status, api_time(e.created_at) AS created_at, api_time(e.updated_at) AS updated_at, e.revision
${JOINED} ORDER BY p.starts_at, e.id`;

/** What {@link READ} shows: which events, in which versions of their rows, and what it takes from other tables. */
const VERSION = `${EVENTS} SELECT COALESCE(encode(sha256(convert_to(string_agg(
  (e.id, e.xmin, o.display_name, p.role, p.rsvp_status)::text, ',' ORDER BY p.starts_at, e.id), 'UTF8')), 'hex'), '') AS version
${JOINED}`;

/** The events of a member's calendar, in the order in which they start. */
export function readCalendar(database: Database, userId: number): Promise<CalendarEvent[]> {
  return database.prepared<CalendarEvent>(READ, [userId]);
}

/** Identifies what {@link readCalendar} would return, at a small part of its cost. */
export async function calendarVersion(database: Database, userId: number): Promise<string> {
  const [row] = await database.prepared<{ version: string }>(VERSION, [userId]);
  return row!.version;
}
