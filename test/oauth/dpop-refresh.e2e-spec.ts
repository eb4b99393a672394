import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { OauthTest } from '../support/oauth.js';

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

/** Signs proofs for the token endpoint with its own key. */
async function prover() {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwk = await exportJWK(publicKey);
  return async () => ({
    DPoP: await new SignJWT({
      jti: crypto.randomUUID(),
      htm: 'POST',
      htu: `${oauth.issuer}/oauth/token`,
    })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
      .setIssuedAt()
      .sign(privateKey),
  });
}

/** A client with what authenticates it. */
async function clientOf(kind: string) {
  if (kind === 'public') {
    const id = await oauth.client();
    return { id, authentication: () => Promise.resolve<Record<string, string>>({ client_id: id }) };
  }
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const id = await oauth.client({ jwks: { keys: [(await exportJWK(publicKey)) as never] } });
  const authentication = async (): Promise<Record<string, string>> => ({
    client_assertion_type: ASSERTION_TYPE,
    client_assertion: await new SignJWT({ jti: crypto.randomUUID() })
      .setProtectedHeader({ alg: 'ES256' })
      .setIssuer(id)
      .setSubject(id)
      .setAudience(oauth.issuer)
      .setExpirationTime('1m')
      .sign(privateKey),
  });
  return { id, authentication };
}

describe.each(['public', 'confidential'])('a refresh token of a %s client that proved a key', (kind) => {
  it('is rejected with another key, or with none, without being consumed', async () => {
    const { id, authentication } = await clientOf(kind);
    const [own, other] = [await prover(), await prover()];
    const { username } = await oauth.member();
    const { client_id: _, ...code } = await oauth.code(id, username);
    const first = await oauth.token({ ...code, ...(await authentication()) }, await own());
    expect([first.status, first.body.token_type]).toEqual([200, 'DPoP']);
    const refresh = async (token: string, proof: Record<string, string>) =>
      oauth.token({ grant_type: 'refresh_token', refresh_token: token, ...(await authentication()) }, proof);
    for (const wrong of [await other(), {}]) {
      const { status, body } = await refresh(first.body.refresh_token, wrong);
      expect([status, body.error]).toEqual([400, 'invalid_grant']);
    }
    const second = await refresh(first.body.refresh_token, await own());
    expect([second.status, second.body.token_type]).toEqual([200, 'DPoP']);
    // Within the seconds in which a used token is answered again, and after a rotation, too.
    for (const used of [first, second])
      expect((await refresh(used.body.refresh_token, await other())).status).toBe(400);
    expect((await refresh(second.body.refresh_token, await own())).status).toBe(200);
  });
});
