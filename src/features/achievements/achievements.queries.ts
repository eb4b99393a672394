import { foldedText, quoted } from '../../database/sql.js';
import type { Sort } from '../../http/paging.js';
import type { ALL_SORTS, EARNED_SORTS } from './achievement.dto.js';

/**
 * Every achievement `a` with what the member ($1) did towards it, `ua` (null where nothing), and how many members
 * are active, `t`; how many earned it, `n`. A few hundred rows at most: the platform's catalogue, not the members' records.
 */
export const CATALOGUE = `achievements a LEFT JOIN user_achievements ua ON ua.user_id = $1 AND ua.achievement_id = a.id
  LEFT JOIN achievement_totals n ON n.achievement_id = a.id CROSS JOIN platform_totals t`;

/** Retired ones show only to those who earned them. */
export const VISIBLE = '(a.retired_at IS NULL OR ua.earned_at IS NOT NULL)';

/** What the member earned: the member's own rows lead. */
export const EARNED_CATALOGUE = `user_achievements ua JOIN achievements a ON a.id = ua.achievement_id
  LEFT JOIN achievement_totals n ON n.achievement_id = a.id CROSS JOIN platform_totals t`;
export const OF_MEMBER = 'ua.user_id = $1';
export const EARNED = `${OF_MEMBER} AND ua.earned_at IS NOT NULL`;

/** Hidden and not earned: nothing may tell what it is. */
const MASKED = '(a.is_hidden AND ua.earned_at IS NULL)';
const HIDDEN_NAME = 'Hidden achievement';
const NAME = `CASE WHEN ${MASKED} THEN '${HIDDEN_NAME}' ELSE a.name END`;
/** Active members, and those of them who earned it. What one fold has taken in of many changes may be odd for a moment. */
const ACTIVE = 'GREATEST(t.active_users_count, 0)';
const EARNERS = `LEAST(GREATEST(n.earners_count, 0), ${ACTIVE})`;
export const TIER = 'rarity_tier(n.earners_count, t.active_users_count)';
const RARITY_PERCENTAGE = `CASE WHEN t.active_users_count >= 10 THEN percentage(${EARNERS}, t.active_users_count) END`;
const PROGRESS_PERCENTAGE = 'percentage(LEAST(COALESCE(ua.progress, 0), a.target), a.target)';

/** Among the member's pinned ones, so that positions close up to 1..n. */
const PIN_POSITION = `CASE WHEN ua.pin_position IS NOT NULL THEN (SELECT count(*) FROM user_achievements o
      WHERE o.user_id = $1 AND o.pin_position <= ua.pin_position) END`;

/**
 * The shares are those of the last fold, a second ago; the moment that is shown is the last full half minute, so that an
 * answer stays the same, and its ETag with it, for a while.
 */
export const COMPUTED_AT = `api_time(date_bin('30 seconds', now(), 'epoch'))`;

const MASK = `'"key":null,"name":"${HIDDEN_NAME}","description":null,"icon_url":null'`;

/** JSON text of an achievement, over {@link CATALOGUE} or {@link EARNED_CATALOGUE}, open at the end. */
const FIELDS = `'{"id":' || a.id || ',' || CASE WHEN ${MASKED} THEN ${MASK} ELSE a.revealed END
    || ',"category":' || json_text(a.category) || ',"rarity":"' || ${TIER}
    || '","rarity_percentage":' || COALESCE((${RARITY_PERCENTAGE})::text, 'null') || ',"points":' || a.points
    || ',"is_hidden":' || a.is_hidden::text || ',"earned":' || (ua.earned_at IS NOT NULL)::text
    || ',"earned_at":' || ${quoted('api_time(ua.earned_at)')}
    || ',"progress":' || CASE WHEN a.target IS NULL OR ${MASKED} THEN 'null'
      ELSE '{"current":' || COALESCE(ua.progress, 0) || ',"target":' || a.target || ',"percentage":' || ${PROGRESS_PERCENTAGE} || '}' END
    || ',"is_pinned":' || (ua.pin_position IS NOT NULL)::text
    || ',"pin_position":' || COALESCE((${PIN_POSITION})::text, 'null')`;

/** JSON text of a list item. */
export const LIST_ITEM = `${FIELDS} || '}'`;

const byRarity: Sort = { key: RARITY_PERCENTAGE, type: 'numeric', nullable: true };

export const SORTS_OF_EARNED: Record<(typeof EARNED_SORTS)[number], Sort> = {
  earned_at: { key: 'ua.earned_at', type: 'timestamptz' },
  '-earned_at': { key: 'ua.earned_at', type: 'timestamptz', descending: true },
  name: { key: foldedText('a.name'), type: 'text' },
  rarity_percentage: byRarity,
  '-rarity_percentage': { ...byRarity, descending: true },
};

export const SORTS_OF_ALL: Record<(typeof ALL_SORTS)[number], Sort> = {
  position: { key: 'a.position::bigint', type: 'bigint' },
  name: { key: foldedText(NAME), type: 'text' },
  '-earned_at': { key: 'ua.earned_at', type: 'timestamptz', descending: true, nullable: true },
  rarity_percentage: byRarity,
  '-progress': {
    key: `CASE WHEN a.target IS NOT NULL AND NOT ${MASKED} THEN ${PROGRESS_PERCENTAGE} END`,
    type: 'numeric',
    descending: true,
    nullable: true,
  },
};

export const SORT_OF_PINNED: Sort = { key: 'ua.pin_position::bigint', type: 'bigint' };

/** $1: the member, $2: the id. */
export const READ_DETAIL = {
  name: 'read-achievement',
  text: `SELECT ${FIELDS} || ',"criteria":' || json_text(CASE WHEN NOT ${MASKED} THEN a.criteria END)
    || ',"earned_by_count":' || ${EARNERS} || ',"eligible_users_count":' || ${ACTIVE}
    || ',"rarity_computed_at":"' || ${COMPUTED_AT} || '"}' AS json
FROM ${CATALOGUE} WHERE a.id = $2 AND ${VISIBLE}`,
};

/**
 * $1: the member. One row, {@link StatisticsRow}: the catalogue is read once, and counted by category and tier. What is to
 * be summed up from there is summed up in Node.
 */
export const READ_STATISTICS = {
  name: 'read-achievement-statistics',
  text: `WITH groups AS (
  SELECT a.category, ${TIER} AS rarity, count(*) FILTER (WHERE ${VISIBLE}) AS total, count(ua.earned_at) AS earned,
    COALESCE(sum(a.points) FILTER (WHERE ${VISIBLE}), 0) AS points_total,
    COALESCE(sum(a.points) FILTER (WHERE ua.earned_at IS NOT NULL), 0) AS points_earned, max(ua.earned_at) AS last_earned_at
  FROM ${CATALOGUE} GROUP BY 1, 2
), rarest AS (
  SELECT a.id, a.name, ${TIER} AS rarity, ${RARITY_PERCENTAGE} AS rarity_percentage
  FROM ${EARNED_CATALOGUE} WHERE ${EARNED} ORDER BY rarity_percentage NULLS LAST, a.id LIMIT 1
)
SELECT (SELECT COALESCE(json_agg(g), '[]') FROM groups g) AS groups,
  (SELECT COALESCE(json_agg(category ORDER BY ${foldedText('category')}, category COLLATE "C"), '[]')
    FROM (SELECT DISTINCT category FROM groups) c) AS categories,
  (SELECT to_json(r) FROM rarest r) AS rarest_earned,
  api_time((SELECT max(last_earned_at) FROM groups)) AS last_earned_at, ${COMPUTED_AT} AS rarity_computed_at`,
};
