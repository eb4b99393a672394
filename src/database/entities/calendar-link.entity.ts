import { Column, Entity, ForeignKey, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { User } from './user.entity.js';

/** A link under which calendar programs read a member's events. Its secret is not stored. */
@Entity('calendar_links')
@Unique('calendar_links_slot_key', ['user_id', 'slot'])
export class CalendarLink {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bigint')
  @ForeignKey(() => User)
  user_id: number;

  /** There are as many slots as a member may have links. */
  @Column('smallint')
  slot: number;

  @Column('text')
  name: string;

  /** HMAC-SHA-256 of the secret. */
  @Column('bytea', { select: false, unique: true })
  key: Buffer;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  /** Written in batches. */
  @Column('timestamptz', { nullable: true })
  last_used_at: Date | null;
}
