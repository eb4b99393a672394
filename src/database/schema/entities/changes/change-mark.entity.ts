import { Entity } from 'typeorm';
import { row, text, timestamptz } from '../../columns.js';

/** The transactions that had ended at a moment: by it, later commits are recognized. */
@Entity('change_marks')
export class ChangeMark extends row({
  taken_at: timestamptz.primary,
  /** A pg_snapshot. */
  snapshot: text,
}) {}
