import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { demoRows, FIRST_ID, LAST_ID, LAST_MEMBER_ID } from './demo.js';

const moment = fc.date({
  min: new Date('2024-01-01T00:00:00Z'),
  max: new Date('2040-01-01T00:00:00Z'),
  noInvalidDate: true,
});
const time = (text: string | null | undefined) => (text ? Date.parse(text) : undefined);

interface Rows {
  users: { id: number; created_at: string }[];
  events: {
    id: number;
    title: string;
    status: string;
    organizer_id: number;
    starts_at: string;
    ends_at?: string;
    created_at: string;
    updated_at: string;
    cancelled_at?: string;
  }[];
  participants: { user_id: number; event_id: number; responded_at?: string; checked_in_at?: string }[];
  connections: {
    id: number;
    user_id: number;
    requested_at: string;
    connected_at?: string;
    met_at_event_id?: number;
  }[];
  achievements: { id: number; key: string; retired_at?: string }[];
  user_achievements: { user_id: number; achievement_id: number; earned_at?: string }[];
}

/** All rows of a demo that is seeded at this time. */
const seededAt = (now: Date) => Object.fromEntries(demoRows(now)) as unknown as Rows;
/** Checks the rows of demos seeded at random times. */
const always = (check: (rows: Rows, now: Date) => void) =>
  fc.assert(
    fc.property(moment, (now) => check(seededAt(now), now)),
    { numRuns: 20 },
  );

describe('the demo data', () => {
  it('contains no time in the future, except starts and ends of events', () => {
    always((all, now) => {
      const later = Object.entries(all).flatMap(([table, rows]) =>
        (rows as object[]).flatMap((row) =>
          Object.entries(row)
            .filter(([column]) => column.endsWith('_at') && !['starts_at', 'ends_at'].includes(column))
            .filter(([, value]) => value !== null && Date.parse(value as string) > now.getTime())
            .map(([column, value]) => `${table}.${column}: ${value as string}`),
        ),
      );
      expect(later).toEqual([]);
    });
  });

  it('creates each event before its changes, cancellation, RSVPs and start, by an existing member', () => {
    always(({ users, events, participants }, now) => {
      const joined = new Map(users.map((user) => [user.id, time(user.created_at)!]));
      const byId = new Map(events.map((event) => [event.id, event]));
      for (const event of events) {
        const { title, status, starts_at, ends_at } = event;
        const created = time(event.created_at)!;
        const updated = time(event.updated_at)!;
        const cancelled = time(event.cancelled_at) ?? created;
        const begins = time(starts_at)!;
        const ends = time(ends_at) ?? begins;
        expect([title, joined.get(event.organizer_id)! <= created]).toEqual([title, true]);
        expect([title, created <= cancelled && cancelled <= updated]).toEqual([title, true]);
        expect([title, created < begins && begins <= ends]).toEqual([title, true]);
        if (status === 'completed') expect([title, ends <= now.getTime()]).toEqual([title, true]);
        if (status === 'ongoing') expect([title, begins <= now.getTime()]).toEqual([title, true]);
        if (status === 'scheduled') expect([title, begins > now.getTime()]).toEqual([title, true]);
      }
      for (const { user_id, event_id, responded_at, checked_in_at } of participants) {
        const event = byId.get(event_id)!;
        const answered = time(responded_at);
        const arrived = time(checked_in_at);
        const known = Math.max(time(event.created_at)!, joined.get(user_id)!);
        if (answered !== undefined) expect([event.title, known <= answered]).toEqual([event.title, true]);
        if (arrived !== undefined)
          expect([event.title, time(event.starts_at)! <= arrived]).toEqual([event.title, true]);
      }
    });
  });

  it('connects members after their request, and requests after the start of the event at which they met', () => {
    always(({ users, events, connections }) => {
      const joined = new Map(users.map((user) => [user.id, time(user.created_at)!]));
      const starts = new Map(events.map((event) => [event.id, time(event.starts_at)!]));
      for (const { id, user_id, requested_at, connected_at, met_at_event_id } of connections) {
        const asked = time(requested_at)!;
        expect([id, joined.get(user_id)! <= asked]).toEqual([id, true]);
        expect([id, asked <= (time(connected_at) ?? asked)]).toEqual([id, true]);
        if (met_at_event_id !== undefined)
          expect([id, starts.get(met_at_event_id)! <= asked]).toEqual([id, true]);
      }
    });
  });

  it('grants achievements to existing members, before the achievements are retired', () => {
    always(({ users, achievements, user_achievements }) => {
      const joined = new Map(users.map((user) => [user.id, time(user.created_at)!]));
      const byId = new Map(achievements.map((achievement) => [achievement.id, achievement]));
      for (const { user_id, achievement_id, earned_at } of user_achievements) {
        const earned = time(earned_at);
        const { key, retired_at } = byId.get(achievement_id)!;
        if (earned === undefined) continue;
        expect([key, joined.get(user_id)! <= earned]).toEqual([key, true]);
        expect([key, earned <= (time(retired_at) ?? Infinity)]).toEqual([key, true]);
      }
    });
  });

  it('uses achievement keys with the prefix demo_', () => {
    for (const { key } of seededAt(new Date()).achievements) expect(key).toMatch(/^demo_\w+$/);
  });

  it('uses only ids of the range for demo data', () => {
    const { users, events, connections, achievements } = seededAt(new Date());
    expect([users[0]!.id, users.at(-1)!.id]).toEqual([FIRST_ID, LAST_MEMBER_ID]);
    for (const { id } of [...users, ...events, ...connections, ...achievements])
      expect(id >= FIRST_ID && id <= LAST_ID).toBe(true);
  });
});
