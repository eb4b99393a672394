import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { contains, EVENT_ACCESS, quoted, totalOfMember } from '../../database/sql.js';
import type { JsonResponse } from '../../http/output/json-response.js';
import { WhereBuilder } from '../../database/where-builder.js';
import { filtersOf, pageStatement, Paging, readPage } from '../../http/paging.js';
import type { Sort } from '../../http/paging.js';
import type { CONNECTION_SORTS, ConnectionsQuery } from './connection.dto.js';

/** The member's side of each connection; the other person must not be disabled. */
const CONNECTED = 'connections c';
const OF_MEMBER = 'c.user_id = $1';
const LISTED = `${OF_MEMBER} AND NOT c.peer_is_disabled`;

/** What the member may know of the event where they met: nothing without access to it. */
const MET_AT_EVENT = `(SELECT '{"id":' || e.id || ',"title":' || json_text(e.title) || '}'
      FROM participants p JOIN events e ON e.id = p.event_id WHERE ${EVENT_ACCESS} AND p.event_id = c.met_at_event_id)`;

/** The other person. */
const PEER = 'JOIN users u ON u.id = c.peer_id';

/** JSON text of an item, over {@link CONNECTED} and {@link PEER}. */
const ITEM = `'{"id":' || c.id || ',"user":' || u.card || ',"status":"' || c.status
    || '","requested_at":"' || api_time(c.requested_at) || '","connected_at":' || ${quoted('api_time(c.connected_at)')}
    || ',"source":' || ${quoted('c.source')} || ',"met_at_event":' || COALESCE(${MET_AT_EVENT}, 'null') || '}'`;

const SORTS: Record<(typeof CONNECTION_SORTS)[number], Sort> = {
  connected_at: { key: 'c.connected_at', type: 'timestamptz' },
  '-connected_at': { key: 'c.connected_at', type: 'timestamptz', descending: true },
  display_name: { key: 'c.peer_name', type: 'text' },
  '-display_name': { key: 'c.peer_name', type: 'text', descending: true },
};

@Injectable()
export class ConnectionsService {
  constructor(
    private readonly database: Database,
    private readonly paging: Paging,
  ) {}

  async list(userId: number, path: string, query: ConnectionsQuery): Promise<JsonResponse> {
    const list = { userId, path, sort: query.sort, filters: filtersOf(query) };
    const place = this.paging.place(list, query.cursor);
    const acceptedOnly = query.status.length === 1 && query.status[0] === 'accepted';
    const conditions = new WhereBuilder(
      [LISTED, ...(acceptedOnly ? [`c.status = 'accepted'`] : [])],
      [userId],
    );
    if (!acceptedOnly) conditions.whereGiven(query.status, (at) => `c.status = ANY (${at})`);
    conditions.whereGiven(
      query.q,
      (at) => `${contains('c.peer_username', at)} OR ${contains('c.peer_name', at)}`,
    );
    conditions.whereGiven(query.connected_after, (at) => `c.connected_at >= ${at}::timestamptz`);
    conditions.whereGiven(query.connected_before, (at) => `c.connected_at < ${at}::timestamptz`);
    conditions.whereGiven(query.source, (at) => `c.source = ANY (${at})`);
    const statement = pageStatement(
      {
        rows: CONNECTED,
        shown: PEER,
        own: OF_MEMBER,
        where: conditions.sql,
        id: 'c.id',
        // Only those that were accepted have a time of connection.
        sort: { ...SORTS[query.sort], nullable: !acceptedOnly && query.sort.endsWith('connected_at') },
        item: ITEM,
        values: conditions.values,
        ...(conditions.unfiltered
          ? {
              name: `list-connections:${query.sort}`,
              total: totalOfMember('connections_count'),
            }
          : {}),
      },
      place,
      query.limit,
    );
    return this.paging.answer(list, place, query.limit, await readPage(this.database, statement));
  }
}
