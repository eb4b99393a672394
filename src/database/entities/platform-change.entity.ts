import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';

/** Something that a member did, for the platform to take home. */
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

  /** Of the app or key with which it was done. */
  @Column('text', { nullable: true })
  by_id: string | null;

  /** Of profile.updated: what changed, and what it is now. */
  @Column('jsonb', { nullable: true })
  fields: Record<string, string | null> | null;

  /** Of a consent: what was allowed, or is allowed no more. */
  @Column('text', { array: true, nullable: true })
  scopes: string[] | null;

  @Column('timestamptz', { default: () => 'now()' })
  changed_at: Date;
}
