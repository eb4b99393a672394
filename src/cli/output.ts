import { styleText } from 'node:util';
import Table from 'cli-table3';

/** Colour only on a terminal, whatever CI or FORCE_COLOR says, and none where NO_COLOR says so. */
const style = (format: 'bold' | 'green' | 'yellow' | 'red', text: string) =>
  process.stdout.isTTY ? styleText(format, text, { stream: process.stdout }) : text;

type Cell = string | number | boolean | null | readonly string[];

/** The result, on stdout: as JSON, or as people read it; what others chose in it goes through {@link plain}. */
export function print(json: boolean | undefined, value: unknown, human: () => string): void {
  process.stdout.write(`${json ? JSON.stringify(value, null, 2) : human()}\n`);
}

/** What is no result, on stderr. */
export function note(text: string): void {
  process.stderr.write(`${plain(text)}\n`);
}

/** Rows under a head, without lines, so that `cut` and `awk` can take them apart. */
export function table<Row extends object>(
  rows: readonly Row[],
  columns: Record<string, (row: Row) => Cell>,
): string {
  return grid(
    rows.map((row) => Object.values(columns).map((cell) => show(cell(row)))),
    Object.keys(columns).map((name) => style('bold', name)),
  );
}

/** One thing, a line for each of its fields. */
export function fields(thing: object): string {
  return grid(Object.entries(thing).map(([name, value]) => [style('bold', name), show(value as Cell)]));
}

export function statusMark(status: 'ok' | 'warn' | 'fail'): string {
  return { ok: style('green', 'ok  '), warn: style('yellow', 'warn'), fail: style('red', 'fail') }[status];
}

/** Without control characters: a name must not be able to steer the terminal of who lists it. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (character) => (character === '\n' ? character : '\u{fffd}'));
}

/** Aligns texts that are fit to be shown: see {@link show}. */
function grid(rows: readonly string[][], head: string[] = []): string {
  const none = Object.fromEntries(
    [
      'top',
      'top-mid',
      'top-left',
      'top-right',
      'bottom',
      'bottom-mid',
      'bottom-left',
      'bottom-right',
      'left',
      'left-mid',
      'mid',
      'mid-mid',
      'right',
      'right-mid',
    ].map((name) => [name, '']),
  );
  const grid = new Table({
    head,
    chars: { ...none, middle: '  ' },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
  });
  grid.push(...rows);
  return grid
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

function show(cell: Cell): string {
  if (cell === null || cell === '') return '–';
  if (typeof cell === 'object') return cell.length === 0 ? '–' : show(cell.join(','));
  return typeof cell === 'string' ? plain(cell).replaceAll('\n', ' ') : String(cell);
}

/** One line whose cells have these widths at least; the last one has none. */
export function columns(cells: readonly Cell[], widths: readonly number[]): string {
  return cells
    .map((cell, i) => show(cell).padEnd(widths[i] ?? 0))
    .join('  ')
    .trimEnd();
}
