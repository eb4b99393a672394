/**
 * What is said of an achievement `a`, of what the member did towards it, `ua`, and of the platform's totals, `t`, in more than one
 * place.
 */

/** Hidden and not earned: nothing may tell what it is. */
export const MASKED = '(a.is_hidden AND ua.earned_at IS NULL)';
const HIDDEN_NAME = 'Hidden achievement';
export const NAME = `CASE WHEN ${MASKED} THEN '${HIDDEN_NAME}' ELSE a.name END`;

/** JSON text of what masking hides: key, name, description and icon. */
export const REVEALED = `CASE WHEN ${MASKED} THEN '"key":null,"name":"${HIDDEN_NAME}","description":null,"icon_url":null'
  ELSE a.revealed END`;

/** Active members, and those of them who earned it. What one fold has taken in of many changes may be odd for a moment. */
export const ACTIVE_MEMBERS = 'GREATEST(t.active_users_count, 0)';
export const EARNERS = `LEAST(GREATEST(a.earners_count, 0), ${ACTIVE_MEMBERS})`;
export const RARITY = 'rarity_tier(a.earners_count, t.active_users_count)';
export const RARITY_PERCENTAGE = `CASE WHEN t.active_users_count >= 10 THEN percentage(${EARNERS}, t.active_users_count) END`;
/** Whether there is progress to show. */
export const HAS_PROGRESS = `a.target IS NOT NULL AND NOT ${MASKED}`;
export const PROGRESS_PERCENTAGE = 'percentage(LEAST(COALESCE(ua.progress, 0), a.target), a.target)';

/** Among the member's pinned ones, so that positions close up to 1..n. */
export const PIN_POSITION = `CASE WHEN ua.pin_position IS NOT NULL THEN (SELECT count(*) FROM user_achievements o
      WHERE o.user_id = $1 AND o.pin_position <= ua.pin_position) END`;

/**
 * The shares are those of the last fold, a second ago; the moment that is shown is the last full half minute, so that an
 * answer stays the same, and its ETag with it, for a while.
 */
export const COMPUTED_AT = `date_bin('30 seconds', now(), 'epoch')`;
