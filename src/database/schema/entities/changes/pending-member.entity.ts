import { Entity } from 'typeorm';
import { bigint, boolean, jsonb, row } from '../../columns.js';
import { OfMember } from '../../of-member.js';

/** What an import changes of a member: committed with everything else of the import, written a moment later. */
@Entity('pending_members')
@OfMember<PendingMember>({
  owner: ['user_id'],
  erase: 'delete',
  secrets: ['record'],
  export: { none: 'what is written to the member’s profile, in the file, within seconds' },
})
export class PendingMember extends row({
  user_id: bigint.primary,
  /** Whether fields that the member changed through the API stay. */
  keeps_profile: boolean,
  /** A row of the import's staging table. */
  record: jsonb.as<Record<string, unknown>>(),
}) {}
