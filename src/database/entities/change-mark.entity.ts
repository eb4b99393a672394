import { Column, Entity, PrimaryColumn } from 'typeorm';

/** Which transactions had ended at a moment: what was committed after it is known by that. */
@Entity('change_marks')
export class ChangeMark {
  @PrimaryColumn('timestamptz')
  taken_at: Date;

  /** A pg_snapshot. */
  @Column('text')
  snapshot: string;
}
