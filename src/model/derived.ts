/** Denormalized columns from another row; foreign keys or the function copy_names keep them equal. */
export interface Copies {
  readonly from: 'users' | 'events';
  readonly by: string;
  /** Column → SQL over the other row, `o`. */
  readonly columns: Readonly<Record<string, string>>;
}

/** A counter of the table's rows per member, event or achievement. */
export interface Total {
  readonly of: 'user' | 'event' | 'achievement';
  readonly column: string;
  /** SQL: condition for counted rows `t`. */
  readonly counts: string;
}

/** A table's denormalized columns, and counters of its rows; `pua doctor` checks both. */
export interface Derived {
  readonly table: string;
  readonly copies: Copies;
  readonly totals: readonly Total[];
  /** Columns whose changes the change log reports to the row's member. */
  readonly reported: readonly string[];
}
