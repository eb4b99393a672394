import { errors } from 'oidc-provider';
import type { Adapter, AdapterPayload, ClientMetadata } from 'oidc-provider';
import { USE_ONCE } from '../auth/access-tokens/token-keys.js';
import type { TokenKeys } from '../auth/access-tokens/token-keys.js';
import type { NewAuthEvent } from '../auth/audit.js';
import type { OauthClient } from '../database/entities/oauth.entity.js';
import type { KnownClients } from './known-clients.js';
import { LIFETIMES } from './lifetimes.js';
import type { NewToken, OauthDatabase, TokenFamily, TokenRequest } from './oauth-database.js';
import type { Vault } from './vault.js';

/** For this long a used refresh token gets the answer again that it got when it was used. */
const REPEAT_SECONDS = 10;

export interface AdapterParts {
  readonly database: OauthDatabase;
  readonly keys: TokenKeys;
  readonly vault: Vault;
  readonly clients: KnownClients;
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
    if (id.length > 100 || id.includes('\0')) return undefined;
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

  override async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { jti: _, ...stored } = payload;
    await refusingOrphans(
      this.parts.database.rows(
        `INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))
ON CONFLICT (id) DO UPDATE SET payload = EXCLUDED.payload`,
        [
          id,
          Number(payload.accountId),
          payload.clientId,
          JSON.stringify(stored),
          Math.min(expiresIn, LIFETIMES.unusedGrant),
        ],
      ),
    );
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
WHERE t.key = ANY($1) AND t.model = $2 AND c.disabled_at IS NULL
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
    const [row] = await database.read<TokenRow>(FIND_TOKEN, [candidates, this.model]);
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
    const { jti: _, ...stored } = payload;
    const token = {
      key: keys.keyOf(this.model, id),
      model: this.model,
      grantId: payload.grantId!,
      payload: JSON.stringify(stored),
      seconds: expiresIn,
    };
    const asked = database.current?.token;
    if (asked) asked.issued.push(token);
    else await refusingOrphans(database.rows(NEW_CODE, [...tokenValues([token]), LIFETIMES.grant]));
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
  UPDATE oauth_grants SET expires_at = created_at + make_interval(secs => $6) WHERE id = ANY($3)
) ${NEW_TOKENS}`;

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
  INSERT INTO auth_events (type, actor, user_id, client_id, key_id, ip, error_id, details)
  SELECT $8, $9, $10::bigint, $11, $12, $13::inet, $14, $15::jsonb FROM used
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

  override async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database, keys, vault } = this.parts;
    const { jti: _, ...stored } = payload;
    const { ip, userAgent } = database.current ?? {};
    const userId = payload.accountId === undefined ? null : Number(payload.accountId);
    const [uidKey, ...earlierUidKeys] = keys.keysOf('Session.uid', payload.uid!);
    await database.rows(
      `WITH earlier AS (DELETE FROM oauth_sessions WHERE uid_key = ANY($9))
INSERT INTO oauth_sessions (uid_key, key, user_id, payload, signed_in_at, expires_at, user_agent, ip)
VALUES ($1, $2, $3, $4, to_timestamp($5), now() + make_interval(secs => $6), $7, $8)
ON CONFLICT (uid_key) DO UPDATE SET key = EXCLUDED.key, user_id = EXCLUDED.user_id, payload = EXCLUDED.payload,
  signed_in_at = EXCLUDED.signed_in_at, last_seen_at = now(), expires_at = EXCLUDED.expires_at,
  user_agent = COALESCE(EXCLUDED.user_agent, oauth_sessions.user_agent), ip = COALESCE(EXCLUDED.ip, oauth_sessions.ip)`,
      [
        uidKey,
        keys.keyOf('Session', id),
        userId,
        vault.seal(stored, 'Session'),
        payload.loginTs ?? null,
        expiresIn,
        userAgent?.slice(0, 300) ?? null,
        ip ?? null,
        earlierUidKeys,
      ],
    );
  }

  override async destroy(id: string): Promise<void> {
    await this.parts.database.rows('DELETE FROM oauth_sessions WHERE key = ANY($1)', [
      this.parts.keys.keysOf('Session', id),
    ]);
  }

  async #read(column: 'key' | 'uid_key', candidates: Buffer[]): Promise<AdapterPayload | undefined> {
    if (candidates.length === 0) return undefined;
    const row = await this.parts.database.row<{ payload: Buffer }>(
      `SELECT payload FROM oauth_sessions WHERE ${column} = ANY($1) AND expires_at > now()`,
      [candidates],
    );
    const payload = row && this.parts.vault.open<AdapterPayload>(row.payload, 'Session');
    return payload && alive(payload);
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
    const { database, keys, vault } = this.parts;
    const candidates = keys.keysOf(this.model, id);
    if (candidates.length === 0) return undefined;
    const row = await database.row<{ payload: Buffer; consumed: boolean }>(
      `SELECT payload, consumed_at IS NOT NULL AS consumed FROM oauth_state
