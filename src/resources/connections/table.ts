import { Entity, ForeignKey, Unique } from 'typeorm';
import { row, stored } from '../../model/column.js';
import { OfMember } from '../../model/declarations.js';
import { boolean, enumOf, id, text, timestamp } from '../../model/field.js';
import { CONNECTION_SOURCES, CONNECTION_STATUSES } from '../../values/vocabulary.js';
import { Event } from '../events/table.js';
import { User } from '../profile/table.js';

/** One member's side of a connection: each connection has two rows with the same id. */
@Entity('connections')
@Unique('connections_pair_key', ['peer_id', 'user_id'])
@ForeignKey(() => User, ['peer_id', 'peer_is_disabled'], ['id', 'is_disabled'], { onUpdate: 'CASCADE' })
@OfMember<Connection>({ owner: ['user_id', 'peer_id'], export: { in: 'connections' } })
export class Connection extends row({
  user_id: stored(id).primary.refersTo(() => User),
  id: stored(id).primary.sqlDefault("nextval('connections_id_seq')"),
  peer_id: id,
  /** Like the next two, denormalized from the other member: a trigger fills it, and the foreign key updates it. */
  peer_is_disabled: boolean,
  /** The other member's `User.folded_name`; the function `copy_names` updates it. */
  peer_name: text(),
  /** The other member's `User.folded_username`; the function `copy_names` updates it. */
  peer_username: text(),
  status: enumOf(CONNECTION_STATUSES).about(
    'pending_sent: the member sent the request; pending_received: the other person did',
  ),
  source: enumOf(CONNECTION_SOURCES).about('How the two people found each other').nullable,
  met_at_event_id: stored(id.nullable).refersTo(() => Event),
  requested_at: stored(timestamp.about('When the request was sent')).sqlDefault('now()'),
  connected_at: timestamp.about('null while the request is pending').nullable,
}) {}
