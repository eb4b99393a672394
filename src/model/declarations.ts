import { getMetadataArgsStorage } from 'typeorm';

type Column<Row> = Extract<keyof Row, string>;

/** A part of the data export: rows of one table, with all columns except omitted ones and secrets. */
export interface ExportedRows<Row> {
  readonly as: string;
  readonly without?: readonly Column<Row>[];
  /** Columns with other names in the export. */
  readonly called?: { readonly [Name in Column<Row>]?: string };
  /** SQL of a further column of the rows `t`. */
  readonly also?: string;
  /** SQL: condition on the rows `t`. */
  readonly where?: string;
  /** Columns of an index that is better than the key's, for the newest rows first. */
  readonly newestBy?: readonly Column<Row>[];
}

/** A table's relation to members, used by erasure, data export, `pua doctor` and docs/trust/personal-data.md. */
export interface MemberTableDeclaration<Row> {
  /** Columns with ids of members, or of their rows in referenced tables; default `user_id`. A row belongs to all of these members. */
  readonly owner?: readonly Column<Row>[];
  /** SQL: condition for rows of members, if an index requires it. */
  readonly only?: string;
  /** Erasure deletes rows (default), resets columns, or keeps all for a reason. */
  readonly erase?: 'delete' | { readonly clear: readonly Column<Row>[] } | { readonly keep: string };
  /** Columns that the export omits: secrets, derived values, and values that only this program can read. */
  readonly secrets?: readonly Column<Row>[];
  /** The table's part of the export, another part that contains the table's rows, or why the export excludes these rows. */
  readonly export: ExportedRows<Row> | { readonly in: string } | { readonly none: string };
  /** Name of a table without a key and entity. */
  readonly table?: string;
}

export type AnyRow = Record<string, unknown>;

const declarations = new Map<object, MemberTableDeclaration<AnyRow>>();

/** Declares how the entity's table relates to members. A test compares all declarations with the database. */
export const OfMember =
  <Row extends object>(declaration: MemberTableDeclaration<Row>) =>
  (entity: new () => Row): void =>
    void declarations.set(entity, declaration as MemberTableDeclaration<AnyRow>);

/** Returns the declaration of {@link OfMember}. */
export const declarationOf = (entity: object) => declarations.get(entity);

/** Returns the name of an entity's table. */
export const tableNameOf = (entity: object): string =>
  getMetadataArgsStorage().tables.find(({ target }) => target === entity)!.name!;

/** Expiry of a table's rows. An index must serve `only` and `at`, or sweeping fails as the table grows. */
interface Expiry {
  /** SQL: the time at which a row expires or was created. */
  readonly at: string;
  /** Retention after this time: an SQL interval, or a setting in seconds (0: forever). */
  readonly kept?: string | { readonly setting: 'auditRetentionSeconds' | 'changesRetentionSeconds' };
  /** Name in metrics and in the log; default: the table's name. */
  readonly name?: string;
  /** SQL: the condition of the partial index. */
  readonly only?: string;
  /** SQL: columns of deleted rows, and `statement`, a further part of the same statement that reads these columns as `gone`. */
  readonly also?: { readonly columns: string; readonly statement: string };
}

/** Tables whose rows expire, last declared first: the sweeper handles referencing tables before referenced ones. */
export const EXPIRIES: (Expiry & { readonly entity: object })[] = [];

/** Declares that rows of the entity's table expire. A test compares all declarations with the columns of the database. */
export const Expires =
  (expiry: Expiry) =>
  (entity: object): void =>
    void EXPIRIES.unshift({ entity, ...expiry });

/** Records the position of the last deleted row in `change_places`. */
export const recordedAs = (place: string) => ({
  columns: 'changed_in, sequence',
  statement: `UPDATE change_places p SET changed_in = last.changed_in, sequence = last.sequence
    FROM (SELECT changed_in, sequence FROM gone
      WHERE changed_in < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY changed_in DESC, sequence DESC LIMIT 1) last
    WHERE p.name = '${place}' AND (p.changed_in, p.sequence) < (last.changed_in, last.sequence)`,
});
