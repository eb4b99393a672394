import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { audited, recordEvent, type AuditedTransaction, type NewAuthEvent } from '../../audit/audit.js';
import { boundChanges } from '../../auth/owner.js';
import type { Config } from '../../config/config.js';
import { Passkey } from '../../database/schema/entities/credentials/passkey.entity.js';
import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';
import { OperatorError } from '../../values/operator-error.js';

/** Maximum age in seconds of the sign-in that a change of sign-in methods requires. */
const CONFIRMED_SECONDS = 300;

/** Maximum passkeys of a member. */
export const MAX_PASSKEYS = 20;

export interface SignedInMember {
  readonly userId: number;
  /** Time of the sign-in, in seconds since 1970. */
  readonly at: number;
  /** The {@link SIGN_INS_VALID_SINCE} of their session. */
  readonly validSince: number | null;
  /** Whether they signed in with the external identity provider, a sign-in method that members cannot remove. */
  readonly upstream: boolean;
  readonly ip: string | null;
}

/** Times are in the API's format. */
export interface ShownPasskey {
  readonly id: number;
  readonly name: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly synced: boolean;
}

type NewPasskey = Omit<Passkey, 'id' | 'user_id' | 'created_at' | 'last_used_at'>;

/** Thrown before any change if the member signed in too long ago, or was signed out or disabled in the meantime. */
export class Unconfirmed extends Error {
  override name = 'Unconfirmed';
}

const SHOWN = `p.id, p.name, api_time(p.created_at) AS created_at, api_time(p.last_used_at) AS last_used_at, p.backed_up AS synced`;

const CONFIRMED = `to_timestamp($2) > now() - make_interval(secs => ${CONFIRMED_SECONDS})`;

/** Locks the row of a recently authenticated member, so that their concurrent changes run one after the other. */
const TAKE_MEMBER = `SELECT FROM users u WHERE u.id = $1 AND u.disabled_at IS NULL AND ${CONFIRMED}
AND ${SIGN_INS_VALID_SINCE} IS NOT DISTINCT FROM $3::bigint FOR UPDATE`;

/** Deletes a passkey, but not the last sign-in method. $3: whether the member can sign in with the external identity provider. */
const REMOVE = `DELETE FROM passkeys WHERE user_id = $1 AND id = $2 AND ($3::boolean
  OR EXISTS (SELECT FROM users WHERE id = $1 AND password_hash IS NOT NULL AND password_off_at IS NULL)
  OR EXISTS (SELECT FROM passkeys WHERE user_id = $1 AND id <> $2)) RETURNING id`;

const SWITCH_OFF = `UPDATE users SET password_off_at = now() WHERE id = $1 AND password_hash IS NOT NULL AND password_off_at IS NULL
  AND ($2::boolean OR EXISTS (SELECT FROM passkeys WHERE user_id = $1)) RETURNING id`;

const SWITCH_ON =
  'UPDATE users SET password_off_at = NULL WHERE id = $1 AND password_off_at IS NOT NULL RETURNING id';

const IS_PASSWORD_ON =
  'SELECT password_off_at IS NULL AS is_on FROM users WHERE id = $1 AND password_hash IS NOT NULL';

const CHANGE_PASSWORD = `UPDATE users SET password_hash = $2 WHERE id = $1 AND password_hash IS NOT NULL AND password_off_at IS NULL
RETURNING id`;

const END_OTHERS = 'DELETE FROM oauth_sessions WHERE user_id = $1 AND uid_key <> ALL ($2::bytea[])';

/** Lists and changes sign-in methods. A member's change requires a recent sign-in, is recorded, and leaves at least one sign-in method. */
@Injectable()
export class SignInMethods {
  constructor(private readonly dataSource: DataSource) {}

  /** @returns password `off`: the member disabled it; undefined if no enabled member has this id */
  async find(userId: number, at: number) {
    const [row] = await this.dataSource.query<{ password: 'none' | 'on' | 'off'; confirmed: boolean }[]>(
      `SELECT CASE WHEN u.password_hash IS NULL THEN 'none' WHEN u.password_off_at IS NULL THEN 'on' ELSE 'off' END AS password,
  ${CONFIRMED} AS confirmed FROM users u WHERE u.id = $1 AND u.disabled_at IS NULL`,
      [userId, at],
    );
    return row && { ...row, passkeys: await this.listPasskeys(userId) };
  }

  /** Lists passkeys, oldest first. */
  listPasskeys(userId: number): Promise<ShownPasskey[]> {
    return this.dataSource.query<ShownPasskey[]>(
      `SELECT ${SHOWN} FROM passkeys p WHERE p.user_id = $1 ORDER BY p.id`,
      [userId],
    );
  }

  /** Lists the passkeys that a new passkey must not duplicate, oldest first. */
  known(userId: number): Promise<Pick<Passkey, 'user_handle' | 'credential_id' | 'transports'>[]> {
    const select = { user_handle: true, credential_id: true, transports: true } as const;
    return this.dataSource.manager.find(Passkey, {
      select,
      where: { user_id: userId },
      order: { id: 'ASC' },
    });
  }

