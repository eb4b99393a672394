import { Entity, Unique } from 'typeorm';
import { bigint, boolean, bytea, identity, row, anyText, timestamptz } from '../../../../model/column.js';
import { OfMember } from '../../../../model/declarations.js';
import { User } from '../../../../resources/profile/table.js';

/** A passkey of a member: a credential record (WebAuthn Level 3, §4), without secrets. */
@Entity('passkeys')
@Unique('passkeys_credential_id_key', ['credential_id'])
@OfMember<Passkey>({
  export: {
    as: 'passkeys',
    without: ['credential_id', 'user_handle', 'public_key', 'sign_count', 'transports', 'backup_eligible'],
    called: { backed_up: 'synced' },
  },
})
export class Passkey extends row({
  id: identity('ALWAYS'),
  user_id: bigint.refersTo(() => User, 'CASCADE'),
  credential_id: bytea,
  /** User handle: a random value, the same for all passkeys of a member. */
  user_handle: bytea,
  /** COSE_Key (RFC 9052 §7). */
  public_key: bytea,
  /** Signature counter; 0 if the authenticator has none. */
  sign_count: bigint,
  /** Transports to the authenticator, such as `internal`, `hybrid`, `usb`, `nfc`, `ble`. */
  transports: anyText.array.sqlDefault("'{}'"),
  /** Whether the authenticator may copy the passkey to other devices (backup eligible); never changes. */
  backup_eligible: boolean,
  backed_up: boolean,
  name: anyText,
  created_at: timestamptz.sqlDefault('now()'),
  last_used_at: timestamptz.nullable,
}) {}
