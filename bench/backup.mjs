#!/usr/bin/env node
// How long a base backup takes, and the way back to a moment: `node bench/backup.mjs [gigabytes]` (1), by the script and the commands of
// docs/operators/backup.md, on a disk of this machine. What is restored is bytes, whatever they mean: a table of texts, a fifth of it changed afterwards.
import './own-node.mjs';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { findBinaries, postgresUser, startPostgres } from '../bin/postgres.mjs';

const gigabytes = Number(process.argv[2] ?? 1);
/** Of about 550 bytes. */
const rows = Math.round(gigabytes * 1_950_000);

const page = readFileSync(join(import.meta.dirname, '../docs/operators/backup.md'), 'utf8');
const [, archiving] = /```ini\n([^]*?)```/.exec(page);
const [, restore] = /```bash\n(cp -a [^]*?)```/.exec(page);

const folder = mkdtempSync(join(tmpdir(), 'pua-bench-backup-'));
chmodSync(folder, 0o777);
const ARCHIVE = join(folder, 'archive');
const BACKUPS = join(folder, 'backups');
const run = (command, environment = {}) =>
  execFileSync('bash', ['-euc', command], {
    ...postgresUser(),
    cwd: folder,
    env: { PATH: `${findBinaries()}:${process.env.PATH}`, ARCHIVE, BACKUPS, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
run('mkdir "$ARCHIVE" "$BACKUPS"');
const timed = async (work) => {
  const began = performance.now();
  await work();
  return ((performance.now() - began) / 1000).toFixed(1);
};
const connect = async (url) => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const one = async (sql) => (await client.query({ text: sql, rowMode: 'array' })).rows[0]?.[0];
  return { one, end: () => client.end() };
};

const settings = Object.fromEntries(
  [...archiving.matchAll(/^(\w+) = '?(.*?)'?$/gm)].map(([, name, value]) => [
    name,
    value.replaceAll('/archive/', `${ARCHIVE}/`),
  ]),
);
let cluster;
try {
  mkdirSync(join(folder, 'live'));
  cluster = await startPostgres(join(folder, 'live'), { ...settings, max_wal_size: '4GB' });
  const live = await connect(cluster.url);
  await live.one(`CREATE TABLE texts AS SELECT n AS id, (SELECT string_agg(md5(n::text || i), '') FROM generate_series(1, 16) i) AS text
    FROM generate_series(1, ${rows}) n`);
  const size = await live.one('SELECT pg_size_pretty(pg_database_size(current_database()))');

  const script = resolve('deploy/backup/base-backup.sh');
  const backUp = await timed(() => run(`sh "${script}"`, { BACKUP_URL: cluster.url }));
  const before = await live.one('SELECT pg_current_wal_lsn()');
  await live.one(`UPDATE texts SET text = reverse(text) WHERE id % 5 = 0`);
  const MOMENT = await live.one('SELECT clock_timestamp()::text');
  const written = await live.one(`SELECT pg_size_pretty(pg_current_wal_lsn() - '${before}')`);
  await live.one('DROP TABLE texts');
  const last = await live.one('SELECT pg_walfile_name(pg_switch_wal())');
  while (!(await live.one(`SELECT last_archived_wal >= '${last}' FROM pg_stat_archiver`))) await pause(50);
  await live.end();
  await cluster.stop();

  const BACKUP = join(BACKUPS, readdirSync(BACKUPS)[0]);
  const RESTORED = join(folder, 'back/data');
  run('mkdir back');
  const copied = await timed(() => run(restore, { BACKUP, RESTORED, MOMENT }));
  const replayed = await timed(async () => {
    cluster = await startPostgres(join(folder, 'back'), {});
    const back = await connect(cluster.url);
    while (await back.one('SELECT pg_is_in_recovery()')) await pause(20);
    if ((await back.one('SELECT count(*) FROM texts')) !== String(rows)) throw new Error('rows are missing');
    await back.end();
  });
  console.log(`| Database | Base backup, checked | Written after it | Copied back | Replayed up to the moment |
| --- | --- | --- | --- | --- |
| ${size} | ${backUp} s | ${written} | ${copied} s | ${replayed} s |`);
} finally {
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
}
