import type { Command } from '@commander-js/extra-typings';
import { lastMigrations, migrate, rollback } from '../../database/schema/migrate.js';
import { planMigrations, type PlannedStep } from '../../database/schema/plan.js';
import { readSchema } from '../../database/schema/schema.js';
import { addTo } from '../command.js';
import { note, table } from '../output.js';

/** Adds `pua db` and its commands. */
export function dbCommands(group: Command): void {
  const inGroup = addTo(group);
  const add = (...command: [string, string, string]) => inGroup(...command, 'anything');

  add('migrate', 'Run pending migrations', 'pua db migrate')
    .option('--plan', 'show which tables each migration would lock and the estimated time, and run none')
    .runs(async ({ dataSource, print }, { json, plan: isPlanned }) => {
      if (isPlanned) {
        const plan = await planMigrations(dataSource);
        if (plan.length === 0) note('Nothing is pending');
        if (json || plan.length > 0) print({ plan }, () => plan.map(planned).join('\n'));
        return;
      }
      const report = (number: number, total: number, name: string) => note(`${number} of ${total}: ${name}`);
      const applied = await migrate(dataSource, report);
      if (applied.length === 0) note('Nothing was pending');
      if (json || applied.length > 0) print({ applied }, () => applied.join('\n'));
    });

  add('status', 'Show applied and pending migrations', 'pua db status').runs(
    async ({ dataSource, print }) => {
      const status = await readSchema(dataSource);
      const { applied, pending, unknown } = status;
      const byState = { applied: applied.filter((name) => !unknown.includes(name)), pending, unknown };
      const rows = Object.entries(byState).flatMap(([state, names]) =>
        names.map((name) => ({ state, name })),
      );
      print(status, () => table(rows, { STATE: ({ state }) => state, MIGRATION: ({ name }) => name }));
      if (status.pending.length > 0) note('Run `pua db migrate` to apply the pending migrations');
    },
  );

  add(
    'rollback',
    'Undo the most recent migration. The data in dropped tables and columns is lost',
    'pua db rollback --yes',
  )
    .option('--to <migration>', 'undo all migrations after this one')
    .option('--yes', 'skip the confirmation')
    .runs(async ({ dataSource, print, confirm }, { json, to }) => {
      const last = await lastMigrations(dataSource, to);
      if (last.length === 0) note(to === undefined ? 'No migration has run' : `Nothing has run after ${to}`);
      else await confirm(last.map(asked).join('\n'));
      const undone: string[] = [];
      for (const { name } of last) if (await rollback(dataSource, name)) undone.push(name);
      if (json || undone.length > 0)
        print({ undone: to === undefined ? (undone[0] ?? null) : undone }, () => undone.join('\n'));
    });
}

const asked = ({ name, undoing, losing }: Awaited<ReturnType<typeof lastMigrations>>[number]) =>
  `These statements would undo ${name}. ` +
  `${losing.length === 0 ? 'They drop no table or column' : `The data in ${losing.join(', ')} would be lost`}:\n\n${undoing}\n`;

function planned({ migration, step, locks, seconds, work }: PlannedStep): string {
  const waiting = (['readers and writers', 'writers'] as const).flatMap((who) => {
    const tables = Object.keys(locks).filter((name) => locks[name] === who);
    return tables.length === 0 ? [] : [`${who} of ${tables.join(', ')} wait`];
  });
  const title = `${migration}${step === null ? '' : `, step ${step}`}: about ${seconds} s`;
  return [title, ...(waiting.length === 0 ? ['nobody waits'] : waiting), ...work].join('\n  ');
}
