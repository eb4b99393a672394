import { getMetadataArgsStorage } from 'typeorm';

type Column<Row> = Extract<keyof Row, string>;

/** A part of the data export: rows of one table, with all columns except members' ids, secrets and the columns in `without`. */
export interface ExportedRows<Row> {
  readonly as: string;
  readonly without?: readonly Column<Row>[];
  /** Names of columns in the export, if they differ. */
  readonly called?: { readonly [Name in Column<Row>]?: string };
  /** SQL of an additional column of the row `t`, with its name. */
  readonly also?: string;
  /** SQL: condition on the rows `t`. */
  readonly where?: string;
  /** Columns of a unique order for the export, newest rows first; default: the primary key, ascending. */
  readonly newestBy?: readonly Column<Row>[];
}

/** A table's relation to members, for erasure and data export. */
export interface MemberTableDeclaration<Row> {
  /** Columns with ids of members, or of their rows in another table; default `user_id`. A row belongs to all of these members. */
  readonly owner?: readonly Column<Row>[];
  /** SQL: further condition for rows of members, such as the condition of a partial index. */
  readonly only?: string;
  /** Erasure deletes rows (default), resets columns to their defaults, or keeps the rows for the stated reason. */
  readonly erase?: 'delete' | { readonly clear: readonly Column<Row>[] } | { readonly keep: string };
  /** Columns that the export omits, such as secrets. */
  readonly secrets?: readonly Column<Row>[];
  /** The table's part of the export, the part that contains its rows, or the reason why the export omits them. */
  readonly export: ExportedRows<Row> | { readonly in: string } | { readonly none: string };
  /** The table's name, if the entity declares none. */
  readonly table?: string;
}

export type AnyRow = Record<string, unknown>;

const declarations = new Map<object, MemberTableDeclaration<AnyRow>>();

/** Declares how the entity's table relates to members. */
export const OfMember =
  <Row extends object>(declaration: MemberTableDeclaration<Row>) =>
  (entity: new () => Row): void =>
    void declarations.set(entity, declaration as MemberTableDeclaration<AnyRow>);

/** Returns the declaration of {@link OfMember}. */
export const declarationOf = (entity: object) => declarations.get(entity);

/** Returns the name of an entity's table. */
export const tableNameOf = (entity: object): string =>
  getMetadataArgsStorage().tables.find(({ target }) => target === entity)!.name!;

/** Expiry of a table's rows. Without an index for `only` and `at`, sweeping a large table is slow. */
interface Expiry {
  /** SQL: the time at which a row's retention starts, such as its expiry. */
  readonly at: string;
  /** Retention after this time: an SQL interval, or a setting in seconds (0: forever); default: none. */
  readonly kept?: string | { readonly setting: 'auditRetentionSeconds' | 'changesRetentionSeconds' };
  /** Name in metrics and in the log; default: the table's name. */
  readonly name?: string;
  /** SQL: condition for rows that expire; default: all. */
  readonly only?: string;
  /** SQL that runs with the deletion: `statement` reads the deleted rows' `columns` from the CTE `gone`. */
  readonly also?: { readonly columns: string; readonly statement: string };
}

/** Tables whose rows expire, in sweeping order: the last declared first. */
export const EXPIRIES: (Expiry & { readonly entity: object })[] = [];

/** Declares that rows of the entity's table expire. */
export const Expires =
  (expiry: Expiry) =>
  (entity: object): void =>
    void EXPIRIES.unshift({ entity, ...expiry });

/** Records the position of the last deleted change in `change_places`, also instead of one above this server's, which comes from a dump. */
export const recordedAs = (place: string) => ({
  columns: 'changed_in, sequence',
  statement: `UPDATE change_places p SET changed_in = last.changed_in, sequence = last.sequence
    FROM (SELECT changed_in, sequence FROM gone
      WHERE changed_in < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY changed_in DESC, sequence DESC LIMIT 1) last
    WHERE p.name = '${place}' AND ((p.changed_in, p.sequence) < (last.changed_in, last.sequence)
      OR p.changed_in >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint)`,
});
