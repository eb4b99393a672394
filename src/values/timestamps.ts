/** Pattern of times in the API's responses: UTC, to the second. */
export const TIMESTAMP_PATTERN = '^\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}:\\d{2}$';

/** Writes a time of the years 0 to 9999 in the API's format, like the database's function api_time. */
export function formatTimestamp(date: Date): string {
  return date.toISOString().slice(0, 19).replace('T', ' ');
}

const FORM =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})?)?$/;

/** Pattern of the texts that {@link parseTimestamp} can read. */
export const MOMENT_PATTERN = FORM.source;

/** Reads the API's format, RFC 3339, or a date (midnight UTC). @returns RFC 3339 in UTC with microseconds; undefined if invalid */
export function parseTimestamp(text: string): string | undefined {
  const match = FORM.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', zone = 'Z'] = match;
  if (Number(year) < 1 || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const date = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  // Rejects days such as 30 February, which Date turns into a day of March.
  if (Number.isNaN(date.getTime()) || date.getUTCDate() !== Number(day)) return undefined;
  if (zone.length > 1) {
    const hours = Number(zone.slice(1, 3));
    const minutes = Number(zone.slice(4));
    if (hours > 23 || minutes > 59) return undefined;
    date.setTime(date.getTime() - (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000);
    if (date.getUTCFullYear() < 1 || date.getUTCFullYear() > 9999) return undefined;
  }
  return `${date.toISOString().slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}Z`;
}