WHERE key = ANY($1) AND model = $2 AND expires_at > now()`,
      [candidates, this.model],
    );
    const payload = row && vault.open<AdapterPayload>(row.payload, this.model);
    return payload && alive({ ...payload, jti: id, ...(row.consumed ? { consumed: true } : {}) });
  }

  override async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database, keys, vault } = this.parts;
    const { jti: _, ...stored } = payload;
    // The session's id is its secret, and an interaction needs its uid only.
    if (stored.session) stored.session = { ...stored.session, cookie: undefined as never };
    const [key, ...earlierKeys] = keys.keysOf(this.model, id);
    await database.rows(
      `WITH earlier AS (DELETE FROM oauth_state WHERE key = ANY($5))
INSERT INTO oauth_state (key, model, payload, expires_at) VALUES ($1, $2, $3, now() + make_interval(secs => $4))
ON CONFLICT (key) DO UPDATE SET payload = EXCLUDED.payload, expires_at = EXCLUDED.expires_at`,
      [key, this.model, vault.seal(stored, this.model), expiresIn, earlierKeys],
    );
  }

  override async consume(id: string): Promise<void> {
    const used = await this.parts.database.rows(
      'UPDATE oauth_state SET consumed_at = now() WHERE key = ANY($1) AND model = $2 AND consumed_at IS NULL RETURNING 1',
      [this.parts.keys.keysOf(this.model, id), this.model],
    );
    if (used.length === 0) throw new errors.InvalidRequestUri('the request_uri was used by another request');
  }

  override async destroy(id: string): Promise<void> {
    await this.parts.database.rows('DELETE FROM oauth_state WHERE key = ANY($1) AND model = $2', [
      this.parts.keys.keysOf(this.model, id),
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
      `SELECT FROM oauth_state WHERE key = ANY($1) AND model = 'ReplayDetection' AND expires_at > now()`,
      [keys.keysOf('ReplayDetection', id)],
    );
    return used && { jti: id };
  }

  override async upsert(id: string, _payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database, keys } = this.parts;
    const key = keys.keyOf('ReplayDetection', id);
    if ((await database.rows(USE_ONCE, [key, expiresIn])).length === 0)
      throw new errors.InvalidRequest('the proof or assertion was used before');
  }
}

/** The database said that it has not expired: the process's own clock has no say. */
function alive(payload: AdapterPayload): AdapterPayload {
  const now = Math.floor(Date.now() / 1000);
  if (payload.exp !== undefined && payload.exp <= now) payload.exp = now + 1;
  if (payload.iat !== undefined && payload.iat > now) payload.iat = now;
  return payload;
}

/** What belongs to a grant, client or member that is gone (23503) cannot be stored: it was revoked meanwhile. */
async function refusingOrphans(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    const { code, driverError } = error as { code?: string; driverError?: { code?: string } };
    if ((code ?? driverError?.code) !== '23503') throw error;
    throw new errors.InvalidGrant('the grant was revoked');
  }
}
