import { Controller, Get } from '@nestjs/common';
import { Model } from '../../model/json-schema.js';
import { List } from '../../database/list.js';
import { contains, equals, totalOfMember } from '../../database/sql.js';
import { changedSince, EVENT_ACCESS, listOf } from '../resources.js';
import { Connection } from './table.js';
import { Event } from '../events/table.js';
import { User } from '../profile/table.js';
import { writeJson, objectField, relation } from '../../model/response.js';
import { PageQuery, Paging } from '../../http/paging.js';
import { ListOf, DateTime, OneOf, Search, WholeNumber } from '../../http/input/parameters.js';
import { CONNECTION_SOURCES, CONNECTION_STATUSES, MAX_ID, LENGTHS } from '../../values/vocabulary.js';
import { UserCard } from '../profile/profile.dto.js';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/responses.js';
import { RespondsWithPage } from '../../http/output/openapi.js';
import { Parameters } from '../../http/input/query.js';

const SORTS = ['-connected_at', 'connected_at', 'display_name', '-display_name'] as const;

export class ConnectionsQuery extends PageQuery {
  @OneOf(SORTS, 'Order; ties by ascending id')
  sort: (typeof SORTS)[number] = '-connected_at';

  @Search(2, 50, 'Case-insensitive substring of the other person’s username or display name')
  q?: string;

  @ListOf(CONNECTION_STATUSES, 'Only connections in one of these states')
  status: string[] = ['accepted'];

  @DateTime('Only connections made at this time or later')
  connected_after?: string;

  @DateTime('Only connections made before this time')
  connected_before?: string;

  @ListOf(CONNECTION_SOURCES, 'Only connections with one of these origins')
  source?: string[];

  @WholeNumber(1, MAX_ID, 'Only people whom the member met at the event with this id')
  met_at_event?: number;

  @Search(
    1,
    LENGTHS.events.location_city[1],
    'Only people whom the member met at an event in this city, regardless of case',
  )
  met_in_city?: string;

  @DateTime(
    'Only connections that changed at this time or later, including the other person’s name and picture. To miss no change, pass the time of the previous response',
  )
  updated_since?: string;
}

/** The member's side `c` of a connection, the other person `u`, and the event `e` at which they met. */
const [c, u, e] = [relation(Connection, 'c'), relation(User, 'u'), relation(Event, 'e')];

const MetAtEvent = new Model('MetAtEvent', {
  id: e.id,
  title: e.title,
  city: e.location_city,
});
/** The event at which the two people of the connection `c` met, if the member has access to it. */
const MET_AT = `participants p JOIN events e ON e.id = p.event_id WHERE ${EVENT_ACCESS} AND p.event_id = c.met_at_event_id`;

export const ConnectionItem = new Model('Connection', {
  id: c.id,
  user: objectField(UserCard, u.card.from, 'The other person'),
  status: c.status,
  requested_at: c.requested_at,
  connected_at: c.connected_at,
  source: c.source,
  met_at_event: objectField(
    MetAtEvent,
    { lookup: MET_AT },
    'Also null if the member has no access to the event',
  ).nullable,
});

const ACCEPTED = 'accepted';
/** Whether `connected_at` can be null in the list: only accepted connections have this time. */
const nullable = ({ status }: ConnectionsQuery) => String(status) !== ACCEPTED;

export const CONNECTIONS = new List<ConnectionsQuery>({
  ...listOf('connections'),
  item: writeJson(ConnectionItem),
  shown: 'JOIN users u ON u.id = c.peer_id',
  sorts: {
    connected_at: { key: c.connected_at.from, type: 'timestamptz', nullable },
    display_name: { key: c.peer_name.from, type: 'text' },
  },
  filters: {
    status: { usual: ACCEPTED, sql: `c.status = 'accepted'`, otherwise: (at) => `c.status = ANY (${at})` },
    q: (at) => `${contains('c.peer_username', at)} OR ${contains('c.peer_name', at)}`,
    connected_after: (at) => `c.connected_at >= ${at}::timestamptz`,
    connected_before: (at) => `c.connected_at < ${at}::timestamptz`,
    source: (at) => `c.source = ANY (${at})`,
    met_at_event: (at) => `EXISTS (SELECT FROM ${MET_AT} AND e.id = ${at})`,
    met_in_city: (at) => `EXISTS (SELECT FROM ${MET_AT} AND ${equals('e.location_city', at)})`,
    updated_since: changedSince('connections', 'c.id'),
  },
  total: totalOfMember('connections_count'),
});

@Controller('api/public/connections')
@RequireScopes('connections:read')
export class ConnectionsController {
  constructor(private readonly paging: Paging) {}

  @Get()
  @RespondsWithPage(
    'List connections',
    ConnectionItem,
    'The people whom the member is connected with; with `status`, also pending requests. For each person, the list has only data that everybody can see.',
  )
  listConnections(
    @CurrentPrincipal() { userId }: Principal,
    @Parameters() query: ConnectionsQuery,
  ): Promise<JsonResponse> {
    return this.paging.page(CONNECTIONS, userId, '/api/public/connections', query, { recent: true });
  }
}
