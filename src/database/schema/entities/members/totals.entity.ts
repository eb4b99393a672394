import { Entity } from 'typeorm';
import { bigint, boolean, date, identity, row, anyText, timestamptz } from '../../../../model/column.js';
import { Expires, OfMember } from '../../../../model/declarations.js';
import { User } from '../../../../resources/profile/table.js';

/** Number of uses of one scope by an app or key for one member on one day, written in batches. */
@Entity('member_usage')
@Expires({ at: 'day', kept: '90 days' })
@OfMember<MemberUsage>({ export: { as: 'usage' } })
export class MemberUsage extends row({
  user_id: bigint.primary.refersTo(() => User),
  /** Day in UTC. */
  day: date.primary,
  app_kind: anyText.as<'client' | 'key'>().primary,
  /** Id of the client or the key, which may have been deleted. */
  app_id: anyText.primary,
  scope: anyText.primary,
  uses: bigint,
  last_used_at: timestamptz,
}) {}

/** A name change that some denormalized columns may lack. Only the database's triggers and functions write this table. */
@Entity('renamed_users')
@OfMember<RenamedUser>({
  erase: { keep: 'for seconds, until the server has updated the name in all columns' },
  export: { none: 'pending updates of names, for seconds' },
})
export class RenamedUser extends row({
  id: identity('ALWAYS'),
  user_id: bigint,
  /** null until a check finds the new name in all columns; the last check waits for all transactions below this number (xid8). */
  settled_before: bigint.nullable,
}) {}

/** One row: the number of active members, without the deltas that are not compacted yet. */
@Entity('platform_totals')
export class PlatformTotals extends row({
  id: boolean.primary.default(true),
  active_users_count: bigint.default(0),
}) {}

/** Row counts of a member's lists. Not an entity, since the table has no key. Only the database writes this table. */
@OfMember<UserTotals>({
  table: 'user_totals',
  erase: { keep: 'counts of deleted rows become zero' },
  export: { none: 'counts of rows that the export has' },
})
export class UserTotals {
  user_id: number;
}
