/** Converts a statement's value for PostgreSQL; pg has no types for this function. */
declare module 'pg/lib/utils.js' {
  export function prepareValue(value: unknown): string | Buffer | null;
}
