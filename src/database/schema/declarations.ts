type Column<Row> = Extract<keyof Row, string>;

/** A part of the file of a member’s data that is made of the rows of one table, with all their columns but these and secrets. */
export interface ExportedRows<Row> {
  /** Name of the part. */
  readonly as: string;
  readonly without?: readonly Column<Row>[];
  /** Columns that the file calls otherwise. */
  readonly called?: { readonly [Name in Column<Row>]?: string };
  /** SQL of one more column of the rows `t`. */
  readonly also?: string;
  /** SQL: which of the rows `t`. */
  readonly where?: string;
  /** The columns of an index whose order serves better than the key's; the newest first. */
  readonly newestBy?: readonly Column<Row>[];
}

/** What a table is to the members whose rows it has. Erasure, the file of a member's data, the doctor and docs/trust/personal-data.md follow from it. */
export interface MemberTableDeclaration<Row> {
  /**
   * Columns with ids of members, or of rows of members in the tables that they refer to: `user_id` where nothing is said. A row is of
   * whoever any of them leads to.
   */
  readonly owner?: readonly Column<Row>[];
  /** SQL: which of the table's rows are of members, if an index needs to be told. */
  readonly only?: string;
  /** Of an erased member: rows are deleted, where nothing is said; or columns get their defaults; or all is kept, with the reason. */
  readonly erase?: 'delete' | { readonly clear: readonly Column<Row>[] } | { readonly keep: string };
  /** Secrets, what is derived from them, and what only this program can read: never in the file. */
  readonly secrets?: readonly Column<Row>[];
  /** Its part of the file; or the part that shows its rows as the pages and the API do; or why they are not in it. */
  readonly export: ExportedRows<Row> | { readonly in: string } | { readonly none: string };
  /** For a table without a key, which is no entity. */
  readonly table?: string;
}

/** Where the class of the row is not known any more. */
export type AnyRow = Record<string, unknown>;

const declarations = new Map<object, MemberTableDeclaration<AnyRow>>();

/** Declares what the entity's table is to its members. A test compares all declarations with the database. */
export const OfMember =
  <Row extends object>(declaration: MemberTableDeclaration<Row>) =>
  (entity: new () => Row): void =>
    void declarations.set(entity, declaration as MemberTableDeclaration<AnyRow>);

/** Returns what {@link OfMember} declared. */
export const declarationOf = (entity: object) => declarations.get(entity);

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
