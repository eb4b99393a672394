import type { DataSource } from 'typeorm';
import { recordEvent } from '../audit/audit.js';
import type { NewAuthEvent } from '../audit/audit.js';
import { OperatorError } from '../values/operator-error.js';
import { contains, totalOfMember } from '../database/sql.js';
import { hashPassword } from './passwords.js';

type Actor = NewAuthEvent['actor'];

export interface NewUser {
  readonly username: string;
  readonly password?: string | undefined;
  readonly first_name?: string | undefined;
  readonly last_name?: string | undefined;
  /** The platform's own; where it is absent, the name or the username is shown. */
  readonly display_name?: string | undefined;
  readonly bio?: string | undefined;
  readonly profile_picture?: string | undefined;
}

/** A member as an admin sees them. Times in the API's form. */
export interface UserDetails {
  readonly id: number;
  readonly username: string;
  readonly first_name: string | null;
  readonly last_name: string | null;
  readonly display_name: string;
  readonly bio: string | null;
  readonly profile_picture: string | null;
  readonly created_at: string;
  readonly disabled_at: string | null;
  readonly erased_at: string | null;
  readonly has_password: boolean;
  readonly events_count: number;
  readonly connections_count: number;
  readonly achievements_count: number;
  /** Keys that are accepted now. */
  readonly live_keys_count: number;
}

const DETAILS = `SELECT u.id, u.username, u.first_name, u.last_name, u.display_name, u.bio, u.profile_picture,
  api_time(u.created_at) AS created_at, api_time(u.disabled_at) AS disabled_at, api_time(u.erased_at) AS erased_at,
  u.password_hash IS NOT NULL AS has_password,
  ${totalOfMember('events_count', 'u.id')} AS events_count,
  ${totalOfMember('connections_count', 'u.id')} AS connections_count,
  ${totalOfMember('achievements_count', 'u.id')} AS achievements_count,
  (SELECT count(*) FROM api_keys k WHERE k.user_id = u.id AND u.disabled_at IS NULL AND k.revoked_at IS NULL
    AND (k.expires_at IS NULL OR k.expires_at > now())) AS live_keys_count
FROM users u`;

/** Of a member, what an admin can change; null takes it away. */
export interface UserChanges {
  readonly username?: string | undefined;
  readonly first_name?: string | null | undefined;
  readonly last_name?: string | null | undefined;
  readonly display_name?: string | null | undefined;
  readonly bio?: string | null | undefined;
  readonly profile_picture?: string | null | undefined;
}

/** A member in a list. Times in the API's form. */
export type ListedUser = Pick<
  UserDetails,
  'id' | 'username' | 'display_name' | 'created_at' | 'disabled_at' | 'erased_at' | 'has_password'
>;

/** How many of each went with a member. */
export interface ErasedRows {
  readonly connections: number;
  readonly participations: number;
  readonly achievements: number;
  readonly api_keys: number;
}

/** PostgreSQL, appendix A: undefined_table, undefined_column. */
const OTHER_SCHEMA = ['42P01', '42703'];
/** The same: unique_violation. */
const UNIQUE_VIOLATION = '23505';

/** Members as accounts: made, found, given a password, disabled and enabled; used by the command line. */
export class UsersService {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * @returns the id
   * @throws OperatorError where the username is taken, or the password is not allowed
   */
  async create(user: NewUser, actor: Actor): Promise<number> {
    const passwordHash = user.password === undefined ? null : await hashPassword(user.password);
    return this.dataSource.transaction(async (manager) => {
      const [row] = await manager.query<{ id: number }[]>(
        `INSERT INTO users (username, password_hash, first_name, last_name, stored_display_name, bio, profile_picture)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (folded_username) DO NOTHING RETURNING id`,
        [
          user.username,
          passwordHash,
          user.first_name ?? null,
          user.last_name ?? null,
          user.display_name ?? null,
          user.bio ?? null,
          user.profile_picture ?? null,
        ],
      );
      if (!row) throw new OperatorError(`The username ${user.username} is taken: choose another`);
      await recordEvent(manager, { type: 'user.created', actor, userId: row.id });
      return row.id;
    });
  }

