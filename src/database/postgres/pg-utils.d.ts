/** pg writes a statement's values with this; its types say nothing of it. A number, a boolean or an object becomes text, a Buffer stays. */
declare module 'pg/lib/utils.js' {
  export function prepareValue(value: unknown): string | Buffer | null;
}
