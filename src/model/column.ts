import { Column, ForeignKey, PrimaryGeneratedColumn, type ColumnOptions, type ColumnType } from 'typeorm';
import { Field, id, type FieldType } from './field.js';

/** An immutable description of a column: its TypeORM options, field and foreign key. */
class TableColumn<Stored, Of extends Field | undefined = undefined> {
  declare readonly stored: Stored;

  constructor(
    readonly options: ColumnOptions,
    readonly field: Of,
    readonly reference?: { readonly to: () => new () => object; readonly onDelete?: 'CASCADE' },
  ) {}

  get primary(): TableColumn<Stored, Of> {
    return this.#with({ primary: true });
  }

  get unique(): TableColumn<Stored, Of> {
    return this.#with({ unique: true });
  }

  default(value: Stored): TableColumn<Stored, Of> {
    return this.#with({ default: value });
  }

  sqlDefault(sql: string): TableColumn<Stored, Of> {
    return this.#with({ default: () => sql });
  }

  /** A column that TypeORM never writes. */
  get generated(): TableColumn<Stored, Of> {
    return this.#with({ insert: false, update: false });
  }

  /** A column that TypeORM reads only if a query names it. */
  get unselected(): TableColumn<Stored, Of> {
    return this.#with({ select: false });
  }

  refersTo(to: () => new () => object, onDelete?: 'CASCADE'): TableColumn<Stored, Of> {
    return new TableColumn(this.options, this.field, { to, ...(onDelete && { onDelete }) });
  }

  #with(options: ColumnOptions): TableColumn<Stored, Of> {
    return new TableColumn({ ...this.options, ...options }, this.field, this.reference);
  }
}

/** A column without a field; `as` can narrow its type. */
class Kind<Stored> extends TableColumn<Stored> {
  constructor(options: ColumnOptions) {
    super(options, undefined);
  }

  as<Narrower extends Stored>(): Kind<Narrower> {
    return new Kind(this.options);
  }

  get nullable(): Kind<Stored | null> {
    return new Kind({ ...this.options, nullable: true });
  }

  get array(): Kind<Stored[]> {
    return new Kind({ ...this.options, array: true });
  }
}

const column = <Stored>(type: ColumnType) => new Kind<Stored>({ type });

export const anyText = column<string>('text');
export const uuid = column<string>('uuid');
export const inet = column<string>('inet');
export const cidr = column<string>('cidr');
/** Year, month and day, as text. */
export const date = column<string>('date');
export const smallint = column<number>('smallint');
export const integer = column<number>('integer');
export const bigint = column<number>('bigint');
export const boolean = column<boolean>('boolean');
export const timestamptz = column<Date>('timestamptz');
export const bytea = column<Buffer>('bytea');
export const jsonb = column<unknown>('jsonb');

const SQL_TYPES = {
  id: 'bigint',
  number: 'double precision',
  boolean: 'boolean',
  timestamp: 'timestamptz',
  enum: 'text',
  text: 'text',
  texts: 'text',
} as const;

const sqlTypeOf = (type: FieldType): ColumnType =>
  type.kind !== 'integer' ? SQL_TYPES[type.kind] : type.maximum < 2 ** 15 ? 'smallint' : 'integer';

/** Makes the column of a field; the table can add further options. */
export const stored = <Of extends Field>(field: Of) =>
  new TableColumn<Of['stored'], Of>(
    {
      type: sqlTypeOf(field.type),
      ...(field.isNullable && { nullable: true }),
      ...(field.type.kind === 'texts' && { array: true }),
    },
    field,
  );

/** Makes a primary key that the database generates; with `BY DEFAULT`, an insert can set it. */
export const identity = (generatedIdentity: 'ALWAYS' | 'BY DEFAULT') =>
  new TableColumn<number, typeof id>({ type: 'bigint', generatedIdentity, primary: true }, id);

export type Columns = Readonly<Record<string, TableColumn<unknown, Field | undefined>>>;

type Declared = Readonly<Record<string, TableColumn<unknown, Field | undefined> | Field>>;

type Row<Of extends Declared> = { -readonly [Name in keyof Of]: Of[Name]['stored'] };

type FieldOf<Of> = Of extends Field
  ? Of
  : Of extends { readonly field: infer Inner extends Field }
    ? Inner
    : never;

type FieldsOf<Of> = {
  readonly [Name in keyof Of as [FieldOf<Of[Name]>] extends [never] ? never : Name]: FieldOf<Of[Name]>;
};

/** Makes a base class for an entity, with typed columns and fields. */
export function row<Of extends Declared>(
  declared: Of,
): (new () => Row<Of>) & { readonly columns: Columns; readonly fields: FieldsOf<Of> } {
  const columns: Columns = Object.fromEntries(
    Object.entries(declared).map(([name, of]) => [name, of instanceof Field ? stored(of) : of]),
  );
  class EntityRow {
    static readonly columns = columns;
    static readonly fields = Object.fromEntries(
      Object.entries(columns).flatMap(([name, { field }]) => (field ? [[name, field]] : [])),
    );
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
