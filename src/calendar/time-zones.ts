import { LRUCache } from 'lru-cache';

export interface ZoneRules {
  readonly id: string;
  readonly block: string;
}

/** Margin in ms before and after a time, longer than any change between standard and daylight saving time. */
const NEAR_MS = 3 * 3_600_000;

/** Describes time zones in calendar files, by today's rules. */
export class TimeZones {
  readonly #known: ReadonlySet<string>;
  readonly #rules = new LRUCache<string, ZoneRules>({
    max: 1_000, // more time zones than exist
    memoMethod: (timezone) => {
      const [block, id] = this.library.tzlib_get_ical_block(timezone) as [string, string];
      return { block, id: id.slice('TZID='.length) };
    },
  });
  readonly #formats = new LRUCache<string, Intl.DateTimeFormat>({
    max: 1_000,
    memoMethod: (timeZone) => new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' }),
  });
  /** Offsets from UTC in minutes, by time zone, local date and time. */
  readonly #offsets = new LRUCache<string, number>({
    max: 10_000,
    memoMethod: (place) => {
      const [timezone, date, time] = place.split(' ') as [string, string, string];
      return parseMinutes(this.library.tzlib_get_offset(timezone, date, time));
    },
  });

  private constructor(private readonly library: typeof import('timezones-ical-library')) {
    this.#known = new Set(library.tzlib_get_timezones());
  }

  static async load(): Promise<TimeZones> {
    return new TimeZones(await import('timezones-ical-library'));
  }

  /** Finds a zone's rules. @param local in the API's format @param utc the same time in UTC @returns undefined if the file needs UTC */
  rulesFor(timezone: string, local: string, utc: string): ZoneRules | undefined {
    if (!this.#known.has(timezone)) return undefined;
    const rules = this.#rules.memo(timezone);
    const minutes = (parseTime(local) - parseTime(utc)) / 60_000;
    const isSure = this.#offsetAt(timezone, local) === minutes && this.#offsetHere(timezone, utc) === minutes;
    return rules.id !== 'Etc/UTC' && isSure ? rules : undefined;
  }

  /** Returns the offset in minutes by the host's time zone data. */
  #offsetHere(timezone: string, utc: string): number | undefined {
    try {
      const parts = this.#formats.memo(timezone).formatToParts(parseTime(utc));
      const { value } = parts.find(({ type }) => type === 'timeZoneName')!;
      return parseMinutes(value === 'GMT' ? '+00:00' : value.slice('GMT'.length));
    } catch {
      return undefined; // the host does not know the zone
    }
  }

  /** Returns the library's offset in minutes; undefined near a change. First compares the ends of the month, which saves lookups. */
  #offsetAt(timezone: string, local: string): number | undefined {
    const month = local.slice(0, 7);
    const last = new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 0)).getUTCDate();
    const ofMonth = this.#same(timezone, `${month}-01 00:00`, `${month}-${last} 23:59`);
    if (ofMonth !== undefined) return ofMonth;
    const ms = parseTime(local);
    return this.#same(timezone, formatMinute(ms - NEAR_MS), formatMinute(ms + NEAR_MS));
  }

  #same(timezone: string, one: string, other: string): number | undefined {
    const offset = this.#offsets.memo(`${timezone} ${one}`);
    return offset === this.#offsets.memo(`${timezone} ${other}`) ? offset : undefined;
  }
}

/** @param offset such as `+0200` or `-03:30` */
function parseMinutes(offset: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)/.exec(offset)!;
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

function formatMinute(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
}

/** Reads a time as milliseconds since 1970. @param time in the API's format, as UTC */
export function parseTime(time: string): number {
  return Date.parse(`${time.replace(' ', 'T')}Z`);
}
