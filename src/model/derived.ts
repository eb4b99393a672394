/** Denormalized columns from another row, so that a list reads one table. Foreign keys or the function copy_names keep them equal. */
export interface Copies {
  readonly from: 'users' | 'events';
  readonly by: string;
  /** Column → SQL over the other row, `o`. */
  readonly columns: Readonly<Record<string, string>>;
}

/** A row count that triggers maintain. */
export interface Total {
  readonly of: 'user' | 'event' | 'achievement';
  readonly column: string;
  /** SQL: condition for counted rows `t`. */
  readonly counts: string;
}

/** Data that the database derives from rows. `pua doctor` checks it, and schema/*.sql maintains it; an import also writes the copies. */
export interface Derived {
  readonly table: string;
  readonly copies: Copies;
  readonly totals: readonly Total[];
  /** Columns whose changes are reported to the row's member; a denormalized column's changes are reported with its original. */
  readonly reported: readonly string[];
}
