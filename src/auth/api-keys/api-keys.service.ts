import { Injectable } from '@nestjs/common';
import { DataSource, IsNull, type EntityManager, type FindOptionsWhere } from 'typeorm';
import { Config } from '../../config/config.js';
import { ApiKey, type ApiKeyUsage } from '../../database/schema/entities/credentials/api-key.entity.js';
import { OperatorError } from '../../values/operator-error.js';
import { audited, recordEvent, type NewAuthEvent } from '../../audit/audit.js';
import type { WithApiTimes } from '../../audit/audit-log.js';
import { by, takeSlot, type Owner } from '../owner.js';
import type { PlatformScope, Scope } from '../scopes.js';
import { SecretHashes } from '../../crypto/secret-hashes.js';
import { makeKey, type KeyEnvironment } from './api-key-format.js';

type Actor = NewAuthEvent['actor'];
type Revoker = Pick<NewAuthEvent, 'actor' | 'ip'>;

export interface NewKey {
  /** null for a platform key. */
  readonly userId: number | null;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly environment: KeyEnvironment;
  /** IPv4 and IPv6 networks or addresses; host bits are cleared. */
  readonly cidrs: readonly string[];
  /** Lifetime by the database's clock; a key without a lifetime requires `noExpiryReason`. */
  readonly expiresInSeconds?: number;
  readonly noExpiryReason?: string;
  readonly actor: Actor;
  /** The member who creates the key; undefined for an admin or the server. */
  readonly owner?: Owner | undefined;
}

interface KeyFilter {
  readonly userId?: number | undefined;
  readonly ofPlatform?: boolean | undefined;
  /** Lists only keys that expire within these seconds, sorted by expiry, without rotated and revoked keys. */
  readonly expiringWithin?: number | undefined;
  /** Lists only self-made keys that are valid, or that expired or were revoked within the last 7 days. */
  readonly own?: boolean | undefined;
}

/** A key without its secret, and its use. */
export interface KeyDetails
  extends
    WithApiTimes<
      Omit<
        ApiKey,
        'hash' | 'pepper_id' | 'scopes' | 'ending_notified_at' | 'ending_told_at' | 'ended_told_at'
      >
    >,
    WithApiTimes<Omit<ApiKeyUsage, 'key_id'>> {
  /** `replaced`: rotated, and accepted until `expires_at`. */
  readonly status: 'active' | 'replaced' | 'expired' | 'revoked' | 'owner_disabled';
  readonly username: string | null;
  readonly scopes: (Scope | PlatformScope)[];
}

export const MAX_OWN_KEYS = 10;

const ACCEPTED = 'k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())';

/** Limits members to their self-made keys; admins and the server see all keys. */
const reachedBy = (owner: Owner | undefined) => (owner ? { user_id: owner.userId, self_issued: true } : {});

export class UnknownKey extends OperatorError {
  constructor(id: string) {
    super(`There is no key ${id}: \`pua keys list\` shows all`);
  }
}

/** SQL: {@link KeyDetails} of the keys `k`; a condition can follow. */
export const KEY_DETAILS = `SELECT k.id,
  CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= now() THEN 'expired'
    WHEN u.disabled_at IS NOT NULL THEN 'owner_disabled' WHEN k.replaced_by IS NOT NULL THEN 'replaced' ELSE 'active' END AS status,
  k.user_id, u.username, k.name, k.environment, k.scopes, k.allowed_cidrs::text[] AS allowed_cidrs, k.last_four,
  api_time(k.created_at) AS created_at, api_time(k.expires_at) AS expires_at, k.no_expiry_reason,
  api_time(k.revoked_at) AS revoked_at, k.revocation_reason, k.replaced_by,
  api_time(s.last_used_at) AS last_used_at, host(s.last_used_ip) AS last_used_ip, COALESCE(s.uses_count, 0) AS uses_count,
  api_time(s.exposed_at) AS exposed_at, s.exposed_origin, k.self_issued
FROM api_keys k LEFT JOIN users u ON u.id = k.user_id LEFT JOIN api_key_usage s ON s.key_id = k.id`;

/** Creates, lists, rotates and revokes API keys. With an `owner`, methods reach only this member's self-made keys. */
@Injectable()
export class ApiKeysService {
  readonly #hashes: SecretHashes;

  constructor(
    private readonly dataSource: DataSource,
    config: Config,
  ) {
    this.#hashes = new SecretHashes(config.secrets, 'api_keys');
  }

