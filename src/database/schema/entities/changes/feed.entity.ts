import { Entity } from 'typeorm';
import { bigint, boolean, bytea, jsonb, row, anyText, timestamptz } from '../../../../model/column.js';
import { Expires, OfMember } from '../../../../model/declarations.js';
import { ApiKey } from '../credentials/api-key.entity.js';

/** The response to a key's first request with an Idempotency-Key; repeated requests get it for a day. */
@Entity('idempotent_responses')
@Expires({ at: 'created_at', kept: '24 hours' })
@OfMember<IdempotentResponse>({ owner: ['key_id'], export: { none: 'responses to the platform’s own keys' } })
export class IdempotentResponse extends row({
  key_id: anyText.primary.refersTo(() => ApiKey, 'CASCADE'),
  idempotency_key: anyText.primary,
  /** SHA-256 of the request body. */
  body_hash: bytea,
  response: jsonb,
  created_at: timestamptz.sqlDefault('now()'),
}) {}

/** A member's changes from an import. The import commits them with its other records, then applies them; if it is killed, a server does. */
@Entity('pending_members')
@OfMember<PendingMember>({
  secrets: ['record'],
  export: { none: 'pending profile changes, for seconds' },
})
export class PendingMember extends row({
  user_id: bigint.primary,
  /** Whether to keep fields that the member changed through the API. */
  keeps_profile: boolean,
  /** A row of the import's staging table. */
  record: jsonb.as<Record<string, unknown>>(),
}) {}

/** Latest version of a record from a feed or import, kept even if the record is deleted. */
@Entity('record_versions')
@OfMember<RecordVersion>({
  only: `type IN ('participants', 'user_achievements')`,
  export: { none: 'versions of the platform’s records' },
})
export class RecordVersion extends row({
  type: anyText.primary,
  /** 0 for types whose records have an `id`; otherwise, the record's member. */
  user_id: bigint.primary,
  id: bigint.primary,
  version: bigint,
}) {}
