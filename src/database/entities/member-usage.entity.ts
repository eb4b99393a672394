import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { User } from './user.entity.js';

/** How often an app or a key used a scope of a member on a day, written in batches. */
@Entity('member_usage')
export class MemberUsage {
  @PrimaryColumn('bigint')
  @ForeignKey(() => User)
  user_id: number;

  /** In UTC. */
  @PrimaryColumn('date')
  day: string;

  @PrimaryColumn('text')
  app_kind: 'client' | 'key';

  /** Id of the client or the key, which may have been deleted. */
  @PrimaryColumn('text')
  app_id: string;

  @PrimaryColumn('text')
  scope: string;

  @Column('bigint')
  uses: number;

  @Column('timestamptz')
  last_used_at: Date;
}
