import { basename } from 'node:path';
import { plain, styled } from '../http/terminal.js';

export { plain };

type Cell = string | number | boolean | null | readonly string[];

/** Prints the result on stdout: as JSON, or in a form for people, in which text chosen by others goes through {@link plain}. */
export function print(json: boolean | undefined, value: unknown, human: () => string): void {
  process.stdout.write(`${json ? jsonOf(value, 2) : human()}\n`);
}

/** Writes JSON in which, as in {@link plain}, no text that somebody else chose controls the terminal: such characters are escaped. */
export function jsonOf(value: unknown, indent?: number): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, null, indent).replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, (character) =>
    character.split('').map(escaped).join(''),
  );
}

/** Adds the details of what a secret was made for: it is shown only now, so also where they cannot be read any more. */
export async function withDetails<Secret extends object>(
  details: Promise<object | undefined>,
  secret: Secret,
): Promise<Secret> {
  return { ...(await details.catch(() => undefined)), ...secret };
}

/** Prints what is not the result, on stderr. */
export function note(text: string): void {
  process.stderr.write(`${asTyped(plain(text))}\n`);
}

/** Rewrites commands in a message as they work where this one was typed: `pua` in the image or after `npm link`, else `npx pua`. */
export function asTyped(text: string): string {
  const isInstalled = process.env.npm_command !== 'exec' && basename(process.argv[1] ?? '') === 'pua';
  return text.replace(/(?<=^|`|\$ |\| |\$\()(npx )?pua(?= |$)/gm, isInstalled ? 'pua' : 'npx pua');
}

/** Formats rows below a header, without rules, so that `cut` and `awk` can split them. */
export function table<Row extends object>(
  rows: readonly Row[],
  columns: Record<string, (row: Row) => Cell>,
): string {
  const names = Object.keys(columns);
  const shown = rows.map((row) => Object.values(columns).map((cell) => show(cell(row))));
  const all = [names, ...shown];
  return grid(all, (row) => row === 0, widthsWithin(terminalWidth(), all));
}

/** Columns of a table that show fields of the rows as they are, each below its name: LAST USED shows `last_used_at`. */
export function named<Name extends string>(
  ...names: readonly Name[]
): Record<string, (row: Readonly<Record<Name, Cell>>) => Cell> {
  const heading = (name: string) => name.replace(/_at$/, '').replaceAll('_', ' ').toUpperCase();
  return Object.fromEntries(names.map((name) => [heading(name), (row) => row[name]]));
}

/** Formats an object, one line per field. */
export function fields(thing: object): string {
  const rows = Object.entries(thing).map(([name, value]) => [name, show(value as Cell)]);
  return grid(rows, (_, column) => column === 0, widthsWithin(Infinity, rows));
}

/** Returns the word in front of a check, coloured on a terminal. */
export function statusMark(status: 'ok' | 'warn' | 'fail'): string {
  return { ok: styled('green', 'ok  '), warn: styled('yellow', 'warn'), fail: styled('red', 'fail') }[status];
}

const GAP = '  ';
/** The fewest characters to which a cell is cut, including the …. */
const LEAST_WIDTH = 4;

/** The columns of the terminal; unlimited elsewhere. */
const terminalWidth = () => (process.stdout.isTTY && process.stdout.columns) || Infinity;

/** Column widths with which a line fits: the widest shrink, never the first, which names the row. */
function widthsWithin(most: number, rows: readonly (readonly string[])[]): number[] {
  const widths = (rows[0] ?? []).map((_, i) =>
    rows.reduce((widest, row) => Math.max(widest, widthOf(row[i]!)), 0),
  );
  let excess = widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length) - most;
  for (; excess > 0; excess--) {
    const widest = widths.indexOf(Math.max(...widths.slice(1)), 1);
    if (widest === -1 || widths[widest]! <= LEAST_WIDTH) break; // so narrow a terminal wraps
    widths[widest]! -= 1;
  }
  return widths;
}

/** Characters that take two columns of a terminal, as far as they occur in names. */
const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;

const widthOfCharacter = (character: string) =>
  /[\p{Mn}\p{Me}]/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1;

/** How many columns of the terminal a text takes. */
const widthOf = (text: string) =>
  [...text].reduce((width, character) => width + widthOfCharacter(character), 0);

/** Cuts a line so that it takes at most so many columns. */
function cut(line: string, most: number): string {
  if (widthOf(line) <= most) return line;
  let width = 1; // the …
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
  if (cell === null || cell === '') return '–';
  if (typeof cell === 'object') return cell.length === 0 ? '–' : show(cell.join(','));
  return typeof cell === 'string' ? plain(cell).replaceAll('\n', ' ') : String(cell);
}

/** Formats one line whose cells have at least these widths; the last one has none. It is cut to the terminal. */
export function columns(cells: readonly Cell[], widths: readonly number[]): string {
  return cut(
    cells
      .map((cell, i) => show(cell).padEnd(widths[i] ?? 0))
      .join(GAP)
      .trimEnd(),
    terminalWidth(),
  );
}
