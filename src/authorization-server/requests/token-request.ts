import { Injectable } from '@nestjs/common';
import { calculateJwkThumbprint, decodeProtectedHeader } from 'jose';
import { errors, type AdapterPayload, type KoaContextWithOIDC } from 'oidc-provider';
import { recordEventIf, type NewAuthEvent } from '../../audit/audit.js';
import { accessClientOf, idleSeconds } from '../../clients/access-durations.js';
import { openWith, sealFor } from '../../crypto/encryption.js';
import { Database } from '../../database/database.js';
import { Periodic } from '../../runtime/periodic-work.js';
import type { EndedAccess } from '../reasons/explanations.js';
import { because } from '../reasons/refusal-reasons.js';
import { LIFETIMES } from '../provider/lifetimes.js';
import { ROUTES } from '../provider/provider.js';
import type { OauthDatabase, OauthRequest } from './oauth-database.js';

/** For this long after its use, a refresh token gets the same response again. */
export const REPEAT_SECONDS = 10;

/** A presented code or token with its storage key, grant and member. */
export interface PresentedToken {
  readonly key: Buffer;
  readonly grant_id: string;
  /** null if it has expired */
  readonly grant: AdapterPayload | null;
  readonly user_id: number;
  readonly user_active: boolean;
  /** Until the end of the access that the member chose; null for no end. */
  readonly seconds_left: number | null;
}

export interface NewToken {
  readonly key: Buffer;
  readonly model: string;
  readonly grantId: string;
  readonly payload: string;
  readonly seconds: number;
}

/** The response to a used refresh token, kept for {@link REPEAT_SECONDS}. */
interface KeptAnswer {
  readonly sealed: Buffer;
  readonly secondsAgo: number;
}

/** Parameter positions in {@link finishing}: grant, response and presented token come first. */
const [EVENT_AT, IDLE_AT, TOKENS_AT] = [4, 12, 13];

const TOKEN_TYPES = ['bytea', 'text', 'text', 'jsonb', 'float8'];

/**
 * Writes all results of a token request, or none. Locks the grant ($1) first, like revocations. Consumes the presented token ($3) by a
 * conditional UPDATE, which lets one of several parallel requests succeed, and keeps the response ($2). Moves the end of unused access
 * ($12) at most once a day. @param stays keeps the presented token valid @param tokens number of issued tokens; separate parameters are
 * cheaper than arrays
 */
const finishing = (tokens: number, stays: boolean) => `WITH family AS MATERIALIZED (
  SELECT id FROM oauth_grants WHERE id = $1 FOR UPDATE
), used AS (
  UPDATE oauth_tokens t SET ${
    stays
      ? `successor = $2, expires_at = now() + make_interval(secs => $${IDLE_AT})`
      : `successor = $2, consumed_at = clock_timestamp(),
    expires_at = LEAST(t.expires_at, now() + make_interval(secs => ${LIFETIMES.usedRefreshToken}))`
  } FROM family WHERE t.key = $3 AND t.grant_id = family.id AND t.consumed_at IS NULL RETURNING 1
), renewed AS (
  UPDATE oauth_grants g SET expires_at = now() + make_interval(secs => $${IDLE_AT}::float8 + 86400) FROM used
  WHERE g.id = $1 AND g.expires_at - now() NOT BETWEEN make_interval(secs => $${IDLE_AT}) AND make_interval(secs => $${IDLE_AT} + 86400)
), issued AS (
  INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
  SELECT n.key, n.model, n.grant_id, n.payload, now() + make_interval(secs => n.seconds)
  FROM used, (VALUES ${Array.from({ length: tokens }, (_, i) => {
    const values = TOKEN_TYPES.map((type, at) => `$${TOKENS_AT + TOKEN_TYPES.length * i + at}::${type}`);
    return `(${values.join(', ')})`;
  }).join(', ')}) AS n (key, model, grant_id, payload, seconds)
), recorded AS (
  ${recordEventIf('used', EVENT_AT)}
) SELECT FROM used`;

