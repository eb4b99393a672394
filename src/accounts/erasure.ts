import type { DataSource, EntityManager } from 'typeorm';
import { audited, recordEvent } from '../audit/audit.js';
import type { AuditedTransaction, NewAuthEvent } from '../audit/audit.js';

/** How many rows of each kind were erased with members. */
export interface ErasedRows {
  readonly connections: number;
  readonly participations: number;
  readonly achievements: number;
  readonly api_keys: number;
}

/**
 * Erases everything about members except their ids, permanently (GDPR art. 17), as a part of the caller's transaction if there is
 * one: profile, password, passkeys, connections on both sides, RSVPs, achievements, API keys, sessions, grants, the apps that they
 * registered, and in the audit trail addresses and details. Events that they
 * organised belong to the platform, and stay.
 *
 * @param by who does it, for the audit trail
 * @returns what was erased; undefined if all of them had already been erased, or never existed
 */
export function eraseMembers(
  database: DataSource | EntityManager,
  userIds: readonly number[],
  by: Author,
): Promise<ErasedRows | undefined> {
  return audited(database, (manager) => erase(manager, userIds, by));
}

interface Author {
  readonly actor: NewAuthEvent['actor'];
  readonly keyId?: string;
}

async function erase(
  manager: AuditedTransaction,
  userIds: readonly number[],
  by: Author,
): Promise<ErasedRows | undefined> {
  // First, because it ends their sessions, and prevents others from adding rows of these members in the meantime.
  const [erased] = await manager.query<[{ id: number }[], number]>(
    `UPDATE users SET erased_at = now(), disabled_at = COALESCE(disabled_at, now()), sign_ins_valid_since = clock_timestamp(),
  username = 'erased-' || id, password_hash = NULL, password_off_at = NULL, first_name = NULL, last_name = NULL,
  stored_display_name = NULL, bio = NULL, profile_picture = NULL, external_id = NULL, email = NULL,
  edited_fields = '{}' WHERE id = ANY ($1::bigint[]) AND erased_at IS NULL RETURNING id`,
    [userIds],
  );
  if (erased.length === 0) return undefined;
  const ids = erased.map(({ id }) => id).toSorted((one, other) => one - other);
  const gone = async (sql: string) => (await manager.query<[unknown[], number]>(sql, [ids]))[1];
  const sides = await gone(
    'DELETE FROM connections WHERE user_id = ANY ($1::bigint[]) OR peer_id = ANY ($1::bigint[])',
  );
  const rows = {
    connections: sides / 2,
    participations: await gone('DELETE FROM participants WHERE user_id = ANY ($1::bigint[])'),
    achievements: await gone('DELETE FROM user_achievements WHERE user_id = ANY ($1::bigint[])'),
    api_keys: await eraseKeys(gone),
  };
  await gone('DELETE FROM passkeys WHERE user_id = ANY ($1::bigint[])');
  await gone('DELETE FROM oauth_consents WHERE user_id = ANY ($1::bigint[])');
  // The apps that they registered, with all access that anybody gave them.
  await gone(
    'DELETE FROM oauth_grants WHERE client_id IN (SELECT id FROM oauth_clients WHERE owner_id = ANY ($1::bigint[]))',
  );
  await gone('DELETE FROM oauth_clients WHERE owner_id = ANY ($1::bigint[])');
  await gone('DELETE FROM changes WHERE user_id = ANY ($1::bigint[])');
  await gone(
    `DELETE FROM record_versions WHERE type IN ('participants', 'user_achievements') AND user_id = ANY ($1::bigint[])`,
  );
  await gone('DELETE FROM platform_changes WHERE user_id = ANY ($1::bigint[])');
  await gone('DELETE FROM webhook_deliveries WHERE user_id = ANY ($1::bigint[])');
  await gone('DELETE FROM member_usage WHERE user_id = ANY ($1::bigint[])');
  await gone(`UPDATE auth_events SET ip = NULL, details = '{}' WHERE user_id = ANY ($1::bigint[])`);
  for (const userId of ids)
    await recordEvent(manager, { type: 'user.erased', actor: by.actor, userId, keyId: by.keyId ?? null });
  return rows;
}

async function eraseKeys(gone: (sql: string) => Promise<number>): Promise<number> {
  await gone(
    'DELETE FROM api_key_usage WHERE key_id IN (SELECT id FROM api_keys WHERE user_id = ANY ($1::bigint[]))',
  );
  return gone('DELETE FROM api_keys WHERE user_id = ANY ($1::bigint[])');
}
