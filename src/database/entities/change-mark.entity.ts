import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The transactions that had ended at a moment: by it, later commits are recognized. */
@Entity('change_marks')
export class ChangeMark {
  @PrimaryColumn('timestamptz')
  taken_at: Date;

  /** A pg_snapshot. */
  @Column('text')
  snapshot: string;
}
