import { Column, Entity, ForeignKey, PrimaryColumn, Unique } from 'typeorm';
import { Event } from './event.entity.js';
import { User } from './user.entity.js';

/** One side of a connection: every connection has two rows with the same id, one for each member. */
@Entity('connections')
@Unique('connections_pair_key', ['user_id', 'peer_id'])
@ForeignKey(() => User, ['peer_id', 'peer_is_disabled'], ['id', 'is_disabled'], { onUpdate: 'CASCADE' })
export class Connection {
  @PrimaryColumn('bigint')
  @ForeignKey(() => User)
  user_id: number;

  @PrimaryColumn('bigint', { default: () => "nextval('connections_id_seq')" })
  id: number;

  @Column('bigint')
  peer_id: number;

  /** Copies of the peer's columns, filled in by a trigger and kept true by the foreign key. */
  @Column('boolean')
  peer_is_disabled: boolean;

  /** A copy of `User.folded_name`. */
  @Column('text')
  peer_name: string;

  /** A copy of `User.folded_username`. */
  @Column('text')
  peer_username: string;

  @Column('text')
  status: string;

  @Column('text', { nullable: true })
  source: string | null;

  @Column('bigint', { nullable: true })
  @ForeignKey(() => Event)
  met_at_event_id: number | null;

  @Column('timestamptz', { default: () => 'now()' })
  requested_at: Date;

  @Column('timestamptz', { nullable: true })
  connected_at: Date | null;
}
