import { Entity } from 'typeorm';
import { bigint, boolean, identity, integer, row, anyText, timestamptz } from '../../../../model/column.js';
import { Expires, OfMember } from '../../../../model/declarations.js';
import { User } from '../../../../resources/profile/table.js';

@Entity('muted_notices')
@OfMember<MutedNotice>({ export: { as: 'muted_notices' } })
export class MutedNotice extends row({
  user_id: bigint.primary.refersTo(() => User, 'CASCADE'),
  /** Type of the audit event for which the member gets no emails. */
  notice: anyText.primary,
  muted_at: timestamptz.sqlDefault('now()'),
}) {}

/** A notice whose email is pending. The sender drops it after three days; if there is no mail server, the sweeper deletes it after four. */
@Entity('notice_emails')
@Expires({ at: 'created_at', kept: '4 days' })
@OfMember<NoticeEmail>({
  export: { none: 'pending emails, for four days at most; the export has the notices' },
})
export class NoticeEmail extends row({
  id: identity('ALWAYS'),
  user_id: bigint,
  /** Type of the reported audit event. */
  notice: anyText,
  /** Name of the app, key, link or passkey. */
  name: anyText.nullable,
  /** Whether the notice announces an end of access: such notices, often many at once, do not delay others. */
  is_bulk: boolean,
  created_at: timestamptz.sqlDefault('now()'),
  /** Number of started attempts. */
  attempts: integer.default(0),
  /** Time of the next attempt; while an instance sends the email, the end of its lease. */
  due_at: timestamptz.sqlDefault('now()'),
}) {}
