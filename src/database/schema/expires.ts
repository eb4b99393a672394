/** Which rows of a table expire, and when. An index must serve `only` and `at`, or sweeping fails as the table grows. */
interface Expiry {
  /** SQL: the time at which a row expires or was created. */
  readonly at: string;
  /** How long rows stay after that: an interval of SQL, or the setting that says it in seconds, 0 for ever. */
  readonly kept?: string | { readonly setting: 'auditRetentionSeconds' | 'changesRetentionSeconds' };
  /** Their name in metrics and in the log, if it is not the table's. */
  readonly name?: string;
  /** SQL: the condition of the partial index. */
  readonly only?: string;
  /** SQL: columns of deleted rows, which `statement` reads as `gone`, and what else the same statement does. */
  readonly also?: { readonly columns: string; readonly statement: string };
}

/** What {@link Expires} declared. A row that refers to another table's is declared after it, and goes before it. */
export const EXPIRIES: (Expiry & { readonly entity: object })[] = [];

/** Declares that rows of the entity's table expire. A test compares all declarations with the columns of the database. */
export const Expires =
  (expiry: Expiry) =>
  (entity: object): void =>
    void EXPIRIES.unshift({ entity, ...expiry });

/** Records in `change_places` up to where rows are gone that apps or the platform read by cursor. */
export const recordedAs = (place: string) => ({
  columns: 'changed_in, sequence',
  statement: `UPDATE change_places p SET changed_in = last.changed_in, sequence = last.sequence
    FROM (SELECT changed_in, sequence FROM gone
      WHERE changed_in < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY changed_in DESC, sequence DESC LIMIT 1) last
    WHERE p.name = '${place}' AND (p.changed_in, p.sequence) < (last.changed_in, last.sequence)`,
});
