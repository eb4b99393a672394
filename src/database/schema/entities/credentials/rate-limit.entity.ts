import { Entity } from 'typeorm';
import { bigint, boolean, integer, row, text, timestamptz, uuid } from '../../columns.js';
import { Expires } from '../../expires.js';

/** Calls that all instances together admitted in a window. Unlogged: gone after a crash. */
@Entity('rate_limit_counts')
// One whose clock is late may still add to the window before.
@Expires({ at: 'to_timestamp(window_number * 60)', kept: '3 minutes' })
export class RateLimitCount extends row({
  /** Window, limit and caller. */
  key: text.primary,
  /** Minutes since 1970. */
  window_number: bigint,
  used: integer,
  /** For servers of the version before, as {@link RateLimitInstances}. */
  granted: integer.default(0),
}) {}

/** For servers of the version before, which may run beside this one during an upgrade. */
@Entity('rate_limit_instances')
export class RateLimitInstances extends row({
  one: boolean.primary.default(true),
  latest: uuid,
  latest_until: timestamptz,
  others_until: timestamptz,
  alone: boolean,
}) {}
