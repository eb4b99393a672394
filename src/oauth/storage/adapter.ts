import { errors } from 'oidc-provider';
import type { Adapter, AdapterPayload, ClientMetadata } from 'oidc-provider';
import { eitherOf, USE_ONCE } from '../../auth/access-tokens/token-keys.js';
import type { TokenKeys } from '../../auth/access-tokens/token-keys.js';
import { recordEventIf } from '../../audit/audit.js';
import type { NewAuthEvent } from '../../audit/audit.js';
import { isStorable } from '../../values/string-rules.js';
import type { OauthClient } from '../../database/entities/oauth.entity.js';
import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';
import type { ClientCache } from './client-cache.js';
import { LIFETIMES } from '../provider/lifetimes.js';
import type { NewToken, OauthDatabase, TokenFamily, TokenRequest } from './oauth-database.js';
import type { Encryption } from '../../crypto/encryption.js';

/** For this long a used refresh token gets the answer again that it got when it was used. */
export const REPEAT_SECONDS = 10;

export interface AdapterParts {
  readonly database: OauthDatabase;
  readonly keys: TokenKeys;
  readonly encryption: Encryption;
  readonly clients: ClientCache;
}

/**
 * Where oidc-provider keeps its models. The id of every model but clients and grants is a secret: rows are found by an
 * HMAC of it, and what could be of use to whoever reads the database is encrypted. Expiry is judged by the database's
 * clock alone.
 */
export function adapterFactory(parts: AdapterParts): (model: string) => Adapter {
  return (model) => {
    switch (model) {
      case 'Client':
        return new ClientAdapter(parts);
      case 'Grant':
        return new GrantAdapter(parts);
      case 'Session':
        return new SessionAdapter(parts);
      case 'AuthorizationCode':
      case 'AccessToken':
      case 'RefreshToken':
        return new TokenAdapter(parts, model);
      case 'Interaction':
      case 'PushedAuthorizationRequest':
        return new StateAdapter(parts, model);
      case 'ReplayDetection':
        return new ReplayAdapter(parts);
      default:
        return new Unsupported();
    }
  };
}

/** A model of a feature that is switched off. */
class Unsupported implements Adapter {
  find(_id: string): Promise<AdapterPayload | undefined> {
    return this.#refuse();
  }
  findByUid(_uid: string): Promise<AdapterPayload | undefined> {
    return this.#refuse();
  }
  findByUserCode(): Promise<undefined> {
    return this.#refuse();
  }
  upsert(_id: string, _payload: AdapterPayload, _expiresIn: number): Promise<void> {
    return this.#refuse();
  }
  consume(_id: string): Promise<void> {
    return this.#refuse();
  }
  destroy(_id: string): Promise<void> {
    return this.#refuse();
  }
  revokeByGrantId(_grantId: string): Promise<void> {
    return this.#refuse();
  }

  #refuse(): Promise<never> {
    return Promise.reject(new Error('this model is not stored'));
  }
}

const FIND_CLIENT = {
  name: 'find-client',
  text: `SELECT id, name, type, redirect_uris, post_logout_redirect_uris, allowed_origins, scopes, jwks
FROM oauth_clients WHERE id = $1 AND disabled_at IS NULL`,
};

class ClientAdapter extends Unsupported {
  constructor(private readonly parts: AdapterParts) {
    super();
  }

  /** A disabled client is unknown. */
  override async find(id: string): Promise<AdapterPayload | undefined> {
    // It may come from a claim of an assertion, which is whatever its sender wrote.
    if (typeof id !== 'string' || id.length > 100 || !isStorable(id)) return undefined;
    const { clients, database } = this.parts;
    return clients.find(id, async () => {
      const [client] = await database.read<OauthClient & Record<string, unknown>>(FIND_CLIENT, [id]);
      return client && (clientMetadata(client) as AdapterPayload);
    });
  }
}

/** A client's row as oidc-provider wants it (RFC 7591 names, and two of ours). */
export function clientMetadata(
  client: Omit<OauthClient, 'created_at' | 'disabled_at'>,
): ClientMetadata & { allowed_origins: string[]; api_scopes: string } {
  return {
    client_id: client.id,
    client_name: client.name,
    application_type: client.type,
    redirect_uris: client.redirect_uris,
    post_logout_redirect_uris: client.post_logout_redirect_uris,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    response_modes: ['query'],
    ...(client.jwks
      ? { token_endpoint_auth_method: 'private_key_jwt', jwks: client.jwks }
      : { token_endpoint_auth_method: 'none' }),
    allowed_origins: client.allowed_origins,
    api_scopes: client.scopes.join(' '),
  };
}

