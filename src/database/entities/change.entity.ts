import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';

/** A change to what members see through the API. Written by the database alone. */
@Entity('changes')
export class Change {
  /** Number of the transaction (xid8). */
  @PrimaryColumn('bigint', { default: () => 'pg_current_xact_id()::text::bigint' })
  changed_in: number;

  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  sequence: number;

  /** The member in whose list it is; null for all members in whose lists it is. */
  @Column('bigint', { nullable: true })
  user_id: number | null;

  @Column('text')
  resource: 'profile' | 'events' | 'connections' | 'achievements' | 'people';

  @Column('bigint')
  id: number;

  @Column('text')
  kind: 'updated' | 'removed' | 'returned';

  @Column('timestamptz', { default: () => 'now()' })
  changed_at: Date;
}

/** How far each reader of all changes has come. */
@Entity('change_places')
export class ChangePlace {
  @PrimaryColumn('text')
  name: 'coalesced' | 'swept' | 'told' | 'platform_swept';

  @Column('bigint', { default: 0 })
  changed_in: number;

  @Column('bigint', { default: 0 })
  sequence: number;
}
