import { errors } from 'oidc-provider';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Logger } from '../../http/logger.js';
import type { NewAuthEvent } from '../../audit/audit.js';
import { ROUTES } from '../provider/provider.js';
import type { OauthDatabase } from '../storage/oauth-database.js';
import type { OauthRequest } from '../storage/request-context.js';
import { openAnswer, sealAnswer } from './repeatable-refresh.js';
import { TokenRequest } from './token-request.js';

/**
 * Writes what a request to the token endpoint comes to when the library is done with it, in one statement: the library's
 * own consume and saves would be several, and a crash between them would sign the member out. So a refusal has written
 * nothing, and the token it came with is not used up.
 *
 * It also answers a refresh token that was used a moment ago with the answer it got then.
 *
 * @param forget is told of a grant that ended, before the database's notice comes round
 */
export function runTokenRequests(
  database: OauthDatabase,
  logger: Logger,
  forget: (grantId: string) => void,
): (ctx: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void> {
  return async (ctx, next) => {
    if (ctx.method !== 'POST' || (ctx.path !== ROUTES.token && ctx.path !== ROUTES.revocation)) return next();
    const request = database.current!;
    const token = (request.token = new TokenRequest());
    await next();
    if (request.unavailable) return;
    if (ctx.path === ROUTES.token && ctx.status < 400) {
      if (token.repeated) await answerAgain(ctx, request, token);
      else if (!(await token.finish(database, await sealAnswer(ctx), issued(ctx))))
        await answerLate(ctx, request, token);
    }
    if (!token.revokedGrant) return;
    forget(token.revokedGrant.id);
    await database.recordOrLog(revoked(ctx, token.revokedGrant), logger);
  };
}

/** What the library made of it is dropped: the answer of then takes its place, or a refusal where something else is asked for. */
async function answerAgain(
  ctx: KoaContextWithOIDC,
  request: OauthRequest,
  token: TokenRequest,
): Promise<void> {
  const body = await openAnswer(ctx, token.repeated!);
  if (body) answerWith(ctx, 200, body);
  else refuse(ctx, request, 'the token was used a moment ago');
}

/**
 * Another request used the token, or ended its grant, since this one read it. It gets what it had got a moment later: the
 * other's answer where that can be asked for again, else a refusal that ends the family.
 */
async function answerLate(
  ctx: KoaContextWithOIDC,
  request: OauthRequest,
  token: TokenRequest,
): Promise<void> {
  const { provider, params } = ctx.oidc;
  const found =
    params!.grant_type === 'refresh_token'
      ? await provider.RefreshToken.find(params!.refresh_token as string, { ignoreExpiration: true })
      : await provider.AuthorizationCode.find(params!.code as string, { ignoreExpiration: true });
  if (found && token.isRepeatable) {
    token.use();
    await answerAgain(ctx, request, token);
    return;
  }
  refuse(ctx, request, 'the token was used by another request');
  if (found) await (await provider.Grant.find(found.grantId!))?.destroy();
}

function refuse(ctx: KoaContextWithOIDC, request: OauthRequest, reason: string): void {
  const refusal = new errors.InvalidGrant(reason);
  request.failure = refusal;
  answerWith(ctx, refusal.statusCode, {
    error: refusal.error,
    error_description: refusal.error_description,
  });
}

function answerWith(ctx: KoaContextWithOIDC, status: number, body: object): void {
  ctx.status = status;
  ctx.type = 'json';
  ctx.body = body;
}

function issued(ctx: KoaContextWithOIDC): NewAuthEvent {
  const { client, account, grant, accessToken, params } = ctx.oidc;
  return {
    type: params!.grant_type === 'refresh_token' ? 'token.refreshed' : 'token.issued',
    actor: 'client',
    clientId: client!.clientId,
    ...(account ? { userId: Number(account.accountId) } : {}),
    details: { grant: grant?.jti ?? '', scope: accessToken?.scope ?? '' },
  };
}

function revoked(ctx: KoaContextWithOIDC, grant: { id: string; userId: number | null }): NewAuthEvent {
  return {
    type: ctx.path === ROUTES.token ? 'token.reused' : 'grant.revoked',
    actor: 'client',
    clientId: ctx.oidc.client?.clientId ?? null,
    userId: grant.userId,
    details: { grant: grant.id },
  };
}
