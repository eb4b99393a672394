import { Entity } from 'typeorm';
import { bigint, boolean, bytea, jsonb, row, anyText, timestamptz } from '../../../../model/column.js';
import { Expires, OfMember } from '../../../../model/declarations.js';
import { ApiKey } from '../credentials/api-key.entity.js';

/** The response to a request with an Idempotency-Key, kept for a day. */
@Entity('idempotent_responses')
// For as long, the same Idempotency-Key gets the same response.
@Expires({ at: 'created_at', kept: '24 hours' })
@OfMember<IdempotentResponse>({ owner: ['key_id'], export: { none: 'responses to the platform’s own keys' } })
export class IdempotentResponse extends row({
  key_id: anyText.primary.refersTo(() => ApiKey, 'CASCADE'),
  idempotency_key: anyText.primary,
  /** SHA-256. */
  body_hash: bytea,
  response: jsonb,
  created_at: timestamptz.sqlDefault('now()'),
}) {}

/** What an import changes of a member: committed with everything else of the import, written a moment later. */
@Entity('pending_members')
@OfMember<PendingMember>({
  secrets: ['record'],
  export: { none: 'profile changes that are pending for seconds' },
})
export class PendingMember extends row({
  user_id: bigint.primary,
  /** Whether fields that the member changed through the API stay. */
  keeps_profile: boolean,
  /** A row of the import's staging table. */
  record: jsonb.as<Record<string, unknown>>(),
}) {}

/** The version of a record that a feed last brought, even if the record was deleted. */
@Entity('record_versions')
@OfMember<RecordVersion>({
  only: `type IN ('participants', 'user_achievements')`,
  export: { none: 'versions of the platform’s records' },
})
export class RecordVersion extends row({
  type: anyText.primary,
  /** 0 if the record belongs to no member. */
  user_id: bigint.primary,
  id: bigint.primary,
  version: bigint,
}) {}
