import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';

/** An action of a member, for the platform's backend to fetch. */
@Entity('platform_changes')
export class PlatformChange {
  /** Number of the transaction (xid8). */
  @PrimaryColumn('bigint', { default: () => 'pg_current_xact_id()::text::bigint' })
  changed_in: number;

  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  sequence: number;

  @Column('text')
  type: 'profile.updated' | 'consent.granted' | 'consent.revoked' | 'member.signed_in';

  @Column('bigint')
  user_id: number;

  /** Id of the app or key used. */
  @Column('text', { nullable: true })
  by_id: string | null;

  /** For profile.updated: the changed fields and their new values. */
  @Column('jsonb', { nullable: true })
  fields: Record<string, string | null> | null;

  /** For a consent: the scopes granted or withdrawn. */
  @Column('text', { array: true, nullable: true })
  scopes: string[] | null;

  @Column('timestamptz', { default: () => 'now()' })
  changed_at: Date;
}
