/** pg serializes values with this untyped function: numbers, booleans and objects to text; a Buffer is unchanged. */
declare module 'pg/lib/utils.js' {
  export function prepareValue(value: unknown): string | Buffer | null;
}
