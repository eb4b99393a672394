import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { User } from './user.entity.js';

/** A partner's key to one member's data, or a platform key. The key itself is not stored. */
@Entity('api_keys')
export class ApiKey {
  @PrimaryColumn('text')
  id: string;

  /** null for a platform key, to which `api_keys_owner_check` allows other scopes. */
  @Column('bigint', { nullable: true })
  @ForeignKey(() => User)
  user_id: number | null;

  @Column('text')
  name: string;

  @Column('text')
  environment: 'live' | 'test';

  @Column('text', { array: true })
  scopes: string[];

  /** HMAC-SHA-256 of the whole key; {@link ApiKey.pepper_id} identifies the pepper. */
  @Column('bytea', { select: false })
  hash: Buffer;

  @Column('bytea', { select: false })
  pepper_id: Buffer;

  @Column('text')
  last_four: string;

  @Column('cidr', { array: true, default: () => "'{}'" })
  allowed_cidrs: string[];

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  /** null if it never expires; {@link ApiKey.no_expiry_reason} says why. */
  @Column('timestamptz', { nullable: true })
  expires_at: Date | null;

  @Column('text', { nullable: true })
  no_expiry_reason: string | null;

  @Column('timestamptz', { nullable: true })
  revoked_at: Date | null;

  @Column('text', { nullable: true })
  revocation_reason: string | null;

  /** The member made it for themselves. */
  @Column('boolean', { default: false })
  self_issued: boolean;

  @Column('text', { nullable: true })
  @ForeignKey(() => ApiKey)
  replaced_by: string | null;
}

/** Use of a key, written in batches. */
@Entity('api_key_usage')
export class ApiKeyUsage {
  @PrimaryColumn('text')
  @ForeignKey(() => ApiKey)
  key_id: string;

  @Column('timestamptz', { nullable: true })
  last_used_at: Date | null;

  @Column('inet', { nullable: true })
  last_used_ip: string | null;

  @Column('bigint', { default: 0 })
  uses_count: number;

  /** When the key was first seen in a browser, and on which page's origin. */
  @Column('timestamptz', { nullable: true })
  exposed_at: Date | null;

  @Column('text', { nullable: true })
  exposed_origin: string | null;
}
