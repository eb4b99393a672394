import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Config } from '../config/config.js';
import { Database } from '../database/database.js';
import { Semaphore } from '../database/postgres/semaphore.js';
import { ONLINE_URL } from '../database/sql.js';
import { etagOf } from '../http/output/responses.js';
import { EVENT_ACCESS } from '../resources/resources.js';
import { calendarFile, type CalendarEvent, type CalendarSource } from './calendar-file.js';

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
/** OFFSET 0: each is looked up by its id, even in a plan from before the tables grew. */
const JOINED = `FROM p
CROSS JOIN LATERAL (SELECT e.*, e.xmin FROM events e WHERE e.id = p.event_id OFFSET 0) e
CROSS JOIN LATERAL (SELECT display_name FROM users WHERE id = e.organizer_id OFFSET 0) o`;

/** The events of a member's calendar, in the order in which they start. */
const READ = `${EVENTS} SELECT e.id, e.title, left(COALESCE(NULLIF(e.description, ''), e.summary), 2000) AS description, e.status,
  api_time(e.starts_at) AS starts_at, api_time(e.ends_at) AS ends_at, e.timezone,
  local_time_or_utc(e.starts_at, e.timezone) AS starts_at_local, local_time_or_utc(e.ends_at, e.timezone) AS ends_at_local,
  e.is_all_day, e.location_name, e.location_address, e.location_city, e.location_country_code,
  e.location_latitude, e.location_longitude, ${ONLINE_URL} AS online_url, o.display_name AS organizer,
  p.role, p.rsvp_status, api_time(e.created_at) AS created_at, api_time(e.updated_at) AS updated_at, e.revision
${JOINED} ORDER BY p.starts_at, e.id`;

/** Identifies what {@link READ} shows, at a small part of its cost: which events, in which versions of their rows, and what it takes from other tables. */
const VERSION = `${EVENTS} SELECT COALESCE(encode(sha256(convert_to(string_agg(
  (e.id, e.xmin, o.display_name, p.role, p.rsvp_status)::text, ',' ORDER BY p.starts_at, e.id), 'UTF8')), 'hex'), '') AS version
${JOINED}`;

interface CalendarFile {
  readonly bytes: Buffer;
  readonly etag: string;
  /** Of the events in it. */
  readonly version: string;
}

/** Memory for the files of all members: some twenty of a thousand events with long texts, or thousands of ordinary ones. */
const KEPT_BYTES = 64 * 1_048_576;
/** What an entry takes beside its file. */
const ENTRY_BYTES = 1_000;
/** Members whose files wait to be read; what they wait is bounded, too. */
const MOST_WAITING = 200;

/** How long a reader waits for a file at most, in ms: calendar programs ask once an hour, and nobody is looking. */
export const PATIENCE_MS = 5_000;

/**
 * Files of members' calendars, each kept for as long as its events are unchanged. One is looked up or made at a time, each member's once for
 * all who ask for it meanwhile: however many read however often, they take one connection, and no more than a member's share of the time.
 */
@Injectable()
export class CalendarFiles {
  readonly #source: CalendarSource;
  readonly #kept = new LRUCache<number, CalendarFile>({
    maxSize: KEPT_BYTES,
    sizeCalculation: ({ bytes }) => bytes.length + ENTRY_BYTES,
  });
  readonly #turns = new Semaphore(1, MOST_WAITING, PATIENCE_MS);
  /** Files by member whose turn has not come: whoever asks for one of them gets what will then be true. */
  readonly #waiting = new Map<number, Promise<CalendarFile>>();

  constructor(
    config: Config,
    private readonly database: Database,
  ) {
    this.#source = { name: config.platformName ?? 'Events', host: new URL(config.publicUrl).hostname };
  }

  /** Gives a member's file as it is now. @throws Unavailable if too many others wait, or for too long */
  of(userId: number): Promise<CalendarFile> {
    const waiting = this.#waiting.get(userId);
    if (waiting) return waiting;
    const begun = () => this.#waiting.delete(userId);
    const file = Promise.resolve()
      .then(() =>
        this.#turns.take(() => {
          begun();
          return this.#read(userId);
        }),
      )
      .catch((error: unknown) => {
        if (this.#waiting.get(userId) === file) begun();
        throw error;
      });
    this.#waiting.set(userId, file);
    return file;
  }

  async #read(userId: number): Promise<CalendarFile> {
    const [row] = await this.database.prepared<{ version: string }>(VERSION, [userId]);
    const { version } = row!;
    const kept = this.#kept.get(userId);
    if (kept?.version === version) return kept;
    // A change in between makes a file that is newer than its version, and is made again the next time.
    const events = await this.database.prepared<CalendarEvent>(READ, [userId]);
    const bytes = await calendarFile(events, this.#source);
    const file = { bytes, etag: etagOf(bytes), version };
    this.#kept.set(userId, file);
    return file;
  }
}
