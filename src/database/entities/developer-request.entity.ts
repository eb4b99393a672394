import { Column, Entity, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { ApiKey } from './api-key.entity.js';
import { OauthClient } from './oauth.entity.js';

/** One of the last requests of an app or a key whose developer is a member: what they look for faults in. */
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

  /** Code of the problem, or of the OAuth error; null where it was answered. */
  @Column('text', { nullable: true })
  error: string | null;

  /** Why, in a word of ours. */
  @Column('text', { nullable: true })
  reason: string | null;

  /** What of the request it was about. */
  @Column('text', { nullable: true })
  parameter: string | null;

  /** That as it was sent, without what could be a secret. */
  @Column('text', { nullable: true })
  value: string | null;

  /** As the response showed it. */
  @Column('text', { nullable: true })
  error_id: string | null;
}