/**
 * The member of a sign-in ($1), where it still counts ($2, see {@link SIGN_INS_VALID_SINCE}), for a statement that stores what
 * comes of it: whoever ends sign-ins waits until it is stored, and finds it.
 */
const SIGNED_IN = `signed_in AS (
  SELECT FROM users u WHERE u.id = $1::bigint AND u.disabled_at IS NULL AND ${SIGN_INS_VALID_SINCE} IS NOT DISTINCT FROM $2::bigint
  FOR KEY SHARE
)`;

/** The parameters of {@link SIGNED_IN}. A member who was not signed in by anything that this request read is nobody. */
function signedIn(
  { current }: OauthDatabase,
  userId: number | null,
): [userId: number | null, since: number | null] {
  if (userId === null) return [null, null];
  const validSince = current?.signIns.get(userId);
  return validSince === undefined ? [NOBODY, null] : [userId, validSince];
}

/** What was read first counts: it is the oldest. */
function relyOn({ current }: OauthDatabase, userId: number, validSince: number | null): void {
  if (current && !current.signIns.has(userId)) current.signIns.set(userId, validSince);
}

/** No member's id. */
const NOBODY = 0;

const FIND_GRANT = {
  name: 'find-grant',
  text: 'SELECT payload FROM oauth_grants WHERE id = $1 AND expires_at > now()',
};

class GrantAdapter extends Unsupported {
  constructor(private readonly parts: AdapterParts) {
    super();
  }

  override async find(id: string): Promise<AdapterPayload | undefined> {
    const { database } = this.parts;
    const family = database.current?.token?.family;
    if (family?.grant_id === id) return family.grant ? alive({ ...family.grant, jti: id }) : undefined;
    const [row] = await database.read<{ payload: AdapterPayload }>(FIND_GRANT, [id]);
    return row && alive({ ...row.payload, jti: id });
  }

  /** @throws SessionNotFound where the member's sign-in counts no longer */
  override async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database } = this.parts;
    const { jti: _, ...stored } = payload;
    const userId = Number(payload.accountId);
    const written = await refusingOrphans(
      database.rows(
        `WITH ${SIGNED_IN}
INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
SELECT $3, $1, $4, $5::jsonb, now() + make_interval(secs => $6) WHERE EXISTS (SELECT FROM signed_in)
ON CONFLICT (id) DO UPDATE SET payload = EXCLUDED.payload RETURNING 1`,
        [
          ...signedIn(database, userId),
          id,
          payload.clientId,
          JSON.stringify(stored),
          Math.min(expiresIn, LIFETIMES.unusedGrant),
        ],
      ),
    );
    if (written.length === 0) throw new errors.SessionNotFound('the sign-in was ended');
  }

  /** Ends the whole family in one statement: its codes and tokens go with it. */
  override async destroy(id: string): Promise<void> {
    const { database } = this.parts;
    const gone = await database.row<{ user_id: number }>(
      'DELETE FROM oauth_grants WHERE id = $1 RETURNING user_id',
      [id],
    );
    const asked = database.current?.token;
    if (asked) asked.revokedGrant = { id, userId: gone?.user_id ?? null };
  }
}

interface TokenRow extends TokenFamily, Record<string, unknown> {
  payload: AdapterPayload;
  consumed: boolean;
  successor: Buffer | null;
  used_seconds_ago: number | null;
}

/** With its family; a code that was used stays to be found, so that using it again ends what came of it. */
const FIND_TOKEN = {
  name: 'find-token',
  text: `SELECT t.payload, t.consumed_at IS NOT NULL AS consumed, t.successor,
  EXTRACT(epoch FROM clock_timestamp() - t.consumed_at)::float8 AS used_seconds_ago, t.key, g.id AS grant_id, g.user_id,
  CASE WHEN g.expires_at > now() THEN g.payload END AS grant, u.disabled_at IS NULL AS user_active
FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id JOIN users u ON u.id = g.user_id
  JOIN oauth_clients c ON c.id = g.client_id
WHERE t.key IN ($1, $2) AND t.model = $3 AND c.disabled_at IS NULL
  AND (t.expires_at > now() OR (t.model = 'AuthorizationCode' AND t.consumed_at IS NOT NULL))`,
};

class TokenAdapter extends Unsupported {
  constructor(
    private readonly parts: AdapterParts,
    private readonly model: string,
  ) {
    super();
  }