  /**
   * Digits alone are an id; where no member has it, and else, the text is a username in any case.
   *
   * @throws OperatorError where there is no such member
   */
  async find(idOrUsername: string): Promise<UserDetails> {
    const id = /^\d{1,15}$/.test(idOrUsername) ? Number(idOrUsername) : null;
    const [user] = await this.dataSource.query<UserDetails[]>(
      `${DETAILS} WHERE u.id = $1 OR u.folded_username = fold_case($2) ORDER BY u.id = $1 DESC NULLS LAST LIMIT 1`,
      [id, idOrUsername],
    );
    if (!user) throw unknownUser(idOrUsername);
    return user;
  }

  /**
   * The newest first.
   *
   * @param search case-insensitive substring of the username or the name shown
   */
  list(most: number, search?: string): Promise<ListedUser[]> {
    return this.dataSource.query<ListedUser[]>(
      `SELECT u.id, u.username, u.display_name, api_time(u.created_at) AS created_at, api_time(u.disabled_at) AS disabled_at,
  api_time(u.erased_at) AS erased_at, u.password_hash IS NOT NULL AS has_password
FROM users u
WHERE $2::text IS NULL OR ${contains('u.folded_username', '$2')} OR ${contains('u.folded_name', '$2')}
ORDER BY u.id DESC LIMIT $1`,
      [most, search ?? null],
    );
  }

