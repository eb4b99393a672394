import { LRUCache } from 'lru-cache';

/** A time zone in the file: its name there, and its VTIMEZONE. */
export interface ZoneRules {
  readonly id: string;
  readonly block: string;
}

/** No change of a zone's offset is longer. */
const NEAR_MS = 3 * 3_600_000;

/** Time zones as calendar files describe them: only today's rules, applied to every year. */
export class TimeZones {
  readonly #known: ReadonlySet<string>;
  readonly #rules = new LRUCache<string, ZoneRules>({
    max: 1_000, // more than there are
    memoMethod: (timezone) => {
      const [block, id] = this.library.tzlib_get_ical_block(timezone) as [string, string];
      return { block, id: id.slice('TZID='.length) };
    },
  });
  readonly #formats = new LRUCache<string, Intl.DateTimeFormat>({
    max: 1_000,
    memoMethod: (timeZone) => new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' }),
  });
  /** By zone, day and local minute, with spaces in between; in minutes. */
  readonly #offsets = new LRUCache<string, number>({
    max: 10_000,
    memoMethod: (place) => {
      const [timezone, date, time] = place.split(' ') as [string, string, string];
      return minutesOf(this.library.tzlib_get_offset(timezone, date, time));
    },
  });

  private constructor(private readonly library: typeof import('timezones-ical-library')) {
    this.#known = new Set(library.tzlib_get_timezones());
  }

  static async load(): Promise<TimeZones> {
    return new TimeZones(await import('timezones-ical-library'));
  }

  /**
   * Finds the description of a zone, provided that a reader of the file computes the right moment from the local time.
   *
   * @param local in the API's form
   * @param utc the same moment
   * @returns undefined if that is not certain, or the zone is UTC: the time has to be written in UTC then
   */
  rulesFor(timezone: string, local: string, utc: string): ZoneRules | undefined {
    if (!this.#known.has(timezone)) return undefined;
    const rules = this.#rules.memo(timezone);
    const minutes = (millisecondsOf(local) - millisecondsOf(utc)) / 60_000;
    const isSure = this.#offsetAt(timezone, local) === minutes && this.#offsetHere(timezone, utc) === minutes;
    return rules.id !== 'Etc/UTC' && isSure ? rules : undefined;
  }

  /** The offset by this machine's data, in minutes. Programs that look up the name and ignore the rules may have no more recent data. */
  #offsetHere(timezone: string, utc: string): number | undefined {
    try {
      const parts = this.#formats.memo(timezone).formatToParts(millisecondsOf(utc));
      const { value } = parts.find(({ type }) => type === 'timeZoneName')!;
      return minutesOf(value === 'GMT' ? '+00:00' : value.slice('GMT'.length));
    } catch {
      return undefined; // a name that it does not know
    }
  }

  /**
   * In minutes; undefined near a change, because readers disagree about times that occur twice or not at all. The library takes half
   * a millisecond for each look-up; in most months, one is enough.
   */
  #offsetAt(timezone: string, local: string): number | undefined {
    const month = local.slice(0, 7);
    const last = new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 0)).getUTCDate();
    const ofMonth = this.#same(timezone, `${month}-01 00:00`, `${month}-${last} 23:59`);
    if (ofMonth !== undefined) return ofMonth;
    const ms = millisecondsOf(local);
    return this.#same(timezone, minuteOf(ms - NEAR_MS), minuteOf(ms + NEAR_MS));
  }

  /** The offset at both times, if it is the same. */
  #same(timezone: string, one: string, other: string): number | undefined {
    const offset = this.#offsets.memo(`${timezone} ${one}`);
    return offset === this.#offsets.memo(`${timezone} ${other}`) ? offset : undefined;
  }
}

/** @param offset such as `+0200` or `-03:30` */
function minutesOf(offset: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)/.exec(offset)!;
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

function minuteOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
}

/** Reads a time as milliseconds since 1970. @param time in the API's form, taken for UTC */
export function millisecondsOf(time: string): number {
  return Date.parse(`${time.replace(' ', 'T')}Z`);
}