/** A token or revocation request, run by the library through adapters. Except for revocations, {@link TokenRequest.finish} writes. */
export class TokenRequest {
  /** The presented token stays valid, and gets a new response each time. */
  #stays = false;
  presented: PresentedToken | undefined;
  /** The end of the access, if the refresh token gave some. */
  ended: EndedAccess | undefined;
  /** The response to repeat, if the token was used a moment ago. */
  kept: KeptAnswer | undefined;
  /** Issued tokens, from the moment of consumption: stored with it or not at all. Dropped if a response is repeated. */
  issued: NewToken[] | undefined;
  /** Thumbprint of the proven key (RFC 9449), once a token is bound to it. */
  jkt: string | undefined;

  /** @param revoked makes the event of a deleted grant */
  constructor(readonly revoked?: (grantId: string) => NewAuthEvent) {}

  present(token: PresentedToken, kept?: KeptAnswer): void {
    this.presented = token;
    this.kept = kept;
    this.issued = undefined;
  }

  /** Consumes the token; {@link finish} decides which of several parallel requests succeeds. */
  use(): void {
    if (!this.presented || this.issued) throw new Error('there is no token that could be used now');
    this.issued = [];
  }

  /** Like {@link use}, for a refresh token that is not replaced because each use requires the client's key. */
  keep(): void {
    this.use();
    this.#stays = true;
  }

  issue(token: NewToken): void {
    if (!this.issued) throw new Error('nothing can come of a token before it is used');
    this.issued.push(token);
  }

  /**
   * Writes the results. @param answer the encrypted response; null if it cannot be repeated @param idle seconds without use after which
   * the grant ends; null without a refresh token @returns false, with nothing written, if another request used the token or ended the
   * grant
   */
  async finish(
    database: OauthDatabase,
    answer: Buffer | null,
    event: NewAuthEvent,
    idle: number | null,
  ): Promise<boolean> {
    const { presented, kept, issued } = this;
    if (!presented || !issued || kept) throw new Error('only a token that is used now can be written');
    const written = await database.rows(finishing(issued.length, this.#stays), [
      presented.grant_id,
      this.#stays ? null : answer,
      presented.key,
      ...database.eventValues(event),
      idle,
      ...issued.flatMap(({ key, model, grantId, payload, seconds }) => [
        key,
        model,
        grantId,
        payload,
        seconds,
      ]),
    ]);
    return written.length === 1;
  }
}

/**
 * Writes the result in one statement after the library is done, since a crash between its own writes would sign the member out. A
 * rejected request writes nothing. Repeats the kept response for a refresh token that was just used.
 */
