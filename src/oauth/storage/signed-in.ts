import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';

/** The parameters of {@link SIGNED_IN}: nulls if there is no member. */
export type SignedInMember = readonly [userId: number | null, validSince: number | null];

/**
 * Finds the member of a sign-in ($1) if the sign-in is still valid ($2, see {@link SIGN_INS_VALID_SINCE}), for a statement that
 * stores something based on it: ending the member's sign-ins waits until that is stored, and then finds it.
 */
export const SIGNED_IN = `signed_in AS (
  SELECT FROM users u WHERE u.id = $1::bigint AND u.disabled_at IS NULL AND ${SIGN_INS_VALID_SINCE} IS NOT DISTINCT FROM $2::bigint
  FOR KEY SHARE
)`;
