import type { Command } from '@commander-js/extra-typings';
import { lastMigration, migrate, rollback } from '../../database/schema/migrate.js';
import { readSchema } from '../../database/schema/schema.js';
import { addTo } from '../command.js';
import { note, table } from '../output.js';

/** Adds `pua db` and what it holds. */
export function dbCommands(group: Command): void {
  const inGroup = addTo(group);
  const add = (...command: [string, string, string]) => inGroup(...command, 'anything');

  add('migrate', 'Run pending migrations', 'pua db migrate').runs(async ({ dataSource, print }, { json }) => {
    const applied = await migrate(dataSource);
    if (applied.length === 0) note('Nothing was pending');
    if (json || applied.length > 0) print({ applied }, () => applied.join('\n'));
  });

  add('status', 'Show which migrations have run', 'pua db status').runs(async ({ dataSource, print }) => {
    const status = await readSchema(dataSource);
    const rows = (['applied', 'pending', 'unknown'] as const).flatMap((state) =>
      status[state].map((name) => ({ state, name })),
    );
    print(status, () => table(rows, { STATE: ({ state }) => state, MIGRATION: ({ name }) => name }));
    if (status.pending.length > 0) note('Run `pua db migrate` to apply the pending migrations');
  });

  add(
    'rollback',
    'Undo the most recent migration, and lose the data in what it drops',
    'pua db rollback --yes',
  )
    .option('--yes', 'skip the confirmation')
    .runs(async ({ dataSource, print, confirm }, { json }) => {
      const last = await lastMigration(dataSource);
      if (last)
        await confirm(
          `${last.name} would be undone by the following, and the data in what that drops would be lost:\n\n${last.undoing}\n`,
        );
      const undone = await rollback(dataSource);
      if (undone === undefined) note('No migration has run');
      if (json || undone !== undefined) print({ undone: undone ?? null }, () => undone!);
    });
}
