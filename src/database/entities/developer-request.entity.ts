import { Column, Entity, ForeignKey, PrimaryGeneratedColumn } from 'typeorm';
import { ApiKey } from './api-key.entity.js';
import { OauthClient } from './oauth.entity.js';

/** A recent request of an app or a key whose developer is a member, for their troubleshooting. */
@Entity('developer_requests')
export class DeveloperRequest {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id: number;

  /** Either this or {@link DeveloperRequest.key_id}. */
  @Column('text', { nullable: true })
  @ForeignKey(() => OauthClient, { onDelete: 'CASCADE' })
  client_id: string | null;

  @Column('text', { nullable: true })
  @ForeignKey(() => ApiKey, { onDelete: 'CASCADE' })
  key_id: string | null;

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
