import { foldedText, quoted } from '../../database/sql.js';
import type { Sort } from '../../http/paging.js';
import type { ALL_SORTS, EARNED_SORTS } from './achievement.dto.js';

/**
 * Every achievement `a` with what the member ($1) did towards it, `ua` (null where nothing), and how many members
 * are active, `t`. A few hundred rows at most: the platform's catalogue, not the members' records.
 */
export const CATALOGUE = `achievements a LEFT JOIN user_achievements ua ON ua.user_id = $1 AND ua.achievement_id = a.id
  CROSS JOIN platform_totals t`;

/** Retired ones show only to those who earned them. */
export const VISIBLE = '(a.retired_at IS NULL OR ua.earned_at IS NOT NULL)';

/** What the member earned: the member's own rows lead. */
export const EARNED_CATALOGUE = `user_achievements ua JOIN achievements a ON a.id = ua.achievement_id
  CROSS JOIN platform_totals t`;
export const EARNED = 'ua.user_id = $1 AND ua.earned_at IS NOT NULL';

/** Hidden and not earned: nothing may tell what it is. */
const MASKED = '(a.is_hidden AND ua.earned_at IS NULL)';
const HIDDEN_NAME = 'Hidden achievement';
const NAME = `CASE WHEN ${MASKED} THEN '${HIDDEN_NAME}' ELSE a.name END`;
export const TIER = 'rarity_tier(a.earners_count, t.active_users_count)';
const RARITY_PERCENTAGE = `CASE WHEN t.active_users_count >= 10 THEN percentage(a.earners_count, t.active_users_count) END`;
const PROGRESS_PERCENTAGE = 'percentage(LEAST(COALESCE(ua.progress, 0), a.target), a.target)';

/** Among the member's pinned ones, so that positions close up to 1..n. */
const PIN_POSITION = `CASE WHEN ua.pin_position IS NOT NULL THEN (SELECT count(*) FROM user_achievements o
      WHERE o.user_id = $1 AND o.pin_position <= ua.pin_position) END`;

/**
 * The shares are maintained, so they are exact at every moment; the moment that is shown is the last full half
 * minute, so that an answer stays the same, and its ETag with it, for a while.
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
    || ',"earned_by_count":' || a.earners_count || ',"eligible_users_count":' || t.active_users_count
    || ',"rarity_computed_at":"' || ${COMPUTED_AT} || '"}' AS json
FROM ${CATALOGUE} WHERE a.id = $2 AND ${VISIBLE}`,
};

const COMPLETION = `'total', total, 'earned', earned, 'completion_percentage', percentage(earned, total)`;

/** $1: the member. Every category and every tier stands there, those with nothing too. */
export const READ_STATISTICS = {
  name: 'read-achievement-statistics',
  text: `WITH visible AS (
  SELECT a.id, a.name, a.category, a.points, ua.earned_at, ${TIER} AS rarity, ${RARITY_PERCENTAGE} AS rarity_percentage
  FROM ${CATALOGUE} WHERE ${VISIBLE}
), by_category AS (
  SELECT c.category, count(v.id) AS total, count(v.earned_at) AS earned
  FROM (SELECT DISTINCT category FROM achievements) c LEFT JOIN visible v USING (category) GROUP BY c.category
), by_rarity AS (
  SELECT r.*, count(v.id) AS total, count(v.earned_at) AS earned
  FROM (VALUES (1, 'common', 50, 100), (2, 'uncommon', 20, 50), (3, 'rare', 5, 20), (4, 'epic', 1, 5),
    (5, 'legendary', 0, 1), (6, 'unrated', NULL, NULL)) r (place, rarity, min_percentage, max_percentage)
    LEFT JOIN visible v USING (rarity) GROUP BY r.place, r.rarity, r.min_percentage, r.max_percentage
), totals AS (SELECT count(*) AS total, count(earned_at) AS earned, COALESCE(sum(points), 0) AS points_total,
    COALESCE(sum(points) FILTER (WHERE earned_at IS NOT NULL), 0) AS points_earned, max(earned_at) AS last_earned_at
  FROM visible)
SELECT json_build_object(${COMPLETION}, 'points_earned', points_earned, 'points_total', points_total,
  'last_earned_at', api_time(last_earned_at),
  'by_category', (SELECT COALESCE(json_agg(json_build_object('category', category, ${COMPLETION})
    ORDER BY ${foldedText('category')}, category COLLATE "C"), '[]') FROM by_category),
  'by_rarity', (SELECT json_agg(json_build_object('rarity', rarity, 'min_percentage', min_percentage,
    'max_percentage', max_percentage, ${COMPLETION}) ORDER BY place) FROM by_rarity),
  'rarest_earned', (SELECT json_build_object('id', id, 'name', name, 'rarity', rarity, 'rarity_percentage', rarity_percentage)
    FROM visible WHERE earned_at IS NOT NULL ORDER BY rarity_percentage NULLS LAST, id LIMIT 1),
  'rarity_computed_at', ${COMPUTED_AT})::text AS json
FROM totals`,
};
