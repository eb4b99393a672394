import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { ApiKey } from './api-key.entity.js';

/** The response to a request with an Idempotency-Key, kept for a day. */
@Entity('idempotent_responses')
export class IdempotentResponse {
  @PrimaryColumn('text')
  @ForeignKey(() => ApiKey, { onDelete: 'CASCADE' })
  key_id: string;

  @PrimaryColumn('text')
  idempotency_key: string;

  /** SHA-256. */
  @Column('bytea')
  body_hash: Buffer;

  @Column('jsonb')
  response: unknown;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;
}
