import { Injectable } from '@nestjs/common';
import { calculateJwkThumbprint, decodeProtectedHeader } from 'jose';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { openWith, encryptFor } from '../../crypto/encryption.js';
import { Database } from '../../database/database.js';
import { Periodic } from '../../runtime/periodic-work.js';

/** Seconds during which the server repeats its response to a used refresh token. */
export const REPEAT_SECONDS = 10;

export interface KeptResponse {
  readonly sealed: Buffer;
  readonly secondsAgo: number;
}

/** Encrypts a refresh response with a key derived from the refresh token. @returns null for any other grant type */
export async function encryptResponse(ctx: KoaContextWithOIDC): Promise<Buffer | null> {
  const { grant_type: grantType, refresh_token: token } = ctx.oidc.params!;
  if (grantType !== 'refresh_token') return null;
  return encryptFor(token as string, { parameters: await readParameters(ctx), body: ctx.body }, 'successor');
}

/** Decrypts a kept response. @returns the body with the access token's remaining lifetime; undefined if the parameters differ */
export async function openResponse(
  ctx: KoaContextWithOIDC,
  { sealed, secondsAgo }: KeptResponse,
): Promise<object | undefined> {
  const token = ctx.oidc.params!.refresh_token as string;
  const kept = openWith<{ parameters: string; body: { expires_in: number } }>(token, sealed, 'successor');
  if (!kept || kept.parameters !== (await readParameters(ctx))) return undefined;
  return { ...kept.body, expires_in: Math.max(1, kept.body.expires_in - Math.floor(secondsAgo)) };
}

async function readParameters(ctx: KoaContextWithOIDC): Promise<string> {
  const { scope, resource } = ctx.oidc.params!;
  const proof = ctx.get('DPoP'); // the library has verified the proof
  const jwk = proof ? (decodeProtectedHeader(proof).jwk as object | undefined) : undefined;
  return JSON.stringify([
    ctx.oidc.client!.clientId,
    scope ?? null,
    resource ?? null,
    jwk ? await calculateJwkThumbprint(jwk) : null,
  ]);
}

/** Interval of deletions in ms. */
const PAUSE_MS = 2_000;
const BATCH = 1_000;

/** Uses oauth_tokens_successor_idx. Leaves locked rows to other instances, or to the next run. */
const FORGET = `UPDATE oauth_tokens SET successor = NULL WHERE key = ANY (ARRAY(
  SELECT key FROM oauth_tokens
  WHERE successor IS NOT NULL AND consumed_at < clock_timestamp() - interval '${REPEAT_SECONDS} s'
  ORDER BY consumed_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)) RETURNING 1`;

/** Deletes kept responses: with a used refresh token and a copy of the database, an attacker could decrypt valid tokens. */
@Injectable()
export class RefreshGracePeriod {
  constructor(private readonly database: Database) {}

  @Periodic({
    work: 'refresh_answers',
    everyMs: PAUSE_MS,
    failure: 'kept responses of used refresh tokens could not be deleted',
  })
  async forget(end?: AbortSignal): Promise<number> {
    for (let forgotten = 0; ;) {
      const batch = await this.database.prepared(FORGET, []);
      forgotten += batch.length;
      if (batch.length < BATCH || end?.aborted) return forgotten;
    }
  }
}
