import { setTimeout } from 'node:timers/promises';
import type { DataSource, EntityManager } from 'typeorm';
import { ADVISORY_LOCKS } from '../database/schema/advisory-locks.js';
import { OperatorError } from '../values/operator-error.js';
import { differs, isLostRace, keepingProfile, staged } from './record-type.js';
import { EXTERNAL_ID_IS_WANTED, USERNAME_IS_WANTED, users } from '../resources/profile/import.js';
import { ARE_PENDING, Staging, stagingColumns } from './staging.js';

/** Maximum number of members per transaction: until it ends, other writers of these members wait. */
const MEMBERS_AT_ONCE = 500;
const PAUSE_MS = 50;

/** Temporary table with the columns and CHECK constraints of `users`. */
const CHANGED_USERS = staged('changed_users');

const membersAs = (keepProfile: boolean) => (keepProfile ? keepingProfile(users) : users);

/** Moves changes of members to `pending_members`, unless another line takes the username or `external_id` of the member. */
export async function leaveMembersPending(manager: EntityManager, keepProfile: boolean): Promise<void> {
  const type = membersAs(keepProfile);
  const values = Object.entries(type.values).map(([column, sql]) => `'${column}', ${sql}`);
  const changing = `t.id = s.id AND NOT s.deleted AND ${differs(type)}
  AND NOT ${USERNAME_IS_WANTED} AND NOT ${EXTERNAL_ID_IS_WANTED}`;
  // Fails now, instead of later, if a change violates a constraint.
  await manager.query(`CREATE TEMP TABLE ${CHANGED_USERS} (LIKE users INCLUDING CONSTRAINTS) ON COMMIT DROP;
INSERT INTO ${CHANGED_USERS} SELECT r.* FROM ${staged('users')} s JOIN users t ON ${changing}
CROSS JOIN LATERAL jsonb_populate_record(t, jsonb_build_object(${values.join(', ')})) r`);
  await manager.query(
    `WITH moved AS (DELETE FROM ${staged('users')} s USING users t WHERE ${changing} RETURNING s.*)
INSERT INTO pending_members (user_id, keeps_profile, record)
SELECT id, $1, to_jsonb(moved) - '{line,text,version,counts,deleted}'::text[] FROM moved`,
    [keepProfile],
  );
}

/** Locks members and writes their pending changes. @param ifLocked default: waits for locks @returns number of changes no longer pending */
export async function writePendingMembers(
  staging: Staging,
  condition: string,
  ifLocked: 'SKIP LOCKED' | '' = '',
): Promise<number> {
  const { manager } = staging;
  const pending = await staging.rows<{ user_id: number; keeps_profile: boolean }>(
    `SELECT user_id, keeps_profile FROM pending_members WHERE ${condition}`,
  );
  if (pending.length === 0) return 0;
  const wanted = pending.map(({ user_id }) => user_id);
  const locked = await manager.query<{ id: number }[]>(
    `SELECT id FROM users WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE ${ifLocked}`,
    [wanted],
  );
  const ids = [locked.map(({ id }) => id)];
  // Keeps the username or external_id of a member if another member now has the pending one. Uses subqueries, which look up by key,
  // since PostgreSQL could join whole tables.
  await manager.query(
    `UPDATE pending_members p
SET record = record || (SELECT jsonb_build_object('username', t.username) FROM users t WHERE t.id = p.user_id)
WHERE user_id = ANY ($1)
  AND (SELECT o.id FROM users o WHERE o.folded_username = fold_case(p.record->>'username')) <> p.user_id`,
    ids,
  );
  await manager.query(
    `UPDATE pending_members p SET record = record - 'says_external_id' WHERE user_id = ANY ($1)
  AND (SELECT o.id FROM users o WHERE o.external_id = p.record->>'external_id') <> p.user_id`,
    ids,
  );
  for (const keepProfile of new Set(pending.map(({ keeps_profile }) => keeps_profile))) {
    const type = membersAs(keepProfile);
    const { id: _, ...values } = type.values;
    const set = Object.entries(values).map(([column, sql]) => `${column} = ${sql}`);
    await manager.query(
      `WITH s AS MATERIALIZED (
  SELECT s.* FROM pending_members p CROSS JOIN LATERAL jsonb_to_record(p.record) AS s (${stagingColumns(users)})
  WHERE p.user_id = ANY ($1) AND p.keeps_profile = ${keepProfile}
)
UPDATE users t SET ${set.join(', ')} FROM s
WHERE t.id = ANY ($1) AND t.id = s.id AND t.erased_at IS NULL AND ${differs(type)}`,
      ids,
    );
  }
  const [, written] = await manager.query<[unknown[], number]>(
    `DELETE FROM pending_members p WHERE user_id = ANY ($2)
  AND (user_id = ANY ($1) OR NOT EXISTS (SELECT FROM users u WHERE u.id = p.user_id))`,
    [...ids, wanted],
  );
  return written;
}

/** Writes the next pending members in a transaction. @returns their number; 0 if none are pending, or other transactions block them */
export function writeNextMembers(dataSource: DataSource): Promise<number> {
  const isFree = `(SELECT pg_try_advisory_xact_lock(${ADVISORY_LOCKS.pendingMembers}))`;
  const next = `${isFree} ORDER BY user_id LIMIT ${MEMBERS_AT_ONCE}`;
  return dataSource.transaction((manager) => writePendingMembers(new Staging(manager), next, 'SKIP LOCKED'));
}

/** Writes pending members until none are left. @throws OperatorError if `signal` aborts earlier */
export async function settleMembers(dataSource: DataSource, signal?: AbortSignal): Promise<void> {
  for (;;) {
    const [row] = await dataSource.query<{ pending: boolean }[]>(ARE_PENDING);
    if (!row!.pending) return;
    if (signal?.aborted)
      throw new OperatorError(
        'The records are imported, but some affected members are not updated yet: a running server or the next import updates them',
      );
    const written = await writeNextMembers(dataSource).catch((error: unknown) => {
      if (isLostRace(error)) return 0;
      throw error;
    });
    if (written === 0) await setTimeout(PAUSE_MS);
  }
}
