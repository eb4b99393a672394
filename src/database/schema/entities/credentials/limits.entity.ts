import { Entity } from 'typeorm';
import {
  bigint,
  boolean,
  bytea,
  integer,
  row,
  anyText,
  timestamptz,
  uuid,
} from '../../../../model/column.js';
import { Expires } from '../../../../model/declarations.js';

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

/** Calls that all instances together admitted in a window. Unlogged: gone after a crash. */
@Entity('rate_limit_counts')
// One whose clock is late may still add to the window before.
@Expires({ at: 'to_timestamp(window_number * 60)', kept: '3 minutes' })
export class RateLimitCount extends row({
  /** Window, limit and caller. */
  key: anyText.primary,
  /** Minutes since 1970. */
  window_number: bigint,
  used: integer,
  /** For servers of 1.1.0; remove in 1.3.0, as {@link RateLimitInstances}. */
  granted: integer.default(0),
}) {}

/** For servers of 1.1.0, which may run next to this one during an upgrade; remove in 1.3.0. */
@Entity('rate_limit_instances')
export class RateLimitInstances extends row({
  one: boolean.primary.default(true),
  latest: uuid,
  latest_until: timestamptz,
  others_until: timestamptz,
  alone: boolean,
}) {}
