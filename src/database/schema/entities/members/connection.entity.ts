import { Entity, ForeignKey, Unique } from 'typeorm';
import { bigint, boolean, row, text, timestamptz } from '../../../../model/column.js';
import { OfMember } from '../../../../model/declarations.js';
import { Event } from './event.entity.js';
import { User } from './user.entity.js';

/** One side of a connection: every connection has two rows with the same id, one for each member. */
@Entity('connections')
@Unique('connections_pair_key', ['peer_id', 'user_id'])
@ForeignKey(() => User, ['peer_id', 'peer_is_disabled'], ['id', 'is_disabled'], { onUpdate: 'CASCADE' })
@OfMember<Connection>({ owner: ['user_id', 'peer_id'], export: { in: 'connections' } })
export class Connection extends row({
  user_id: bigint.primary.refersTo(() => User),
  id: bigint.primary.sqlDefault("nextval('connections_id_seq')"),
  peer_id: bigint,
  /** Copies of the peer's columns, filled in by a trigger and kept true by the foreign key. */
  peer_is_disabled: boolean,
  /** A copy of `User.folded_name`. */
  peer_name: text,
  /** A copy of `User.folded_username`. */
  peer_username: text,
  status: text,
  source: text.nullable,
  met_at_event_id: bigint.nullable.refersTo(() => Event),
  requested_at: timestamptz.sqlDefault('now()'),
  connected_at: timestamptz.nullable,
}) {}
