import { Entity } from 'typeorm';
import { bigint, boolean, row } from '../../columns.js';
import { OfMember } from '../../of-member.js';

/** One row: the number of active members, of which every rarity is a share. */
@Entity('platform_totals')
export class PlatformTotals extends row({
  id: boolean.primary.default(true),
  active_users_count: bigint.default(0),
}) {}

/** Numbers of rows in a member's lists: sums of rows without a key, and therefore no entity. Written by the database alone. */
@OfMember<UserTotals>({
  table: 'user_totals',
  owner: ['user_id'],
  erase: { keep: 'counts of rows that are deleted, and with them zero' },
  export: { none: 'counts of rows that are in the file' },
})
export class UserTotals {
  user_id: number;
}