  override async find(id: string): Promise<AdapterPayload | undefined> {
    const { database, keys } = this.parts;
    const candidates = keys.keysOf(this.model, id);
    if (candidates.length === 0) return undefined;
    const [row] = await database.read<TokenRow>(FIND_TOKEN, [...eitherOf(candidates), this.model]);
    if (!row) return undefined;
    const asked = database.current?.token;
    if (asked) asked.family = row;
    const token = alive({ ...row.payload, jti: id });
    if (!row.consumed) return token;
    if (asked && row.successor && row.used_seconds_ago! < REPEAT_SECONDS) {
      // The library checks it like a fresh one, as far as using it up.
      asked.successor = { sealed: row.successor, secondsAgo: row.used_seconds_ago! };
      return token;
    }
    return { ...token, consumed: Math.floor(Date.now() / 1000 - row.used_seconds_ago!) };
  }

  override async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database, keys } = this.parts;
    // The session is asked for where tokens end with it, which ours do not: whoever reads the database learns no uid.
    const { jti: _, sessionUid: __, ...stored } = payload;
    const token = {
      key: keys.keyOf(this.model, id),
      model: this.model,
      grantId: payload.grantId!,
      payload: JSON.stringify(stored),
      seconds: expiresIn,
    };
    const asked = database.current?.token;
    if (asked) asked.issued.push(token);
    else
      await refusingOrphans(
        database.rows(NEW_CODE, [
          token.key,
          token.model,
          token.grantId,
          token.payload,
          token.seconds,
          LIFETIMES.grant,
        ]),
      );
  }

  /** Single use: {@link finish} decides which of many in parallel it is. */
  override consume(id: string): Promise<void> {
    const { database, keys } = this.parts;
    const asked = database.current!.token!;
    if (asked.successor) {
      asked.repeated = true;
      throw new errors.InvalidGrant('the token was used a moment ago');
    }
    asked.uses = keys.keysOf(this.model, id).find((key) => key.equals(asked.family!.key));
    return Promise.resolve();
  }

  /** Nothing, and so with the next: the library deletes the grant as well, and all its tokens go with it at once. */
  override destroy(_id: string): Promise<void> {
    return Promise.resolve();
  }

  override revokeByGrantId(_grantId: string): Promise<void> {
    return Promise.resolve();
  }
}

const NEW_TOKENS = `INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
SELECT key, model, grant_id, payload::jsonb, now() + make_interval(secs => seconds)
FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::float8[]) AS t (key, model, grant_id, payload, seconds)`;

/** With its code a grant is given its whole life: one of which nothing came is swept soon. */
const NEW_CODE = `WITH used AS (
  UPDATE oauth_grants SET expires_at = created_at + make_interval(secs => $6) WHERE id = $3
) INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))`;

function tokenValues(tokens: readonly NewToken[]): unknown[] {
  return [
    tokens.map(({ key }) => key),
    tokens.map(({ model }) => model),
    tokens.map(({ grantId }) => grantId),
    tokens.map(({ payload }) => payload),
    tokens.map(({ seconds }) => seconds),
  ];
}

/**
 * All that a successful token request writes, or nothing: one statement is one transaction. The grant is locked first,
 * always, since whoever revokes it holds its lock before it touches the tokens. The presented token ($7) is used up by a
 * conditional UPDATE, of which one of many in parallel succeeds, and keeps the answer for who asks again ($6); what was
 * issued is stored; the audit trail has a line.
 */
const FINISH = `WITH family AS MATERIALIZED (
  SELECT id FROM oauth_grants WHERE id = $16 FOR UPDATE
), used AS (
  UPDATE oauth_tokens t SET consumed_at = clock_timestamp(), successor = $6 FROM family
  WHERE t.key = $7 AND t.grant_id = family.id AND t.consumed_at IS NULL RETURNING 1
), issued AS (${NEW_TOKENS}, used), recorded AS (
  ${recordEventIf('used', 8)}
) SELECT FROM used`;

/**
 * Writes what came of a token request.
 *
 * @param successor sealed; null where the token cannot be asked for again
 * @returns false, and nothing is written, where another request has used the token or ended the grant since it was read
 */
export async function finish(
  database: OauthDatabase,
  { family, uses, issued }: TokenRequest,
  successor: Buffer | null,
  event: NewAuthEvent,
): Promise<boolean> {
  const written = await database.rows(FINISH, [
    ...tokenValues(issued),
    successor,
    uses,
    ...database.eventValues(event),
    family!.grant_id,
  ]);
  return written.length === 1;
}

/** $6: when the member signed in; $7: for how many seconds it may be left alone. */
const SESSION_ENDS = `LEAST(now() + make_interval(secs => $7), to_timestamp($6) + make_interval(secs => ${LIFETIMES.longestSession}))`;

