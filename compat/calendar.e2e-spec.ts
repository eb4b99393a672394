import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import nodeIcal, { type VEvent } from 'node-ical';
import { CalendarLinks } from '../src/calendar/calendar-links.js';
import { OauthTest } from '../test/support/oauth.js';
import { makePython } from '../test/support/packages.js';

/*
 * Reads a calendar file with two independent parsers: node-ical uses time zones by their names; icalendar for Python uses the file's own
 * definitions here, since the host's definitions may be old.
 */

const HERE = join(import.meta.dirname, 'calendar');

interface Entry {
  readonly uid: string;
  readonly sequence: number;
  readonly status: string;
  readonly summary: string;
  readonly description: string;
  readonly location: string;
  readonly url: string;
  readonly geo: readonly number[] | null;
  readonly organizer: readonly string[];
  readonly modified: string;
  /** In UTC; a date for all-day events. */
  readonly start: string;
  readonly end: string | null;
}

describe('a calendar file', () => {
  let folder: string;
  let programs: string;
  let oauth: OauthTest;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pua-calendar-'));
    oauth = await OauthTest.start();
    programs = await makePython(folder, join(HERE, 'requirements.txt'));
  });
  afterAll(async () => {
    await oauth.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const byPython = (text: string): Entry[] =>
    JSON.parse(
      execFileSync(join(programs, 'python'), [join(HERE, 'read_calendar.py')], {
        input: text,
        encoding: 'utf8',
      }),
    ) as Entry[];

  const byNode = (text: string): Entry[] =>
    (Object.values(nodeIcal.sync.parseICS(text)).filter((part) => part?.type === 'VEVENT') as VEvent[]).map(
      (entry) => {
        const written = (date: Date) =>
          entry.datetype === 'date'
            ? `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, '0')}-${String(date.getDate()).padStart(2, '0')}`
            : date.toISOString();
        const { params, val } = entry.organizer as { params: { CN: string }; val: string };
        const geo = entry.geo as { lat: number; lon: number } | undefined;
        return {
          uid: entry.uid,
          sequence: Number(entry.sequence),
          status: entry.status!,
          summary: textOf(entry.summary),
          description: textOf(entry.description),
          location: textOf(entry.location),
          url: textOf(entry.url),
          geo: geo ? [geo.lat, geo.lon] : null,
          organizer: [params.CN.replaceAll(/^"|"$/g, ''), val],
          modified: entry.lastmodified!.toISOString(),
          start: written(entry.start),
          end: entry.end && entry.end.getTime() !== entry.start.getTime() ? written(entry.end) : null,
        };
      },
    );

  it('has the same content in both parsers: times in any zone, all-day events, places, texts, and canceled events', async () => {
    const { platform } = oauth.api;
    const { id } = await oauth.member();
    const organizer = await platform.user({ stored_display_name: 'Ada "Countess", Lovelace; 🎉' });
    const summary = `Käse, Wein; \\ 🎉\nEND:VEVENT ${'ü🎉'.repeat(60)}`;
    const events: { starts_at: string; ends_at: string | null; is_all_day: boolean; id: number }[] = [];
    const zones = await oauth.dataSource.query<{ name: string }[]>(
      `SELECT name FROM pg_timezone_names WHERE name ~ '^[A-Z][A-Za-z]+/[A-Za-z_]+$' AND name !~ '^(posix|right)/' ORDER BY name`,
    );
    for (const [i, { name }] of zones.entries()) {
      const month = String((i % 12) + 1).padStart(2, '0');
      const starts_at = `2031-${month}-1${i % 10}T0${i % 7}:30:00.000Z`;
      const ends_at = i % 3 === 0 ? null : `2031-${month}-1${i % 10}T1${i % 7}:45:00.000Z`;
      const event = { starts_at, ends_at, is_all_day: i % 20 === 19 };
      const eventId = await platform.event({
        ...event,
        organizer_id: organizer,
        timezone: name,
        title: summary,
        description: `one\ntwo, three; ${name}`,
        location_name: 'Hall; 1, left',
        location_latitude: (i % 181) - 90.5 + (i % 181 === 0 ? 0.5 : 0),
        location_longitude: i % 360 === 0 ? 0 : (i % 360) - 180.25,
        ...(i % 11 === 0 ? { status: 'cancelled', cancelled_at: '2026-01-01T00:00:00Z' } : {}),
      });
      await platform.participant(eventId, id);
      events.push({ ...event, id: eventId });
    }
    const link = (await oauth.api.app.get(CalendarLinks).create(id, 'Phone', { actor: 'user' }))!;
    const read = async () => {
      const text = await (await fetch(link)).text();
      const [node, python] = [byNode(text), byPython(text)];
      expect(python.toSorted(byUid)).toEqual(node.toSorted(byUid));
      return new Map(python.map((entry) => [entry.uid, entry]));
    };
    const found = await read();
    expect(found.size).toBe(events.length);
    for (const event of events) {
      const entry = found.get(`event-${event.id}@127.0.0.1`)!;
      expect(entry.summary).toBe(summary);
      if (event.is_all_day) expect(entry.start).toMatch(/^2031-\d\d-\d\d$/);
      else expect([entry.start, entry.end]).toEqual([event.starts_at, event.ends_at]);
    }

    const [moved, cancelled, lost] = events
      .filter(({ is_all_day }) => !is_all_day)
      .map((event) => event.id) as [number, number, number];
    await oauth.dataSource.query(
      `UPDATE events SET starts_at = '2032-02-29T10:00:00Z', ends_at = NULL WHERE id = $1`,
      [moved],
    );
    await oauth.dataSource.query(
      `UPDATE events SET status = 'cancelled', cancelled_at = now() WHERE id = $1`,
      [cancelled],
    );
    await oauth.dataSource.query('DELETE FROM participants WHERE event_id = $1', [lost]);
    const after = await read();
    expect(after.get(`event-${moved}@127.0.0.1`)).toMatchObject({
      start: '2032-02-29T10:00:00.000Z',
      sequence: 1,
    });
    expect(after.get(`event-${cancelled}@127.0.0.1`)).toMatchObject({ status: 'CANCELLED', sequence: 1 });
    expect(after.has(`event-${lost}@127.0.0.1`)).toBe(false);
  });
});

/** The text of a property, which node-ical returns as an object if the property has a parameter. */
function textOf(value: unknown): string {
  return typeof value === 'object' ? (value as { val: string }).val : ((value as string | undefined) ?? '');
}

function byUid(one: Entry, other: Entry): number {
  return one.uid < other.uid ? -1 : 1;
}
