import { Entity, Unique } from 'typeorm';
import { bigint, boolean, date, identity, row, text, timestamptz } from '../../../../model/column.js';
import { Expires, OfMember } from '../../../../model/declarations.js';

/** A member of the platform. */
@Entity('users')
@Unique('users_is_disabled_key', ['is_disabled', 'id'])
@Unique('users_external_id_key', ['external_id'])
@OfMember<User>({
  owner: ['id'],
  erase: {
    clear: [
      'first_name',
      'last_name',
      'stored_display_name',
      'bio',
      'profile_picture',
      'external_id',
      'email',
      'edited_fields',
      'password_hash',
      'password_off_at',
    ],
  },
  secrets: ['password_hash'],
  export: { in: 'profile' },
})
export class User extends row({
  id: identity('BY DEFAULT'),
  username: text,
  /** The member's id in another system, such as the subject of the platform's own login. */
  external_id: text.nullable,
  /** Address for password-reset mails. No API shows it. */
  email: text.nullable,
  first_name: text.nullable,
  last_name: text.nullable,
  /** The name that the platform stored; {@link User.display_name} is shown. */
  stored_display_name: text.nullable,
  display_name: text.generated,
  bio: text.nullable,
  profile_picture: text.nullable,
  password_hash: text.nullable.unselected,
  /** When the member disabled the password: the hash stays, but is not accepted. */
  password_off_at: timestamptz.nullable,
  created_at: timestamptz.sqlDefault('now()'),
  disabled_at: timestamptz.nullable,
  /** Sign-ins from before this time are no longer valid; null if all are. */
  sign_ins_valid_since: timestamptz.nullable,
  /** When everything but the id was erased, for good. */
  erased_at: timestamptz.nullable,
  /** Counts changes of the profile as the member sees it; If-Match compares it, among others. */
  version: bigint.default(1).generated,
  /** Fields of the profile that the member changed through the API since the platform's import last set them. */
  edited_fields: text.array.sqlDefault("'{}'"),
  /** The member as lists show them, as JSON text; made by the database. */
  card: text.generated.unselected,
  /** Whether `disabled_at` is set; made by the database. */
  is_disabled: boolean.generated.unselected,
  /** The form of `username` for comparing and searching; made by the database. */
  folded_username: text.generated.unselected,
  /** The form of `display_name` for sorting and searching; made by the database. */
  folded_name: text.generated.unselected,
}) {}

/** How often an app or a key used a scope of a member on a day, written in batches. */
@Entity('member_usage')
@Expires({ at: 'day', kept: '90 days' })
@OfMember<MemberUsage>({ export: { as: 'usage' } })
export class MemberUsage extends row({
  user_id: bigint.primary.refersTo(() => User),
  /** In UTC. */
  day: date.primary,
  app_kind: text.as<'client' | 'key'>().primary,
  /** Id of the client or the key, which may have been deleted. */
  app_id: text.primary,
  scope: text.primary,
  uses: bigint,
  last_used_at: timestamptz,
}) {}

/** A change of a member's names that has not been copied everywhere yet. Written by the database alone. */
@Entity('renamed_users')
@OfMember<RenamedUser>({
  erase: { keep: 'that a name has yet to be replaced where it was copied, for seconds' },
  export: { none: 'that a name has yet to be copied, for seconds' },
})
export class RenamedUser extends row({
  id: identity('ALWAYS'),
  user_id: bigint,
  /** null until every copy was compared once; then the transaction (xid8) before which all transactions must have ended. */
  settled_before: bigint.nullable,
}) {}

/** One row: the number of active members, of which every rarity is a share. */
@Entity('platform_totals')
export class PlatformTotals extends row({
  id: boolean.primary.default(true),
  active_users_count: bigint.default(0),
}) {}

/** Numbers of rows in a member's lists: sums of rows without a key, and therefore no entity. Written by the database alone. */
@OfMember<UserTotals>({
  table: 'user_totals',
  erase: { keep: 'counts of rows that are deleted, and with them zero' },
  export: { none: 'counts of rows that are in the file' },
})
export class UserTotals {
  user_id: number;
}
