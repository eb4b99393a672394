import { orRemoved, ownRows, sharedRows, type ResourceDeclaration } from '../../model/access.js';

/** SQL: the stored result of the access rule, the function `event_visible`. */
export const isEventVisible = 'p.is_visible';

export const eventsAccess: ResourceDeclaration = {
  about: 'The events that the member organizes, attends or is invited to.',
  scope: 'See the events you organize, attend or are invited to',
  rows: 'participants p',
  member: 'p.user_id',
  id: 'p.event_id',
  isShown: isEventVisible,
  traces: [
    { of: ownRows('events') },
    {
      of: sharedRows('events'),
      through: 'JOIN participants p ON p.event_id = s.id',
      where: orRemoved(isEventVisible),
    },
    // An event includes data of its organizers.
    {
      of: sharedRows('people'),
      through: 'JOIN events e ON e.organizer_id = s.id JOIN participants p ON p.event_id = e.id',
    },
    {
      of: sharedRows('people'),
      through: `JOIN participants h ON h.user_id = s.id AND h.role = 'co_organizer' JOIN participants p ON p.event_id = h.event_id`,
    },
  ],
};
