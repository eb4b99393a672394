import type { Adapter, AdapterPayload } from 'oidc-provider';
import { eitherOf } from '../../crypto/token-keys.js';
import { LIFETIMES } from '../provider/lifetimes.js';
import { refusingOrphans } from '../requests/statement-parts.js';
import { alive, type AdapterParts } from './stored-model.js';
import { REPEAT_SECONDS, type PresentedToken } from '../requests/token-request.js';

interface TokenRow extends PresentedToken, Record<string, unknown> {
  payload: AdapterPayload;
  consumed: boolean;
  successor: Buffer | null;
  used_seconds_ago: number | null;
}

/** Reads the token with its grant. A used code can still be found, so that using it again ends the grant. */
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

/** Extends the grant to its full lifetime when its code is stored: a grant that never got a code is swept soon. */
const NEW_CODE = `WITH used AS (
  UPDATE oauth_grants SET expires_at = created_at + make_interval(secs => $6) WHERE id = $3
) INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))`;

/** Codes, access tokens and refresh tokens. At the token endpoint, {@link TokenRequest} handles them. */
export class TokenAdapter implements Partial<Adapter> {
  constructor(
    private readonly parts: AdapterParts,
    private readonly model: string,
  ) {}

  async find(id: string): Promise<AdapterPayload | undefined> {
    const { database, keys } = this.parts;
    const own = eitherOf(keys.keysOf(this.model, id));
    const [row] = await database.read<TokenRow>(FIND_TOKEN, [...own, this.model]);
    if (!row) return undefined;
    const token = alive({ ...row.payload, jti: id });
    const request = database.current?.token;
    const secondsAgo = row.used_seconds_ago ?? 0;
    const isRepeatable = row.consumed && row.successor !== null && secondsAgo < REPEAT_SECONDS;
    request?.present(row, isRepeatable ? { sealed: row.successor!, secondsAgo } : undefined);
    // The library treats a repeatable token like a fresh one, up to consuming it.
    if (!row.consumed || (request && isRepeatable)) return token;
    return { ...token, consumed: Math.floor(Date.now() / 1000 - secondsAgo) };
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database, keys } = this.parts;
    // The library needs the session's uid only for tokens that end with their session. These do not, so it is not stored:
    // reading the database does not reveal it.
    const { jti: _, sessionUid: __, ...stored } = payload;
    const { current } = database;
    if (current?.token) current.token.jkt ??= payload.jkt;
    // The library binds refresh tokens to the key that was proven with the code for public clients alone.
    if (this.model === 'RefreshToken') stored.jkt ??= current?.token?.jkt;
    const token = {
      key: keys.keyOf(this.model, id),
      model: this.model,
      grantId: payload.grantId!,
      payload: JSON.stringify(stored),
      seconds: expiresIn,
    };
    if (current?.token) current.token.issue(token);
    else if (!current?.authorization?.issue(token)) {
      const { key, model, grantId, seconds } = token;
      const values = [key, model, grantId, token.payload, seconds, LIFETIMES.grant];
      await refusingOrphans(database.rows(NEW_CODE, values));
    }
  }

  async consume(): Promise<void> {
    this.parts.database.current!.token!.use();
  }

  /** Does nothing, like {@link revokeByGrantId}: the library also deletes the grant, and all its tokens go with it. */
  async destroy(): Promise<void> {}

  async revokeByGrantId(): Promise<void> {}
}
