/** pg serializes values with this untyped function. Numbers, booleans and objects become text; a Buffer stays. */
declare module 'pg/lib/utils.js' {
  export function prepareValue(value: unknown): string | Buffer | null;
}