export function runTokenRequests(
  database: OauthDatabase,
): (ctx: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void> {
  return async (ctx, next) => {
    if (ctx.method !== 'POST' || (ctx.path !== ROUTES.token && ctx.path !== ROUTES.revocation)) return next();
    const request = database.current!;
    const token: TokenRequest = new TokenRequest((grantId) => revoked(ctx, grantId, token));
    request.token = token;
    await next();
    if (request.unavailable) return;
    if (ctx.path === ROUTES.token && ctx.status < 400) {
      if (token.kept && token.issued) return answerAgain(ctx, request, token.kept);
      tellEnd(ctx, token);
      if (!(await token.finish(database, await sealResponse(ctx), issued(ctx), idleOf(ctx))))
        await answerLate(ctx, request, token);
    }
  };
}

/** Tells the app when its access ends, if it does. */
function tellEnd(ctx: KoaContextWithOIDC, { presented }: TokenRequest): void {
  const body = ctx.body as { refresh_token?: string };
  const left = presented?.seconds_left ?? null;
  if (body.refresh_token !== undefined && left !== null)
    ctx.body = { ...body, refresh_token_expires_in: Math.max(1, Math.floor(left)) };
}

function idleOf({ oidc, body }: KoaContextWithOIDC): number | null {
  if ((body as { refresh_token?: string }).refresh_token === undefined) return null;
  const isBound = oidc.entities.RefreshToken?.jkt !== undefined;
  return idleSeconds(accessClientOf(oidc.client!, isBound));
}

/** Replaces the response with the kept one, or with a rejection if the parameters differ. */
async function answerAgain(ctx: KoaContextWithOIDC, request: OauthRequest, kept: KeptAnswer): Promise<void> {
  const body = await openResponse(ctx, kept);
  if (body) answerWith(ctx, 200, body);
  else refuse(ctx, request, 'the token was used a moment ago');
}

/** Responds to a request that lost a race: with the kept response if possible, else with a rejection that ends the token family. */
async function answerLate(
  ctx: KoaContextWithOIDC,
  request: OauthRequest,
  token: TokenRequest,
): Promise<void> {
  const { provider, params } = ctx.oidc;
  // This time, `token` gets the response that is kept with it.
  if (params!.grant_type === 'refresh_token')
    await provider.RefreshToken.find(params!.refresh_token as string);
  else await provider.AuthorizationCode.find(params!.code as string);
  if (token.kept) return answerAgain(ctx, request, token.kept);
  refuse(ctx, request, 'the token was used by another request');
  await (await provider.Grant.find(token.presented!.grant_id))?.destroy();
}

function refuse(ctx: KoaContextWithOIDC, request: OauthRequest, reason: string): void {
  const refusal = because('token_used_meanwhile', new errors.InvalidGrant(reason));
  request.failure = refusal;
  const { error, error_description, statusCode } = refusal;
  answerWith(ctx, statusCode, { error, error_description });
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

/** A refresh response, and the parameters that a repeated request must match. */
interface Repeatable {
  readonly parameters: string;
  readonly body: { readonly expires_in: number; readonly refresh_token_expires_in?: number };
}

/** Encrypts a refresh response with a key derived from the refresh token. @returns null for any other grant type */
async function sealResponse(ctx: KoaContextWithOIDC): Promise<Buffer | null> {
  const { grant_type: grantType, refresh_token: token } = ctx.oidc.params!;
  if (grantType !== 'refresh_token') return null;
  return sealFor(token as string, { parameters: await parametersOf(ctx), body: ctx.body }, 'successor');
}

/** Decrypts a kept response. @returns its body with its times counted down; undefined if the parameters differ */
async function openResponse(
  ctx: KoaContextWithOIDC,
  { sealed, secondsAgo }: KeptAnswer,
): Promise<object | undefined> {
  const kept = openWith<Repeatable>(ctx.oidc.params!.refresh_token as string, sealed, 'successor');
  if (!kept || kept.parameters !== (await parametersOf(ctx))) return undefined;
  const { expires_in, refresh_token_expires_in: end } = kept.body;
  const left = (seconds: number) => Math.max(1, seconds - Math.floor(secondsAgo));
  return {
    ...kept.body,
    expires_in: left(expires_in),
    ...(end === undefined ? {} : { refresh_token_expires_in: left(end) }),
  };
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

/** A kept response is deleted at most this long after its window closes, or 15 s after the token's use if one run fails. */
const PAUSE_MS = 2_000;
const BATCH = 1_000;

/** Uses oauth_tokens_successor_idx. Locked rows are left to others, or to the next run. */
const FORGET = `UPDATE oauth_tokens SET successor = NULL WHERE key = ANY (ARRAY(
  SELECT key FROM oauth_tokens
  WHERE successor IS NOT NULL AND consumed_at < clock_timestamp() - interval '${REPEAT_SECONDS} s'
  ORDER BY consumed_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)) RETURNING 1`;

/** Deletes kept responses, with which a used token would reveal live ones in a copy of the database. Every instance does this. */
@Injectable()
export class RefreshGracePeriod {
  constructor(private readonly database: Database) {}

  /** @returns number of deleted responses */
  @Periodic({
    work: 'refresh_answers',
    everyMs: PAUSE_MS,
    failure: 'answers of used refresh tokens could not be forgotten',
  })
  async forget(end?: AbortSignal): Promise<number> {
    for (let forgotten = 0; ;) {
      const batch = await this.database.prepared(FORGET, []);
      forgotten += batch.length;
      if (batch.length < BATCH || end?.aborted) return forgotten;
    }
  }
}
