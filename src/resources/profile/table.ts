import { Entity, Unique } from 'typeorm';
import { bigint, identity, row, stored } from '../../model/column.js';
import { OfMember } from '../../model/declarations.js';
import { boolean, text, texts, timestamp } from '../../model/field.js';
import { LENGTHS } from '../../values/vocabulary.js';

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
  username: text(LENGTHS.users.username).about('Unique on the platform'),
  /** The member's id in another system, such as the subject of the platform's own login. */
  external_id: text(LENGTHS.users.external_id).nullable,
  /** Address for password-reset mails. No API shows it. */
  email: text(LENGTHS.users.email).nullable,
  first_name: text(LENGTHS.users.first_name).about('As written by the member').nullable,
  last_name: text(LENGTHS.users.last_name).about('As written by the member').nullable,
  /** The name that the platform stored; {@link User.display_name} is shown. */
  stored_display_name: text(LENGTHS.users.stored_display_name).nullable,
  display_name: stored(text()).generated,
  bio: text(LENGTHS.users.bio).about('What the member says about themselves').nullable,
  profile_picture: text(LENGTHS.users.profile_picture).about('URL of an image').nullable,
  password_hash: stored(text(LENGTHS.users.password_hash).nullable).unselected,
  /** When the member disabled the password: the hash stays, but is not accepted. */
  password_off_at: timestamp.nullable,
  created_at: stored(timestamp.about('When the member joined')).sqlDefault('now()'),
  disabled_at: timestamp.nullable,
  /** Sign-ins from before this time are no longer valid; null if all are. */
  sign_ins_valid_since: timestamp.nullable,
  /** When everything but the id was erased, for good. */
  erased_at: timestamp.nullable,
  /** Counts changes of the profile as the member sees it; If-Match compares it, among others. */
  version: bigint.default(1).generated,
  /** Fields of the profile that the member changed through the API since the platform's import last set them. */
  edited_fields: stored(texts).sqlDefault("'{}'"),
  /** The member as lists show them, as JSON text; made by the database. */
  card: stored(text()).generated.unselected,
  /** Whether `disabled_at` is set; made by the database. */
  is_disabled: stored(boolean).generated.unselected,
  /** The form of `username` for comparing and searching; made by the database. */
  folded_username: stored(text()).generated.unselected,
  /** The form of `display_name` for sorting and searching; made by the database. */
  folded_name: stored(text()).generated.unselected,
}) {}
