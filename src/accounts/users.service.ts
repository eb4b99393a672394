import { Injectable } from '@nestjs/common';
import { DataSource, IsNull, Not, type FindOptionsWhere } from 'typeorm';
import { audited, recordEvent, type NewAuthEvent } from '../audit/audit.js';
import { OperatorError } from '../values/operator-error.js';
import { User } from '../resources/profile/table.js';
import { contains, totalOfMember } from '../database/sql.js';
import { trimmed } from '../values/string-rules.js';
import { isId } from '../values/vocabulary.js';
import { checkPassword, hashPassword } from './passwords/passwords.js';

type Actor = NewAuthEvent['actor'];

type Optional = 'external_id' | 'email' | 'first_name' | 'last_name' | 'bio' | 'profile_picture';

/** If there is no `display_name`, the API shows the name or the username. */
interface NewUser extends Partial<Record<Optional | 'display_name' | 'password', string | undefined>> {
  readonly username: string;
}

/** Times are in the API's format. */
interface UserDetails extends Pick<User, 'id' | 'username' | 'display_name' | Optional> {
  readonly created_at: string;
  readonly disabled_at: string | null;
  readonly erased_at: string | null;
  readonly has_password: boolean;
  readonly password_off_at: string | null;
  readonly passkeys_count: number;
  readonly events_count: number;
  readonly connections_count: number;
  readonly achievements_count: number;
  readonly live_keys_count: number;
}

const DETAILS = `SELECT u.id, u.username, u.external_id, u.email, u.first_name, u.last_name, u.display_name, u.bio,
  u.profile_picture,
  api_time(u.created_at) AS created_at, api_time(u.disabled_at) AS disabled_at, api_time(u.erased_at) AS erased_at,
  u.password_hash IS NOT NULL AS has_password, api_time(u.password_off_at) AS password_off_at,
  (SELECT count(*) FROM passkeys p WHERE p.user_id = u.id) AS passkeys_count,
  ${totalOfMember('events_count', 'u.id')} AS events_count,
  ${totalOfMember('connections_count', 'u.id')} AS connections_count,
  ${totalOfMember('achievements_count', 'u.id')} AS achievements_count,
  (SELECT count(*) FROM api_keys k WHERE k.user_id = u.id AND u.disabled_at IS NULL AND k.revoked_at IS NULL
    AND (k.expires_at IS NULL OR k.expires_at > now())) AS live_keys_count
FROM users u`;

/** null clears a field. */
interface UserChanges extends Partial<Record<Optional | 'display_name', string | null | undefined>> {
  readonly username?: string | undefined;
}

/** Times are in the API's format. */
export type ListedUser = Pick<
  UserDetails,
  'id' | 'username' | 'display_name' | 'created_at' | 'disabled_at' | 'erased_at' | 'has_password'
>;

type IdentifiedUser = Pick<UserDetails, 'id' | 'username' | 'disabled_at'>;

/** PostgreSQL, appendix A: undefined_table, undefined_column. */
const OTHER_SCHEMA = ['42P01', '42703'];
const UNIQUE_VIOLATION = '23505';
const EXTERNAL_ID_KEY = 'users_external_id_key';

/** Admin operations on members, for the command line. */
@Injectable()
export class UsersService {
  constructor(private readonly dataSource: DataSource) {}

  /** @returns the id @throws OperatorError if the username or external id is taken, or the password is not allowed */
  async create(user: NewUser, actor: Actor): Promise<number> {
    if (user.password !== undefined) checkPassword(user.password, user.username);
    const { password, display_name: stored_display_name, ...columns } = user;
    const password_hash = password === undefined ? null : await hashPassword(password);
    const values = { ...columns, stored_display_name, password_hash } as Partial<User>;
    return audited(this.dataSource, async (manager) => {
      const { raw } = await manager.insert(User, values).catch(refuseTaken(user));
      const [{ id: userId }] = raw as [{ id: number }];
      await recordEvent(manager, { type: 'user.created', actor, userId });
      return userId;
    });
  }

  /** Finds a member by id or username, ignoring case and surrounding space; digits match ids first. @throws OperatorError if none */
  async find(typed: string): Promise<UserDetails> {
    const idOrUsername = trimmed(typed);
    const id = /^\d{1,16}$/.test(idOrUsername) && isId(Number(idOrUsername)) ? Number(idOrUsername) : null;
    const [user] = await this.dataSource.query<UserDetails[]>(
      `${DETAILS} WHERE u.id = $1 OR u.folded_username = fold_case($2) ORDER BY u.id = $1 DESC NULLS LAST LIMIT 1`,
      [id, idOrUsername],
    );
    if (!user) throw unknownUser(idOrUsername);
    return user;
  }

  async countWithoutSignIn(): Promise<number> {
    const [row] = await this.dataSource.query<[{ count: number }]>(
      `SELECT count(*)::integer AS count FROM users u WHERE u.disabled_at IS NULL AND u.erased_at IS NULL
  AND u.password_hash IS NULL AND NOT EXISTS (SELECT FROM passkeys p WHERE p.user_id = u.id)`,
    );
    return row.count;
  }

