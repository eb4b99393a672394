import { Option } from 'commander';
import type { Command } from 'commander';
import type { DataSource } from 'typeorm';
import { UsersService } from '../../accounts/users.service.js';
import { durationBetween } from '../arguments.js';
import { addCommand } from '../command.js';
import { withDatabase } from '../database.js';
import { note, print, table } from '../output.js';

/** More than this nobody reads, and it would have to fit into memory. */
const MOST = 1000;

interface Filter {
  readonly userId: number | undefined;
  readonly sinceSeconds: number;
  readonly type: string | undefined;
}

interface AuditLine {
  readonly id: number;
  readonly occurred_at: string;
  readonly type: string;
  readonly actor: string;
  readonly user_id: number | null;
  readonly client_id: string | null;
  readonly key_id: string | null;
  readonly ip: string | null;
  readonly error_id: string | null;
  readonly details: Record<string, unknown>;
}

export function auditCommand(program: Command): void {
  addCommand(
    program,
    'audit',
    `Show who did what, the newest first, at most ${MOST} lines`,
    'pua audit --user ada --since 7d --type key.revoked',
  )
    .option('--user <id|username>', 'only what concerns this member')
    .addOption(
      new Option('--since <duration>', 'how far back: number and s, m, h or d')
        .argParser(durationBetween(1, 36_500 * 86_400))
        .default(86_400, '24h'),
    )
    .option('--type <type>', 'only this type, such as key.created, or all of one object: key')
    .action(async (options: { user?: string; since: number; type?: string; json?: boolean }) => {
      const lines = await withDatabase(async ({ dataSource }) => {
        const { user } = options;
        const userId = user === undefined ? undefined : (await new UsersService(dataSource).find(user)).id;
        return readAudit(dataSource, { userId, sinceSeconds: options.since, type: options.type });
      });
      const truncated = lines.length > MOST;
      const shown = lines.slice(0, MOST);
      print(options.json, { data: shown, truncated }, () =>
        table(shown, {
          'TIME (UTC)': (line) => line.occurred_at,
          TYPE: (line) => line.type,
          ACTOR: (line) => line.actor,
          USER: (line) => line.user_id,
          'KEY OR CLIENT': (line) => line.key_id ?? line.client_id,
          IP: (line) => line.ip,
          DETAILS: (line) => JSON.stringify(line.details),
        }),
      );
      if (truncated) note(`There is more: narrow it down with --since, --user or --type`);
    });
}

function readAudit(dataSource: DataSource, { userId, sinceSeconds, type }: Filter): Promise<AuditLine[]> {
  return dataSource.query<AuditLine[]>(
    `SELECT id, api_time(occurred_at) AS occurred_at, type, actor, user_id, client_id, key_id, host(ip) AS ip, error_id, details
FROM auth_events WHERE occurred_at >= now() - make_interval(secs => $1) AND ($2::bigint IS NULL OR user_id = $2)
  AND ($3::text IS NULL OR type = $3 OR split_part(type, '.', 1) = $3)
ORDER BY occurred_at DESC, id DESC LIMIT ${MOST + 1}`,
    [sinceSeconds, userId ?? null, type ?? null],
  );
}
