const AT = 's.changed_at, s.changed_in, s.sequence';

/**
 * SQL: whose lists the rows of `batch` (changes) are in: (user_id, resource, id, changed_at, changed_in, sequence), a thing as often as
 * it changed. The way that a member's own reading goes (Changes.of) from the other end: from what changed to who sees it. Whether they still
 * do is decided by whoever reads on, with `kindFor`.
 */
export const membersOf = (batch: string) => `WITH of_events AS MATERIALIZED (
  SELECT s.user_id, s.id, ${AT} FROM ${batch} s WHERE s.user_id IS NOT NULL AND s.resource = 'events'
  UNION ALL
  SELECT p.user_id, s.id, ${AT} FROM ${batch} s JOIN participants p ON p.event_id = s.id
    WHERE s.user_id IS NULL AND s.resource = 'events' AND (p.is_visible OR s.kind = 'removed')
), of_people AS MATERIALIZED (
  SELECT s.id AS person, s.kind, ${AT} FROM ${batch} s WHERE s.user_id IS NULL AND s.resource = 'people'
)
SELECT user_id, text 'events' AS resource, id, changed_at, changed_in, sequence FROM of_events
UNION ALL
-- Who organises an event is shown with it.
SELECT p.user_id, 'events', p.event_id, ${AT} FROM of_people s JOIN events e ON e.organizer_id = s.person
  JOIN participants p ON p.event_id = e.id WHERE p.is_visible
UNION ALL
SELECT p.user_id, 'events', p.event_id, ${AT} FROM of_people s
  JOIN participants c ON c.user_id = s.person AND c.role = 'co_organizer' JOIN participants p ON p.event_id = c.event_id
  WHERE p.is_visible
UNION ALL
SELECT s.user_id, 'connections', s.id, ${AT} FROM ${batch} s WHERE s.user_id IS NOT NULL AND s.resource = 'connections'
UNION ALL
SELECT c.user_id, 'connections', c.id, ${AT} FROM of_people s JOIN connections c ON c.peer_id = s.person
  WHERE NOT c.peer_is_disabled OR s.kind = 'removed'
UNION ALL
-- So is the event where two people met.
SELECT c.user_id, 'connections', c.id, ${AT} FROM of_events s JOIN connections c ON c.met_at_event_id = s.id AND c.user_id = s.user_id
  WHERE NOT c.peer_is_disabled
UNION ALL
SELECT s.user_id, 'achievements', s.id, ${AT} FROM ${batch} s WHERE s.user_id IS NOT NULL AND s.resource = 'achievements'
UNION ALL
SELECT a.user_id, 'achievements', a.achievement_id, ${AT} FROM ${batch} s JOIN user_achievements a ON a.achievement_id = s.id
  WHERE s.user_id IS NULL AND s.resource = 'achievements' AND a.earned_at IS NOT NULL
UNION ALL
-- The profile counts connections and achievements.
SELECT s.user_id, 'profile', s.user_id, ${AT} FROM ${batch} s
  WHERE s.user_id IS NOT NULL AND s.resource IN ('profile', 'connections', 'achievements')
UNION ALL
SELECT c.user_id, 'profile', c.user_id, ${AT} FROM of_people s JOIN connections c ON c.peer_id = s.person
  WHERE c.status = 'accepted' AND s.kind <> 'updated'`;
