import { orRemoved, ownRows, sharedRows, type ResourceDeclaration } from '../../model/access.js';
import { isEventVisible } from '../events/access.js';

/** Returns the SQL condition that the other member of a connection is not disabled. */
export const isConnectionShown = (row: string) => `NOT ${row}.peer_is_disabled`;
const isShown = isConnectionShown('c');

export const connectionsAccess: ResourceDeclaration = {
  about: 'The people whom the member is connected with.',
  scope: 'See the people you are connected with',
  rows: 'connections c',
  member: 'c.user_id',
  id: 'c.id',
  isShown,
  traces: [
    { of: ownRows('connections') },
    {
      of: sharedRows('people'),
      through: 'JOIN connections c ON c.peer_id = s.id',
      where: orRemoved(isShown),
    },
    // A connection includes the event where the two met, if the member can see it.
    {
      of: ownRows('events'),
      through: 'JOIN connections c ON c.met_at_event_id = s.id AND c.user_id = s.user_id',
    },
    {
      of: sharedRows('events'),
      through: `JOIN participants p ON p.event_id = s.id
  JOIN connections c ON c.met_at_event_id = p.event_id AND c.user_id = p.user_id`,
      where: `${orRemoved(isEventVisible)} AND ${isShown}`,
    },
  ],
};
