-- Benchmark data: :users members and their records, the same in each run. Loaded without triggers
-- (session_replication_role), so every row must be complete; the totals are counted once afterwards.
--
-- Names and titles have letters of one, two and three bytes, on purpose: a text of which one letter is beyond Latin-1 takes JavaScript
-- twice the room, and ten times as long to encode.
--
-- The benchmark requests the data of one member in :step ("asked"); their lists all have full first pages.

INSERT INTO users (id, username, first_name, last_name, stored_display_name, bio, profile_picture, created_at, disabled_at)
SELECT i, 'member_' || i,
  (ARRAY['Ada', 'Björn', 'Chloé', 'Dmitri', 'Emeka', 'Fatima', 'Grace', 'Hiro'])[1 + i % 8],
  (ARRAY['Okafor', 'Lindqvist', 'O''Neill', 'Silva', 'Tanaka', 'Weiß', 'Yılmaz'])[1 + i % 7],
  CASE WHEN i % 3 = 0 THEN 'The Member ' || i END,
  CASE WHEN i % 4 <> 0 THEN repeat('Meets people on Tuesdays – über Bücher. ', 1 + (i % 9)::int) END,
  CASE WHEN i % 5 <> 0 THEN 'https://img.example.com/people/' || md5(i::text) || '.jpg' END,
  timestamptz '2019-01-01 00:00:00Z' + i % 2000 * interval '1 day' + i % 86400 * interval '1.000001 seconds',
  CASE WHEN i % 97 = 96 AND i % :step <> 0 THEN timestamptz '2025-06-01 00:00:00Z' END
FROM generate_series(1, :users::bigint) i;

INSERT INTO events (id, title, summary, description, status, visibility, starts_at, ends_at, timezone, is_all_day,
  is_online, online_url, location_name, location_city, location_country_code, location_address, location_latitude,
  location_longitude, cover_image, organizer_id, capacity, tags, created_at, updated_at, cancelled_at,
  cancellation_reason, deleted_at)
SELECT i, 'Meeting ' || i || ' of the "Tuesday" people – Zürich, “Café Łódź”', CASE WHEN i % 5 <> 0 THEN 'What we do when we meet, part ' || i END,
  repeat('Everything there is to know. ', 10 + (i % 20)::int),
  CASE WHEN i % 33 = 0 THEN 'draft' WHEN i % 20 = 1 THEN 'cancelled' WHEN i % 2 = 0 THEN 'scheduled' ELSE 'completed' END,
  (ARRAY['public', 'public', 'unlisted', 'private'])[1 + i % 4],
  at.starts_at, CASE WHEN i % 7 <> 0 THEN at.starts_at + interval '2 hours' END,
  (ARRAY['Europe/Berlin', 'America/Denver', 'Asia/Kolkata', 'UTC', 'Australia/Sydney'])[1 + i % 5],
  i % 11 = 0, i % 6 = 0, CASE WHEN i % 6 = 0 THEN 'https://meet.example.com/' || i END,
  CASE WHEN i % 6 <> 0 THEN 'House ' || i % 500 END, CASE WHEN i % 6 <> 0 THEN 'Bozeman' END,
  CASE WHEN i % 6 <> 0 THEN 'US' END, CASE WHEN i % 6 <> 0 THEN i % 500 || ' Main Street' END,
  CASE WHEN i % 6 <> 0 THEN 45.67 + i % 100 * 0.001 END, CASE WHEN i % 6 <> 0 THEN -111.04 END,
  CASE WHEN i % 3 <> 0 THEN 'https://img.example.com/events/' || md5(i::text) || '.jpg' END,
  (i + 1) / 2, CASE WHEN i % 4 = 0 THEN 5 + (i % 50)::int END, ARRAY['outdoors', 'tag' || i % 30],
  at.starts_at - interval '40 days 00:00:00.123456', at.starts_at - interval '3 days',
  CASE WHEN i % 33 <> 0 AND i % 20 = 1 THEN at.starts_at - interval '3 days' END,
  CASE WHEN i % 33 <> 0 AND i % 20 = 1 THEN 'The house is closed.' END,
  CASE WHEN i % 101 = 0 THEN timestamptz '2025-06-01 00:00:00Z' END
FROM generate_series(1, 2 * :users::bigint) i,
  LATERAL (SELECT timestamptz '2024-01-01 00:00:00Z' + i * 7919 % 140000 * interval '15 minutes' AS starts_at) at;

-- Each member organizes two events and takes part in eight more; requested members in forty, member 2 in 20,000.
INSERT INTO participants (user_id, event_id, role, rsvp_status, responded_at, checked_in_at, starts_at)
SELECT p.user_id, p.event_id, p.role,
  CASE p.role WHEN 'attendee' THEN (ARRAY['going', 'going', 'going', 'maybe', 'waitlisted'])[1 + p.event_id % 5]
    WHEN 'invitee' THEN (ARRAY['pending', 'declined'])[1 + p.event_id % 2] END,
  CASE WHEN p.role = 'attendee' THEN e.starts_at - interval '5 days' END,
  CASE WHEN p.role = 'attendee' AND p.event_id % 5 < 3 AND e.status = 'completed' THEN e.starts_at END,
  e.starts_at
