import { Column, Entity, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { ApiKey } from './api-key.entity.js';
import { OauthClient } from './oauth.entity.js';

/** A recent request of an app or a key whose developer is a member, for their troubleshooting. */
@Entity('developer_requests')
export class DeveloperRequest {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id: number;

  /** Either this or {@link DeveloperRequest.key_id}. */
  @Column('text', { nullable: true })
  client_id: string | null;

  @ManyToOne(() => OauthClient, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'client_id' })
  client: Relation<OauthClient> | null;

  @Column('text', { nullable: true })
  key_id: string | null;

  @ManyToOne(() => ApiKey, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'key_id' })
  key: Relation<ApiKey> | null;

  @Column('timestamptz')
  occurred_at: Date;

  @Column('text')
  method: string;

  /** Template of the route, such as `/api/public/events/:id`. */
  @Column('text')
  route: string;

  @Column('smallint')
  status: number;

  /** Code of the problem or of the OAuth error; null if the request succeeded. */
  @Column('text', { nullable: true })
  error: string | null;

  /** Why, as one of the words in docs/audit.md. */
  @Column('text', { nullable: true })
  reason: string | null;

  /** The part of the request that was at fault. */
  @Column('text', { nullable: true })
  parameter: string | null;

  /** The value sent, without what could be a secret. */
  @Column('text', { nullable: true })
  value: string | null;

  /** The error id that the response showed. */
  @Column('text', { nullable: true })
  error_id: string | null;
}
