import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/**
 * One line of the audit trail: who did what when, without secrets. Never changed, and deleted no sooner than after a week.
 */
@Entity('auth_events')
export class AuthEvent {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id: number;

  @Column('timestamptz', { default: () => 'now()' })
  occurred_at: Date;

  /** `<object>.<verb>`, as in `key.created`: see docs/audit.md. */
  @Column('text')
  type: string;

  /** `admin` is the command line. */
  @Column('text')
  actor: 'user' | 'client' | 'admin' | 'system';

  @Column('bigint', { nullable: true })
  user_id: number | null;

  @Column('text', { nullable: true })
  client_id: string | null;

  @Column('text', { nullable: true })
  key_id: string | null;

  @Column('inet', { nullable: true })
  ip: string | null;

  /** The error id that an error page or response showed the caller. */
  @Column('text', { nullable: true })
  error_id: string | null;

  @Column('jsonb', { default: () => "'{}'" })
  details: Record<string, unknown>;
}
