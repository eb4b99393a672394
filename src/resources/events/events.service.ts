import { Injectable } from '@nestjs/common';
import { List, type ListDeclaration } from '../../database/list.js';
import { MemberReads } from '../../database/member-reads.js';
import { contains, equals, totalOfMember } from '../../database/sql.js';
import { Event, Participant } from './table.js';
import { writeJson, relation } from '../../model/response.js';
import { JsonResponse } from '../../http/output/responses.js';
import { Problem } from '../../http/output/problems.js';
import { Paging } from '../../http/paging.js';
import { committedSince, EVENT_ACCESS, listOf, lostSince } from '../resources.js';
import { idInPath } from '../../values/vocabulary.js';
import { EventDetail, EventItem, type EventsQuery } from './event.dto.js';

const [p, e] = [relation(Participant, 'p'), relation(Event, 'e')];

/** Joins the event `e` and its organizer `o` to the row `p` of `participants`. */
const EVENT = 'JOIN events e ON e.id = p.event_id JOIN users o ON o.id = e.organizer_id';

/** The event's columns for filters and sorts. OFFSET 0 forces lookups by id instead of a scan of all events. */
const OF_EVENT = `CROSS JOIN LATERAL (SELECT status, is_online, folded_title, location_city, location_country_code, ends_at,
    created_at, updated_at, changed_in
  FROM events WHERE id = p.event_id OFFSET 0) e`;

/** Queries that fail if PostgreSQL does not know an event's time zone. */
const EVENTS = eventReads('local_time');
/** Queries that return local times in UTC for events whose time zone PostgreSQL does not know. */
export const EVENTS_IN_ANY_ZONE = eventReads('local_time_or_utc');

type EventReads = ReturnType<typeof eventReads>;

/** Makes the queries for events. @param localTime the SQL function that computes local times */
function eventReads(localTime: string) {
  const json = (model: Parameters<typeof writeJson>[0]) =>
    writeJson(model).replaceAll('local_time(', `${localTime}(`);
  const declaration: ListDeclaration<EventsQuery> = {
    ...listOf('events'),
    name: `events:${localTime}`,
    item: json(EventItem),
    shown: EVENT,
    joined: { alias: 'e', sql: OF_EVENT },
    sorts: {
      starts_at: { key: p.starts_at.from, type: 'timestamptz' },
      created_at: { key: e.created_at.from, type: 'timestamptz' },
      updated_at: { key: e.updated_at.from, type: 'timestamptz' },
      title: { key: e.folded_title.from, type: 'text' },
    },
    filters: {
      // Every event matches exactly one of the last three values; an event without an end is past once it has started.
      time_filter: {
        all: null,
        upcoming: 'p.starts_at > now()',
        ongoing: 'p.starts_at <= now() AND e.ends_at >= now()',
        past: 'p.starts_at <= now() AND (e.ends_at IS NULL OR e.ends_at < now())',
      },
      starts_after: (at) => `p.starts_at >= ${at}::timestamptz`,
      starts_before: (at) => `p.starts_at < ${at}::timestamptz`,
      status: (at) => `e.status = ANY (${at})`,
      role: (at) => `p.role = ANY (${at})`,
      rsvp_status: (at) => `p.rsvp_status = ANY (${at})`,
      is_online: (at) => `e.is_online = ${at}`,
      q: (at) => contains('e.folded_title', at),
      city: (at) => equals('e.location_city', at),
      country_code: (at) => `e.location_country_code = ${at}`,
      updated_since: changedSince,
    },
    total: totalOfMember('events_count'),
  };
  return {
    list: new List(declaration),
    whole: new List({ ...declaration, name: `whole-events:${localTime}`, item: json(EventDetail) }),
    /** Reads one event: $1 the member, $2 the id. Returns no row if the member cannot see it. */
    detail: {
      name: `read-event:${localTime}`,
      text: `SELECT ${json(EventDetail)} AS json FROM participants p ${EVENT} WHERE ${EVENT_ACCESS} AND p.event_id = $2`,
    },
  };
}

/** SQL: whether the event's `updated_at` is at or after `moment`, or the event or the participant changed in this database since then. */
function changedSince(moment: string): string {
  const changed = ['p', 'e'].map((row) => committedSince(`${row}.changed_in`, moment)).join(' OR ');
  return `e.updated_at >= ${moment}::timestamptz OR ${changed} OR ${lostSince('restored', moment)}`;
}

/** Error code of PostgreSQL (appendix A), for example for an unknown time zone. */
const INVALID_PARAMETER_VALUE = '22023';

@Injectable()
export class EventsService {
  constructor(
    private readonly reads: MemberReads,
    private readonly paging: Paging,
  ) {}

  async list(userId: number, query: EventsQuery): Promise<JsonResponse> {
    return inKnownZones(({ list }) =>
      this.paging.page(list, userId, '/api/public/events', query, { recent: true }),
    );
  }

  /** Returns the JSON texts of {@link read} by id, for those of the events that the member can see. */
  async wholeEvents(userId: number, ids: readonly number[]): Promise<Map<number, string>> {
    return inKnownZones(({ whole }) => whole.items(this.reads.of(userId), userId, ids));
  }

  /** Reads one event. @param id from the path; queried even if invalid, so that its 404 takes as long @throws Problem event_not_found */
  async read(userId: number, id: string): Promise<JsonResponse> {
    const number = idInPath(id);
    const [row] = await inKnownZones(({ detail }) =>
      this.reads.of(userId).read<{ json: string }>(detail, [userId, number]),
    );
    if (!row) throw new Problem('event_not_found');
    return new JsonResponse(row.json);
  }
}

/** If PostgreSQL does not know an event's time zone, reads again with this event's local times in UTC. `pua doctor` reports such zones. */
async function inKnownZones<T>(read: (events: EventReads) => Promise<T>): Promise<T> {
  try {
    return await read(EVENTS);
  } catch (error) {
    if ((error as { code?: unknown }).code !== INVALID_PARAMETER_VALUE) throw error;
    return read(EVENTS_IN_ANY_ZONE);
  }
}
