import { Entity } from 'typeorm';
import { bigint, identity, inet, jsonb, row, text, timestamptz } from '../../columns.js';
import { Expires } from '../../expires.js';
import { OfMember } from '../../of-member.js';

/**
 * One line of the audit trail: who did what when, without secrets. Never changed, and deleted no sooner than after a week.
 */
@Entity('auth_events')
@Expires({ at: 'occurred_at', kept: { setting: 'auditRetentionSeconds' } })
@OfMember<AuthEvent>({
  owner: ['user_id'],
  erase: { clear: ['ip', 'details'] },
  export: { as: 'account_events', without: ['id', 'error_id'], newestBy: ['occurred_at', 'id'] },
})
export class AuthEvent extends row({
  id: identity('ALWAYS'),
  occurred_at: timestamptz.sqlDefault('now()'),
  /** `<object>.<verb>`, as in `key.created`: see docs/audit.md. */
  type: text,
  /** `admin` is the command line. */
  actor: text.as<'user' | 'client' | 'admin' | 'system'>(),
  user_id: bigint.nullable,
  client_id: text.nullable,
  key_id: text.nullable,
  ip: inet.nullable,
  /** The error id that an error page or response showed the caller. */
  error_id: text.nullable,
  details: jsonb.as<Record<string, unknown>>().sqlDefault("'{}'"),
}) {}
