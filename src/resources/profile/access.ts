import { ownRows, sharedRows, type ResourceDeclaration } from '../../model/access.js';

export const profileAccess: ResourceDeclaration = {
  about: 'The member’s profile, and changes to it.',
  scope: 'See your profile: names, bio, picture and counts',
  rows: 'users u',
  member: 'u.id',
  id: 'u.id',
  isShown: 'true',
  traces: [
    // The profile includes counts of connections and achievements.
    { of: ownRows('profile', 'connections', 'achievements'), item: ['s.user_id', 's.user_id'] },
    {
      of: sharedRows('people'),
      through: 'JOIN connections c ON c.peer_id = s.id',
      where: `c.status = 'accepted' AND s.kind <> 'updated'`,
      item: ['c.user_id', 'c.user_id'],
    },
  ],
};
