import { calculateJwkThumbprint, decodeProtectedHeader } from 'jose';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { NewAuthEvent } from '../../audit/audit.js';
import { openWith, sealFor } from '../../crypto/encryption.js';
import { ROUTES } from '../provider/provider.js';
import type { OauthDatabase } from '../requests/oauth-database.js';
import type { OauthRequest } from '../requests/oauth-request.js';
import { TokenRequest, type KeptAnswer } from '../requests/token-request.js';

/**
 * Writes the result of a token request in one statement once the library is done: the library's own consume and saves would be
 * several, and a crash between them would sign the member out. So a refused request writes nothing, and its token is not used up.
 *
 * Also repeats the kept response for a refresh token that was used a moment ago.
 *
 * @param forget is called with a grant that ended, before the database's notification arrives
 */
export function runTokenRequests(
  database: OauthDatabase,
  forget: (grantId: string) => void,
): (ctx: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void> {
  return async (ctx, next) => {
    if (ctx.method !== 'POST' || (ctx.path !== ROUTES.token && ctx.path !== ROUTES.revocation)) return next();
    const request = database.current!;
    const token: TokenRequest = new TokenRequest((grantId) => revoked(ctx, grantId, token));
    request.token = token;
    await next();
    if (request.unavailable) return;
    if (ctx.path === ROUTES.token && ctx.status < 400) {
      if (token.repeated) await answerAgain(ctx, request, token);
      else if (!(await token.finish(database, await sealResponse(ctx), issued(ctx))))
        await answerLate(ctx, request, token);
    }
    if (token.revokedGrant !== undefined) forget(token.revokedGrant);
  };
}

/** Replaces the library's response with the kept one, or with a refusal if the request's parameters differ. */
async function answerAgain(
  ctx: KoaContextWithOIDC,
  request: OauthRequest,
  token: TokenRequest,
): Promise<void> {
  const body = await openResponse(ctx, token.repeated!);
  if (body) answerWith(ctx, 200, body);
  else refuse(ctx, request, 'the token was used a moment ago');
}

/**
 * Another request used the token, or ended its grant, since this one read it. Responds as if this one had come a moment later: with
 * the other request's response if that can be repeated, else with a refusal that ends the token family.
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

function revoked(ctx: KoaContextWithOIDC, grant: string, { presented }: TokenRequest): NewAuthEvent {
  return {
    type: ctx.path === ROUTES.token ? 'token.reused' : 'grant.revoked',
    actor: 'client',
    clientId: ctx.oidc.client?.clientId ?? null,
    userId: presented?.user_id ?? null,
    details: { grant },
  };
}

/** A refresh response, and the parameters that a repeated request must match to get it again. */
interface Repeatable {
  readonly parameters: string;
  readonly body: { expires_in: number };
}

/** Encrypts a refresh response with a key derived from the refresh token. @returns null for any other grant type */
async function sealResponse(ctx: KoaContextWithOIDC): Promise<Buffer | null> {
  const { grant_type: grantType, refresh_token: token } = ctx.oidc.params!;
  if (grantType !== 'refresh_token') return null;
  return sealFor(token as string, { parameters: await parametersOf(ctx), body: ctx.body }, 'successor');
}

/** Decrypts a kept response. @returns its body with `expires_in` counted down; undefined if the request's parameters differ */
async function openResponse(
  ctx: KoaContextWithOIDC,
  { sealed, secondsAgo }: KeptAnswer,
): Promise<object | undefined> {
  const kept = openWith<Repeatable>(ctx.oidc.params!.refresh_token as string, sealed, 'successor');
  if (!kept || kept.parameters !== (await parametersOf(ctx))) return undefined;
  return { ...kept.body, expires_in: Math.max(1, kept.body.expires_in - Math.floor(secondsAgo)) };
}

async function parametersOf(ctx: KoaContextWithOIDC): Promise<string> {
  const { scope, resource } = ctx.oidc.params!;
  const proof = ctx.get('DPoP'); // the library has verified it
  const jwk = proof ? (decodeProtectedHeader(proof).jwk as object | undefined) : undefined;
  return JSON.stringify([
    ctx.oidc.client!.clientId,
    scope ?? null,
    resource ?? null,
    jwk ? await calculateJwkThumbprint(jwk) : null,
  ]);
}
