import { Entity } from 'typeorm';
import { bigint, identity, row } from '../../columns.js';
import { OfMember } from '../../of-member.js';

/** A change of a member's names that has not been copied everywhere yet. Written by the database alone. */
@Entity('renamed_users')
@OfMember<RenamedUser>({
  owner: ['user_id'],
  erase: { keep: 'that a name has yet to be replaced where it was copied, for seconds' },
  export: { none: 'that a name has yet to be copied, for seconds' },
})
export class RenamedUser extends row({
  id: identity('ALWAYS'),
  user_id: bigint,
  /** null until every copy was compared once; then the transaction (xid8) before which all transactions must have ended. */
  settled_before: bigint.nullable,
}) {}
