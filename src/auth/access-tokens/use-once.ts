/**
 * Records the id of a proof or an assertion, which may be used once. $1: its keys; $2: seconds to remember it for. Returns a row
 * for the first use only; of two concurrent uses, the insert lets one through.
 */
export const USE_ONCE = `WITH first AS (
  INSERT INTO oauth_state (key, model, expires_at)
  SELECT key, 'ReplayDetection', now() + make_interval(secs => $2) FROM unnest($1::bytea[]) AS key ORDER BY key
  ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at WHERE oauth_state.expires_at <= now() RETURNING 1
) SELECT WHERE (SELECT count(*) FROM first) = cardinality($1)`;
