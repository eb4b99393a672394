import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The version of a record that a feed last brought, even if the record was deleted. */
@Entity('record_versions')
export class RecordVersion {
  @PrimaryColumn('text')
  type: string;

  /** 0 if the record belongs to no member. */
  @PrimaryColumn('bigint')
  user_id: number;

  @PrimaryColumn('bigint')
  id: number;

  @Column('bigint')
  version: number;
}
