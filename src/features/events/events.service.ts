import { isId } from '../../values/vocabulary.js';
import { Injectable } from '@nestjs/common';
import { MemberReads } from '../../database/member-reads.js';
import { JsonResponse } from '../../http/output/json-response.js';
import { Paging } from '../../http/paging.js';
import { Problem } from '../../http/output/problems.js';
import type { EventsQuery } from './event.dto.js';
import { EVENTS, EVENTS_IN_ANY_ZONE, type EventReads } from './events.queries.js';

/** PostgreSQL, appendix A: among others, a time zone that it does not know. */
const INVALID_PARAMETER_VALUE = '22023';

@Injectable()
export class EventsService {
  constructor(
    private readonly reads: MemberReads,
    private readonly paging: Paging,
  ) {}

  /** The events that the member has access to. */
  async list(userId: number, path: string, query: EventsQuery): Promise<JsonResponse> {
    return inKnownZones(({ list }) => this.paging.page(list, userId, path, query, { recent: true }));
  }

  /**
   * One event that the member has access to.
   *
   * @param id as in the path. It is looked up whatever it is, so that no response is faster than another
   * @throws Problem event_not_found
   */
  async read(userId: number, id: string): Promise<JsonResponse> {
    const number = /^[1-9]\d{0,15}$/.test(id) && isId(Number(id)) ? Number(id) : 0;
    const [row] = await inKnownZones(({ detail }) =>
      this.reads.of(userId).read<{ json: string }>(detail, [userId, number]),
    );
    if (!row) throw new Problem('event_not_found');
    return new JsonResponse(row.json);
  }
}

/** If PostgreSQL no longer knows the time zone of an event, reads again with its times in UTC. `pua doctor` lists such events. */
async function inKnownZones<T>(read: (events: EventReads) => Promise<T>): Promise<T> {
  try {
    return await read(EVENTS);
  } catch (error) {
    if ((error as { code?: unknown }).code !== INVALID_PARAMETER_VALUE) throw error;
    return read(EVENTS_IN_ANY_ZONE);
  }
}
