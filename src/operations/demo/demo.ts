import type { DataSource, EntityManager } from 'typeorm';
import { hashPassword, verifyPassword } from '../../accounts/passwords/passwords.js';
import { DEMO_PASSWORD, demoRows, FIRST_ID, LAST_MEMBER_ID } from './demo-data.js';
import { OperatorError } from '../../values/operator-error.js';

/**
 * Seeds the demo into a database without members, all or nothing.
 *
 * @param today the day that all its times are relative to
 */
export async function seedDemo(dataSource: DataSource, today = new Date()): Promise<void> {
  const besides: Readonly<Record<string, object>> = {
    users: { password_hash: await hashPassword(DEMO_PASSWORD) },
    participants: { changed_in: null }, // seeded with the members, so not a change for them
  };
  await dataSource.transaction(async (manager) => {
    // If two servers start at once, the second waits here, and then finds members.
    await manager.query('LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE');
    const [{ empty } = { empty: false }] = await manager.query<{ empty: boolean }[]>(
      'SELECT NOT EXISTS (SELECT FROM users) AS empty',
    );
    if (!empty) return;
    for (const [table, rows] of demoRows(today)) await insert(manager, table, rows, besides[table]);
    await manager.query('SELECT fold_totals(10000)'); // rarities are shown from the start
  });
}

/** Tells whether the demo's members exist. */
export async function hasDemo(dataSource: DataSource): Promise<boolean> {
  const rows = await dataSource.query<unknown[]>('SELECT FROM users WHERE id = $1', [FIRST_ID]);
  return rows.length > 0;
}

/** Lists the usernames of demo members who can sign in with its password, in order of id. */
export async function demoMembers(dataSource: DataSource): Promise<string[]> {
  const members = await dataSource.query<{ username: string; password_hash: string }[]>(
    `SELECT username, password_hash FROM users
WHERE id BETWEEN $1 AND $2 AND disabled_at IS NULL AND password_hash IS NOT NULL ORDER BY id`,
    [FIRST_ID, LAST_MEMBER_ID],
  );
  const open = new Set<string>();
  // All were seeded with the same hash, so usually only one is verified.
  for (const hash of new Set(members.map(({ password_hash }) => password_hash)))
    if ((await verifyPassword(hash, DEMO_PASSWORD)).matches) open.add(hash);
  return members.filter(({ password_hash }) => open.has(password_hash)).map(({ username }) => username);
}

/**
 * Refuses a database seeded with the demo, for a server that others can reach.
 *
 * @throws OperatorError if the demo's password lets anyone in
 */
export async function refuseDemoMembers(dataSource: DataSource): Promise<void> {
  if ((await demoMembers(dataSource)).length === 0) return;
  throw new OperatorError(
    'The database holds demo members, whose password everybody knows, and PUBLIC_URL or HOST let others in: use another ' +
      `database, or end their access in this one: UPDATE users SET disabled_at = now() WHERE id BETWEEN ${FIRST_ID} AND ${LAST_MEMBER_ID}`,
  );
}

/** Inserts rows; columns that a row lacks get their defaults. @param besides what all of them have */
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
