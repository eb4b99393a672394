import type { JWTHeaderParameters, JWTPayload } from 'jose';
import { errors, type Client, type KoaContextWithOIDC } from 'oidc-provider';
import { rulesOf } from '../../clients/profiles.js';
import { because } from '../reasons/rejection-reasons.js';
import { LIFETIMES } from '../lifetimes.js';

/** Tolerance of the library's time checks in seconds; {@link LATEST_IAT} limits the `iat` of assertions. */
export const CLOCK_TOLERANCE = 10;
const LATEST_IAT = 60;

/** Tells whether an authorization request must use PKCE. @throws InvalidRequest if PKCE is optional, but the request has no nonce */
export function requiresPkce(ctx: KoaContextWithOIDC, client: Client): boolean {
  if (client.pkce === 'off') return false;
  if (client.pkce !== 'optional') return true;
  if (!ctx.oidc.params!.nonce)
    throw because('no_pkce', new errors.InvalidRequest('PKCE can be omitted only with a nonce'));
  return false;
}

/** Checks an assertion by the client's profile; the library has checked signature, issuer and expiry. @throws InvalidClientAuth */
export function checkAssertion(
  { aud, exp, iat, jti }: JWTPayload,
  { alg, crit }: JWTHeaderParameters,
  issuer: string,
  tokenEndpoint: string,
  client: Client,
): void {
  const rules = rulesOf(client);
  const refuse = (text: string): never => {
    throw new errors.InvalidClientAuth(text);
  };
  const refuseByProfile = (text: string): never => {
    throw because('profile_rule', new errors.InvalidClientAuth(`the profile of the client ${text}`));
  };
  // The library accepts the extension b64, which a JWT must not use (RFC 7797 §7).
  if (crit !== undefined) refuse('a client_assertion must not have critical extensions');
  const now = Date.now() / 1000;
  if (!rules.assertionAlgorithms.includes(alg))
    refuseByProfile(`does not allow client assertions with ${alg}`);
  if (aud !== issuer && !rules.acceptsTokenEndpointAudience)
    refuseByProfile('requires the issuer as the only audience of a client_assertion');
  if (aud !== issuer && aud !== tokenEndpoint)
    refuse('the audience of a client_assertion must be the issuer');
  if (typeof exp !== 'number' || exp <= now || exp > now + LIFETIMES.clientAssertion)
    refuse(`an assertion must expire within ${LIFETIMES.clientAssertion} seconds`);
  if (iat !== undefined && iat > now + LATEST_IAT)
    refuse('the iat of a client_assertion must not be in the future');
  if (typeof jti !== 'string' || jti.length > 256) refuse('jti must have at most 256 characters');
}
