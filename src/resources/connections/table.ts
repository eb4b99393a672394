import { Entity, ForeignKey, Unique } from 'typeorm';
import { row, stored } from '../../model/column.js';
import { OfMember } from '../../model/declarations.js';
import { boolean, enumOf, id, text, timestamp } from '../../model/field.js';
import { CONNECTION_SOURCES, CONNECTION_STATUSES } from '../../values/vocabulary.js';
import { Event } from '../events/table.js';
import { User } from '../profile/table.js';

/** One side of a connection, which has two rows with the same id, one per member. */
@Entity('connections')
@Unique('connections_pair_key', ['peer_id', 'user_id'])
@ForeignKey(() => User, ['peer_id', 'peer_is_disabled'], ['id', 'is_disabled'], { onUpdate: 'CASCADE' })
@OfMember<Connection>({ owner: ['user_id', 'peer_id'], export: { in: 'connections' } })
export class Connection extends row({
  user_id: stored(id).primary.refersTo(() => User),
  id: stored(id).primary.sqlDefault("nextval('connections_id_seq')"),
  peer_id: id,
  /** Denormalized columns of the peer: a trigger fills all three; the foreign key updates this one, and copy_names the next two. */
  peer_is_disabled: boolean,
  /** The peer's `User.folded_name`. */
  peer_name: text(),
  /** The peer's `User.folded_username`. */
  peer_username: text(),
  status: enumOf(CONNECTION_STATUSES).about(
    'pending_sent: the member sent the request; pending_received: the other person did',
  ),
  source: enumOf(CONNECTION_SOURCES).about('How the two people found each other').nullable,
  met_at_event_id: stored(id.nullable).refersTo(() => Event),
  requested_at: stored(timestamp.about('When the request was sent')).sqlDefault('now()'),
  connected_at: timestamp.about('null while the request is pending').nullable,
}) {}
