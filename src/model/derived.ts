/** Columns that rows copy from another row, so that a list needs one table. Foreign keys keep them equal. */
export interface Copies {
  readonly from: 'users' | 'events';
  /** The column that has the id of that row. */
  readonly by: string;
  /** Column → SQL over that row, `o`. */
  readonly columns: Readonly<Record<string, string>>;
}

/** A number of rows, which triggers maintain. */
export interface Total {
  readonly of: 'user' | 'event' | 'achievement';
  readonly column: string;
  /** SQL: which rows `t` of the table it counts. */
  readonly counts: string;
}

/** What the database derives from the rows of a table. The import writes it, the doctor compares it; schema/*.sql maintains it. */
export interface Derived {
  readonly table: string;
  readonly copies: Copies;
  readonly totals: readonly Total[];
  /** Columns of which the row's member gets every change; a change of a copy alone is reported with its original. */
  readonly reported: readonly string[];
}
