import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { contains, EVENT_ACCESS, EVENT_RELATIONS } from '../../database/sql.js';
import { Answer } from '../../http/answer.js';
import { Conditions } from '../../http/conditions.js';
import { filtersOf, pageStatement, Paging, readPage } from '../../http/paging.js';
import { Problem } from '../../http/problems.js';
import type { EventsQuery } from './event.dto.js';
import { LIST_ITEM, READ_EVENT, SORTS, TIME_CONDITIONS } from './events.queries.js';

@Injectable()
export class EventsService {
  constructor(
    private readonly database: Database,
    private readonly paging: Paging,
  ) {}

  /** The events that the member has access to. */
  async list(userId: number, path: string, query: EventsQuery): Promise<Answer> {
    const list = { userId, path, sort: query.sort, filters: filtersOf(query) };
    const place = this.paging.place(list, query.cursor);
    const conditions = new Conditions([EVENT_ACCESS], [userId]);
    if (query.time_filter !== 'all') conditions.where(TIME_CONDITIONS[query.time_filter]);
    conditions.whereGiven(query.starts_after, (at) => `p.starts_at >= ${at}::timestamptz`);
    conditions.whereGiven(query.starts_before, (at) => `p.starts_at < ${at}::timestamptz`);
    conditions.whereGiven(query.status, (at) => `e.status = ANY (${at})`);
    conditions.whereGiven(query.role, (at) => `p.role = ANY (${at})`);
    conditions.whereGiven(query.rsvp_status, (at) => `p.rsvp_status = ANY (${at})`);
    conditions.whereGiven(query.is_online, (at) => `e.is_online = ${at}`);
    conditions.whereGiven(query.q, (at) => contains('e.title', at));
    conditions.whereGiven(query.updated_since, (at) => `e.updated_at >= ${at}::timestamptz`);
    const statement = pageStatement(
      {
        from: EVENT_RELATIONS,
        where: conditions.sql,
        id: 'p.event_id',
        sort: SORTS[query.sort],
        item: LIST_ITEM,
        values: conditions.values,
        ...(conditions.unfiltered
          ? {
              name: `list-events:${query.sort}`,
              total: 'SELECT events_count FROM user_totals WHERE user_id = $1',
            }
          : {}),
      },
      place,
      query.limit,
    );
    return this.paging.answer(list, place, query.limit, await readPage(this.database, statement));
  }

  /**
   * One event that the member has access to.
   *
   * @param id as it stands in the path: whatever it is, it is looked up, so that no answer comes sooner than another
   * @throws Problem event_not_found
   */
  async read(userId: number, id: string): Promise<Answer> {
    const number = /^[1-9]\d{0,15}$/.test(id) && Number.isSafeInteger(Number(id)) ? Number(id) : 0;
    const [row] = await this.database.read<{ json: string }>(READ_EVENT, [userId, number]);
    if (!row) throw new Problem('event_not_found');
    return new Answer(row.json);
  }
}