  /**
   * As the platform changes a member, not as the member does: an import may change it again.
   *
   * @returns the columns that changed
   * @throws OperatorError where there is no such member, they were erased, or the username is taken
   */
  async update(userId: number, changes: UserChanges, actor: Actor): Promise<string[]> {
    await this.#refuseErased(userId);
    const wanted = Object.entries(changes)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name === 'display_name' ? 'stored_display_name' : name, value] as const);
    const columns = wanted.map(([column]) => column);
    return this.dataSource.transaction(async (manager) => {
      const [before] = await manager.query<Record<string, string | null>[]>(
        `SELECT ${columns.join(', ')} FROM users WHERE id = $1 FOR UPDATE`,
        [userId],
      );
      if (!before) throw unknownUser(String(userId));
      const different = wanted.filter(([column, value]) => before[column] !== value);
      if (different.length === 0) return [];
      await manager
        .query(
          `UPDATE users SET ${different.map(([column], i) => `${column} = $${i + 2}`).join(', ')} WHERE id = $1`,
          [userId, ...different.map(([, value]) => value)],
        )
        .catch((error: { code?: string }) => {
          if (error.code !== UNIQUE_VIOLATION) throw error;
          throw new OperatorError(`The username ${changes.username} is taken: choose another`);
        });
      const changed = different.map(([column]) => column);
      await recordEvent(manager, { type: 'user.updated', actor, userId, details: { changed } });
      return changed;
    });
  }

  /**
   * The same of any schema, so that nobody keeps access because a migration is ahead or behind.
   *
   * @throws OperatorError where there is no such member
   */
  async identify(idOrUsername: string): Promise<Pick<UserDetails, 'id' | 'username' | 'disabled_at'>> {
    try {
      return await this.find(idOrUsername);
    } catch (error) {
      if (!OTHER_SCHEMA.includes((error as { code?: string }).code ?? '')) throw error;
    }
    const [user] = await this.dataSource.query<Pick<UserDetails, 'id' | 'username' | 'disabled_at'>[]>(
      `SELECT id, username, api_time(disabled_at) AS disabled_at FROM users
WHERE id::text = $1 OR fold_case(username) = fold_case($1) ORDER BY id::text = $1 DESC LIMIT 1`,
      [idOrUsername],
    );
    if (!user) throw unknownUser(idOrUsername);
    return user;
  }

  /**
   * Whatever was signed in before ends with the old password (`sign_ins_valid_since`): browser sessions, sign-ins under way,
   * the access of apps. API keys are not signed in by a password, and go on.
   *
   * @param keepSessions nothing ends
   * @throws OperatorError where the password is not allowed, or the member was erased
   */
  async setPassword(
    userId: number,
    password: string,
    actor: Actor,
    { keepSessions = false }: { keepSessions?: boolean | undefined } = {},
  ): Promise<void> {
    await this.#refuseErased(userId);
    const passwordHash = await hashPassword(password);
    await this.dataSource.transaction(async (manager) => {
      await manager.query(
        `UPDATE users SET password_hash = $2,
  sign_ins_valid_since = CASE WHEN $3 THEN sign_ins_valid_since ELSE clock_timestamp() END WHERE id = $1`,
        [userId, passwordHash, keepSessions],
      );
      await recordEvent(manager, {
        type: 'user.password_set',
        actor,
        userId,
        details: { sessions_kept: keepSessions },
      });
    });
  }

  /** The member's keys and sign-ins end with it. @returns false where it was so already */
  async disable(userId: number, actor: Actor): Promise<boolean> {
    return this.#change(
      'UPDATE users SET disabled_at = now() WHERE id = $1 AND disabled_at IS NULL RETURNING id',
      'user.disabled',
      userId,
      actor,
    );
  }

  /**
   * Keys that have not ended meanwhile work again.
   *
   * @returns false where it was so already
   * @throws OperatorError where the member was erased
   */
  async enable(userId: number, actor: Actor): Promise<boolean> {
    await this.#refuseErased(userId);
    return this.#change(
      'UPDATE users SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL AND erased_at IS NULL RETURNING id',
      'user.enabled',
      userId,
      actor,
    );
  }

  /**
   * Takes away everything of a member but the id, for good (GDPR art. 17): profile, password, connections on both sides, answers,
   * achievements, API keys, sign-ins, and of the audit trail addresses and details. Events that they organised are the platform's,
   * and stay.
   *
   * @returns what went; undefined where the member was erased already
   */
  async erase(userId: number, actor: Actor): Promise<ErasedRows | undefined> {
    return this.dataSource.transaction(async (manager) => {
      // First: it ends what is signed in, and keeps others from adding to the member meanwhile.
      const [erased] = await manager.query<[unknown[], number]>(
        `UPDATE users SET erased_at = now(), disabled_at = COALESCE(disabled_at, now()), sign_ins_valid_since = clock_timestamp(),
  username = 'erased-' || id, password_hash = NULL, first_name = NULL, last_name = NULL, stored_display_name = NULL, bio = NULL,
  profile_picture = NULL, edited_fields = '{}' WHERE id = $1 AND erased_at IS NULL RETURNING id`,
        [userId],
      );
      if (erased.length === 0) return undefined;
      const gone = async (sql: string) => (await manager.query<[unknown[], number]>(sql, [userId]))[1];
      const sides = await gone('DELETE FROM connections WHERE user_id = $1 OR peer_id = $1');
      const rows = {
        connections: sides / 2,
        participations: await gone('DELETE FROM participants WHERE user_id = $1'),
        achievements: await gone('DELETE FROM user_achievements WHERE user_id = $1'),
        api_keys: await this.#eraseKeys(gone),
      };
      await gone('DELETE FROM oauth_consents WHERE user_id = $1');
      await gone('DELETE FROM changes WHERE user_id = $1');
      await gone(`UPDATE auth_events SET ip = NULL, details = '{}' WHERE user_id = $1`);
      await recordEvent(manager, { type: 'user.erased', actor, userId });
      return rows;
    });
  }

  async #refuseErased(userId: number): Promise<void> {
    const erased = await this.dataSource.query<unknown[]>(
      'SELECT FROM users WHERE id = $1 AND erased_at IS NOT NULL',
      [userId],
    );
    if (erased.length > 0) throw new OperatorError(`The member ${userId} was erased: that cannot be undone`);
  }

  async #eraseKeys(gone: (sql: string) => Promise<number>): Promise<number> {
    await gone('DELETE FROM api_key_usage WHERE key_id IN (SELECT id FROM api_keys WHERE user_id = $1)');
    return gone('DELETE FROM api_keys WHERE user_id = $1');
  }

  async #change(
    update: string,
    type: 'user.disabled' | 'user.enabled',
    userId: number,
    actor: Actor,
  ): Promise<boolean> {
    return this.dataSource.transaction(async (manager) => {
      const [changed] = await manager.query<[unknown[], number]>(update, [userId]);
      if (changed.length === 0) return false;
      await recordEvent(manager, { type, actor, userId });
      return true;
    });
  }
}

function unknownUser(idOrUsername: string): OperatorError {
  return new OperatorError(
    `There is no member with the id or username ${idOrUsername}: create one with \`pua users create\``,
  );
}
