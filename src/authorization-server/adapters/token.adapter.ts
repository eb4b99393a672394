import { errors, Provider, type Adapter, type AdapterPayload } from 'oidc-provider';
import { recordEventIf } from '../../audit/audit.js';
import { rulesOf } from '../../clients/profiles.js';
import { eitherOf } from '../../crypto/hmac.js';
import { endedBy, keyed } from '../../database/sql.js';
import type { EndedAccess } from '../reasons/explanations.js';
import type { OauthDatabase } from '../requests/oauth-database.js';
import { REPEAT_SECONDS, type PresentedToken } from '../requests/token-request.js';

interface TokenRow extends PresentedToken, Partial<EndedAccess>, Record<string, unknown> {
  /** null of a token that was deleted. */
  payload: AdapterPayload | null;
  consumed: boolean;
  successor: Buffer | null;
  /** End of the token or of its grant, in seconds since 1970. */
  ends_at: number;
  used_seconds_ago: number | null;
}

/** Reads the token with its grant. */
const findingToken = (
  more: string,
  ends: string,
  condition: string,
) => `SELECT t.payload, t.consumed_at IS NOT NULL AS consumed, t.successor,
  EXTRACT(epoch FROM clock_timestamp() - t.consumed_at)::float8 AS used_seconds_ago, t.key, g.id AS grant_id, g.user_id,
  CASE WHEN ${ends} > now() THEN g.payload END AS grant,
  EXTRACT(epoch FROM g.access_ends_at - now())::float8 AS seconds_left,
  EXTRACT(epoch FROM LEAST(t.expires_at, g.access_ends_at))::float8 AS ends_at, u.disabled_at IS NULL AS user_active${more}
FROM oauth_tokens t JOIN ${keyed('oauth_grants g', 'g.id = t.grant_id')} JOIN ${keyed('users u', 'u.id = g.user_id')}
  JOIN ${keyed('oauth_clients c', 'c.id = g.client_id')}
WHERE t.key IN ($1, $2) AND t.model = $3 AND c.disabled_at IS NULL AND (t.expires_at > now() OR ${condition})`;

/** A used code can still be found, so that using it again ends the grant. */
const FIND_TOKEN = {
  name: 'find-token',
  text: findingToken(
    '',
    'LEAST(g.expires_at, g.access_ends_at)',
    `(t.model = 'AuthorizationCode' AND t.consumed_at IS NOT NULL)`,
  ),
};

const END = 'LEAST(t.expires_at, g.expires_at, g.access_ends_at)';

/** An unused one is found after its end, also if it was deleted since, so that its app gets the reason. */
const FIND_REFRESH_TOKEN = {
  name: 'find-refresh-token',
  text: `${findingToken(
    `, CASE WHEN ${END} <= now() THEN api_time(${END}) END AS ended_at,
  CASE WHEN g.access_ends_at = ${END} THEN 'expired' ELSE 'unused' END AS reason, g.client_id`,
    END,
    't.consumed_at IS NULL',
  )}
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, api_time(ended_at), reason, client_id
FROM ended_refresh_tokens WHERE key IN ($1, $2)`,
};

