import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from 'jose';
import { sha256 } from '../../crypto/digests.js';

/** How far a proof's `iat` may be from now, in seconds; its id is remembered for as long. */
export const PROOF_SECONDS = 60;

export const SUPPORTED_DPOP_ALGORITHMS = ['ES256', 'Ed25519', 'EdDSA'];

/** The request and the token that a proof must have been made for. */
interface ProvenRequest {
  readonly method: string;
  /** Without query and fragment. */
  readonly url: string;
  readonly token: string;
}

interface DpopProof {
  /** Of the key that signed it (RFC 7638). */
  readonly thumbprint: string;
  readonly id: string;
}

/**
 * Checks a DPoP proof (RFC 9449 §4.3) except for two things that are left to the caller: that the token is bound to this key, and
 * that the proof was not used before.
 *
 * @returns undefined for a proof that is malformed, badly signed, old, or made for another request or token
 */
export async function verifyProof(proof: string, request: ProvenRequest): Promise<DpopProof | undefined> {
  try {
    const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
      algorithms: SUPPORTED_DPOP_ALGORITHMS,
      typ: 'dpop+jwt',
    });
    const { jti, iat, htm, htu, ath } = payload;
    if (typeof jti !== 'string' || jti === '' || jti.length > 500) return undefined;
    if (typeof iat !== 'number' || Math.abs(Date.now() / 1000 - iat) > PROOF_SECONDS) return undefined;
    if (htm !== request.method || typeof htu !== 'string' || withoutQuery(htu) !== request.url)
      return undefined;
    if (ath !== sha256(request.token, 'base64url')) return undefined;
    return { thumbprint: await calculateJwkThumbprint(protectedHeader.jwk!), id: jti };
  } catch {
    return undefined;
  }
}

function withoutQuery(uri: string): string | undefined {
  const url = URL.parse(uri);
  return url ? url.origin + url.pathname : undefined;
}

/**
 * Records the id of a proof or an assertion, which may be used once. $1: its keys; $2: seconds to remember it for. Returns a row
 * for the first use only; of two concurrent uses, the insert lets one through.
 */
export const USE_ONCE = `WITH first AS (
  INSERT INTO oauth_state (key, model, expires_at)
  SELECT key, 'ReplayDetection', now() + make_interval(secs => $2) FROM unnest($1::bytea[]) AS key ORDER BY key
  ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at WHERE oauth_state.expires_at <= now() RETURNING 1
) SELECT WHERE (SELECT count(*) FROM first) = cardinality($1)`;
