import { InvalidArgumentError, Option, type Command } from '@commander-js/extra-typings';
import { UsersService } from '../../accounts/users.service.js';
import type { Config } from '../../config/config.js';
import { OperatorError } from '../../values/operator-error.js';
import {
  importRecords,
  type ImportOptions,
  type ImportProgress,
  type ImportReport,
} from '../../import/import-records.js';
import { folderSource, streamSource } from '../../import/sources.js';
import { withExample, endable } from '../command.js';
import { onDatabase } from '../database.js';
import { named, note, print, table } from '../output.js';

/** Adds `pua import`. */
export function importCommand(command: Command): void {
  withExample(command, 'pua import ./export --skip-invalid rejects.ndjson')
    .argument(
      '<folder>',
      'folder of .ndjson or .ndjson.gz files, or "-" for lines {"type", "op", "record"} from stdin',
    )
    .option('--dry-run', 'check all lines, also against the database, and change nothing')
    .option(
      '--skip-invalid <file>',
      'write bad lines to this file and import the others (default: one bad line stops the import)',
    )
    .addOption(
      new Option('--batch <n>', 'commit batches of at most n lines, instead of all or nothing')
        .argParser(parseBatch)
        .conflicts('dryRun'),
    )
    .option('--keep-profile', 'keep profile fields that members have set through the API')
    .action(async (folder, { json, skipInvalid: rejectsFile, dryRun = false, batch, keepProfile }) => {
      const report = await run(folder, { dryRun, rejectsFile, batch, keepProfile });
      for (const name of report.ignored) note(`${name} was ignored: it is not an import file`);
      if (report.rejected > 0 && rejectsFile === undefined) throw badLines(report);
      const { imported, seconds, rejected, files, committed_through } = report;
      const shown = { imported, dry_run: dryRun, seconds, rejected, files, committed_through };
      print(json, shown, () => summary(report));
      if (rejected > 0) note(`${rejected} bad lines are in ${rejectsFile}, each with its reason`);
      if (dryRun) note('This was a dry run: nothing was changed');
      if (!json && report.signIn !== undefined) note(report.signIn);
    });
}

async function run(folder: string, options: ImportOptions) {
  const source = folder === '-' ? streamSource(process.stdin) : folderSource(folder);
  const bar = source.bytes > 0 ? progressBar(source.bytes) : undefined;
  const started = performance.now();
  try {
    const report = await endable((signal) =>
      onDatabase(async ({ dataSource, config, get }) => {
        const report = await importRecords(dataSource, source, { ...options, signal, progress: bar?.draw });
        const isDue = report.imported && (report.files.users?.inserted ?? 0) > 0;
        return { ...report, signIn: isDue ? await describeSignIn(config, get(UsersService)) : undefined };
      }),
    );
    return { ...report, seconds: Math.round((performance.now() - started) / 100) / 10 };
  } finally {
    bar?.end();
  }
}

/** Describes how members can sign in, or how many cannot. */
async function describeSignIn({ upstream, localSignIn }: Config, users: UsersService): Promise<string> {
  if (upstream) {
    const orHere = localSignIn ? ', or here with their password or passkey' : '';
    return `Members sign in at ${upstream.issuer}${orHere}. Its claim ${upstream.claim} must equal their ${upstream.match}`;
  }
  const count = await users.countWithoutSignIn();
  if (count === 0) return 'Members sign in with their password or passkey';
  return (
    `${count} enabled members cannot sign in, because they have neither a password nor a passkey: ` +
    'import their password_hash, use `pua users set-password`, or connect an external identity provider (docs/operators/sign-in.md)'
  );
}

function parseBatch(text: string): number {
  const lines = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (lines < 1 || lines > 1_000_000) throw new InvalidArgumentError('It must be from 1 to 1000000.');
  return lines;
}

function summary({ files }: ImportReport): string {
  const rows = Object.entries(files).map(([file, counts]) => ({ file, ...counts }));
  return table(rows, named('file', 'read', 'inserted', 'updated', 'deleted', 'unchanged', 'rejected'));
}

function badLines({ rejected, firstRejects, committed_through }: ImportReport): OperatorError {
  const shown = firstRejects.map(({ file, line, reason }) => `${file}:${line}: ${reason}`);
  const count = rejected === 1 ? '1 bad line' : `${rejected} bad lines`;
  const first = rejected > shown.length ? ` (the first ${shown.length} are above)` : '';
  const done = committed_through
    ? `everything up to line ${committed_through.line} of ${committed_through.file} is imported, and nothing after it`
    : 'nothing was imported';
  return new OperatorError(
    `${shown.join('\n')}\n${count}${first}: ${done}. Correct the bad lines, or import the rest with --skip-invalid <file>`,
  );
}

const BAR_COLUMNS = 40;
const DRAW_MS = 100;
const HIDE_CURSOR = '\x1b[?25l\x1b[?7l'; // also disables line wrapping
const SHOW_CURSOR = '\x1b[G\x1b[K\x1b[?7h\x1b[?25h';
const CLEAR_REST = '\x1b[K';

/** Shows the progress of an import. @param total bytes to read @returns undefined if stderr is not a terminal */
function progressBar(total: number): { draw(now: ImportProgress): void; end(): void } | undefined {
  const { stderr } = process;
  if (!stderr.isTTY) return undefined;
  let share = 0;
  let drawnAt = -Infinity;
  const began = performance.now();
  const write = (what: string) => {
    const bar = '█'.repeat(share * BAR_COLUMNS).padEnd(BAR_COLUMNS, '░');
    stderr.write(`\x1b[G${bar} ${Math.floor(share * 100)} % ${what}${CLEAR_REST}`);
  };
  stderr.write(HIDE_CURSOR);
  write('reading');
  const draw = (now: ImportProgress) => {
    if ('phase' in now) return write(now.phase);
    const { file, bytes, records } = now;
    share = Math.min(1, bytes / total);
    if (performance.now() - drawnAt < DRAW_MS) return;
    drawnAt = performance.now();
    const seconds = (performance.now() - began) / 1000;
    const rate = Math.round(records / seconds).toLocaleString('en');
    const left = Math.ceil(((total - bytes) * seconds) / Math.max(bytes, 1));
    write(`${file}, ${rate} records/s, ${left > 90 ? `${Math.ceil(left / 60)} min` : `${left} s`} left`);
  };
  return { draw, end: () => stderr.write(SHOW_CURSOR) };
}
