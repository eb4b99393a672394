import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { TIMESTAMP_PATTERN } from '../../values/timestamps.js';
import { PageQuery } from '../../http/paging.js';
import { ListOf, Moment, OneOf, Search } from '../../http/input/query.js';
import { UserCard } from '../profile/profile.dto.js';

export const CONNECTION_STATUSES = ['accepted', 'pending_sent', 'pending_received'] as const;
export const CONNECTION_SOURCES = ['event', 'search', 'invite', 'import'] as const;
export const CONNECTION_SORTS = ['-connected_at', 'connected_at', 'display_name', '-display_name'] as const;

export class ConnectionsQuery extends PageQuery {
  @OneOf(CONNECTION_SORTS, 'Order; ties by ascending id')
  sort: (typeof CONNECTION_SORTS)[number] = '-connected_at';

  @Search(2, 50, 'Case-insensitive substring of the other person’s username or display name')
  q?: string;

  @ListOf(CONNECTION_STATUSES, 'Only connections in one of these states')
  status: string[] = ['accepted'];

  @Moment('Connected at this moment or later')
  connected_after?: string;

  @Moment('Connected before this moment')
  connected_before?: string;

  @ListOf(CONNECTION_SOURCES, 'Only connections made in one of these ways')
  source?: string[];
}

@ApiSchema({ name: 'MetAtEvent' })
class MetAtEvent {
  @ApiProperty({ type: 'integer', minimum: 1 })
  id: number;

  @ApiProperty()
  title: string;
}

@ApiSchema({ name: 'Connection' })
export class ConnectionItem {
  @ApiProperty({ type: 'integer', minimum: 1 })
  id: number;

  @ApiProperty({ type: UserCard, description: 'The other person' })
  user: UserCard;

  @ApiProperty({ enum: CONNECTION_STATUSES })
  status: string;

  @ApiProperty({ pattern: TIMESTAMP_PATTERN })
  requested_at: string;

  @ApiProperty({ type: String, nullable: true, pattern: TIMESTAMP_PATTERN })
  connected_at: string | null;

  @ApiProperty({ type: String, nullable: true, enum: [...CONNECTION_SOURCES, null] })
  source: string | null;

  @ApiProperty({
    type: MetAtEvent,
    nullable: true,
    description: 'null too where the member has no access to the event',
  })
  met_at_event: MetAtEvent | null;
}
