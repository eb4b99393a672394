import { ownRows, sharedRows, type ResourceDeclaration } from '../../model/access.js';

export const achievementsAccess: ResourceDeclaration = {
  about: 'What the member has earned, and their progress towards the rest.',
  scope: 'See your achievements and your progress',
  rows: 'user_achievements ua',
  member: 'ua.user_id',
  id: 'ua.achievement_id',
  isShown: 'ua.earned_at IS NOT NULL',
  traces: [
    { of: ownRows('achievements') },
    { of: sharedRows('achievements'), through: 'JOIN user_achievements ua ON ua.achievement_id = s.id' },
  ],
};
