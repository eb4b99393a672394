import { basename } from 'node:path';
import { plain, styled } from '../runtime/terminal.js';

export { plain };

type Cell = string | number | boolean | null | readonly string[];

/** Prints the result on stdout, as JSON or for people; the caller must clean untrusted text with {@link plain}. */
export function print(json: boolean | undefined, value: unknown, human: () => string): void {
  process.stdout.write(`${json ? formatJson(value, 2) : human()}\n`);
}

/** Formats as JSON. Escapes characters that control a terminal, since other people may have chosen the texts. */
export function formatJson(value: unknown, indent?: number): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, null, indent).replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, (character) =>
    character.split('').map(escaped).join(''),
  );
}

/** Adds the details of a new secret; returns the secret even if the details cannot be read. */
export async function withDetails<Secret extends object>(
  details: Promise<object | undefined>,
  secret: Secret,
): Promise<Secret> {
  return { ...(await details.catch(() => undefined)), ...secret };
}

/** Prints on stderr, apart from the result. */
export function note(text: string): void {
  process.stderr.write(`${asTyped(plain(text))}\n`);
}

/** Rewrites commands in a message to the form that works here: `pua` if it was started by this name without npx, else `npx pua`. */
export function asTyped(text: string): string {
  const isInstalled = process.env.npm_command !== 'exec' && basename(process.argv[1] ?? '') === 'pua';
  return text.replace(/(?<=^|`|\$ |\| |\$\()(npx )?pua(?= |$)/gm, isInstalled ? 'pua' : 'npx pua');
}

/**
 * Formats rows below a header. On a terminal, omits empty columns, and shortens times and texts that do not fit; if that is not enough,
 * writes each row as a block. @param nothing the result for no rows, on a terminal
 */
export function table<Row extends object>(
  rows: readonly Row[],
  columns: Record<string, (row: Row) => Cell>,
  nothing = 'none',
): string {
  const names = Object.keys(columns);
  const shown = rows.map((row) => Object.values(columns).map((cell) => show(cell(row))));
  const width = terminalWidth();
  if (width === undefined) return tabulated([names, ...shown]);
  if (rows.length === 0) return nothing;
  const filled = names.map((_, i) => shown.some((row) => row[i] !== EMPTY));
  const whole = [names, ...shown].map((row) => row.filter((_, i) => filled[i]));
  const short = whole.map((row) =>
    row.map((text) => text.replace(/^(\d{4}-\d\d-\d\d \d\d:\d\d):\d\d$/, '$1')),
  );
  if (lineWidth(widthsOf(whole)) <= width) return tabulated(whole);
  if (lineWidth(widthsOf(short)) <= width) return tabulated(short);
  const narrowed = width >= CUTTING_WIDTH ? widthsWithin(width, short) : [Infinity];
  return lineWidth(narrowed) <= width
    ? tabulated(short, narrowed)
    : shown.map((row) => block(names, row)).join('\n\n');
}

const tabulated = (rows: readonly (readonly string[])[], widths = widthsOf(rows)) =>
  grid(rows, (row) => row === 0, widths);

function block(names: readonly string[], row: readonly string[]): string {
  const lines = names.flatMap((name, i) => (row[i] === EMPTY ? [] : [[name, row[i]!]]));
  return grid(lines, (_, column) => column === 0, widthsOf(lines));
}

/** Makes columns that show fields unchanged, with their names as headers: LAST USED shows `last_used_at`. */
export function named<Name extends string>(
  ...names: readonly Name[]
): Record<string, (row: Readonly<Record<Name, Cell>>) => Cell> {
  const heading = (name: string) => name.replace(/_at$/, '').replaceAll('_', ' ').toUpperCase();
  return Object.fromEntries(names.map((name) => [heading(name), (row) => row[name]]));
}

/** Formats an object with one line per field. */
export function fields(thing: object): string {
  const rows = Object.entries(thing).map(([name, value]) => [name, show(value as Cell)]);
  return grid(rows, (_, column) => column === 0, widthsOf(rows));
}

/** Returns the status of a check, colored on a terminal. */
export function statusMark(status: 'ok' | 'warn' | 'fail'): string {
  return { ok: styled('green', 'ok  '), warn: styled('yellow', 'warn'), fail: styled('red', 'fail') }[status];
}

const GAP = '  ';
const EMPTY = '–';
/** Minimum width of a terminal, in characters, for cut texts. */
const CUTTING_WIDTH = 100;
/** Minimum width of a column of cut texts, including the `…`. */
const MIN_WIDTH = 12;
/** Ids, types, states and times: {@link table} does not cut columns of these, since a part of them is useless. */
const WORD = /^([^\s,]{1,40}|[\d-]{10} [\d:]{5,8})$/;

/** undefined without a terminal or a known width. */
const terminalWidth = () => (process.stdout.isTTY && process.stdout.columns) || undefined;

const widthsOf = (rows: readonly (readonly string[])[]) =>
  (rows[0] ?? []).map((_, i) => rows.reduce((widest, row) => Math.max(widest, widthOf(row[i]!)), 0));

const lineWidth = (widths: readonly number[]) =>
  widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length);

/** Returns column widths that fit the line if possible. Shrinks the widest columns of texts, but never the first column. */
function widthsWithin(most: number, [header = [], ...rows]: readonly (readonly string[])[]): number[] {
  const widths = widthsOf([header, ...rows]);
  const isText = header.map((_, i) => i > 0 && !rows.every((row) => WORD.test(row[i]!)));
  while (lineWidth(widths) > most) {
    const widest = Math.max(...widths.filter((_, i) => isText[i]));
    if (widest <= MIN_WIDTH) break;
    widths[widths.findIndex((width, i) => isText[i] && width === widest)]! -= 1;
  }
  return widths;
}

/** Common characters of double width. */
const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;

const widthOfCharacter = (character: string) =>
  /[\p{Mn}\p{Me}]/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1;

const widthOf = (text: string) =>
  [...text].reduce((width, character) => width + widthOfCharacter(character), 0);

function cut(line: string, most: number): string {
  if (widthOf(line) <= most) return line;
  let width = 1; // the width of the …
  let kept = '';
  for (const character of line) {
    width += widthOfCharacter(character);
    if (width > most) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Aligns texts that {@link show} has made safe. */
function grid(
  rows: readonly (readonly string[])[],
  isBold: (row: number, column: number) => boolean,
  widths: readonly number[],
): string {
  const line = (cells: readonly string[], row: number) =>
    cells.map((text, column) => {
      const shown = cut(text, widths[column]!);
      const space = ' '.repeat(widths[column]! - widthOf(shown));
      return (isBold(row, column) ? styled('bold', shown) : shown) + space;
    });
  return rows.map((cells, row) => line(cells, row).join(GAP).trimEnd()).join('\n');
}

function show(cell: Cell): string {
  if (cell === null || cell === '') return EMPTY;
  if (typeof cell === 'object') return cell.length === 0 ? EMPTY : show(cell.join(','));
  return typeof cell === 'string' ? plain(cell).replaceAll('\n', ' ') : String(cell);
}

/**
 * Formats rows one by one: as lines, cut to the terminal's width, or as blocks on a narrow terminal, without a header.
 * @param widths minimum widths of all columns except the last
 */
export function makeLines<Row>(columns: Record<string, (row: Row) => Cell>, widths: readonly number[]) {
  const names = Object.keys(columns);
  const isNarrow = () => (terminalWidth() ?? CUTTING_WIDTH) < CUTTING_WIDTH;
  const aligned = (cells: readonly string[]) => {
    const line = cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(GAP);
    return cut(line.trimEnd(), terminalWidth() ?? Infinity);
  };
  return {
    header: () => (isNarrow() ? undefined : aligned(names)),
    line: (row: Row) => {
      const cells = Object.values(columns).map((cell) => show(cell(row)));
      return isNarrow() ? `${block(names, cells)}\n` : aligned(cells);
    },
  };
}
