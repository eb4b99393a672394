import { Entity } from 'typeorm';
import { bytea, jsonb, row, text, timestamptz } from '../../columns.js';
import { Expires } from '../../expires.js';
import { OfMember } from '../../of-member.js';
import { ApiKey } from '../credentials/api-key.entity.js';

/** The response to a request with an Idempotency-Key, kept for a day. */
@Entity('idempotent_responses')
// For as long, the same Idempotency-Key gets the same response.
@Expires({ at: 'created_at', kept: '24 hours' })
@OfMember<IdempotentResponse>({
  owner: ['key_id'],
  erase: 'delete',
  export: { none: 'responses to the platform’s own keys' },
})
export class IdempotentResponse extends row({
  key_id: text.primary.refersTo(() => ApiKey, 'CASCADE'),
  idempotency_key: text.primary,
  /** SHA-256. */
  body_hash: bytea,
  response: jsonb,
  created_at: timestamptz.sqlDefault('now()'),
}) {}