  /** @returns false if the passkey is already registered, or the member has {@link MAX_PASSKEYS} @throws Unconfirmed, TooManyChanges */
  addPasskey(by: SignedInMember, passkey: NewPasskey): Promise<boolean> {
    return this.#change(by, async (manager) => {
      await boundChanges(manager, by.userId);
      if ((await manager.countBy(Passkey, { user_id: by.userId })) >= MAX_PASSKEYS) return undefined;
      const values = { ...passkey, user_id: by.userId };
      const insert = manager.createQueryBuilder().insert().into(Passkey).values(values);
      const [added] = (await insert.orIgnore().returning('id').execute()).raw as { id: number }[];
      return added && { type: 'passkey.added', details: { passkey: added.id, synced: passkey.backed_up } };
    });
  }

  /** @returns false if it is the last sign-in method; true even if the passkey does not exist @throws Unconfirmed */
  removePasskey(by: SignedInMember, passkeyId: number): Promise<boolean> {
    return this.#change(by, async (manager) => {
      const [[removed]] = await manager.query<[{ id: number }[], number]>(REMOVE, [
        by.userId,
        passkeyId,
        by.upstream,
      ]);
      if (removed) return { type: 'passkey.removed', details: { passkey: removed.id } };
      return (await manager.existsBy(Passkey, { user_id: by.userId, id: passkeyId }))
        ? undefined
        : 'unchanged';
    });
  }

  /** Enables or disables the password. @returns false if it is missing or the last sign-in method @throws Unconfirmed, TooManyChanges */
  switchPassword(by: SignedInMember, on: boolean): Promise<boolean> {
    return this.#change(by, async (manager) => {
      await boundChanges(manager, by.userId);
      const [rows] = on
        ? await manager.query<[unknown[], number]>(SWITCH_ON, [by.userId])
        : await manager.query<[unknown[], number]>(SWITCH_OFF, [by.userId, by.upstream]);
      if (rows.length > 0) return { type: 'user.password_switched', details: { on } };
      const [now] = await manager.query<{ is_on: boolean }[]>(IS_PASSWORD_ON, [by.userId]);
      return now?.is_on === on ? 'unchanged' : undefined;
    });
  }

  /** @param kept default: all sessions @returns number of ended sessions; undefined if no password is enabled @throws Unconfirmed */
  async changePassword(
    by: SignedInMember,
    passwordHash: string,
    kept: readonly Buffer[] | undefined,
  ): Promise<number | undefined> {
    let ended = 0;
    const changed = await this.#change(by, async (manager) => {
      const { userId, ip } = by;
      const [rows] = await manager.query<[unknown[], number]>(CHANGE_PASSWORD, [userId, passwordHash]);
      if (rows.length === 0) return undefined;
      if (kept) {
        await manager.query(`DELETE FROM oauth_state WHERE user_id = $1 AND model = 'Interaction'`, [userId]);
        [, ended] = await manager.query<[unknown, number]>(END_OTHERS, [userId, kept]);
        if (ended > 0)
          await recordEvent(manager, {
            type: 'session.ended',
            actor: 'user',
            userId,
            ip,
            details: { sessions: ended },
          });
      }
      return { type: 'user.password_set', details: { sessions_kept: kept === undefined } };
    });
    return changed ? ended : undefined;
  }

  /** Removes a lost passkey for an admin, even the last sign-in method. @throws OperatorError if there is no such passkey */
  async removeLostPasskey(userId: number, passkeyId: number): Promise<void> {
    await audited(this.dataSource, async (manager) => {
      const [, count] = await manager.query<[unknown, number]>(
        'DELETE FROM passkeys WHERE user_id = $1 AND id = $2',
        [userId, passkeyId],
      );
      if (count === 0)
        throw new OperatorError(
          `The member ${userId} has no passkey ${passkeyId}: \`pua users passkeys ${userId}\` lists the existing ones`,
        );
      const details = { passkey: passkeyId };
      await recordEvent(manager, { type: 'passkey.removed', actor: 'admin', userId, details });
    });
  }

  async #change(
    { userId, at, validSince, ip }: SignedInMember,
    change: (manager: AuditedTransaction) => Promise<Told | 'unchanged' | undefined>,
  ): Promise<boolean> {
    return audited(this.dataSource, async (manager) => {
      const taken = await manager.query<unknown[]>(TAKE_MEMBER, [userId, at, validSince]);
      if (taken.length === 0) throw new Unconfirmed();
      const told = await change(manager);
      if (told && told !== 'unchanged') await recordEvent(manager, { ...told, actor: 'user', userId, ip });
      return told !== undefined;
    });
  }
}

/** Host of PUBLIC_URL, the RP ID of passkeys (WebAuthn level 3, §4). @returns undefined for an IP address, or without local sign-in */
export function passkeyDomain({ publicUrl, localSignIn }: Config): string | undefined {
  const { hostname } = new URL(publicUrl);
  const isName = isIP(hostname.replace(/^\[|\]$/g, '')) === 0;
  return localSignIn && isName ? hostname : undefined;
}

type Told = {
  [Type in Changed]: Pick<Extract<NewAuthEvent, { type: Type }>, 'type' | 'details'>;
}[Changed];

type Changed = 'passkey.added' | 'passkey.removed' | 'user.password_set' | 'user.password_switched';
