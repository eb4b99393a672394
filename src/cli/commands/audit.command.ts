import { InvalidArgumentError, Option, type Command } from '@commander-js/extra-typings';
import { UsersService } from '../../accounts/users.service.js';
import { AUTH_EVENTS, recordAlone } from '../../audit/audit.js';
import { AuditLog, type AuditFilter, type AuditEvent } from '../../audit/audit-log.js';
import { deleteExpired, expiredRows } from '../../operations/sweeper/sweeper.js';
import { durationBetween, parseDuration, parseKeyId } from '../arguments.js';
import { addTo, withExample, endable } from '../command.js';
import { formatJson, makeLines, named, note, table } from '../output.js';

/** Maximum number of events without `--follow`, since they must fit into memory. */
const MOST = 1000;
const LONGEST = '36500d';
const FOLLOW_MS = 500;

const TYPES = Object.keys(AUTH_EVENTS);
const OBJECTS = [...new Set(TYPES.map((type) => type.split('.')[0]!))];

const COLUMNS: Record<string, (line: AuditEvent) => string | number | null> = {
  'TIME (UTC)': (line) => line.occurred_at,
  ...named('type', 'actor'),
  USER: (line) => line.user_id,
  'KEY OR CLIENT': (line) => line.key_id ?? line.client_id,
  ...named('ip', 'error_id'),
  DETAILS: (line) => JSON.stringify(line.details),
};
/** Minimum widths in characters, since `--follow` prints events one by one. */
const LINES = makeLines(COLUMNS, [19, 24, 6, 10, 36, 15, 36]);

/** Adds `pua audit`. */
export function auditCommand(command: Command): void {
  const audit = withExample(command, 'pua audit --user ada --since 7d --type key.revoked')
    .enablePositionalOptions()
    .option('--user <id|username>', 'only events that concern this member')
    .option('--client <id>', 'only events that concern this app')
    .option('--key <id>', 'only events that concern this API key', parseKeyId)
    .option('--error-id <id>', 'only the rejection with this id, also of an unknown app')
    .option(
      '--since <duration>',
      'maximum age (default 24h; with --error-id, unlimited)',
      durationBetween('1s', LONGEST),
    )
    .addOption(
      new Option(
        '--type <type>',
        'only this type, such as key.created, or all types of one object, such as key',
      )
        .choices([...TYPES, ...OBJECTS])
        .argParser(parseType),
    )
    .option('--follow', 'also print new events, newest last, until Ctrl-C; with --json, one object per line')
    .runs(async ({ get, print }, { user, client, key, errorId, since, type, follow, json }) => {
      const filter: AuditFilter = {
        userId: user === undefined ? undefined : (await get(UsersService).find(user)).id,
        clientId: client,
        keyId: key,
        errorId,
        type,
        sinceSeconds: since ?? (errorId === undefined ? parseDuration('24h') : undefined),
      };
      const auditLog = get(AuditLog);
      if (follow)
        return endable(async (ended) => {
          const header = json ? undefined : LINES.header();
          if (header !== undefined) note(header);
          for await (const event of auditLog.follow(filter, ended, FOLLOW_MS))
            process.stdout.write(`${json ? formatJson(event) : LINES.line(event)}\n`);
        });
      const found = await auditLog.find(filter, MOST + 1);
      const truncated = found.length > MOST;
      print({ data: found.slice(0, MOST), truncated }, ({ data }) => table(data, COLUMNS));
      if (truncated)
        note('There are more events: narrow the result down with --since, --user, --client, --key or --type');
    });

  addTo(audit)(
    'prune',
    'Delete old events; the database keeps events of the last 7 days',
    'pua audit prune --before 90d',
  )
    .requiredOption(
      '--before <duration>',
      'delete events older than this, at least 7d',
      durationBetween('7d', LONGEST),
    )
    .runs(async ({ dataSource, print }, { before }) => {
      await recordAlone((text, values) => dataSource.query(text, values), {
        type: 'audit.pruned',
        actor: 'admin',
        details: { older_than_seconds: before },
      });
      const rows = expiredRows({ auditRetentionSeconds: before, changesRetentionSeconds: 0 });
      const expired = rows.find(({ table }) => table === 'auth_events')!;
      const deleted = await deleteExpired(dataSource, expired);
      print({ deleted }, () => `${deleted} events deleted`);
    });
}

function parseType(text: string): string {
  if (TYPES.includes(text) || OBJECTS.includes(text)) return text;
  throw new InvalidArgumentError(
    `There is no type ${text}. The types are: ${TYPES.join(', ')}; for all types of one object: ${OBJECTS.join(', ')}.`,
  );
}
