/**
 * SQL over an achievement `a`, the member's progress towards it, `ua`, and the platform's totals, `t`, that is used in more than one
 * place.
 */

/** Hidden and not earned: nothing may reveal what it is. */
export const MASKED = '(a.is_hidden AND ua.earned_at IS NULL)';
const HIDDEN_NAME = 'Hidden achievement';
export const NAME = `CASE WHEN ${MASKED} THEN '${HIDDEN_NAME}' ELSE a.name END`;

/** JSON text of the keys that are masked: key, name, description and icon. */
export const REVEALED = `CASE WHEN ${MASKED} THEN '"key":null,"name":"${HIDDEN_NAME}","description":null,"icon_url":null'
  ELSE a.revealed END`;

/** Active members, and those of them who earned it. While many changes are being folded, the two may not match for a moment. */
export const ACTIVE_MEMBERS = 'GREATEST(t.active_users_count, 0)';
export const EARNERS = `LEAST(GREATEST(a.earners_count, 0), ${ACTIVE_MEMBERS})`;
export const RARITY = 'rarity_tier(a.earners_count, t.active_users_count)';
export const RARITY_PERCENTAGE = `CASE WHEN t.active_users_count >= 10 THEN percentage(${EARNERS}, t.active_users_count) END`;
/** Whether there is progress to show. */
export const HAS_PROGRESS = `a.target IS NOT NULL AND NOT ${MASKED}`;
export const PROGRESS_PERCENTAGE = 'percentage(LEAST(COALESCE(ua.progress, 0), a.target), a.target)';

/** The rank among the member's pinned achievements, so that positions are 1..n without gaps. */
export const PIN_POSITION = `CASE WHEN ua.pin_position IS NOT NULL THEN (SELECT count(*) FROM user_achievements o
      WHERE o.user_id = $1 AND o.pin_position <= ua.pin_position) END`;

/**
 * The shares are those of the last fold, at most a second ago; the time shown is the last full half minute, so that a
 * response, and its ETag, stay the same for a while.
 */
export const COMPUTED_AT = `date_bin('30 seconds', now(), 'epoch')`;
