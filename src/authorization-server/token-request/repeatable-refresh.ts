import { calculateJwkThumbprint, decodeProtectedHeader } from 'jose';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { openWith, sealFor } from '../../crypto/encryption.js';
import type { KeptAnswer } from '../requests/token-request.js';

/** A refresh response, and the parameters that a repeated request must match to get it again. */
interface Repeatable {
  readonly parameters: string;
  readonly body: { expires_in: number };
}

/** Encrypts a refresh response with a key derived from the refresh token. @returns null for any other grant type */
export async function sealResponse(ctx: KoaContextWithOIDC): Promise<Buffer | null> {
  const { grant_type: grantType, refresh_token: token } = ctx.oidc.params!;
  if (grantType !== 'refresh_token') return null;
  return sealFor(token as string, { parameters: await parametersOf(ctx), body: ctx.body }, 'successor');
}

/** Decrypts a kept response. @returns its body with `expires_in` counted down; undefined if the request's parameters differ */
export async function openResponse(
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
