import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Config } from '../config/config.js';
import { Database } from '../database/database.js';
import { Semaphore } from '../database/postgres/semaphore.js';
import { ONLINE_URL } from '../database/sql.js';
import { computeEtag } from '../http/output/responses.js';
import { EVENT_ACCESS } from '../resources/resources.js';
import { calendarFile, type CalendarEvent, type CalendarSource } from './calendar-file.js';

/** Maximum number of future events; the file has the earliest. */
const MAX_UPCOMING = 1_000;
/** Maximum number of events that started within the last year; the file has the latest. */
const MAX_PAST = 500;

const RELATIONS = 'SELECT p.event_id, p.role, p.rsvp_status, p.starts_at FROM participants p';

/** Finds events to which the member has access ({@link EVENT_ACCESS}); each half of the query reads one index range. */
const EVENTS = `WITH p AS MATERIALIZED (
  (${RELATIONS} WHERE ${EVENT_ACCESS} AND p.starts_at > now() ORDER BY p.starts_at, p.event_id LIMIT ${MAX_UPCOMING})
  UNION ALL
  (${RELATIONS} WHERE ${EVENT_ACCESS} AND p.starts_at <= now() AND p.starts_at > now() - interval '1 year'
    ORDER BY p.starts_at DESC, p.event_id LIMIT ${MAX_PAST})
)`;
/** OFFSET 0 forces lookups by id, even in a plan that PostgreSQL made while the tables were small. */
const JOINED = `FROM p
CROSS JOIN LATERAL (SELECT e.*, e.xmin FROM events e WHERE e.id = p.event_id OFFSET 0) e
CROSS JOIN LATERAL (SELECT display_name FROM users WHERE id = e.organizer_id OFFSET 0) o`;

const READ = `${EVENTS} SELECT e.id, e.title, left(COALESCE(NULLIF(e.description, ''), e.summary), 2000) AS description, e.status,
  api_time(e.starts_at) AS starts_at, api_time(e.ends_at) AS ends_at, e.timezone,
  local_time_or_utc(e.starts_at, e.timezone) AS starts_at_local, local_time_or_utc(e.ends_at, e.timezone) AS ends_at_local,
  e.is_all_day, e.location_name, e.location_address, e.location_city, e.location_country_code,
  e.location_latitude, e.location_longitude, ${ONLINE_URL} AS online_url, o.display_name AS organizer,
  p.role, p.rsvp_status, api_time(e.created_at) AS created_at, api_time(e.updated_at) AS updated_at, e.revision
${JOINED} ORDER BY p.starts_at, e.id`;

/** Identifies the content of {@link READ} cheaply, by the events' row versions and the columns from other tables. */
const VERSION = `${EVENTS} SELECT COALESCE(encode(sha256(convert_to(string_agg(
  (e.id, e.xmin, o.display_name, p.role, p.rsvp_status)::text, ',' ORDER BY p.starts_at, e.id), 'UTF8')), 'hex'), '') AS version
${JOINED}`;

interface CalendarFile {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly version: string;
}

/** Maximum memory for all files, in bytes: about twenty files of 1,000 long events, or thousands of ordinary files. */
const KEPT_BYTES = 64 * 1_048_576;
const ENTRY_BYTES = 1_000;
/** Maximum number of members whose file waits to be read. */
const MAX_WAITING = 200;

/** Maximum time in ms that a file waits to be read. */
export const PATIENCE_MS = 5_000;

/** Caches calendar files. Reads one file at a time, so that these reads use at most one connection. */
@Injectable()
export class CalendarFiles {
  readonly #source: CalendarSource;
  readonly #kept = new LRUCache<number, CalendarFile>({
    maxSize: KEPT_BYTES,
    sizeCalculation: ({ bytes }) => bytes.length + ENTRY_BYTES,
  });
  readonly #turns = new Semaphore(1, MAX_WAITING, PATIENCE_MS);
  /** Files that wait to be read, by member id: later requests share them. */
  readonly #waiting = new Map<number, Promise<CalendarFile>>();

  constructor(
    config: Config,
    private readonly database: Database,
  ) {
    this.#source = { name: config.platformName ?? 'Events', host: new URL(config.publicUrl).hostname };
  }

  /** Returns a member's current file. @throws Unavailable if too many files wait, or this file waits too long */
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
    // After a concurrent change, the file is newer than its version, so the next request reads the file again.
    const events = await this.database.prepared<CalendarEvent>(READ, [userId]);
    const bytes = await calendarFile(events, this.#source);
    const file = { bytes, etag: computeEtag(bytes), version };
    this.#kept.set(userId, file);
    return file;
  }
}
