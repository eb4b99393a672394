import { errors, Provider, type Adapter, type AdapterPayload, type KoaContextWithOIDC } from 'oidc-provider';
import type { NewAuthEvent } from '../../audit/audit.js';
import { rulesOf } from '../../clients/profiles.js';
import type { NewToken, OauthDatabase } from '../requests/oauth-database.js';
import { endGrant, findToken, payloadOf } from '../requests/stored-token.js';
import { TokenExchange } from '../requests/token-exchange.js';

/** Stores codes, access tokens and refresh tokens; at the token endpoint through {@link TokenExchange}. */
export function tokenAdapter(database: OauthDatabase, model: string): Partial<Adapter> {
  async function find(id: string): Promise<AdapterPayload | undefined> {
    const exchange = TokenExchange.of(Provider.ctx);
    if (exchange) return exchange.read(model, id);
    const { token, ended } = await findToken(database, model, id);
    return token && !ended ? payloadOf(token, token.consumed) : undefined;
  }

  async function upsert(id: string, payload: AdapterPayload, seconds: number): Promise<void> {
    // Does not store the session's uid, since these tokens do not end with their session.
    const { jti: _, sessionUid: __, ...stored } = payload;
    const { ctx } = Provider;
    // The library binds refresh tokens to a DPoP key for public clients only.
    if (model === 'RefreshToken' && rulesOf(ctx!.oidc.client!).bindsRefreshTokens)
      stored.jkt ??= ctx!.oidc.accessToken?.jkt;
    const grantId = payload.grantId!;
    const key = database.keys.keyOf(model, id);
    const token: NewToken = { key, model, grantId, payload: JSON.stringify(stored), seconds };
    const exchange = TokenExchange.of(ctx);
    const { authorization } = database.current ?? {};
    if (exchange) exchange.issue(token);
    else if (authorization?.grant?.id === grantId) authorization.code = token;
    else throw new errors.InvalidGrant('tokens are issued only for the current grant');
  }

  return {
    find,
    upsert,
    consume: async () => TokenExchange.of(Provider.ctx)!.accept(),
    // No-ops, since the library also deletes the grant, which deletes the tokens.
    destroy: async () => undefined,
    revokeByGrantId: async () => undefined,
  };
}

const FIND_GRANT = {
  name: 'find-grant',
  text: 'SELECT payload FROM oauth_grants WHERE id = $1 AND LEAST(expires_at, access_ends_at) > now()',
};

/** Stores grants: the scopes that a member allowed an app at one sign-in. Their ids are not secret. */
export function grantAdapter(database: OauthDatabase): Partial<Adapter> {
  async function find(id: string): Promise<AdapterPayload | undefined> {
    const token = TokenExchange.of(Provider.ctx)?.token;
    if (token?.grant_id === id) return token.grant ? { ...token.grant, exp: undefined, jti: id } : undefined;
    const [row] = await database.read<{ payload: AdapterPayload }>(FIND_GRANT, [id]);
    return row && { ...row.payload, exp: undefined, jti: id };
  }

  /** Keeps the grant for the statement that stores its code. */
  async function upsert(id: string, payload: AdapterPayload): Promise<void> {
    const { jti: _, ...stored } = payload;
    const resources = (payload.resources ?? {}) as Record<string, string>;
    const granted = [(payload.openid as { scope?: string } | undefined)?.scope, ...Object.values(resources)];
    const { authorization } = database.current!;
    authorization.grant = {
      ...authorization.access!,
      id,
      clientId: payload.clientId!,
      payload: JSON.stringify(stored),
      scopes: granted.flatMap((scope) => scope?.split(' ') ?? []),
    };
  }

  async function destroy(id: string): Promise<void> {
    const { ctx } = Provider;
    await endGrant(database, id, TokenExchange.of(ctx)?.reuse ?? revocationOf(ctx, id));
  }

  return { find, upsert, destroy };
}

function revocationOf(ctx: KoaContextWithOIDC | undefined, grant: string): NewAuthEvent | undefined {
  const { client, entities } = ctx?.oidc ?? {};
  const token = entities?.RefreshToken ?? entities?.AccessToken;
  if (!client || !token) return undefined;
  const { clientId } = client;
  return {
    type: 'grant.revoked',
    actor: 'client',
    clientId,
    userId: Number(token.accountId),
    details: { grant },
  };
}
