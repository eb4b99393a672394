import { Column, Entity, PrimaryColumn } from 'typeorm';

/** One row: how many members are active, which is what every rarity is a share of. */
@Entity('platform_totals')
export class PlatformTotals {
  @PrimaryColumn('boolean', { default: true })
  id: boolean;

  @Column('bigint', { default: 0 })
  active_users_count: number;
}
