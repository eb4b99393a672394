import { ownRows, sharedRows, type ResourceDeclaration } from '../../model/access.js';

export const achievementsAccess: ResourceDeclaration = {
  about: 'The achievements that the member has earned, and the progress towards the others.',
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
