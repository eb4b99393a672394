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
// For an hour after a block, `blocks` determines the duration of the next one.
@Expires({ at: 'window_ends_at', kept: '1 hour' })
export class LoginThrottle extends row({
  /** HMAC of the account, address or device, so that the row discloses none of them. */
  key: bytea.primary,
  attempts: integer,
  window_ends_at: timestamptz,
  /** Number of blocks since the last sign-in or hour without a block; determines the next block's duration. */
  blocks: integer.default(0),
  /** For each attempt in progress: the time after which the attempt counts as a failure unless settled. */
  under_way: timestamptz.array.sqlDefault("'{}'::timestamptz[]"),
}) {}

/** Requests of one caller that all instances admitted in a window. Unlogged: lost after a crash. */
@Entity('rate_limit_counts')
// An instance with a slow clock may still count in the previous window.
@Expires({ at: 'to_timestamp(window_number * 60)', kept: '3 minutes' })
export class RateLimitCount extends row({
  /** The key consists of window, limit and caller. */
  key: anyText.primary,
  /** Minutes since 1970. */
  window_number: bigint,
  used: integer,
  /** For servers of 1.1.0; remove in 1.3.0, together with {@link RateLimitInstances}. */
  granted: integer.default(0),
}) {}

/** For servers of 1.1.0, which may run at the same time during an upgrade; remove in 1.3.0. */
@Entity('rate_limit_instances')
export class RateLimitInstances extends row({
  one: boolean.primary.default(true),
  latest: uuid,
  latest_until: timestamptz,
  others_until: timestamptz,
  alone: boolean,
}) {}
