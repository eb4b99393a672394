import { errors } from 'oidc-provider';
import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';
import { LIFETIMES } from '../provider/lifetimes.js';

/** A member's latest answer to a client's consent prompt. */
export interface Consent {
  readonly granted: readonly string[];
  readonly rejected: readonly string[];
  /** Origins to which codes may be sent because of it; null: those of all redirect URIs of the client. */
  readonly redirect_origins: readonly string[] | null;
}

/** A grant as it is stored. */
export interface NewGrant {
  readonly id: string;
  readonly clientId: string;
  /** JSON */
  readonly payload: string;
  /** All that it grants. */
  readonly scopes: readonly string[];
}

/** The parameters of {@link SIGNED_IN}: nulls if there is no member. */
export type SignInParameters = readonly [userId: number | null, validSince: number | null];

/**
 * Finds the member of a sign-in ($1) if the sign-in is still valid ($2, see {@link SIGN_INS_VALID_SINCE}), for a statement that
 * stores something based on it: ending the member's sign-ins waits until that is stored, and then finds it.
 */
export const SIGNED_IN = `signed_in AS (
  SELECT FROM users u WHERE u.id = $1::bigint AND u.disabled_at IS NULL AND ${SIGN_INS_VALID_SINCE} IS NOT DISTINCT FROM $2::bigint
  FOR KEY SHARE
)`;

/**
 * Finds the consent of the member ($1) to the client ($4) if it still allows all of a grant's scopes, for a statement that stores the
 * grant: narrowing the consent waits until that is stored, and then narrows it.
 *
 * @param scopes parameter
 */
export function consented(scopes: string): string {
  return `consented AS (
  SELECT FROM oauth_consents WHERE user_id = $1::bigint AND client_id = $4 AND granted @> ${scopes}::text[] FOR SHARE
)`;
}

/**
 * Writes the SQL for a session's end.
 *
 * @param signedInAt parameter: when the member signed in, in seconds since 1970, or null
 * @param seconds parameter: how long the session may be idle
 */
export function sessionEnds(signedInAt: string, seconds: string): string {
  return `LEAST(now() + make_interval(secs => ${seconds}), to_timestamp(${signedInAt}) + make_interval(secs => ${LIFETIMES.longestSession}))`;
}

/**
 * Refuses to store a row whose grant, client or member is gone (23503): it was revoked in the meantime.
 *
 * @throws InvalidGrant in that case, and otherwise what `write` throws
 */
export async function refusingOrphans<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const { code, driverError } = error as { code?: string; driverError?: { code?: string } };
    if ((code ?? driverError?.code) !== '23503') throw error;
    throw new errors.InvalidGrant('the grant was revoked');
  }
}
