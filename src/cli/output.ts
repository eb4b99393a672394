import { basename } from 'node:path';
import { plain, styled } from '../runtime/terminal.js';

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

/**
 * Formats rows below a header, without rules, so that `cut` and `awk` can split them. On a terminal, columns that say nothing are left
 * out; what does not fit has its times without seconds, then other texts cut, but words (ids, types) never. Below
 * {@link CUTTING_WIDTH} columns, or where that does not suffice, each row is a block, one line per field.
 *
 * @param nothing what a terminal shows in place of no rows
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

/** Formats a row by itself, one line per field that says something. */
function block(names: readonly string[], row: readonly string[]): string {
  const lines = names.flatMap((name, i) => (row[i] === EMPTY ? [] : [[name, row[i]!]]));
  return grid(lines, (_, column) => column === 0, widthsOf(lines));
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
  return grid(rows, (_, column) => column === 0, widthsOf(rows));
}

/** Returns the word in front of a check, coloured on a terminal. */
export function statusMark(status: 'ok' | 'warn' | 'fail'): string {
  return { ok: styled('green', 'ok  '), warn: styled('yellow', 'warn'), fail: styled('red', 'fail') }[status];
}

const GAP = '  ';
/** What shows that there is nothing. */
const EMPTY = '–';
/** A terminal with so many columns has room for a table of which some texts are cut; a narrower one would show too little of them. */
const CUTTING_WIDTH = 100;
/** The fewest characters to which a text is cut, including the …. */
const LEAST_WIDTH = 12;
/** Ids, types, states and times: what is copied, or means nothing in part. */
const WORD = /^([^\s,]{1,40}|[\d-]{10} [\d:]{5,8})$/;

/** The columns of the terminal; undefined elsewhere, and where nobody knows. */
const terminalWidth = () => (process.stdout.isTTY && process.stdout.columns) || undefined;

const widthsOf = (rows: readonly (readonly string[])[]) =>
  (rows[0] ?? []).map((_, i) => rows.reduce((widest, row) => Math.max(widest, widthOf(row[i]!)), 0));

/** What a line of columns of these widths takes. */
const lineWidth = (widths: readonly number[]) =>
  widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length);

/** Column widths with which a line fits, or as narrow as may be: the widest texts shrink, never the first column, which names the row. */
function widthsWithin(most: number, [header = [], ...rows]: readonly (readonly string[])[]): number[] {
  const widths = widthsOf([header, ...rows]);
  const isText = header.map((_, i) => i > 0 && !rows.every((row) => WORD.test(row[i]!)));
  while (lineWidth(widths) > most) {
    const widest = Math.max(...widths.filter((_, i) => isText[i]));
    if (widest <= LEAST_WIDTH) break;
    widths[widths.findIndex((width, i) => isText[i] && width === widest)]! -= 1;
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
  if (cell === null || cell === '') return EMPTY;
  if (typeof cell === 'object') return cell.length === 0 ? EMPTY : show(cell.join(','));
  return typeof cell === 'string' ? plain(cell).replaceAll('\n', ' ') : String(cell);
}

/** Prints rows one by one below a header, in lines that are cut to the terminal; a narrow one gets each as a block. */
export class Lines<Row> {
  readonly #names: readonly string[];

  /** @param widths at least, of all columns but the last */
  constructor(
    private readonly columns: Record<string, (row: Row) => Cell>,
    private readonly widths: readonly number[],
  ) {
    this.#names = Object.keys(columns);
  }

  /** undefined where blocks need none. */
  get header(): string | undefined {
    return this.#isNarrow ? undefined : this.#line(this.#names);
  }

  line(row: Row): string {
    const cells = Object.values(this.columns).map((cell) => show(cell(row)));
    return this.#isNarrow ? `${block(this.#names, cells)}\n` : this.#line(cells);
  }

  get #isNarrow(): boolean {
    return (terminalWidth() ?? CUTTING_WIDTH) < CUTTING_WIDTH;
  }

  #line(cells: readonly string[]): string {
    const line = cells.map((cell, i) => cell.padEnd(this.widths[i] ?? 0)).join(GAP);
    return cut(line.trimEnd(), terminalWidth() ?? Infinity);
  }
}
