import { Column, ForeignKey, PrimaryGeneratedColumn, type ColumnOptions, type ColumnType } from 'typeorm';

/** TypeORM's options of a column with values of this type; immutable. */
class TableColumn<Value> {
  declare readonly value: Value;

  constructor(
    readonly options: ColumnOptions,
    readonly reference?: { readonly to: () => new () => object; readonly onDelete?: 'CASCADE' },
  ) {}

  /** Narrows the TypeScript type. */
  as<Narrower extends Value>(): TableColumn<Narrower> {
    return this as unknown as TableColumn<Narrower>;
  }

  get nullable(): TableColumn<Value | null> {
    return this.#with({ nullable: true });
  }

  get array(): TableColumn<Value[]> {
    return this.#with({ array: true });
  }

  get primary(): TableColumn<Value> {
    return this.#with({ primary: true });
  }

  get unique(): TableColumn<Value> {
    return this.#with({ unique: true });
  }

  default(value: Value): TableColumn<Value> {
    return this.#with({ default: value });
  }

  sqlDefault(sql: string): TableColumn<Value> {
    return this.#with({ default: () => sql });
  }

  /** Only the database writes it. */
  get generated(): TableColumn<Value> {
    return this.#with({ insert: false, update: false });
  }

  /** Read only if a query names it. */
  get unselected(): TableColumn<Value> {
    return this.#with({ select: false });
  }

  /** Has the primary key of a row of another table. */
  refersTo(to: () => new () => object, onDelete?: 'CASCADE'): TableColumn<Value> {
    return new TableColumn(this.options, { to, ...(onDelete && { onDelete }) });
  }

  #with<Other>(options: ColumnOptions): TableColumn<Other> {
    return new TableColumn({ ...this.options, ...options }, this.reference);
  }
}

const column = <Value>(type: ColumnType) => new TableColumn<Value>({ type });

export const text = column<string>('text');
export const uuid = column<string>('uuid');
export const inet = column<string>('inet');
export const cidr = column<string>('cidr');
/** Year, month and day, as text. */
export const date = column<string>('date');
export const smallint = column<number>('smallint');
export const integer = column<number>('integer');
export const bigint = column<number>('bigint');
export const doublePrecision = column<number>('double precision');
export const boolean = column<boolean>('boolean');
export const timestamptz = column<Date>('timestamptz');
export const bytea = column<Buffer>('bytea');
export const jsonb = column<unknown>('jsonb');

/** A primary key that the database numbers. */
export const identity = (generatedIdentity: 'ALWAYS' | 'BY DEFAULT') =>
  new TableColumn<number>({ type: 'bigint', generatedIdentity, primary: true });

export type Columns = Readonly<Record<string, TableColumn<unknown>>>;

type Row<Of extends Columns> = { -readonly [Name in keyof Of]: Of[Name]['value'] };

/** Makes the class that an entity extends: its columns, with the types of their values. */
export function row<Of extends Columns>(columns: Of): (new () => Row<Of>) & { readonly columns: Of } {
  class EntityRow {
    static readonly columns = columns;
  }
  for (const [name, { options, reference }] of Object.entries(columns)) {
    const decorators = [
      options.generatedIdentity ? PrimaryGeneratedColumn('identity', options as object) : Column(options),
      ...(reference ? [ForeignKey(reference.to, reference)] : []),
    ];
    for (const decorate of decorators) decorate(EntityRow.prototype, name);
  }
  return EntityRow as never;
}