  /** Lists the newest members first. @param search part of username or name, in any case @param before exclusive upper bound of ids */
  list(most: number, { search, before }: { search?: string | undefined; before?: number | undefined }) {
    return this.dataSource.query<ListedUser[]>(
      `SELECT u.id, u.username, u.display_name, api_time(u.created_at) AS created_at, api_time(u.disabled_at) AS disabled_at,
  api_time(u.erased_at) AS erased_at, u.password_hash IS NOT NULL AS has_password
FROM users u
WHERE ($2::text IS NULL OR ${contains('u.folded_username', '$2')} OR ${contains('u.folded_name', '$2')})
  AND ($3::bigint IS NULL OR u.id < $3)
ORDER BY u.id DESC LIMIT $1`,
      [most, search ?? null, before ?? null],
    );
  }

  /** Changes a member; a later import may overwrite the change. @returns the changed columns @throws OperatorError */
  async update(userId: number, changes: UserChanges, actor: Actor): Promise<string[]> {
    await this.#refuseErased(userId);
    const { display_name: stored_display_name, ...others } = changes;
    const wanted = Object.entries({ ...others, stored_display_name }) as [keyof User, unknown][];
    return audited(this.dataSource, async (manager) => {
      const lock = { mode: 'pessimistic_write' } as const;
      const before = await manager.findOne(User, { where: { id: userId }, lock });
      if (!before) throw unknownUser(String(userId));
      const different = wanted.filter(([column, value]) => value !== undefined && before[column] !== value);
      if (different.length === 0) return [];
      const columns = Object.fromEntries(different);
      await manager.update(User, { id: userId }, columns).catch(refuseTaken(changes));
      const changed = different.map(([column]) => column);
      await recordEvent(manager, { type: 'user.updated', actor, userId, details: { changed } });
      return changed;
    });
  }

  /** Finds a member even with another schema version, so that admins can revoke access then. @throws OperatorError if there is none */
  async identify(typed: string): Promise<IdentifiedUser> {
    const idOrUsername = trimmed(typed);
    try {
      return await this.find(idOrUsername);
    } catch (error) {
      if (!OTHER_SCHEMA.includes((error as { code?: string }).code ?? '')) throw error;
    }
    const [user] = await this.dataSource.query<IdentifiedUser[]>(
      `SELECT id, username, api_time(disabled_at) AS disabled_at FROM users
WHERE id::text = $1 OR fold_case(username) = fold_case($1) ORDER BY id::text = $1 DESC LIMIT 1`,
      [idOrUsername],
    );
    if (!user) throw unknownUser(idOrUsername);
    return user;
  }

  /** Sets a password. Unless `keepSessions`, ends sessions, apps' access and calendar links, but no API keys. @throws OperatorError */
  async setPassword(
    userId: number,
    password: string,
    actor: Actor,
    { keepSessions = false }: { keepSessions?: boolean | undefined } = {},
  ): Promise<void> {
    await this.#refuseErased(userId);
    checkPassword(password, (await this.find(String(userId))).username);
    const passwordHash = await hashPassword(password);
    const columns = {
      password_hash: passwordHash,
      password_off_at: null,
      ...(keepSessions ? {} : { sign_ins_valid_since: () => 'clock_timestamp()' }),
    };
    const details = { sessions_kept: keepSessions };
    await audited(this.dataSource, async (manager) => {
      await manager.update(User, { id: userId }, columns);
      await recordEvent(manager, { type: 'user.password_set', actor, userId, details });
    });
  }

  /** Disables a member, their keys, sign-ins and own apps; `enable` does not enable the apps. @returns false if already disabled */
  async disable(userId: number, actor: Actor): Promise<boolean> {
    return this.#setDisabled({ id: userId, disabled_at: IsNull() }, true, actor);
  }

  /** Enables a member; unexpired, unrevoked keys work again. @returns false if they were already enabled @throws OperatorError if erased */
  async enable(userId: number, actor: Actor): Promise<boolean> {
    await this.#refuseErased(userId);
    return this.#setDisabled({ id: userId, disabled_at: Not(IsNull()), erased_at: IsNull() }, false, actor);
  }

  async #refuseErased(userId: number): Promise<void> {
    const erased = await this.dataSource.manager.existsBy(User, { id: userId, erased_at: Not(IsNull()) });
    if (erased) throw new OperatorError(`The member ${userId} was erased: that cannot be undone`);
  }

  async #setDisabled(who: FindOptionsWhere<User> & { id: number }, disabled: boolean, actor: Actor) {
    return audited(this.dataSource, async (manager) => {
      const { affected } = await manager.update(User, who, { disabled_at: disabled ? () => 'now()' : null });
      if (affected === 0) return false;
      const type = disabled ? 'user.disabled' : 'user.enabled';
      await recordEvent(manager, { type, actor, userId: who.id });
      return true;
    });
  }
}

function refuseTaken({ username, external_id }: UserChanges) {
  return (error: { code?: string; constraint?: string }): never => {
    if (error.code !== UNIQUE_VIOLATION) throw error;
    throw new OperatorError(
      error.constraint === EXTERNAL_ID_KEY
        ? `The external id ${external_id} belongs to another member: choose another`
        : `The username ${username} is taken: choose another`,
    );
  };
}

function unknownUser(idOrUsername: string): OperatorError {
  return new OperatorError(
    `There is no member with the id or username ${idOrUsername}: create one with \`pua users create\``,
  );
}
