import * as is from '../../import/fields.js';
import { code, recordType, twice } from '../../import/record-type.js';
import { LENGTHS } from '../../values/vocabulary.js';
import { derivedOfUserAchievements } from './derived.js';
import { Achievement, UserAchievement } from './table.js';

export const achievements = recordType({
  name: 'achievements',
  fields: {
    ...is.columns(Achievement, 'id', 'key', 'name', 'description'),
    icon_url: is.url(LENGTHS.achievements.icon_url),
    ...is.columns(
      Achievement,
      'category',
      'points',
      'is_hidden',
      'criteria',
      'target',
      'position',
      'retired_at',
    ),
  },
  rules: [
    twice('achievements', ['key'], "'key: line ' || d.first || ' already has this key'"),
    `SELECT s.line, ${code('taken')}, 'key: is taken by achievement ' || t.id FROM import_achievements s
  JOIN achievements t ON t.key = s.key AND t.id <> s.id
  WHERE NOT EXISTS (SELECT FROM import_achievements r WHERE r.id = t.id AND NOT r.deleted)`,
  ],
  release: [
    `UPDATE achievements t SET key = NULL FROM import_achievements s
  WHERE s.id = t.id AND NOT s.deleted AND s.key IS DISTINCT FROM t.key`,
  ],
  removal: { ended: 'retired_at', ends: { retired_at: 'now()' } },
});

export const userAchievements = recordType({
  name: 'user_achievements',
  fields: {
    user_id: is.required(is.idOfMember),
    ...is.columns(UserAchievement, 'achievement_id', 'progress', 'earned_at', 'pin_position'),
  },
  check: ({ earned_at, pin_position }) =>
    earned_at === null && typeof pin_position === 'number'
      ? is.inconsistent('pin_position', 'only earned achievements can be pinned')
      : undefined,
  rules: [
    twice(
      'user_achievements',
      ['user_id', 'pin_position'],
      "'pin_position: line ' || d.first || ' already has this position for this member'",
    ),
    `SELECT s.line, ${code('taken')}, 'pin_position: is taken by achievement ' || t.achievement_id FROM import_user_achievements s
  JOIN user_achievements t ON t.user_id = s.user_id AND t.pin_position = s.pin_position
    AND t.achievement_id <> s.achievement_id
  WHERE NOT EXISTS (SELECT FROM import_user_achievements r
    WHERE r.user_id = t.user_id AND r.achievement_id = t.achievement_id)`,
  ],
  key: ['user_id', 'achievement_id'],
  copies: derivedOfUserAchievements.copies,
  release: [
    `UPDATE user_achievements t SET pin_position = NULL FROM import_user_achievements s
  WHERE s.user_id = t.user_id AND s.achievement_id = t.achievement_id
    AND t.pin_position IS NOT NULL AND s.pin_position IS DISTINCT FROM t.pin_position`,
  ],
});
