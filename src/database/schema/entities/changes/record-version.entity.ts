import { Entity } from 'typeorm';
import { bigint, row, text } from '../../columns.js';
import { OfMember } from '../../of-member.js';

/** The version of a record that a feed last brought, even if the record was deleted. */
@Entity('record_versions')
@OfMember<RecordVersion>({
  owner: ['user_id'],
  only: `type IN ('participants', 'user_achievements')`,
  erase: 'delete',
  export: { none: 'numbers of the platform’s records; the records are in the file' },
})
export class RecordVersion extends row({
  type: text.primary,
  /** 0 if the record belongs to no member. */
  user_id: bigint.primary,
  id: bigint.primary,
  version: bigint,
}) {}
