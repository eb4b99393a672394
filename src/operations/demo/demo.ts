import type { DataSource, EntityManager } from 'typeorm';
import { hashPassword } from '../../accounts/passwords.js';
import { ApiKeysService } from '../../auth/api-keys/api-keys.service.js';
import { ALL_SCOPES } from '../../auth/scopes.js';
import type { Config } from '../../config/config.js';
import {
  DEMO_PASSWORD,
  demoAchievements,
  demoConnections,
  demoEvents,
  demoParticipants,
  demoProgress,
  demoUsers,
  FIRST_ID,
} from './demo-data.js';

/**
 * Fills a database that has no member with the demo, all or nothing.
 *
 * @returns a test key of the first demo member, shown once; undefined where nothing was to be done
 */
export async function seedDemo(dataSource: DataSource, config: Config): Promise<string | undefined> {
  const passwordHash = await hashPassword(DEMO_PASSWORD);
  const seeded = await dataSource.transaction(async (manager) => {
    // Two servers that start at once: the second waits here, and then finds members.
    await manager.query('LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE');
    const [{ empty } = { empty: false }] = await manager.query<{ empty: boolean }[]>(
      'SELECT NOT EXISTS (SELECT FROM users) AS empty',
    );
    if (!empty) return false;
    const today = new Date();
    await insert(manager, 'users', demoUsers(today, passwordHash));
    await insert(manager, 'events', demoEvents(today));
    await insert(manager, 'participants', demoParticipants(today));
    await insert(manager, 'connections', demoConnections(today));
    await insert(manager, 'achievements', demoAchievements(today));
    await insert(manager, 'user_achievements', demoProgress(today));
    return true;
  });
  if (!seeded) return undefined;
  const { key } = await new ApiKeysService(dataSource, config).create({
    userId: FIRST_ID,
    name: 'demo',
    scopes: ALL_SCOPES,
    environment: 'test',
    cidrs: [],
    expiresInSeconds: 90 * 86_400,
    actor: 'system',
  });
  return key;
}

/** Whether the members of the demo are there. */
export async function hasDemo(dataSource: DataSource): Promise<boolean> {
  const rows = await dataSource.query<unknown[]>('SELECT FROM users WHERE id = $1', [FIRST_ID]);
  return rows.length > 0;
}

/** Rows may lack columns: what is absent gets the column's default. */
async function insert(
  manager: EntityManager,
  table: string,
  rows: readonly Record<string, unknown>[],
): Promise<void> {
  const byColumns = Map.groupBy(rows, (row) => Object.keys(row).join(', '));
  for (const [columns, alike] of byColumns) {
    await manager.query(
      `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM jsonb_populate_recordset(NULL::${table}, $1)`,
      [JSON.stringify(alike)],
    );
  }
}
