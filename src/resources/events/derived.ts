import type { Derived } from '../../model/derived.js';

export const derivedOfParticipants: Derived = {
  table: 'participants',
  copies: {
    from: 'events',
    by: 'event_id',
    columns: { starts_at: 'o.starts_at', event_is_draft: 'o.is_draft', event_is_deleted: 'o.is_deleted' },
  },
  totals: [
    { of: 'user', column: 'events_count', counts: 't.is_visible' },
    { of: 'event', column: 'attendees_count', counts: `t.rsvp_status = 'going'` },
  ],
  reported: ['user_id', 'event_id', 'role', 'rsvp_status', 'responded_at', 'checked_in_at'],
};
