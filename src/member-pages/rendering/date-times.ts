const SECOND = 1;
const UNITS: readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number, most: number][] = [
  ['second', SECOND, 60],
  ['minute', 60, 60],
  ['hour', 3_600, 24],
  ['day', 86_400, 30],
];

/** Formats moments and durations in a language. */
export class DateTimes {
  readonly #locale: string;
  readonly #days: Intl.DateTimeFormat;
  readonly #relative: Intl.RelativeTimeFormat;

  /** @param locale of `Intl` */
  constructor(locale: string) {
    this.#locale = locale;
    this.#days = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' });
    this.#relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' });
  }

  /**
   * @param moment in the API's form, `2026-01-31 18:00:05`; `now` in ms since 1970
   * @returns `31 January 2026`, with or without the minute; `2 hours ago`, or the day; for `<time>`
   */
  timestamp(moment: string, now = Date.now()) {
    const machine = `${moment.replace(' ', 'T')}Z`;
    const day = this.#days.format(new Date(machine));
    const seconds = Math.max(0, (now - Date.parse(machine)) / 1_000);
    const unit = UNITS.find(([, length, most]) => seconds / length < most);
    // The exact number of seconds is of no interest.
    const ago =
      unit === undefined
        ? day
        : this.#relative.format(unit[1] === SECOND ? 0 : -Math.floor(seconds / unit[1]), unit[0]);
    return { machine, day, minute: `${day}, ${moment.slice(11, 16)} UTC`, ago };
  }

  /** `125` → `3 minutes`: rounded up. */
  wait(seconds: number): string {
    return seconds < 60 ? this.#counted(seconds, 'second') : this.#counted(Math.ceil(seconds / 60), 'minute');
  }

  /** `30 days` */
  days(count: number): string {
    return this.#counted(count, 'day');
  }

  #counted(count: number, unit: string): string {
    return new Intl.NumberFormat(this.#locale, { style: 'unit', unit, unitDisplay: 'long' }).format(count);
  }
}
