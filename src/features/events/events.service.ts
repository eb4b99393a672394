import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { contains, EVENT_ACCESS, totalOfMember } from '../../database/sql.js';
import { JsonResponse } from '../../http/output/json-response.js';
import { WhereBuilder } from '../../database/where-builder.js';
import { filtersOf, pageStatement, Paging, readPage } from '../../http/paging.js';
import { Problem } from '../../http/output/problems.js';
import type { EventsQuery } from './event.dto.js';
import {
  changedSince,
  listItem,
  OF_EVENT,
  OF_MEMBER,
  readEvent,
  RELATIONS,
  SHOWN,
  SORTS,
  SORTS_OF_RELATION,
  TIME_CONDITIONS,
} from './events.queries.js';
import type { LocalTime } from './events.queries.js';

/** PostgreSQL, appendix A: among others, a time zone that it does not know. */
const INVALID_PARAMETER_VALUE = '22023';

@Injectable()
export class EventsService {
  constructor(
    private readonly database: Database,
    private readonly paging: Paging,
  ) {}

  /** The events that the member has access to. */
  async list(userId: number, path: string, query: EventsQuery): Promise<JsonResponse> {
    const list = { userId, path, sort: query.sort, filters: filtersOf(query) };
    const place = this.paging.place(list, query.cursor);
    const conditions = new WhereBuilder([EVENT_ACCESS], [userId]);
    if (query.time_filter !== 'all') conditions.where(TIME_CONDITIONS[query.time_filter]);
    conditions.whereGiven(query.starts_after, (at) => `p.starts_at >= ${at}::timestamptz`);
    conditions.whereGiven(query.starts_before, (at) => `p.starts_at < ${at}::timestamptz`);
    conditions.whereGiven(query.status, (at) => `e.status = ANY (${at})`);
    conditions.whereGiven(query.role, (at) => `p.role = ANY (${at})`);
    conditions.whereGiven(query.rsvp_status, (at) => `p.rsvp_status = ANY (${at})`);
    conditions.whereGiven(query.is_online, (at) => `e.is_online = ${at}`);
    conditions.whereGiven(query.q, (at) => contains('e.folded_title', at));
    conditions.whereGiven(query.updated_since, changedSince);
    const byRelation = SORTS_OF_RELATION.includes(query.sort);
    const page = await inKnownZones((localTime) =>
      readPage(
        this.database,
        pageStatement(
          {
            rows: RELATIONS,
            shown: SHOWN,
            own: OF_MEMBER,
            // By what stands in the relation itself, where that is all that is looked at.
            ...(byRelation && !/\be\./.test(conditions.sql) ? {} : { joined: OF_EVENT }),
            where: conditions.sql,
            id: 'p.event_id',
            sort: SORTS[query.sort],
            item: listItem(localTime),
            values: conditions.values,
            ...(conditions.unfiltered ? { name: `list-events:${query.sort}:${localTime}` } : {}),
            ...(conditions.unfiltered && byRelation ? { total: totalOfMember('events_count') } : {}),
          },
          place,
          query.limit,
        ),
      ),
    );
    return this.paging.answer(list, place, query.limit, page);
  }

  /**
   * One event that the member has access to.
   *
   * @param id as it stands in the path: whatever it is, it is looked up, so that no answer comes sooner than another
   * @throws Problem event_not_found
   */
  async read(userId: number, id: string): Promise<JsonResponse> {
    const number = /^[1-9]\d{0,15}$/.test(id) && Number.isSafeInteger(Number(id)) ? Number(id) : 0;
    const [row] = await inKnownZones((localTime) =>
      this.database.read<{ json: string }>(readEvent(localTime), [userId, number]),
    );
    if (!row) throw new Problem('event_not_found');
    return new JsonResponse(row.json);
  }
}

/** Where a time zone of an event is none any more, reads once more, its times in UTC. `pua doctor` names such events. */
async function inKnownZones<T>(read: (localTime: LocalTime) => Promise<T>): Promise<T> {
  try {
    return await read('local_time');
  } catch (error) {
    if ((error as { code?: unknown }).code !== INVALID_PARAMETER_VALUE) throw error;
    return read('local_time_or_utc');
  }
}
