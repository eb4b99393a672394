import { Column, Entity, ForeignKey, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';
import { ApiKey } from './api-key.entity.js';
import { OauthClient } from './oauth.entity.js';

/** A receiver of messages about changes. */
@Entity('webhook_endpoints')
export class WebhookEndpoint {
  @PrimaryColumn('text')
  id: string;

  @Column('text')
  url: string;

  /** Types of the messages that it receives. */
  @Column('text', { array: true })
  types: string[];

  /** The client that it sees members as; or {@link WebhookEndpoint.key_id}; if neither, it sees them as the platform. */
  @Column('text', { nullable: true })
  @ForeignKey(() => OauthClient, { onDelete: 'CASCADE' })
  client_id: string | null;

  @Column('text', { nullable: true })
  @ForeignKey(() => ApiKey, { onDelete: 'CASCADE' })
  key_id: string | null;

  /** Encrypted. */
  @Column('bytea', { select: false })
  secret: Buffer;

  /** Encrypted; signs in addition to the current one until {@link WebhookEndpoint.previous_secret_until}. */
  @Column('bytea', { nullable: true, select: false })
  previous_secret: Buffer | null;

  @Column('timestamptz', { nullable: true })
  previous_secret_until: Date | null;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  /** Since when no message was accepted. */
  @Column('timestamptz', { nullable: true })
  failing_since: Date | null;

  @Column('timestamptz', { nullable: true })
  disabled_at: Date | null;

  @Column('text', { nullable: true })
  disabled_because: 'admin' | 'failing' | null;
}

/** A message to an endpoint, sent or pending. */
@Entity('webhook_deliveries')
export class WebhookDelivery {
  /** The order in which an endpoint's messages are sent. */
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  sequence: number;

  @Column('uuid', { unique: true, default: () => 'gen_random_uuid()' })
  id: string;

  @Column('text')
  @ForeignKey(() => WebhookEndpoint, { onDelete: 'CASCADE' })
  endpoint_id: string;

  @Column('text')
  type: string;

  /** The member whose lists it is about; 0 if of no single member. */
  @Column('bigint')
  user_id: number;

  @Column('bigint')
  thing_id: number;

  @Column('timestamptz')
  changed_at: Date;

  /** withheld: the credential may no longer see it. dead: delivery was given up. */
  @Column('text', { default: 'pending' })
  status: 'pending' | 'delivered' | 'dead' | 'withheld';

  /** Attempts that have ended. */
  @Column('integer', { default: 0 })
  attempts: number;

  @Column('timestamptz', { default: () => 'now()' })
  due_at: Date;

  /** Until when one instance is sending it. */
  @Column('timestamptz', { nullable: true })
  leased_until: Date | null;

  @Column('timestamptz', { nullable: true })
  attempted_at: Date | null;

  /** Status code of the last attempt. */
  @Column('integer', { nullable: true })
  response_status: number | null;

  /** Why the last attempt got no response. */
  @Column('text', { nullable: true })
  error: string | null;

  @Column('timestamptz', { nullable: true })
  ended_at: Date | null;
}
