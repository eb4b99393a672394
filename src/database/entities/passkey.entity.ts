import { Column, Entity, JoinColumn, ManyToOne, PrimaryGeneratedColumn, Unique } from 'typeorm';
import type { Relation } from 'typeorm';
import { User } from './user.entity.js';

/** A passkey of a member (a credential record of WebAuthn level 3, §4). Nothing in it opens anything: the private key is the member's. */
@Entity('passkeys')
@Unique('passkeys_credential_id_key', ['credential_id'])
export class Passkey {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id: number;

  @Column('bigint')
  user_id: number;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id' })
  user: Relation<User>;

  @Column('bytea')
  credential_id: Buffer;

  /** What the authenticator calls the member: random, one for all passkeys of a member. */
  @Column('bytea')
  user_handle: Buffer;

  /** COSE_Key (RFC 9052 §7). */
  @Column('bytea')
  public_key: Buffer;

  /** 0: the authenticator does not count. */
  @Column('bigint')
  sign_count: number;

  /** How the browser reached the authenticator: `internal`, `hybrid`, `usb`, `nfc`, `ble`. */
  @Column('text', { array: true, default: () => "'{}'" })
  transports: string[];

  /** Whether the authenticator may copy it to other devices; never changes. */
  @Column('boolean')
  backup_eligible: boolean;

  /** Whether it has. */
  @Column('boolean')
  backed_up: boolean;

  /** What the member calls it. */
  @Column('text')
  name: string;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  @Column('timestamptz', { nullable: true })
  last_used_at: Date | null;
}
