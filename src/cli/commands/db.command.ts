import type { Command } from 'commander';
import { lastMigration, migrate, rollback } from '../../database/migrate.js';
import { readSchema } from '../../database/schema.js';
import { addCommand, addGroup } from '../command.js';
import { confirm } from '../confirm.js';
import { withAnyDatabase } from '../database.js';
import { note, print, table } from '../output.js';

/** Adds `pua db` and what it holds. */
export function dbCommands(program: Command): void {
  const db = addGroup(program, 'db', 'The database’s schema');

  addCommand(db, 'migrate', 'Run the migrations that are pending', 'pua db migrate').action(
    async ({ json }: { json?: boolean }) => {
      const applied = await withAnyDatabase(({ dataSource }) => migrate(dataSource));
      if (applied.length === 0) note('Nothing was pending');
      if (json || applied.length > 0) print(json, { applied }, () => applied.join('\n'));
    },
  );

  addCommand(db, 'status', 'Show which migrations have run', 'pua db status').action(
    async ({ json }: { json?: boolean }) => {
      const status = await withAnyDatabase(({ dataSource }) => readSchema(dataSource));
      const rows = (['applied', 'pending', 'unknown'] as const).flatMap((state) =>
        status[state].map((name) => ({ state, name })),
      );
      print(json, status, () => table(rows, { STATE: ({ state }) => state, MIGRATION: ({ name }) => name }));
      if (status.pending.length > 0) note('Run `pua db migrate` to apply what is pending');
    },
  );

  addCommand(
    db,
    'rollback',
    'Undo the migration that ran last, and lose the data that it holds',
    'pua db rollback --yes',
  )
    .option('--yes', 'do it without asking')
    .action(async (options: { yes?: boolean; json?: boolean }, command: Command) => {
      const undone = await withAnyDatabase(async ({ dataSource }) => {
        const last = await lastMigration(dataSource);
        if (last)
          await confirm(
            command,
            options,
            `${last.name} would be undone by the following, and what that drops is lost:\n\n${last.undoing}\n`,
          );
        return rollback(dataSource);
      });
      if (undone === undefined) note('No migration has run');
      if (options.json || undone !== undefined)
        print(options.json, { undone: undone ?? null }, () => undone!);
    });
}
