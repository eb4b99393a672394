import { Entity } from 'typeorm';
import { bytea, jsonb, row, text, timestamptz } from '../../columns.js';
import { OfMember } from '../../of-member.js';
import { ApiKey } from '../credentials/api-key.entity.js';

/** The response to a request with an Idempotency-Key, kept for a day. */
@Entity('idempotent_responses')
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
