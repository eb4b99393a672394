import { Injectable } from '@nestjs/common';
import { calculateJwkThumbprint, decodeProtectedHeader } from 'jose';
import { errors, type AdapterPayload, type KoaContextWithOIDC } from 'oidc-provider';
import { recordEventIf, type NewAuthEvent } from '../../audit/audit.js';
import { accessClientOf, idleSeconds } from '../../clients/access-durations.js';
import { openWith, sealFor } from '../../crypto/encryption.js';
import { Database } from '../../database/database.js';
import { Periodic } from '../../runtime/periodic-work.js';
import { because } from '../reasons/refusal-reasons.js';
import { LIFETIMES } from '../provider/lifetimes.js';
import { ROUTES } from '../provider/provider.js';
import type { OauthDatabase, OauthRequest } from './oauth-database.js';

/** For this long after its use, a refresh token gets the same response again. */
export const REPEAT_SECONDS = 10;

/** A presented code or token that was found: its storage key, its grant and its member. */
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

/** A code or token that was issued. */
export interface NewToken {
  readonly key: Buffer;
  readonly model: string;
  readonly grantId: string;
  /** JSON */
  readonly payload: string;
  /** Lifetime. */
  readonly seconds: number;
}

/** The response that a refresh token got when it was used, kept with it for {@link REPEAT_SECONDS}. */
interface KeptAnswer {
  readonly sealed: Buffer;
  readonly secondsAgo: number;
}

/** Positions in {@link finishing}: grant, response and presented token come before the event, the new tokens after it. */
const [EVENT_AT, IDLE_AT, TOKENS_AT] = [4, 12, 13];

const TOKEN_TYPES = ['bytea', 'text', 'text', 'jsonb', 'float8'];

/**
 * Writes everything that a successful token request writes, or nothing: one statement is one transaction. The grant ($1) is always
 * locked first, since a revocation locks it before it touches the tokens. The presented token ($3) is consumed by a conditional
 * UPDATE, which succeeds for only one of several parallel requests, and keeps the response for repetition ($2); the issued tokens
 * are stored, and the event is recorded in the audit trail. Where there is a refresh token, use moves the end that comes without it
 * ($12), at most once a day.
 *
 * @param stays the presented token is not consumed, and valid for as long as a new one
 * @param tokens how many were issued: each has its own parameters, since arrays would have to be serialized and unpacked again
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

/**
 * A request to the token or revocation endpoint: the token it presents, uses up, issues and revokes. The library drives it step by
 * step through the adapters; except for revocations, nothing is written before {@link TokenRequest.finish}.
 */
export class TokenRequest {
  /** The token that was presented stays valid, and gets a new response each time. */
  #stays = false;
  /** The code or token that was found. */
  presented: PresentedToken | undefined;
  /** The response that it got, where it was used a moment ago: then it is repeated. */
  kept: KeptAnswer | undefined;
  /**
   * What is issued for it, from the moment when the library has checked everything and consumes it: stored together with that it is used,
   * or not at all. Dropped where a response is repeated.
   */
  issued: NewToken[] | undefined;
  /** Thumbprint of the key that the request proved (RFC 9449), once a token was issued that is bound to it. */
  jkt: string | undefined;

  /** @param revoked the event of a grant that is deleted, with its codes and tokens */
  constructor(readonly revoked?: (grantId: string) => NewAuthEvent) {}

  present(token: PresentedToken, kept?: KeptAnswer): void {
    this.presented = token;
    this.kept = kept;
    this.issued = undefined;
  }

  /** Consumes the token that was found; {@link finish} decides which of several parallel requests succeeds. */
  use(): void {
    if (!this.presented || this.issued) throw new Error('there is no token that could be used now');
    this.issued = [];
  }

  /** As {@link use}, where a refresh token is not replaced: its client has to authenticate by its key with each use. */
  keep(): void {
    this.use();
    this.#stays = true;
  }

  issue(token: NewToken): void {
    if (!this.issued) throw new Error('nothing can come of a token before it is used');
    this.issued.push(token);
  }

  /**
   * Writes the result of the request.
   *
   * @param answer the encrypted response, for repetition; null if it cannot be repeated
   * @param idle seconds without use after which the grant ends; null if there is no refresh token
   * @returns false, with nothing written, if another request has used the token or ended the grant since it was read
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
 * Writes the result of a token request in one statement once the library is done: the library's own consume and saves would be
 * several, and a crash between them would sign the member out. So a refused request writes nothing, and its token is not used up.
 *
 * Also repeats the kept response for a refresh token that was used a moment ago.
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

/** Replaces the library's response with the kept one, or with a refusal if the request's parameters differ. */
async function answerAgain(ctx: KoaContextWithOIDC, request: OauthRequest, kept: KeptAnswer): Promise<void> {
  const body = await openResponse(ctx, kept);
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
  // Looked up again: this time, `token` gets the response that is kept with it.
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

/** A refresh response, and the parameters that a repeated request must match to get it again. */
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

/** Decrypts a kept response. @returns its body with its times counted down; undefined if the request's parameters differ */
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

/** Uses oauth_tokens_successor_idx. Rows locked by a request or another instance are left to it, or to the next run. */
const FORGET = `UPDATE oauth_tokens SET successor = NULL WHERE key = ANY (ARRAY(
  SELECT key FROM oauth_tokens
  WHERE successor IS NOT NULL AND consumed_at < clock_timestamp() - interval '${REPEAT_SECONDS} s'
  ORDER BY consumed_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)) RETURNING 1`;

/**
 * Deletes the kept responses of used refresh tokens once they can no longer be repeated: in a copy of the database, they would let
 * a used token yield the live ones. Every instance does this, starting at once, so that those of a killed instance go as well.
 */
@Injectable()
export class RefreshGracePeriod {
  constructor(private readonly database: Database) {}

  /** @returns how many responses were deleted */
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
