import type { Derived } from '../../model/derived.js';

export const derivedOfUserAchievements: Derived = {
  table: 'user_achievements',
  copies: { from: 'users', by: 'user_id', columns: { user_is_disabled: 'o.is_disabled' } },
  totals: [
    { of: 'user', column: 'achievements_count', counts: 't.earned_at IS NOT NULL' },
    {
      of: 'achievement',
      column: 'earners_count',
      counts: 't.earned_at IS NOT NULL AND NOT t.user_is_disabled',
    },
  ],
  reported: ['user_id', 'achievement_id', 'progress', 'earned_at', 'pin_position'],
};
