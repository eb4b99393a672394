import { exportJWK, generateKeyPair, SignJWT, type CryptoKey } from 'jose';
import { createHash, randomUUID } from 'node:crypto';
import { ClientsService, type NewClient } from '../../src/clients/clients.service.js';
import type { OauthTest } from './oauth.js';

/** A client with a secret, and that secret. */
export async function clientWithSecret(oauth: OauthTest, fields: Partial<NewClient> = {}) {
  const id = await oauth.client({ profile: 'oidc', secret_auth_method: 'client_secret_basic', ...fields });
  return { id, secret: await rotate(oauth, id) };
}

/** Makes another secret, as `pua clients rotate-secret` does. */
export function rotate(
  oauth: OauthTest,
  id: string,
  lifetime: { overlapSeconds?: number; expiresInSeconds?: number } = {},
): Promise<string> {
  const { overlapSeconds = 3600, expiresInSeconds = null } = lifetime;
  return new ClientsService(oauth.dataSource, oauth.api.config).rotateSecret(
    id,
    { overlapSeconds, expiresInSeconds },
    'admin',
  );
}

/** HTTP Basic as RFC 6749 §2.3.1 has it: both halves form-encoded first. */
export function basic(id: string, secret: string): { Authorization: string } {
  const encoded = [id, secret].map((half) => new URLSearchParams({ half }).toString().slice('half='.length));
  return { Authorization: `Basic ${Buffer.from(encoded.join(':')).toString('base64')}` };
}

/** A client with a key, and what it sends to authenticate. */
export async function clientWithKey(oauth: OauthTest, fields: Partial<NewClient> = {}, alg = 'ES256') {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const id = await oauth.client({ jwks: { keys: [await exportJWK(publicKey)] }, ...fields });
  const assertion = (claims: Record<string, unknown> = {}, signedWith = alg) =>
    assertionOf(id, privateKey, signedWith, { aud: oauth.issuer, ...claims });
  return { id, assertion };
}

async function assertionOf(
  id: string,
  key: CryptoKey,
  alg: string,
  claims: Record<string, unknown>,
): Promise<Record<string, string>> {
  const now = Math.floor(Date.now() / 1000);
  const jwt = new SignJWT({ iss: id, sub: id, jti: randomUUID(), iat: now, exp: now + 60, ...claims });
  return {
    client_id: id,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: await jwt.setProtectedHeader({ alg }).sign(key),
  };
}

/** Makes DPoP proofs of one key for the token endpoint and others, there with the access token. */
export async function dpopKey(oauth: OauthTest) {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwk = await exportJWK(publicKey);
  return async (path = '/oauth/token', htm = 'POST', accessToken?: string): Promise<{ DPoP: string }> => ({
    DPoP: await new SignJWT({
      htm,
      htu: oauth.issuer + path,
      jti: randomUUID(),
      ...(accessToken ? { ath: createHash('sha256').update(accessToken).digest('base64url') } : {}),
    })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
      .setIssuedAt()
      .sign(privateKey),
  });
}
