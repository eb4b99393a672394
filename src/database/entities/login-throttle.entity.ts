import { Column, Entity, PrimaryColumn } from 'typeorm';

/** Failed sign-ins of an account, an address or a device: see `SignInThrottle`. */
@Entity('login_throttle')
export class LoginThrottle {
  /** HMAC of the account, address or device, so none can be read here. */
  @PrimaryColumn('bytea')
  key: Buffer;

  @Column('integer')
  attempts: number;

  @Column('timestamptz')
  window_ends_at: Date;

  /** Consecutive blocks: each is longer than the one before. */
  @Column('integer', { default: 0 })
  blocks: number;

  /** For each attempt under way, when it counts as a failure unless settled before. */
  @Column('timestamptz', { array: true, default: () => "'{}'::timestamptz[]" })
  under_way: Date[];
}
