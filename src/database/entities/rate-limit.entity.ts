import { Column, Entity, PrimaryColumn } from 'typeorm';

/** What all instances together have used of a limit in a window: see `PostgresCounts`. Unlogged: gone after a crash. */
@Entity('rate_limit_counts')
export class RateLimitCount {
  /** Limit and caller. */
  @PrimaryColumn('text')
  key: string;

  /** Minutes since 1970. */
  @Column('bigint')
  window_number: number;

  /** Calls that instances took, whether they were made yet or not. */
  @Column('integer')
  used: number;

  /** Of the latest taking, how many calls there were; negative where so many were given back. */
  @Column('integer', { default: 0 })
  granted: number;
}

/** One row: which instances share the counts. One that is alone need not ask for each call. Unlogged. */
@Entity('rate_limit_instances')
export class RateLimitInstances {
  @PrimaryColumn('boolean', { default: true })
  one: boolean;

  /** The instance that was heard last, unless one is alone: then that one. */
  @Column('uuid')
  latest: string;

  @Column('timestamptz')
  latest_until: Date;

  /** Until when any other is to be reckoned with. */
  @Column('timestamptz')
  others_until: Date;

  /** The latest one counts by itself until {@link latest_until}. */
  @Column('boolean')
  alone: boolean;
}
