import { Column, Entity, PrimaryColumn } from 'typeorm';

/** Calls of a limit that all instances together have used in a window: see `PostgresCounts`. Unlogged: gone after a crash. */
@Entity('rate_limit_counts')
export class RateLimitCount {
  /** Limit and caller. */
  @PrimaryColumn('text')
  key: string;

  /** Minutes since 1970. */
  @Column('bigint')
  window_number: number;

  /** Calls that instances took, made or not. */
  @Column('integer')
  used: number;

  /** Calls taken by the latest statement; negative if calls were given back. */
  @Column('integer', { default: 0 })
  granted: number;
}

/** One row: which instances share the counts. An instance that is alone need not ask for each call. Unlogged. */
@Entity('rate_limit_instances')
export class RateLimitInstances {
  @PrimaryColumn('boolean', { default: true })
  one: boolean;

  /** The instance that is alone, otherwise the one heard from last. */
  @Column('uuid')
  latest: string;

  @Column('timestamptz')
  latest_until: Date;

  /** Until when other instances may be present. */
  @Column('timestamptz')
  others_until: Date;

  /** The latest instance counts by itself until {@link latest_until}. */
  @Column('boolean')
  alone: boolean;
}
