// The data of each response, as SQL over a member's id. Good hand-written SQL: keyset indexes, maintained totals, no more
// columns than the response contains.

const LOCAL = (column) => `to_char(${column} AT TIME ZONE e.timezone, 'YYYY-MM-DD HH24:MI:SS')`;

export const PROFILE = {
  scope: 'profile:read',
  columns: `u.id, u.username, u.display_name, u.bio, u.profile_picture, u.created_at, t.achievements_count, t.connections_count`,
  from: (member) => `users u JOIN user_totals t ON t.user_id = u.id WHERE u.id = ${member}`,
};

export const EVENTS = {
  scope: 'events:read',
  total: 'events_count',
  columns: `e.id, e.title, e.summary, e.status, e.visibility, e.starts_at, e.ends_at, e.timezone, ${LOCAL('e.starts_at')} AS starts_at_local,
  ${LOCAL('e.ends_at')} AS ends_at_local, e.is_all_day, e.is_online, e.location_name, e.location_city, e.location_country_code,
  e.cover_image, o.id AS organizer_id, o.username AS organizer_username, o.display_name AS organizer_display_name,
  o.profile_picture AS organizer_profile_picture, p.role, p.rsvp_status,
  COALESCE((SELECT attendees_count FROM event_totals WHERE event_id = e.id), 0) AS attendees_count, e.capacity, e.created_at, e.updated_at`,
  from: (member) => `participants p JOIN events e ON e.id = p.event_id JOIN users o ON o.id = e.organizer_id
  WHERE p.user_id = ${member} AND e.deleted_at IS NULL AND (e.status <> 'draft' OR p.role IN ('organizer', 'co_organizer'))
  ORDER BY p.starts_at DESC, p.event_id LIMIT 21`,
};

export const CONNECTIONS = {
  scope: 'connections:read',
  total: 'connections_count',
  columns: `c.id, u.id AS peer_id, u.username, u.display_name, u.profile_picture, c.status, c.requested_at, c.connected_at, c.source,
  m.id AS met_id, m.title AS met_title`,
  from: (member) => `connections c JOIN users u ON u.id = c.peer_id
  LEFT JOIN LATERAL (SELECT e.id, e.title FROM participants p JOIN events e ON e.id = p.event_id
    WHERE p.user_id = c.user_id AND p.event_id = c.met_at_event_id AND e.deleted_at IS NULL
      AND (e.status <> 'draft' OR p.role IN ('organizer', 'co_organizer'))) m ON true
  WHERE c.user_id = ${member} AND c.status = 'accepted' AND u.disabled_at IS NULL
  ORDER BY c.connected_at DESC, c.id LIMIT 21`,
};

export const ACHIEVEMENTS = {
  scope: 'achievements:read',
  total: 'achievements_count',
  columns: `a.id, a.key, a.name, a.description, a.icon_url, a.category, a.points, a.is_hidden, a.target,
  a.earners_count,
  ua.progress, ua.earned_at, ua.pin_position, s.active_users_count`,
  from: (
    member,
  ) => `user_achievements ua JOIN achievements a ON a.id = ua.achievement_id CROSS JOIN platform_totals s
  WHERE ua.user_id = ${member} AND ua.earned_at IS NOT NULL ORDER BY ua.earned_at DESC, a.id LIMIT 21`,
  pins: (member) =>
    `ARRAY(SELECT pin_position FROM user_achievements WHERE user_id = ${member} AND pin_position IS NOT NULL)`,
};

export const STATISTICS = {
  scope: 'achievements:read',
  columns: `a.id, a.name, a.category, a.points, ua.earned_at, s.active_users_count,
  a.earners_count`,
  from: (
    member,
  ) => `achievements a LEFT JOIN user_achievements ua ON ua.user_id = ${member} AND ua.achievement_id = a.id
  CROSS JOIN platform_totals s WHERE a.retired_at IS NULL OR ua.earned_at IS NOT NULL ORDER BY a.id`,
};

const VALID_KEY = `FROM api_keys k JOIN users o ON o.id = k.user_id WHERE k.id = $1 AND k.hash = $2 AND k.revoked_at IS NULL
  AND (k.expires_at IS NULL OR k.expires_at > now()) AND o.disabled_at IS NULL`;

/** Key and data in one: $1 is the key's id, $2 its hash; an invalid key, or one without the scope, yields no row. */
export function combined({ scope, columns, from, total, pins }) {
  const key = `WITH valid AS (SELECT k.user_id ${VALID_KEY} AND '${scope}' = ANY (k.scopes))`;
  const more = [
    ...(total ? [`(SELECT ${total} FROM user_totals WHERE user_id = valid.user_id) AS total`] : []),
    ...(pins ? [`${pins('valid.user_id')} AS pins`] : []),
  ];
  return `${key} SELECT ${[...more, 'item.*'].join(', ')}
FROM valid LEFT JOIN LATERAL (SELECT ${columns} FROM ${from('valid.user_id')}) item ON true`;
}
