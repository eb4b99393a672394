import { Entity } from 'typeorm';
import { bigint, date, row, text, timestamptz } from '../../columns.js';
import { Expires } from '../../expires.js';
import { OfMember } from '../../of-member.js';
import { User } from './user.entity.js';

/** How often an app or a key used a scope of a member on a day, written in batches. */
@Entity('member_usage')
@Expires({ at: 'day', kept: '90 days' })
@OfMember<MemberUsage>({
  owner: ['user_id'],
  erase: 'delete',
  export: { as: 'usage' },
})
export class MemberUsage extends row({
  user_id: bigint.primary.refersTo(() => User),
  /** In UTC. */
  day: date.primary,
  app_kind: text.as<'client' | 'key'>().primary,
  /** Id of the client or the key, which may have been deleted. */
  app_id: text.primary,
  scope: text.primary,
  uses: bigint,
  last_used_at: timestamptz,
}) {}
