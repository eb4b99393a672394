import { IsNull, type EntityManager } from 'typeorm';
import type { Owner } from '../auth/owner.js';
import { OauthClient, OauthClientSecret } from '../database/schema/entities/credentials/oauth.entity.js';
import { endedBy } from '../database/sql.js';
import { OperatorError } from '../values/operator-error.js';
import { CHANGEABLE, parseOrigin, type NewClient } from './client-rules.js';

export class UnknownClient extends OperatorError {
  constructor(id: string) {
    super(`There is no client ${id}: \`pua clients list\` shows all`);
  }
}

/** Makes conditions for a client. Owners find only their own clients, and none that another person disabled. */
const reachedBy = (id: string, owner: Owner | undefined) =>
  owner
    ? [
        { id, owner_id: owner.userId, disabled_at: IsNull() },
        { id, owner_id: owner.userId, disabled_by_owner: true },
      ]
    : [{ id }];

/** Reads a client, and (if `isLocked`) locks it until the transaction ends. @param owner finds only their own apps @throws UnknownClient */
export async function readClient(
  manager: EntityManager,
  id: string,
  owner?: Owner,
  isLocked = true,
): Promise<OauthClient> {
  const client = await manager.findOne(OauthClient, {
    where: reachedBy(id, owner),
    // This mode allows concurrent consents, which refer to the client's id.
    ...(isLocked ? { lock: { mode: 'for_no_key_update' } } : {}),
  });
  if (!client) throw new UnknownClient(id);
  return client.secret_auth_method === null ? client : { ...client, jwks: null };
}

/** Writes changed columns, and ends grants with a lost scope. @returns changed columns, lost scopes, number of ended grants, the client */
export async function writeClient(
  manager: EntityManager,
  live: OauthClient,
  saved: OauthClient,
  by?: 'client',
) {
  const { id } = live;
  const changed = WRITTEN.filter((column) => isChanged(column, live, saved));
  const lost = live.scopes.filter((scope) => !saved.scopes.includes(scope));
  if (changed.length === 0) return { changed, lost, grants: 0, saved };
  await manager.update(
    OauthClient,
    { id },
    { ...Object.fromEntries(changed.map((column) => [column, saved[column]])), jwks: storedKeysOf(saved) },
  );
  if (saved.secret_auth_method === null) await manager.delete(OauthClientSecret, { client_id: id });
  // Stores the previous origins in consents without origins: a new origin needs another consent.
  if (changed.includes('redirect_uris'))
    await manager.query(
      'UPDATE oauth_consents SET redirect_origins = $2 WHERE client_id = $1 AND redirect_origins IS NULL',
      [id, [...new Set(live.redirect_uris.map(parseOrigin))]],
    );
  const grants = lost.length === 0 ? 0 : await takeScopes(manager, id, lost, by);
  return { changed, lost, grants, saved };
}

const WRITTEN = [...CHANGEABLE, 'pending_changes', 'applied_at'] as const satisfies (keyof OauthClient)[];

/** Tells whether the values of a column differ. */
export const isChanged = (column: keyof OauthClient, before: OauthClient, after: OauthClient) =>
  JSON.stringify(after[column]) !== JSON.stringify(before[column]);

/** Returns the keys to store. A client with a secret gets an empty set, since earlier versions treat null as a public client. */
export function storedKeysOf({ secret_auth_method, jwks }: Pick<NewClient, 'secret_auth_method' | 'jwks'>) {
  return secret_auth_method ? { keys: [] } : (jwks ?? null);
}

async function takeScopes(
  manager: EntityManager,
  id: string,
  scopes: readonly string[],
  by?: 'client',
): Promise<number> {
  const without = (column: string) =>
    `${column} = ARRAY(SELECT scope FROM unnest(${column}) AS held (scope) WHERE scope <> ALL ($2))`;
  const [, ended] = await manager.query<[unknown, number]>(
    `DELETE FROM oauth_grants g WHERE g.client_id = $1 AND EXISTS (
  SELECT FROM jsonb_each_text(g.payload->'resources') resource
  WHERE string_to_array(resource.value, ' ') && $2::text[]) RETURNING ${endedBy('$3')}`,
    [id, scopes, by ?? null],
  );
  // Runs last: the trigger `narrow_grants` narrows grants that were stored in the meantime.
  await manager.query(
    `UPDATE oauth_consents SET ${without('granted')}, ${without('rejected')}
WHERE client_id = $1 AND (granted && $2::text[] OR rejected && $2)`,
    [id, scopes],
  );
  return ended;
}
