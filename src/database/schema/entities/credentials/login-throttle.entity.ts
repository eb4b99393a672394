import { Entity } from 'typeorm';
import { bytea, integer, row, timestamptz } from '../../columns.js';
import { Expires } from '../../expires.js';

/** Failed sign-ins of an account, an address or a device: see `SignInThrottle`. */
@Entity('login_throttle')
// Until then, each block is longer than the one before.
@Expires({ at: 'window_ends_at', kept: '1 hour' })
export class LoginThrottle extends row({
  /** HMAC of the account, address or device, so none can be read here. */
  key: bytea.primary,
  attempts: integer,
  window_ends_at: timestamptz,
  /** Consecutive blocks: each is longer than the one before. */
  blocks: integer.default(0),
  /** For each attempt under way, when it counts as a failure unless settled before. */
  under_way: timestamptz.array.sqlDefault("'{}'::timestamptz[]"),
}) {}
