import type { AdapterPayload } from 'oidc-provider';
import { recordEventIf, type NewAuthEvent } from '../../audit/audit.js';
import { eitherOf } from '../../crypto/hmac.js';
import { endedBy, keyed } from '../../database/sql.js';
import type { EndedAccess } from '../reasons/explanations.js';
import { REPEAT_SECONDS, type KeptResponse } from './kept-response.js';
import type { OauthDatabase } from './oauth-database.js';

interface TokenRow extends Partial<EndedAccess> {
  /** null for a deleted token. */
  readonly payload: AdapterPayload | null;
  readonly consumed: boolean;
  readonly successor: Buffer | null;
  readonly used_seconds_ago: number | null;
  readonly key: Buffer;
  readonly grant_id: string;
  /** null if the grant has expired; with a refresh token, also if the token has. */
  readonly grant: AdapterPayload | null;
  readonly user_id: number;
  readonly user_active: boolean;
  /** Seconds until the app's access ends, even if it is used; null for no end. */
  readonly seconds_left: number | null;
  /** The earlier of the token's expiry and the end of the app's access, in seconds since 1970. */
  readonly ends_at: number;
}

export interface StoredToken extends TokenRow {
  readonly payload: AdapterPayload;
  readonly model: string;
  /** The code or token that the client sent. */
  readonly id: string;
  /** The response to repeat, if the token was used less than {@link REPEAT_SECONDS} seconds ago. */
  readonly kept: KeptResponse | undefined;
}

interface Found {
  readonly token?: StoredToken;
  readonly ended?: EndedAccess | undefined;
}

const finding = (
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

/** Also finds used codes after their expiry, since a second use ends the grant. */
const FIND = {
  name: 'find-token',
  text: finding(
    '',
    'LEAST(g.expires_at, g.access_ends_at)',
    `(t.model = 'AuthorizationCode' AND t.consumed_at IS NOT NULL)`,
  ),
};

const ENDS = 'LEAST(t.expires_at, g.expires_at, g.access_ends_at)';

/** Also finds expired unused tokens, and deleted tokens (`ended_refresh_tokens`), so that the response can give the reason. */
const FIND_REFRESH_TOKEN = {
  name: 'find-refresh-token',
  text: `${finding(
    `, CASE WHEN ${ENDS} <= now() THEN api_time(${ENDS}) END AS ended_at,
  CASE WHEN g.access_ends_at = ${ENDS} THEN 'expired' ELSE 'unused' END AS reason, g.client_id`,
    ENDS,
    't.consumed_at IS NULL',
  )}
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, api_time(ended_at), reason, client_id
FROM ended_refresh_tokens WHERE key IN ($1, $2)`,
};

/** Finds a token, unless its client is disabled. */
export async function findToken(database: OauthDatabase, model: string, id: string): Promise<Found> {
  const statement = model === 'RefreshToken' ? FIND_REFRESH_TOKEN : FIND;
  const [row] = await database.read<TokenRow>(statement, [
    ...eitherOf(database.keys.keysOf(model, id)),
    model,
  ]);
  if (!row) return {};
  const { payload, consumed, successor, used_seconds_ago, ended_at, reason, client_id } = row;
  const ended = ended_at ? { ended_at, reason: reason!, client_id: client_id! } : undefined;
  if (payload === null) return { ended };
  const secondsAgo = used_seconds_ago ?? 0;
  const isKept = consumed && successor !== null && secondsAgo < REPEAT_SECONDS;
  const kept = isKept ? { sealed: successor, secondsAgo } : undefined;
  return { token: { ...row, payload, model, id, kept }, ended };
}

/** Returns the token data that oidc-provider reads. */
export function payloadOf(token: StoredToken, isConsumed: boolean): AdapterPayload {
  const { model, id, payload, ends_at, used_seconds_ago } = token;
  return {
    ...payload,
    // The payload's expiry may be outdated: members can change the end of access, and each use extends a refresh token that stays valid.
    ...(model === 'RefreshToken' ? { exp: Math.floor(ends_at) } : {}),
    ...(isConsumed ? { consumed: Math.floor(Date.now() / 1000 - (used_seconds_ago ?? 0)) } : {}),
    jti: id,
  };
}

const END = 'DELETE FROM oauth_grants WHERE id = $1';
const END_AND_RECORD = `WITH ended AS (${END} RETURNING 1), recorded AS (${recordEventIf('ended', 2)})
SELECT ${endedBy(`CASE $2::text WHEN 'grant.revoked' THEN 'client' END`)} FROM ended`;

/** Ends a token family in one statement: deleting the grant deletes its codes and tokens. */
export async function endGrant(database: OauthDatabase, id: string, event?: NewAuthEvent): Promise<void> {
  if (event) await database.rows(END_AND_RECORD, [id, ...database.eventValues(event)]);
  else await database.rows(END, [id]);
  database.revocations.announce({ kind: 'grant', id });
}
