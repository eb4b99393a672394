import { Column, Entity, PrimaryColumn } from 'typeorm';

/** Calls that all instances together admitted in a window. Unlogged: gone after a crash. */
@Entity('rate_limit_counts')
export class RateLimitCount {
  /** Window, limit and caller. */
  @PrimaryColumn('text')
  key: string;

  /** Minutes since 1970. */
  @Column('bigint')
  window_number: number;

  @Column('integer')
  used: number;

  /** For servers of the version before, as {@link RateLimitInstances}. */
  @Column('integer', { default: 0 })
  granted: number;
}

/** For servers of the version before, which may run beside this one during an upgrade. */
@Entity('rate_limit_instances')
export class RateLimitInstances {
  @PrimaryColumn('boolean', { default: true })
  one: boolean;

  @Column('uuid')
  latest: string;

  @Column('timestamptz')
  latest_until: Date;

  @Column('timestamptz')
  others_until: Date;

  @Column('boolean')
  alone: boolean;
}
