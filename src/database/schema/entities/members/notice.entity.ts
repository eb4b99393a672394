import { Entity } from 'typeorm';
import { bigint, boolean, identity, integer, row, anyText, timestamptz } from '../../../../model/column.js';
import { Expires, OfMember } from '../../../../model/declarations.js';
import { User } from '../../../../resources/profile/table.js';

/** A kind of notice that the member gets no emails about. */
@Entity('muted_notices')
@OfMember<MutedNotice>({ export: { as: 'muted_notices' } })
export class MutedNotice extends row({
  user_id: bigint.primary.refersTo(() => User, 'CASCADE'),
  /** Type of the audit event. */
  notice: anyText.primary,
  muted_at: timestamptz.sqlDefault('now()'),
}) {}

/** A notice that is still to be sent by email. The sender ends it after three days; without a mail server, the sweeper deletes it. */
@Entity('notice_emails')
@Expires({ at: 'created_at', kept: '4 days' })
@OfMember<NoticeEmail>({
  export: { none: 'pending emails, for three days at most; the export has the notices' },
})
export class NoticeEmail extends row({
  id: identity('ALWAYS'),
  user_id: bigint,
  /** Type of the audit event. */
  notice: anyText,
  /** Name of the app, key, link or passkey. */
  name: anyText.nullable,
  /** Whether it is one of many that fall due together: it waits for all others. */
  is_bulk: boolean,
  created_at: timestamptz.sqlDefault('now()'),
  /** Attempts that have begun. */
  attempts: integer.default(0),
  /** When to try next; while an instance sends it: when any instance may send it again. */
  due_at: timestamptz.sqlDefault('now()'),
}) {}
