import type { Length } from '../values/vocabulary.js';

export type FieldType =
  | { readonly kind: 'id' | 'boolean' | 'timestamp' | 'texts' }
  | { readonly kind: 'integer' | 'number'; readonly minimum: number; readonly maximum: number }
  | { readonly kind: 'enum'; readonly words: readonly string[] }
  | { readonly kind: 'text'; readonly length?: Length; readonly pattern?: string };

/** A table's field in the API or import: its type, whether it can be null, and its description. */
export class Field<Value = unknown, Stored = Value> {
  declare readonly value: Value;
  declare readonly stored: Stored;

  constructor(
    readonly type: FieldType,
    readonly isNullable = false,
    readonly description?: string,
  ) {}

  get nullable(): Field<Value | null, Stored | null> {
    return new Field(this.type, true, this.description);
  }

  about(description: string): Field<Value, Stored> {
    return new Field(this.type, this.isNullable, description);
  }
}

export const id = new Field<number>({ kind: 'id' });
export const boolean = new Field<boolean>({ kind: 'boolean' });
export const timestamp = new Field<string, Date>({ kind: 'timestamp' });
export const texts = new Field<string[]>({ kind: 'texts' });

/** Declares an integer with bounds; default `maximum`: that of SQL's integer. */
export const integer = (minimum: number, maximum = 2 ** 31 - 1) =>
  new Field<number>({ kind: 'integer', minimum, maximum });

/** Declares a number from −`maximum` to `maximum`. */
export const number = (maximum: number) => new Field<number>({ kind: 'number', minimum: -maximum, maximum });

/** Declares a text. @param length minimum and maximum, in code points */
export const text = (length?: Length, pattern?: string) =>
  new Field<string>({ kind: 'text', ...(length && { length }), ...(pattern !== undefined && { pattern }) });

/** Declares a text that is one of these values. */
export const enumOf = <Word extends string>(words: readonly Word[]) =>
  new Field<Word>({ kind: 'enum', words });
