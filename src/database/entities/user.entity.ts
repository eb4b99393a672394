import { Column, Entity, PrimaryGeneratedColumn, Unique } from 'typeorm';

/** A member of the platform. */
@Entity('users')
@Unique('users_is_disabled_key', ['is_disabled', 'id'])
@Unique('users_external_id_key', ['external_id'])
export class User {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('text')
  username: string;

  /** The member's id in another system, such as the subject of the platform's own login. */
  @Column('text', { nullable: true })
  external_id: string | null;

  /** Address for password-reset mails. No API shows it. */
  @Column('text', { nullable: true })
  email: string | null;

  @Column('text', { nullable: true })
  first_name: string | null;

  @Column('text', { nullable: true })
  last_name: string | null;

  /** The name that the platform stored; {@link User.display_name} is shown. */
  @Column('text', { nullable: true })
  stored_display_name: string | null;

  @Column({ type: 'text', insert: false, update: false })
  display_name: string;

  @Column('text', { nullable: true })
  bio: string | null;

  @Column('text', { nullable: true })
  profile_picture: string | null;

  @Column('text', { nullable: true, select: false })
  password_hash: string | null;

  /** When the member disabled the password: the hash stays, but is not accepted. */
  @Column('timestamptz', { nullable: true })
  password_off_at: Date | null;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  @Column('timestamptz', { nullable: true })
  disabled_at: Date | null;

  /** Sign-ins from before this time are no longer valid; null if all are. */
  @Column('timestamptz', { nullable: true })
  sign_ins_valid_since: Date | null;

  /** When everything but the id was erased, for good. */
  @Column('timestamptz', { nullable: true })
  erased_at: Date | null;

  /** Counts changes of the profile as the member sees it; If-Match compares it, among others. */
  @Column({ type: 'bigint', default: 1, insert: false, update: false })
  version: number;

  /** Fields of the profile that the member changed through the API since the platform's import last set them. */
  @Column('text', { array: true, default: () => "'{}'" })
  edited_fields: string[];

  /** The member as lists show them, as JSON text; made by the database. */
  @Column({ type: 'text', insert: false, update: false, select: false })
  card: string;

  /** Whether `disabled_at` is set; made by the database. */
  @Column({ type: 'boolean', insert: false, update: false, select: false })
  is_disabled: boolean;

  /** The form of `username` for comparing and searching; made by the database. */
  @Column({ type: 'text', insert: false, update: false, select: false })
  folded_username: string;

  /** The form of `display_name` for sorting and searching; made by the database. */
  @Column({ type: 'text', insert: false, update: false, select: false })
  folded_name: string;
}
