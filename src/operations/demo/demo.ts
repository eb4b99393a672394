import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DataSource, EntityManager } from 'typeorm';
import { hashPassword, verifyPassword } from '../../accounts/passwords/passwords.js';
import { parseKey } from '../../auth/api-keys/api-key-format.js';
import { ApiKeysService } from '../../auth/api-keys/api-keys.service.js';
import { ALL_SCOPES } from '../../auth/scopes.js';
import type { Config } from '../../config/config.js';
import { SecretHashes } from '../../crypto/secret-hashes.js';
import { writeWhole } from '../../config/draft-file.js';
import { styled } from '../../runtime/terminal.js';
import { OperatorError } from '../../values/operator-error.js';

/** The demo's first id, above the ids that platforms are expected to import. */
export const FIRST_ID = 900_000_001;

export const LAST_MEMBER_ID = 900_000_024;

/** The demo's last possible id, in every table. */
export const LAST_ID = 900_000_999;

/** The server prints this password at startup, so the demo requires a server that only this host can reach. */
export const DEMO_PASSWORD = 'correct-horse-battery';

export const DEMO_USERNAMES = ['ada', 'grace'] as const;

/** The day in demo-data.ndjson that becomes the day of seeding. */
const DAY_OF_SEEDING = Date.UTC(2025, 0, 1);

type Row = Readonly<Record<string, unknown>>;

/** Reads the demo's rows, referenced tables first, with times relative to `today`. */
export function demoRows(today: Date): ReadonlyMap<string, readonly Row[]> {
  const shift = Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate()) - DAY_OF_SEEDING;
  const shifted = (column: string, value: unknown) =>
    column.endsWith('_at') ? new Date(Date.parse(value as string) + shift).toISOString() : value;
  const lines = readFileSync(join(import.meta.dirname, 'demo-data.ndjson'), 'utf8')
    .trim()
    .split('\n');
  const rows = lines.map((line) => JSON.parse(line, shifted) as { table: string; row: Row });
  return new Map(
    [...Map.groupBy(rows, ({ table }) => table)].map(([table, of]) => [table, of.map(({ row }) => row)]),
  );
}

/** Seeds the demo into a database without members, in one transaction. @param today base of all times */
export async function seedDemo(dataSource: DataSource, today = new Date()): Promise<void> {
  const besides: Readonly<Record<string, object>> = {
    users: { password_hash: await hashPassword(DEMO_PASSWORD) },
    participants: { changed_in: null }, // reports no change to the members, who are seeded at the same time
  };
  await dataSource.transaction(async (manager) => {
    // A concurrent second server waits here, and then finds members.
    await manager.query('LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE');
    const [{ empty } = { empty: false }] = await manager.query<{ empty: boolean }[]>(
      'SELECT NOT EXISTS (SELECT FROM users) AS empty',
    );
    if (!empty) return;
    for (const [table, rows] of demoRows(today)) await insert(manager, table, rows, besides[table]);
    await manager.query('SELECT fold_totals(10000)'); // makes rarities available from the start
  });
}

/** Tells whether the first demo member exists, also if disabled. */
export async function hasDemo(dataSource: DataSource): Promise<boolean> {
  const rows = await dataSource.query<unknown[]>('SELECT FROM users WHERE id = $1', [FIRST_ID]);
  return rows.length > 0;
}

/** Lists usernames of enabled demo members with the demo's password, ordered by id. */
export async function demoMembers(dataSource: DataSource): Promise<string[]> {
  const members = await dataSource.query<{ username: string; password_hash: string }[]>(
    `SELECT username, password_hash FROM users
WHERE id BETWEEN $1 AND $2 AND disabled_at IS NULL AND password_hash IS NOT NULL ORDER BY id`,
    [FIRST_ID, LAST_MEMBER_ID],
  );
  const open = new Set<string>();
  // Seeding gave all members the same hash, so usually this verifies only one.
  for (const hash of new Set(members.map(({ password_hash }) => password_hash)))
    if ((await verifyPassword(hash, DEMO_PASSWORD)).matches) open.add(hash);
  return members.filter(({ password_hash }) => open.has(password_hash)).map(({ username }) => username);
}

/** Rejects a database in which an enabled demo member has the demo's password. @throws OperatorError */
export async function rejectDemoMembers(dataSource: DataSource): Promise<void> {
  if ((await demoMembers(dataSource)).length === 0) return;
  throw new OperatorError(
    'The database contains demo members, whose password is public, and others can reach the server (PUBLIC_URL or HOST): use another ' +
      `database, or disable the demo members: UPDATE users SET disabled_at = now() WHERE id BETWEEN ${FIRST_ID} AND ${LAST_MEMBER_ID}`,
  );
}