const INSERT_SESSION = `WITH ${SIGNED_IN}
INSERT INTO oauth_sessions (user_id, uid_key, key, payload, signed_in_at, expires_at, user_agent, ip)
SELECT $1, $3, $4, $5, to_timestamp($6), ${SESSION_ENDS}, $8, $9::inet WHERE $1::bigint IS NULL OR EXISTS (SELECT FROM signed_in)`;

const UPDATE_SESSION = `WITH ${SIGNED_IN}
UPDATE oauth_sessions SET user_id = $1, uid_key = $3, key = $4, payload = $5, signed_in_at = to_timestamp($6),
  expires_at = ${SESSION_ENDS}, last_seen_at = now(), user_agent = COALESCE($8, user_agent), ip = COALESCE($9::inet, ip)
WHERE uid_key IN ($10, $11) AND ($1::bigint IS NULL OR EXISTS (SELECT FROM signed_in))`;

interface SessionRow extends Record<string, unknown> {
  payload: Buffer;
  uid_key: Buffer;
  key: Buffer;
  user_id: number | null;
  valid_since: number | null;
}

class SessionAdapter extends Unsupported {
  constructor(private readonly parts: AdapterParts) {
    super();
  }

  override async find(id: string): Promise<AdapterPayload | undefined> {
    const session = await this.#read('key', this.parts.keys.keysOf('Session', id));
    return session && { ...session, jti: id };
  }

  override findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return this.#read('uid_key', this.parts.keys.keysOf('Session.uid', uid));
  }

  /** A session that was ended since it was read is not brought back, nor is one stored for a sign-in that was ended. */
  override async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database, keys, encryption } = this.parts;
    const { current } = database;
    const { jti: _, ...stored } = payload;
    const userId = payload.accountId === undefined ? null : Number(payload.accountId);
    const rowKeys = [keys.keyOf('Session.uid', payload.uid!), keys.keyOf('Session', id)];
    const values = [
      ...signedIn(database, userId),
      ...rowKeys,
      encryption.seal(stored, 'Session', ...rowKeys),
      payload.loginTs ?? null,
      expiresIn,
      current?.userAgent?.slice(0, 300) ?? null,
      current?.ip ?? null,
    ];
    const found = current?.session;
    if (found?.uid === payload.uid && !found?.deleted)
      await database.rows(UPDATE_SESSION, [...values, ...eitherOf(keys.keysOf('Session.uid', payload.uid!))]);
    else await database.rows(INSERT_SESSION, values);
    if (current) current.session = { uid: payload.uid!, deleted: false };
  }

  /** At sign-out; and where the session gets another id, after which it is stored anew. */
  override async destroy(id: string): Promise<void> {
    const { database, keys } = this.parts;
    const deleted = await database.rows(
      'DELETE FROM oauth_sessions WHERE key IN ($1, $2) RETURNING 1',
      eitherOf(keys.keysOf('Session', id)),
    );
    if (database.current?.session) database.current.session.deleted = deleted.length > 0;
  }

  async #read(column: 'key' | 'uid_key', candidates: Buffer[]): Promise<AdapterPayload | undefined> {
    if (candidates.length === 0) return undefined;
    const { database, encryption } = this.parts;
    const row = await database.row<SessionRow>(
      `SELECT s.payload, s.uid_key, s.key, s.user_id, ${SIGN_INS_VALID_SINCE} AS valid_since
FROM oauth_sessions s LEFT JOIN users u ON u.id = s.user_id WHERE s.${column} IN ($1, $2) AND s.expires_at > now()`,
      eitherOf(candidates),
    );
    const payload = row && encryption.open<AdapterPayload>(row.payload, 'Session', row.uid_key, row.key);
    if (!payload) return undefined;
    const { current } = database;
    if (current) {
      current.session = { uid: payload.uid!, deleted: false };
      if (row.user_id !== null) relyOn(database, row.user_id, row.valid_since);
    }
    return alive(payload);
  }
}

class StateAdapter extends Unsupported {
  constructor(
    private readonly parts: AdapterParts,
    private readonly model: string,
  ) {
    super();
  }

