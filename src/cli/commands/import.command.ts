import { SingleBar } from 'cli-progress';
import type { Command } from 'commander';
import { Refusal } from '../../database/refusal.js';
import { importFolder } from '../../operations/import/import.service.js';
import type { ImportProgress, ImportReport } from '../../operations/import/import.service.js';
import { addCommand } from '../command.js';
import { withDatabase } from '../database.js';
import { note, print, table } from '../output.js';

interface Options {
  dryRun?: boolean;
  skipInvalid?: string;
  json?: boolean;
}

export function importCommand(program: Command): void {
  addCommand(
    program,
    'import',
    'Bring in the platform’s data: users, events, participants, connections, achievements, user_achievements',
    'pua import ./export --skip-invalid rejects.ndjson',
  )
    .argument('<folder>', 'where the files are: NDJSON, each .ndjson or .ndjson.gz')
    .option('--dry-run', 'check everything, against the database too, and change nothing')
    .option(
      '--skip-invalid <file>',
      'import all but the bad lines, which go to this file; without it one bad line stops everything',
    )
    .action(async (folder: string, { dryRun, skipInvalid, json }: Options) => {
      const bar = progressBar();
      const started = performance.now();
      let report: ImportReport;
      try {
        report = await withDatabase(({ dataSource }) =>
          importFolder(dataSource, folder, { dryRun, rejectsFile: skipInvalid, progress: bar?.progress }),
        );
      } finally {
        bar?.end();
      }
      const seconds = Math.round((performance.now() - started) / 100) / 10;
      for (const name of report.ignored) note(`${name}: is no file of an import; it was not read`);
      if (report.rejected > 0 && skipInvalid === undefined) throw badLines(report);
      const { imported, files, rejected } = report;
      print(json, { imported, dry_run: dryRun ?? false, seconds, rejected, files }, () => summary(report));
      if (rejected > 0) note(`${rejected} bad lines stand in ${skipInvalid}, each with its reason`);
      if (dryRun) note('This was a dry run: nothing was changed');
    });
}

function summary({ files }: ImportReport): string {
  return table(
    Object.entries(files).map(([file, report]) => ({ file, ...report })),
    {
      FILE: ({ file }) => file,
      READ: ({ read }) => read,
      INSERTED: ({ inserted }) => inserted,
      UPDATED: ({ updated }) => updated,
      UNCHANGED: ({ unchanged }) => unchanged,
      REJECTED: ({ rejected }) => rejected,
    },
  );
}

function badLines({ rejected, firstRejects }: ImportReport): Refusal {
  const shown = firstRejects.map(({ file, line, reason }) => `${file}:${line}: ${reason}`);
  const count = rejected === 1 ? '1 bad line' : `${rejected} bad lines`;
  const first = rejected > shown.length ? ` (the first ${shown.length} are above)` : '';
  return new Refusal(
    `${shown.join('\n')}\n${count}${first}: nothing was imported. Correct them, or import the rest with --skip-invalid <file>`,
  );
}

/** On a terminal only. */
function progressBar(): { progress: ImportProgress; end(): void } | undefined {
  if (!process.stderr.isTTY) return undefined;
  const bar = new SingleBar({
    format: '{bar} {percentage} % {phase}',
    stream: process.stderr,
    clearOnComplete: true,
    hideCursor: true,
  });
  const progress: ImportProgress = {
    begin: (bytes) => bar.start(bytes, 0, { phase: 'reading' }),
    read: (bytes) => bar.increment(bytes),
    phase: (phase) => bar.update({ phase }),
  };
  return { progress, end: () => bar.stop() };
}
