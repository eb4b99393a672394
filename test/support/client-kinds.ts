import { exportJWK, generateKeyPair, SignJWT, type CryptoKey } from 'jose';
import { createHash, randomUUID } from 'node:crypto';
import { ClientsService, type NewClient } from '../../src/clients/clients.service.js';
import { SecretHashes } from '../../src/crypto/secret-hashes.js';
import type { OauthTest } from './oauth.js';

/** A client, and its secret. */
export async function clientWithSecret(oauth: OauthTest, fields: Partial<NewClient> = {}) {
  const id = await oauth.client({ profile: 'oidc', secret_auth_method: 'client_secret_basic', ...fields });
  return { id, secret: await rotate(oauth, id) };
}

/** Creates another secret, as `pua clients rotate-secret` does. */
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

/** HTTP Basic by RFC 6749 §2.3.1: both halves are form-encoded first. */
export function basic(id: string, secret: string): { Authorization: string } {
  const encoded = [id, secret].map((half) => new URLSearchParams({ half }).toString().slice('half='.length));
  return { Authorization: `Basic ${Buffer.from(encoded.join(':')).toString('base64')}` };
}

/** A client with a key, and its authentication parameters. */
export async function clientWithKey(oauth: OauthTest, fields: Partial<NewClient> = {}, alg = 'ES256') {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const id = await oauth.client({ jwks: { keys: [await exportJWK(publicKey)] }, ...fields });
  const assertion = (claims: Record<string, unknown> = {}, signedWith = alg, header = {}) =>
    assertionOf(id, privateKey, signedWith, { aud: oauth.issuer, ...claims }, header);
  return { id, assertion };
}

/** The authentication parameters of a client with a key. */
export async function assertionOf(
  id: string,
  key: CryptoKey,
  alg: string,
  claims: Record<string, unknown>,
  header: object = {},
): Promise<Record<string, string>> {
  const now = Math.floor(Date.now() / 1000);
  const jwt = new SignJWT({ iss: id, sub: id, jti: randomUUID(), iat: now, exp: now + 60, ...claims });
  return {
    client_id: id,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: await jwt.setProtectedHeader({ alg, ...header }).sign(key),
  };
}

/** Signs DPoP proofs with one key; another key or header key may replace it. */
export async function dpopSigner() {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const own = await exportJWK(publicKey);
  const prove = (claims: Record<string, unknown>, key = privateKey, jwk = own) =>
    new SignJWT({ jti: randomUUID(), ...claims })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
      .setIssuedAt(claims.iat as number | undefined)
      .sign(key);
  return prove;
}

export const athOf = (accessToken: string) => createHash('sha256').update(accessToken).digest('base64url');

/** Creates DPoP proofs of one key for the token endpoint, and with an access token for other URLs. */
export async function dpopKey(oauth: OauthTest) {
  const prove = await dpopSigner();
  return async (path = '/oauth/token', htm = 'POST', accessToken?: string): Promise<{ DPoP: string }> => ({
    DPoP: await prove({ htm, htu: oauth.issuer + path, ...(accessToken && { ath: athOf(accessToken) }) }),
  });
}

/** Gives a client a secret that this server would not generate, but that libraries must send correctly. */
export async function storeSecret(oauth: OauthTest, id: string, secret: string): Promise<void> {
  const hashes = new SecretHashes(oauth.api.config.secrets, 'oauth_client_secrets');
  const { hash, pepper_id, last_four } = hashes.store(secret);
  await oauth.dataSource.query(
    `INSERT INTO oauth_client_secrets (client_id, hash, pepper_id, last_four) VALUES ($1, $2, $3, lpad($4, 4, '.'))`,
    [id, hash, pepper_id, last_four],
  );
}

/** Secrets of other servers and people: each form, header or URL must encode some of their characters. */
export const ODD_SECRETS = [
  'a+b',
  'a b',
  ' a',
  'a%20b',
  'a%2Bb',
  '100%',
  '%',
  '%%41',
  'a:b',
  ':',
  '::a:',
  'a&b=c',
  '=',
  'a/b?c#d',
  '"quoted"',
  "it's",
  'back\\slash',
  '<b>&amp;</b>',
  '~tilde*star!(paren)',
  '{"json":[1]}',
  '@,;$^`|',
  'client_secret=x&client_id=y',
];
