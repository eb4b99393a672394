import { setImmediate } from 'node:timers/promises';
import type {
  ICalDayJsStub,
  ICalEvent,
  ICalEventData,
  ICalEventStatus,
  ICalEventTransparency,
  ICalLocation,
} from 'ical-generator';
import type { Event } from '../resources/events/table.js';
import { formatTimestamp } from '../values/timestamps.js';
import type { EventRole, EventStatus, RsvpStatus } from '../values/vocabulary.js';
import { parseTime, TimeZones, type ZoneRules } from './time-zones.js';

/** An event with the member's relation to it. Times are in the API's format. */
export interface CalendarEvent
  extends
    Pick<Event, 'id' | 'title' | 'timezone' | 'is_all_day' | 'online_url' | 'revision'>,
    Pick<Event, `location_${'name' | 'address' | 'city' | 'country_code' | 'latitude' | 'longitude'}`> {
  /** The first 2,000 characters of the description, or of the summary if there is no description. */
  readonly description: string | null;
  readonly status: EventStatus;
  readonly starts_at: string;
  readonly ends_at: string | null;
  /** Time in `timezone`; in UTC if the database lacks that time zone. */
  readonly starts_at_local: string;
  readonly ends_at_local: string | null;
  readonly organizer: string;
  readonly role: EventRole;
  readonly rsvp_status: RsvpStatus | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface CalendarSource {
  readonly name: string;
  /** The host of PUBLIC_URL: part of each event's permanent id. */
  readonly host: string;
}

/** Suggested refresh interval for calendar apps, in seconds. */
const REFRESH_SECONDS = 3_600;
const DAY_SECONDS = 86_400;
/** Number of events to write before other work can run. */
const AT_ONCE = 50;
/** Maximum octets of a line without its line break (RFC 5545 §3.1). */
const MAX_LINE_LENGTH = 75;

let loaded: Promise<[typeof import('ical-generator'), TimeZones]> | undefined;

/** Writes a calendar file (RFC 5545): equal events produce equal bytes. Uses UTC if it cannot describe an event's time zone correctly. */
export async function calendarFile(
  events: readonly CalendarEvent[],
  source: CalendarSource,
): Promise<Buffer> {
  const [library, zones] = await (loaded ??= Promise.all([import('ical-generator'), TimeZones.load()]));
  const calendar = new library.ICalCalendar({
    prodId: { company: 'Public User API', product: 'Calendar', language: 'EN' },
    name: library.escape(plain(source.name), false), // since the library does not escape this text
    ttl: REFRESH_SECONDS,
  });
  const end = 'END:VCALENDAR';
  const head = calendar.toString().slice(0, -end.length);
  const used = new Map<string, ZoneRules>();
  const entries: string[] = [];
  for (const [i, event] of events.entries()) {
    if (i > 0 && i % AT_ONCE === 0) await setImmediate();
    const rules = event.is_all_day ? undefined : findRules(event, zones);
    if (rules) used.set(rules.id, rules);
    const entry: ICalEvent = new library.ICalEvent(writeEntry(event, source, rules), calendar);
    entries.push(folded(entry.toString()));
  }
  const blocks = [...used.values()].map(({ block }) => `${block}\r\n`);
  return Buffer.from([head, ...blocks, ...entries, end, '\r\n'].join(''));
}

/** Finds the rules of the event's time zone; undefined if the file must give its times in UTC. */
function findRules(event: CalendarEvent, zones: TimeZones): ZoneRules | undefined {
  const { timezone, starts_at, starts_at_local, ends_at, ends_at_local } = event;
  const rules = zones.rulesFor(timezone, starts_at_local, starts_at);
  if (!rules || ends_at === null) return rules;
  return zones.rulesFor(timezone, ends_at_local!, ends_at);
}

function writeEntry(
  event: CalendarEvent,
  { host }: CalendarSource,
  rules: ZoneRules | undefined,
): ICalEventData {
  const { status, role, rsvp_status: answer } = event;
  const comes = role !== 'invitee' && (answer === null || answer === 'going');
  const isCancelled = status === 'cancelled';
  const updated = new Date(parseTime(event.updated_at));
  const url = urlOf(event.online_url);
  return {
    id: `event-${event.id}@${host}`,
    sequence: event.revision,
    // Not the current time: equal events must produce equal bytes.
    stamp: updated,
    lastModified: updated,
    created: new Date(parseTime(event.created_at)),
    ...timesOf(event, rules),
    summary: plain(event.title),
    description: event.description ? plain(event.description) : null,
    location: locationOf(event, url),
    organizer: organizerOf(event.organizer),
    url,
    status: (isCancelled ? 'CANCELLED' : status === 'draft' ? 'TENTATIVE' : 'CONFIRMED') as ICalEventStatus,
    transparency: (comes && !isCancelled ? 'OPAQUE' : 'TRANSPARENT') as ICalEventTransparency,
  };
}

/** Omits an end that equals the start (RFC 5545 §3.8.2.2). An all-day event ends on the day after its last day. */
function timesOf(
  event: CalendarEvent,
  rules: ZoneRules | undefined,
): Pick<ICalEventData, 'start' | 'end' | 'allDay' | 'timezone'> {
  const { starts_at, starts_at_local, ends_at, ends_at_local } = event;
  if (event.is_all_day) {
    const last = ends_at === null || ends_at === starts_at ? starts_at_local : later(ends_at_local!, -1);
    return { allDay: true, start: written(starts_at_local), end: written(later(last, DAY_SECONDS)) };
  }
  const [start, end] = rules ? [starts_at_local, ends_at_local] : [starts_at, ends_at];
  return {
    start: written(start),
    end: ends_at === null || ends_at === starts_at ? null : written(end!),
    timezone: rules?.id ?? null,
  };
}

/** @returns the time this many seconds later, or earlier if negative; both times in the API's format */
function later(time: string, seconds: number): string {
  return formatTimestamp(new Date(parseTime(time) + seconds * 1_000));
}

/** Keeps the time unchanged: a Date would use the host's time zone. @param time in the API's format */
function written(time: string): ICalDayJsStub {
  const [date, ofDay] = time.replaceAll(/[-:]/g, '').split(' ') as [string, string];
  const stub: ICalDayJsStub = {
    isValid: () => true,
    utc: () => stub,
    format: (form) => (form === 'YYYYMMDD' ? date : ofDay),
    toDate: () => new Date(parseTime(time)),
    toJSON: () => time,
  };
  return stub;
}

function locationOf(event: CalendarEvent, url: string | null): ICalLocation | null {
  const { location_latitude: latitude, location_longitude: longitude } = event;
  const places = [
    event.location_name,
    event.location_address,
    event.location_city,
    event.location_country_code,
  ];
  const title = places.filter(Boolean).join(', ') || url || '';
  const geo =
    latitude === null || longitude === null ? undefined : { lat: degrees(latitude), lon: degrees(longitude) };
  if (title !== '') return { title: plain(title), ...(geo ? { geo } : {}) };
  return geo ? { geo } : null;
}

/** Rounds to 0.000001° (about 11 cm). Replaces 0 with 0.000001, since the library omits a coordinate of 0. */
function degrees(value: number): number {
  return Math.round(value * 1e6) / 1e6 || 1e-6;
}

/** Replaces characters that apps misread. Adds an undeliverable email address (RFC 2606 §2), since RFC 5545 requires an address. */
function organizerOf(name: string): { name: string; email: string } {
  const shown = plain(name)
    .replaceAll(/[\n\t]+/g, ' ')
    .replaceAll('"', '’')
    .replaceAll('\\', '/')
    .replaceAll(/[;:]/g, ',')
    .trim();
  return { name: shown || '-', email: 'nobody@calendar.invalid' };
}

/** Percent-encodes `,`, `;` and `\`, since the file does not escape URIs (RFC 5545 §3.3.13). @returns null unless http or https */
function urlOf(url: string | null): string | null {
  const parsed = url === null ? null : URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return null;
  return parsed.href.replaceAll(
    /[,;\\]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Normalizes line ends, and removes control characters (RFC 5545 §3.3.11). */
function plain(text: string): string {
  return text.replaceAll(/\r\n|[\r\u0085\u2028\u2029]/g, '\n').replaceAll(/(?![\t\n])\p{Cc}/gu, '');
}

/** Folds lines at 75 octets without breaking characters (RFC 5545 §3.1). The library's function is slower. */
function folded(text: string): string {
  return text
    .split('\r\n')
    .map((line) => (Buffer.byteLength(line) <= MAX_LINE_LENGTH ? line : foldedLine(line)))
    .join('\r\n');
}

function foldedLine(line: string): string {
  let [result, start, octets] = ['', 0, 0];
  for (let i = 0; i < line.length;) {
    const point = line.codePointAt(i)!;
    const size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (octets + size > MAX_LINE_LENGTH) {
      result += `${line.slice(start, i)}\r\n `;
      [start, octets] = [i, 1]; // counts the space at the start of the line
    }
    octets += size;
    i += point < 0x10000 ? 1 : 2;
  }
  return result + line.slice(start);
}