/** Codes, access tokens and refresh tokens. At the token endpoint, {@link TokenRequest} handles them. */
export function tokenAdapter(database: OauthDatabase, model: string): Partial<Adapter> {
  const { keys } = database;

  async function find(id: string): Promise<AdapterPayload | undefined> {
    const own = eitherOf(keys.keysOf(model, id));
    const statement = model === 'RefreshToken' ? FIND_REFRESH_TOKEN : FIND_TOKEN;
    const [row] = await database.read<TokenRow>(statement, [...own, model]);
    const request = database.current?.token;
    const { ended_at, reason, client_id } = row ?? {};
    if (ended_at && request) request.ended = { ended_at, reason: reason!, client_id: client_id! };
    if (!row?.payload || (ended_at && !request)) return undefined;
    // The stored expiry is outdated: members can change the end of access, and use extends a kept refresh token.
    const exp = model === 'RefreshToken' ? { exp: Math.floor(row.ends_at) } : {};
    const token = { ...row.payload, ...exp, jti: id };
    const secondsAgo = row.used_seconds_ago ?? 0;
    const isRepeatable = row.consumed && row.successor !== null && secondsAgo < REPEAT_SECONDS;
    request?.present(row, isRepeatable ? { sealed: row.successor!, secondsAgo } : undefined);
    // The library treats a repeatable token like a fresh one, up to consuming it.
    if (!row.consumed || (request && isRepeatable)) return token;
    return { ...token, consumed: Math.floor(Date.now() / 1000 - secondsAgo) };
  }

  async function upsert(id: string, payload: AdapterPayload, seconds: number): Promise<void> {
    // These tokens do not end with their session, so its uid is not stored, and a reader of the database cannot learn it.
    const { jti: _, sessionUid: __, ...stored } = payload;
    const { current } = database;
    const request = current?.token;
    if (request) request.jkt ??= payload.jkt;
    // The library binds refresh tokens to the code's key for public clients only.
    if (model === 'RefreshToken' && rulesOf(Provider.ctx!.oidc.client!).bindsRefreshTokens)
      stored.jkt ??= request?.jkt;
    const key = keys.keyOf(model, id);
    const grantId = payload.grantId!;
    const token = { key, model, grantId, payload: JSON.stringify(stored), seconds };
    if (request) request.issue(token);
    else if (current?.grant?.id === grantId) current.code = token;
    else throw new errors.InvalidGrant('nothing is issued but for the grant that is at hand');
  }

  return {
    find,
    upsert,
    consume: async () => database.current!.token!.use(),
    // No-ops: the library also deletes the grant, and the tokens with it.
    destroy: async () => undefined,
    revokeByGrantId: async () => undefined,
  };
}

const FIND_GRANT = {
  name: 'find-grant',
  text: 'SELECT payload FROM oauth_grants WHERE id = $1 AND LEAST(expires_at, access_ends_at) > now()',
};

const END_GRANT = 'DELETE FROM oauth_grants WHERE id = $1';
const END_AND_RECORD = `WITH ended AS (${END_GRANT} RETURNING 1), recorded AS (${recordEventIf('ended', 2)})
SELECT ${endedBy(`CASE $2::text WHEN 'grant.revoked' THEN 'client' END`)} FROM ended`;

/** Grants: one per sign-in of an app, with the member's consent. Their ids are not secret. */
export function grantAdapter(database: OauthDatabase): Partial<Adapter> {
  async function find(id: string): Promise<AdapterPayload | undefined> {
    const token = database.current?.token?.presented;
    if (token?.grant_id === id) return token.grant ? { ...token.grant, exp: undefined, jti: id } : undefined;
    const [row] = await database.read<{ payload: AdapterPayload }>(FIND_GRANT, [id]);
    return row && { ...row.payload, exp: undefined, jti: id };
  }

  /** Held until its code is stored. */
  async function upsert(id: string, payload: AdapterPayload): Promise<void> {
    const { jti: _, ...stored } = payload;
    const resources = (payload.resources ?? {}) as Record<string, string>;
    const granted = [(payload.openid as { scope?: string } | undefined)?.scope, ...Object.values(resources)];
    database.current!.grant = {
      ...database.current!.access!,
      id,
      clientId: payload.clientId!,
      payload: JSON.stringify(stored),
      scopes: granted.flatMap((scope) => scope?.split(' ') ?? []),
    };
  }

  /** Ends the whole token family in one statement: codes and tokens are deleted with the grant. */
  async function destroy(id: string): Promise<void> {
    const event = database.current?.token?.revoked?.(id);
    if (event) await database.rows(END_AND_RECORD, [id, ...database.eventValues(event)]);
    else await database.rows(END_GRANT, [id]);
    database.revocations.announce({ kind: 'grant', id });
  }

  return { find, upsert, destroy };
}
