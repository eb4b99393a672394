import { Column, Entity, ForeignKey, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { User } from './user.entity.js';

/** A passkey of a member (a credential record of WebAuthn level 3, §4). It contains no secret: the private key is the member's. */
@Entity('passkeys')
@Unique('passkeys_credential_id_key', ['credential_id'])
export class Passkey {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id: number;

  @Column('bigint')
  @ForeignKey(() => User, { onDelete: 'CASCADE' })
  user_id: number;

  @Column('bytea')
  credential_id: Buffer;

  /** User handle: random, the same for all passkeys of a member. */
  @Column('bytea')
  user_handle: Buffer;

  /** COSE_Key (RFC 9052 §7). */
  @Column('bytea')
  public_key: Buffer;

  /** Signature counter; 0 if the authenticator has none. */
  @Column('bigint')
  sign_count: number;

  /** Transports to the authenticator: `internal`, `hybrid`, `usb`, `nfc`, `ble`. */
  @Column('text', { array: true, default: () => "'{}'" })
  transports: string[];

  /** Whether the authenticator may copy it to other devices (backup eligible); never changes. */
  @Column('boolean')
  backup_eligible: boolean;

  /** Whether it was copied (backed up). */
  @Column('boolean')
  backed_up: boolean;

  /** The member's name for it. */
  @Column('text')
  name: string;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  @Column('timestamptz', { nullable: true })
  last_used_at: Date | null;
}