FROM (
  SELECT organizer_id AS user_id, id AS event_id, 'organizer' AS role FROM events
  UNION ALL
  SELECT i, 1 + (i * 7919 + j * 104729) % (2 * :users::bigint),
    CASE (i + j) % 20 WHEN 0 THEN 'co_organizer' WHEN 1 THEN 'invitee' WHEN 2 THEN 'invitee' ELSE 'attendee' END
  FROM generate_series(1, :users::bigint) i, generate_series(1, CASE WHEN i % :step = 0 THEN 40 ELSE 8 END) j
  UNION ALL
  SELECT 2, 1 + i * GREATEST(2 * :users::bigint / 20000, 1), 'attendee'
  FROM generate_series(0, LEAST(20000, 2 * :users::bigint) - 1) i
) p JOIN events e ON e.id = p.event_id
ON CONFLICT DO NOTHING;

-- Ten connections from everybody to ten others, so twenty for each; twenty more for requested members; member 1 has
-- 100,000 (all others, where there are fewer).
CREATE TEMPORARY TABLE pairs AS
SELECT DISTINCT ON (LEAST(a, b), GREATEST(a, b)) row_number() OVER (ORDER BY n, a, b) AS id, a, b, n
FROM (
  SELECT i AS a, 1 + (i - 1 + 1 + (j - 1) * (:users / 45)) % :users::bigint AS b, i * 10 + j AS n
  FROM generate_series(1, :users::bigint) i, generate_series(1, CASE WHEN i % :step = 0 THEN 20 ELSE 10 END) j
  UNION ALL
  SELECT 1, i, i FROM generate_series(2, LEAST(100001, :users::bigint)) i
) p WHERE a <> b ORDER BY LEAST(a, b), GREATEST(a, b), n;

INSERT INTO connections (id, user_id, peer_id, status, source, met_at_event_id, requested_at, connected_at)
SELECT id, s.user_id, s.peer_id, s.status, (ARRAY['event', 'search', 'invite', 'import'])[1 + n % 4],
  CASE WHEN n % 4 = 0 THEN 2 * a - 1 END, at.requested_at,
  CASE WHEN s.status = 'accepted' THEN at.requested_at + interval '1 day 00:00:00.5' END
FROM pairs,
  LATERAL (SELECT timestamptz '2021-01-01 00:00:00Z' + n * 7919 % 2000000 * interval '1.5 minutes' AS requested_at) at,
  LATERAL (VALUES (a, b, CASE WHEN n % 25 = 0 THEN 'pending_sent' ELSE 'accepted' END),
    (b, a, CASE WHEN n % 25 = 0 THEN 'pending_received' ELSE 'accepted' END)) s (user_id, peer_id, status);
SELECT setval('connections_id_seq', (SELECT max(id) FROM pairs));

INSERT INTO achievements (id, key, name, description, icon_url, category, points, is_hidden, criteria, target, position, retired_at)
SELECT i, 'achievement_' || i, 'Achievement ' || i, 'For what number ' || i || ' stands for.',
  'https://img.example.com/achievements/' || i || '.svg',
  (ARRAY['events', 'people', 'profile', 'community', 'travel', 'seasons'])[1 + i % 6], 5 * (1 + i % 20), i % 15 = 0,
  'Do it ' || i || ' times.', CASE WHEN i % 3 = 0 THEN i END, i,
  CASE WHEN i % 40 = 39 THEN timestamptz '2025-01-01 00:00:00Z' END
FROM generate_series(1, 200) i;

-- Number a is earned by a share of 0.9 × 0.97^(a − 1): thirty for everybody, in every tier of rarity.
INSERT INTO user_achievements (user_id, achievement_id, progress, earned_at, pin_position)
SELECT i, a.id, CASE WHEN draw.n < share.n THEN COALESCE(a.target, 0) ELSE COALESCE(a.target, 0) / 2 END,
  CASE WHEN draw.n < share.n
    THEN timestamptz '2022-01-01 00:00:00Z' + (i * 31 + a.id * 7919) % 2000000 * interval '1 minute' END,
  CASE WHEN draw.n < share.n AND a.id <= 5 THEN a.id END
FROM generate_series(1, :users::bigint) i, achievements a,
  LATERAL (SELECT abs(hashint8(i * 1000 + a.id)::bigint) % 10000 AS n) draw,
  LATERAL (SELECT (9000 * power(0.97, a.id - 1))::int AS n) share
WHERE draw.n < share.n + 20;
