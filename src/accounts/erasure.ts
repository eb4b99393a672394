import type { DataSource, EntityManager } from 'typeorm';
import { audited, recordEvent, type NewAuthEvent } from '../audit/audit.js';
import { CLEARED_OF_USERS, ERASURES } from '../database/schema/member-tables.js';

/** Erases members permanently (GDPR art. 17; docs/trust/personal-data.md). @returns undefined if nothing was left to erase */
export function eraseMembers(
  database: DataSource | EntityManager,
  userIds: readonly number[],
  by: Pick<NewAuthEvent, 'actor' | 'keyId'>,
) {
  return audited(database, async (manager) => {
    // Runs first, since it ends the members' sessions.
    const [erased] = await manager.query<[{ id: number }[], number]>(ERASE_USERS, [userIds]);
    if (erased.length === 0) return undefined;
    const ids = erased.map(({ id }) => id).toSorted((one, other) => one - other);
    const gone = await eraseRows(manager, ids);
    for (const userId of ids) await recordEvent(manager, { ...by, type: 'user.erased', userId });
    return {
      connections: gone.connections! / 2,
      participations: gone.participants!,
      achievements: gone.user_achievements!,
      api_keys: gone.api_keys!,
    };
  });
}

/** Deletes or clears the members' rows, except in `users`. @returns row counts by table */
export async function eraseRows(manager: EntityManager, ids: readonly number[]) {
  const gone: Record<string, number> = {};
  for (const { table, statement } of ERASURES)
    gone[table] = (await manager.query<[unknown[], number]>(statement, [ids]))[1];
  return gone;
}

const ERASE_USERS = `UPDATE users SET erased_at = now(), disabled_at = COALESCE(disabled_at, now()),
  sign_ins_valid_since = clock_timestamp(), username = 'erased-' || id, ${CLEARED_OF_USERS}
WHERE id = ANY ($1::bigint[]) AND erased_at IS NULL RETURNING id`;