  /** @param within the caller's transaction @returns the key, which is shown once and not stored @throws LimitReached, TooManyChanges */
  async create(
    wanted: NewKey,
    within: EntityManager = this.dataSource.manager,
  ): Promise<{ key: string; id: string }> {
    return audited(within, async (manager) => {
      const { owner } = wanted;
      if (owner) await this.#takePlace(manager, owner, MAX_OWN_KEYS);
      const { key, id } = makeKey(wanted.environment);
      await manager.query(
        `INSERT INTO api_keys (id, user_id, name, environment, scopes, hash, pepper_id, last_four, allowed_cidrs,
  expires_at, no_expiry_reason, self_issued)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, ARRAY(SELECT DISTINCT network(c::inet)::cidr FROM unnest($9::text[]) c),
  now() + make_interval(secs => $10), $11, $12)`,
        [
          id,
          wanted.userId,
          wanted.name,
          wanted.environment,
          wanted.scopes,
          ...Object.values(this.#hashes.store(key)),
          wanted.cidrs,
          wanted.expiresInSeconds ?? null,
          wanted.noExpiryReason ?? null,
          owner !== undefined,
        ],
      );
      await recordEvent(manager, {
        type: 'key.created',
        actor: wanted.actor,
        ...by(owner),
        userId: wanted.userId,
        keyId: id,
        details: { name: wanted.name, scopes: wanted.scopes },
      });
      return { key, id };
    });
  }

  list({ userId, ofPlatform = false, expiringWithin, own = false }: KeyFilter = {}): Promise<KeyDetails[]> {
    return this.dataSource.query<KeyDetails[]>(
      `${KEY_DETAILS} WHERE ($1::bigint IS NULL OR k.user_id = $1) AND (NOT $3 OR k.user_id IS NULL)
  AND (NOT $4 OR (k.self_issued AND LEAST(k.revoked_at, k.expires_at) > now() - interval '7 days'))
  AND ($2::bigint IS NULL OR k.revoked_at IS NULL
  AND k.replaced_by IS NULL AND k.expires_at > now() AND k.expires_at <= now() + make_interval(secs => $2))
ORDER BY CASE WHEN $2 IS NOT NULL THEN k.expires_at END, k.created_at DESC, k.id`,
      [userId ?? null, expiringWithin ?? null, ofPlatform, own],
    );
  }

  async find(id: string, owner?: Owner): Promise<KeyDetails | undefined> {
    const found = await this.dataSource.query<KeyDetails[]>(
      `${KEY_DETAILS} WHERE k.id = $1 AND ($2::bigint IS NULL OR (k.user_id = $2 AND k.self_issued))`,
      [id, owner?.userId ?? null],
    );
    return found[0];
  }

  /** Creates a successor. The old key works until the overlap ends or it expires. @throws OperatorError, TooManyChanges */
  async rotate(
    id: string,
    overlapSeconds: number,
    actor: Actor,
    owner?: Owner,
    within: EntityManager = this.dataSource.manager,
  ): Promise<{ key: string; id: string }> {
    return audited(within, async (manager) => {
      // During the overlap, both keys count toward the limit.
      if (owner) await this.#takePlace(manager, owner, MAX_OWN_KEYS + (overlapSeconds === 0 ? 1 : 0));
      const old = await manager.findOneBy(ApiKey, { id, ...reachedBy(owner) });
      if (!old) throw new UnknownKey(id);
      const { key, id: newId } = makeKey(old.environment);
      await manager.query(
        `INSERT INTO api_keys (id, user_id, name, environment, scopes, hash, pepper_id, last_four, allowed_cidrs,
  expires_at, no_expiry_reason, self_issued)
SELECT $2, user_id, name, environment, scopes, $3, $4, $5, allowed_cidrs, now() + (expires_at - created_at),
  no_expiry_reason, self_issued
FROM api_keys WHERE id = $1`,
        [id, newId, ...Object.values(this.#hashes.store(key))],
      );
      const [replaced] = await manager.query<[{ user_id: number | null }[], number]>(
        `UPDATE api_keys SET replaced_by = $2, expires_at = LEAST(expires_at, now() + make_interval(secs => $3))
WHERE id = $1 AND revoked_at IS NULL AND replaced_by IS NULL AND (expires_at IS NULL OR expires_at > now())
RETURNING user_id`,
        [id, newId, overlapSeconds],
      );
      if (!replaced[0]) throw await this.#notRotatable(manager, id);
      await manager.query('UPDATE webhook_endpoints SET key_id = $2 WHERE key_id = $1', [id, newId]);
      await recordEvent(manager, {
        type: 'key.rotated',
        actor,
        ...by(owner),
        userId: replaced[0].user_id,
        keyId: id,
        details: { replaced_by: newId, overlap_seconds: overlapSeconds },
      });
      return { key, id: newId };
    });
  }

  /** Revokes a key permanently. @returns false for a revoked key, which keeps its first reason @throws UnknownKey */
  async revoke(id: string, reason: string, actor: Actor, owner?: Owner): Promise<boolean> {
    const revoked = await this.#revoke({ id, ...reachedBy(owner) }, reason, { actor, ...by(owner) });
    if (revoked === undefined) throw new UnknownKey(id);
    return revoked;
  }

  /** Revokes any key of a member permanently. @returns false if the key does not exist or was already revoked */
  async revokeOf(userId: number, id: string, reason: string, revoker: Revoker): Promise<boolean> {
    return (await this.#revoke({ id, user_id: userId }, reason, revoker)) === true;
  }

  #revoke(which: FindOptionsWhere<ApiKey>, reason: string, revoker: Revoker): Promise<boolean | undefined> {
    return audited(this.dataSource, async (manager) => {
      const key = await manager.findOneBy(ApiKey, which);
      if (!key) return undefined;
      const { id: keyId, user_id: userId } = key;
      const change = { revoked_at: () => 'now()', revocation_reason: reason };
      const { affected } = await manager.update(ApiKey, { id: keyId, revoked_at: IsNull() }, change);
      if (affected === 0) return false;
      await recordEvent(manager, { ...revoker, type: 'key.revoked', userId, keyId, details: { reason } });
      return true;
    });
  }

  #takePlace(manager: EntityManager, owner: Owner, most: number): Promise<void> {
    return takeSlot(
      manager,
      owner,
      `SELECT count(*) >= ${most} AS is_full FROM api_keys k WHERE k.user_id = $1 AND k.self_issued AND ${ACCEPTED}`,
      `${MAX_OWN_KEYS} keys already`,
    );
  }

  async #notRotatable(manager: EntityManager, id: string): Promise<OperatorError> {
    const [key] = await manager.query<KeyDetails[]>(`${KEY_DETAILS} WHERE k.id = $1`, [id]);
    if (key!.status === 'revoked') return new OperatorError(`The key ${id} is revoked: create a new one`);
    if (key!.status === 'expired') return new OperatorError(`The key ${id} has expired: create a new one`);
    return new OperatorError(
      `The key ${id} was rotated already: rotate its successor ${key!.replaced_by}, or create a new one`,
    );
  }
}
