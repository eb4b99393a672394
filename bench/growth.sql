-- One more copy of the members that bench/growth.mjs imported, and of what is theirs: the first :imported members, and the events and
-- connections up to :imported_events and :imported_connections, with ids moved by :members, :events and :connections. Without triggers, so
-- what these would have written is copied, too.

INSERT INTO users (id, username, folded_username, first_name, last_name, display_name, folded_name, bio,
  profile_picture, created_at, is_disabled, card)
SELECT id + :members, 'member' || id + :members, 'member' || id + :members, first_name, last_name, display_name, folded_name, bio,
  profile_picture, created_at, is_disabled, user_card(id + :members, 'member' || id + :members, display_name, profile_picture)
FROM users WHERE id <= :imported;

INSERT INTO events (id, title, status, visibility, starts_at, timezone, location_name, location_city, location_country_code, organizer_id,
  created_at, updated_at, is_draft, is_deleted)
SELECT id + :events, title, status, visibility, starts_at, timezone, location_name, location_city, location_country_code,
  organizer_id + :members, created_at, updated_at, is_draft, is_deleted
FROM events WHERE id <= :imported_events;

INSERT INTO participants (user_id, event_id, role, rsvp_status, responded_at, starts_at, event_is_draft, event_is_deleted)
SELECT user_id + :members, event_id + :events, role, rsvp_status, responded_at, starts_at, event_is_draft, event_is_deleted
FROM participants WHERE user_id <= :imported;

INSERT INTO connections (user_id, id, peer_id, status, source, requested_at, connected_at, peer_is_disabled, peer_name, peer_username)
SELECT user_id + :members, id + :connections, peer_id + :members, status, source, requested_at, connected_at, peer_is_disabled, peer_name,
  'member' || peer_id + :members
FROM connections WHERE user_id <= :imported;

INSERT INTO user_achievements (user_id, achievement_id, progress, earned_at, pin_position, user_is_disabled)
SELECT user_id + :members, achievement_id, progress, earned_at, pin_position, user_is_disabled
FROM user_achievements WHERE user_id <= :imported;

INSERT INTO user_totals SELECT user_id + :members, events_count, connections_count, achievements_count, is_delta
FROM user_totals WHERE user_id <= :imported;

INSERT INTO event_totals SELECT event_id + :events, attendees_count, is_delta FROM event_totals WHERE event_id <= :imported_events;