  override async find(id: string): Promise<AdapterPayload | undefined> {
    const { database, keys, encryption } = this.parts;
    const candidates = keys.keysOf(this.model, id);
    if (candidates.length === 0) return undefined;
    const row = await database.row<{
      payload: Buffer;
      key: Buffer;
      consumed: boolean;
      user_id: number | null;
      valid_since: number | null;
    }>(
      `SELECT s.payload, s.key, s.consumed_at IS NOT NULL AS consumed, s.user_id, ${SIGN_INS_VALID_SINCE} AS valid_since
FROM oauth_state s LEFT JOIN users u ON u.id = s.user_id WHERE s.key IN ($1, $2) AND s.model = $3 AND s.expires_at > now()`,
      [...eitherOf(candidates), this.model],
    );
    const payload = row && encryption.open<AdapterPayload>(row.payload, this.model, row.key);
    if (!payload) return undefined;
    const userId = memberOf(payload);
    // Without the column it was stored by the version before: good as long as nothing was ended since.
    if (userId !== null) relyOn(database, userId, row.user_id === userId ? row.valid_since : null);
    return alive({ ...payload, jti: id, ...(row.consumed ? { consumed: true } : {}) });
  }

  /** @throws SessionNotFound where the sign-in of the interaction's member counts no longer */
  override async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database, keys, encryption } = this.parts;
    const { jti: _, ...stored } = payload;
    // The session's id is its secret, and an interaction needs its uid only.
    if (stored.session) stored.session = { ...stored.session, cookie: undefined as never };
    const [key, earlierKey] = keys.keysOf(this.model, id);
    const written = await database.rows(
      `WITH earlier AS (DELETE FROM oauth_state WHERE key = $7), ${SIGNED_IN}
INSERT INTO oauth_state (user_id, key, model, payload, expires_at)
SELECT $1, $3, $4, $5, now() + make_interval(secs => $6) WHERE $1::bigint IS NULL OR EXISTS (SELECT FROM signed_in)
ON CONFLICT (key) DO UPDATE SET user_id = EXCLUDED.user_id, payload = EXCLUDED.payload, expires_at = EXCLUDED.expires_at
RETURNING 1`,
      [
        ...signedIn(database, memberOf(payload)),
        key,
        this.model,
        encryption.seal(stored, this.model, key!),
        expiresIn,
        earlierKey ?? null,
      ],
    );
    if (written.length === 0) throw new errors.SessionNotFound('the sign-in was ended');
  }

  override async consume(id: string): Promise<void> {
    const used = await this.parts.database.rows(
      'UPDATE oauth_state SET consumed_at = now() WHERE key IN ($1, $2) AND model = $3 AND consumed_at IS NULL RETURNING 1',
      [...eitherOf(this.parts.keys.keysOf(this.model, id)), this.model],
    );
    if (used.length === 0) throw new errors.InvalidRequestUri('the request_uri was used by another request');
  }

  override async destroy(id: string): Promise<void> {
    await this.parts.database.rows('DELETE FROM oauth_state WHERE key IN ($1, $2) AND model = $3', [
      ...eitherOf(this.parts.keys.keysOf(this.model, id)),
      this.model,
    ]);
  }
}

/** Ids of client assertions and DPoP proofs: of two at the same moment the insert decides who is first. */
class ReplayAdapter extends Unsupported {
  constructor(private readonly parts: AdapterParts) {
    super();
  }

  override async find(id: string): Promise<AdapterPayload | undefined> {
    const { database, keys } = this.parts;
    const used = await database.row(
      `SELECT FROM oauth_state WHERE key IN ($1, $2) AND model = 'ReplayDetection' AND expires_at > now()`,
      eitherOf(keys.keysOf('ReplayDetection', id)),
    );
    return used && { jti: id };
  }

  override async upsert(id: string, _payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database, keys } = this.parts;
    if ((await database.rows(USE_ONCE, [keys.everyKeyOf('ReplayDetection', id), expiresIn])).length === 0)
      throw new errors.InvalidRequest('the proof or assertion was used before');
  }
}

/** Of an interaction: the member on whose sign-in it goes on; nobody where a sign-in is what it asks for. */
function memberOf({ prompt, result, lastSubmission, session }: AdapterPayload): number | null {
  const before = prompt?.name === 'login' ? undefined : (lastSubmission?.login ?? session);
  const accountId = (result?.login ?? before)?.accountId;
  return accountId === undefined ? null : Number(accountId);
}

/** The database said that it has not expired: the process's own clock has no say. */
function alive(payload: AdapterPayload): AdapterPayload {
  const now = Math.floor(Date.now() / 1000);
  if (payload.exp !== undefined && payload.exp <= now) payload.exp = now + 1;
  if (payload.iat !== undefined && payload.iat > now) payload.iat = now;
  return payload;
}

/** What belongs to a grant, client or member that is gone (23503) cannot be stored: it was revoked meanwhile. */
async function refusingOrphans<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const { code, driverError } = error as { code?: string; driverError?: { code?: string } };
    if ((code ?? driverError?.code) !== '23503') throw error;
    throw new errors.InvalidGrant('the grant was revoked');
  }
}
