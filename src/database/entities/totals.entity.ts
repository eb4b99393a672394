import { Column, Entity, PrimaryColumn } from 'typeorm';

/** One row: the number of active members, of which every rarity is a share. */
@Entity('platform_totals')
export class PlatformTotals {
  @PrimaryColumn('boolean', { default: true })
  id: boolean;

  @Column('bigint', { default: 0 })
  active_users_count: number;
}
