import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The version in which a feed brought a record last, also of one that is gone. */
@Entity('record_versions')
export class RecordVersion {
  @PrimaryColumn('text')
  type: string;

  /** 0: the record is no member's. */
  @PrimaryColumn('bigint')
  user_id: number;

  @PrimaryColumn('bigint')
  id: number;

  @Column('bigint')
  version: number;
}