async function insert(
  manager: EntityManager,
  table: string,
  rows: readonly object[],
  besides: object = {},
): Promise<void> {
  const whole = rows.map((row) => ({ ...row, ...besides }));
  const byColumns = Map.groupBy(whole, (row) => Object.keys(row).join(', '));
  for (const [columns, alike] of byColumns) {
    await manager.query(
      `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM jsonb_populate_recordset(NULL::${table}, $1)`,
      [JSON.stringify(alike)],
    );
  }
}

/** Finds or creates the first demo member's key in DATA_DIR. @returns undefined without an enabled first member @throws OperatorError */
export async function testKey(dataSource: DataSource, config: Config): Promise<string | undefined> {
  const owners = await dataSource.query<unknown[]>(
    'SELECT FROM users WHERE id = $1 AND disabled_at IS NULL',
    [FIRST_ID],
  );
  if (owners.length === 0) return undefined;
  const file = join(config.dataDir, 'test-key');
  const kept = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
  if (kept !== undefined && (await isAccepted(dataSource, config, kept))) return kept;
  const { key } = await new ApiKeysService(dataSource, config).create({
    userId: FIRST_ID,
    name: 'demo',
    scopes: ALL_SCOPES,
    environment: 'test',
    cidrs: [],
    expiresInSeconds: 90 * 86_400,
    actor: 'system',
  });
  keep(file, key, config.dataDir);
  return key;
}

async function isAccepted(dataSource: DataSource, config: Config, key: string): Promise<boolean> {
  const parsed = parseKey(key);
  if (!parsed) return false;
  const [row] = await dataSource.query<{ hash: Buffer }[]>(
    `SELECT hash FROM api_keys WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`,
    [parsed.id, FIRST_ID],
  );
  return row !== undefined && new SecretHashes(config.secrets, 'api_keys').matches(row.hash, key);
}

function keep(file: string, key: string, dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    writeWhole(file, `${key}\n`);
  } catch (error) {
    throw new OperatorError(
      `DATA_DIR ${dataDir} cannot be used (${(error as NodeJS.ErrnoException).code ?? 'unknown error'}): ` +
        'name a folder that this user may write to',
      { cause: error },
    );
  }
}

export interface DemoFacts {
  /** Test key of the first demo member; undefined if that member is missing or disabled. */
  readonly key: string | undefined;
  readonly members: readonly string[];
}

/** Returns the first line that the server prints at startup, outside production. */
export function beginning(config: Config): string {
  return `Starting on ${databaseOf(config)} …`;
}

/** Returns the text that the server prints when it is ready, outside production. */
export function banner(config: Config, demo: DemoFacts | undefined): string {
  const { publicUrl } = config;
  const { key, members = [] } = demo ?? {};
  const named = DEMO_USERNAMES.filter((username) => members.includes(username));
  const lines = [
    ['Front page', `${publicUrl}/`],
    ['API', `${publicUrl}/api/public`],
    ['Docs', `${publicUrl}/docs`],
    ['OAuth', `${publicUrl}/.well-known/oauth-authorization-server`],
    ['Account', `${publicUrl}/account/apps`],
    ...(demo ? [['Demo', `${publicUrl}/demo`]] : []),
    ...(demo || config.loopbackOnly
      ? []
      : [['Demo', 'disabled, because other hosts can reach the server: PUBLIC_URL or HOST is not loopback']]),
    ...(named.length > 0 ? [['Members', `${named.join(', ')} (password: ${DEMO_PASSWORD})`]] : []),
    ['Database', databaseOf(config)],
  ].map(([name, value]) => `  ${styled('bold', name!.padEnd(10))} ${value}`);
  const call = key
    ? `\n\nA request as ${named[0] ?? 'the first demo member'}:\n\n` +
      `  export API_KEY=${key}\n  curl -H "X-API-Key: $API_KEY" ${publicUrl}/api/public/profile`
    : '';
  return `\n${styled('green', 'Public User API is ready.')}\n\n${lines.join('\n')}${call}\n\nPress Ctrl-C to stop the server.\n`;
}

const databaseOf = ({ databaseUrl, dataDir }: Config) =>
  databaseUrl === undefined ? `the embedded database in ${dataDir}` : 'PostgreSQL (DATABASE_URL)';
