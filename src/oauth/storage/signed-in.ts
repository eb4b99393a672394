import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';

/** The parameters of {@link SIGNED_IN}: nulls for nobody. */
export type SignedInMember = readonly [userId: number | null, validSince: number | null];

/**
 * The member of a sign-in ($1), where it still counts ($2, see {@link SIGN_INS_VALID_SINCE}), for a statement that stores what
 * comes of it: whoever ends sign-ins waits until it is stored, and finds it.
 */
export const SIGNED_IN = `signed_in AS (
  SELECT FROM users u WHERE u.id = $1::bigint AND u.disabled_at IS NULL AND ${SIGN_INS_VALID_SINCE} IS NOT DISTINCT FROM $2::bigint
  FOR KEY SHARE
)`;
