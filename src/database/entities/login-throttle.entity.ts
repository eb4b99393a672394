import { Column, Entity, PrimaryColumn } from 'typeorm';

/** Failures to sign in, of an account, an address or a device: see `SignInThrottle`. */
@Entity('login_throttle')
export class LoginThrottle {
  /** HMAC of whom it counts: nobody can read here who was tried. */
  @PrimaryColumn('bytea')
  key: Buffer;

  @Column('integer')
  attempts: number;

  @Column('timestamptz')
  window_ends_at: Date;

  /** Blocks in a row: each is longer than the one before. */
  @Column('integer', { default: 0 })
  blocks: number;

  /** Of the attempts, those under way: when each counts as a failure, because nobody settled it. */
  @Column('timestamptz', { array: true, default: () => "'{}'::timestamptz[]" })
  under_way: Date[];
}
