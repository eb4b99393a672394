import { eraseMembers } from '../accounts/erasure.js';
import { isUsername, USERNAME_RULE } from '../values/string-rules.js';
import { LENGTHS, MAX_LATITUDE, MAX_LONGITUDE, RSVP_STATUSES_BY_ROLE, type EventRole } from '../values/vocabulary.js';
import { Achievement, UserAchievement } from '../database/schema/entities/members/achievement.entity.js';
import { connections } from '../resources/connections/import.js';
import { Event, Participant } from '../database/schema/entities/members/event.entity.js';
import { User } from '../database/schema/entities/members/user.entity.js';
import * as is from './fields.js';
import { code, erased, NEW_USERS, recordType, twice, type RecordType } from './record-type.js';

/** Another line takes the username of the member `t`. */
export const USERNAME_IS_WANTED =
  'EXISTS (SELECT FROM import_users r WHERE fold_case(r.username) = t.folded_username AND r.id <> t.id)';
/** The same of the member's `external_id`. */
export const EXTERNAL_ID_IS_WANTED =
  'EXISTS (SELECT FROM import_users r WHERE r.external_id = t.external_id AND r.id <> t.id)';

export const users = recordType({
  name: 'users',
  fields: {
    id: is.required(is.id),
    username: is.required(is.username),
    ...is.columns(User, 'first_name', 'last_name'),
    display_name: { ...is.text(LENGTHS.users.stored_display_name), column: 'stored_display_name' },
    ...is.columns(User, 'bio'),
    profile_picture: is.url(LENGTHS.users.profile_picture),
    external_id: is.keeping(is.text(LENGTHS.users.external_id)),
    email: is.keeping(is.email),
    password_hash: is.keeping(is.passwordHash),
    ...is.columns(User, 'created_at'),
    disabled_at: is.keeping(is.moment),
  },
  notes: { is_well_named: ({ username }) => isUsername(username as string) },
  references: [erased('users', 'id')],
  rules: [
    // A member who has such a name already keeps it.
    `SELECT s.line, ${code('invalid_characters')}, 'username: must ${USERNAME_RULE}' FROM import_users s
  WHERE NOT s.is_well_named AND NOT EXISTS (SELECT FROM users t WHERE t.id = s.id AND t.username = s.username)`,
    twice('users', ['fold_case(username)'], "'username: line ' || d.first || ' has the same'"),
    `SELECT s.line, ${code('taken')}, 'username: is taken by member ' || t.id FROM import_users s
  JOIN users t ON t.folded_username = fold_case(s.username) AND t.id <> s.id
  WHERE NOT EXISTS (SELECT FROM import_users r WHERE r.id = t.id)`,
    twice('users', ['external_id'], "'external_id: line ' || d.first || ' has the same'"),
    `SELECT s.line, ${code('taken')}, 'external_id: is taken by member ' || t.id FROM import_users s
  JOIN users t ON t.external_id = s.external_id AND t.id <> s.id
  WHERE NOT EXISTS (SELECT FROM import_users r WHERE r.id = t.id AND (r.deleted OR r.says_external_id))`,
  ],
  besides: { edited_fields: `'{}'::text[]` },
  referred: ['username', 'external_id', 'disabled_at'],
  kept: {
    ...Object.fromEntries(
      ['first_name', 'last_name', 'bio', 'profile_picture'].map((field) => [
        field,
        `CASE WHEN '${field}' = ANY (t.edited_fields) THEN t.${field} ELSE s.${field} END`,
      ]),
    ),
    edited_fields: `COALESCE(t.edited_fields, '{}')`,
  },
  release: [
    `UPDATE users t SET username = gen_random_uuid() FROM import_users s
  WHERE s.id = t.id AND (s.deleted OR fold_case(s.username) <> t.folded_username) AND ${USERNAME_IS_WANTED}`,
    `UPDATE users t SET external_id = NULL FROM import_users s
  WHERE s.id = t.id AND (s.deleted OR s.says_external_id AND s.external_id IS DISTINCT FROM t.external_id)
    AND ${EXTERNAL_ID_IS_WANTED}`,
  ],
  removal: {
    ended: 'erased_at',
    remove: eraseMembers,
  },
});

const achievements = recordType({
  name: 'achievements',
  fields: {
    ...is.columns(Achievement, 'id', 'key', 'name', 'description'),
    icon_url: is.url(LENGTHS.achievements.icon_url),
    ...is.columns(Achievement, 'category', 'points', 'is_hidden', 'criteria', 'target', 'position', 'retired_at'),
  },
  rules: [
    twice('achievements', ['key'], "'key: the same already stands in line ' || d.first"),
    `SELECT s.line, ${code('taken')}, 'key: is taken by achievement ' || t.id FROM import_achievements s
  JOIN achievements t ON t.key = s.key AND t.id <> s.id
  WHERE NOT EXISTS (SELECT FROM import_achievements r WHERE r.id = t.id AND NOT r.deleted)`,
  ],
  release: [
    `UPDATE achievements t SET key = NULL FROM import_achievements s
  WHERE s.id = t.id AND NOT s.deleted AND s.key IS DISTINCT FROM t.key`,
  ],
  removal: { ended: 'retired_at', ends: { retired_at: 'now()' } },
});

const events = recordType({
  name: 'events',
  fields: {
    ...is.columns(Event, 'id', 'title', 'summary', 'description', 'status', 'visibility', 'starts_at', 'ends_at'),
    timezone: is.required(is.timeZone),
    ...is.columns(Event, 'is_all_day', 'is_online'),
    online_url: is.url(LENGTHS.events.online_url),
    location: {
      fields: {
        name: is.text(LENGTHS.events.location_name),
        city: is.text(LENGTHS.events.location_city),
        country_code: is.countryCode,
        address: is.text(LENGTHS.events.location_address),
        latitude: is.degrees(MAX_LATITUDE),
        longitude: is.degrees(MAX_LONGITUDE),
      },
    },
    cover_image: is.url(LENGTHS.events.cover_image),
    ...is.columns(Event, 'organizer_id', 'capacity', 'tags', 'created_at'),
    updated_at: { ...is.moment, absent: 'the time of the import that changes it' },
    ...is.columns(Event, 'cancelled_at', 'cancellation_reason', 'deleted_at'),
  },
  check: ({ starts_at, ends_at }) =>
    starts_at && ends_at && ends_at < starts_at
      ? is.inconsistent('ends_at', 'must not be before starts_at')
      : undefined,
  removal: { ended: 'deleted_at', ends: { deleted_at: 'now()', updated_at: 'now()' } },
});

const participants = recordType({
  name: 'participants',
  fields: {
    event_id: is.required(is.idOf('events')),
    user_id: is.required(is.idOfMember),
    ...is.columns(Participant, 'role', 'rsvp_status', 'responded_at', 'checked_in_at'),
    deleted: is.orElse(false, is.flag),
  },
  check: ({ role, rsvp_status }) => {
    const statuses: readonly string[] = RSVP_STATUSES_BY_ROLE[role as EventRole] ?? [];
    const allowed: unknown[] = statuses.length > 0 ? [...statuses] : [null];
    if (role === undefined || rsvp_status === undefined || allowed.includes(rsvp_status)) return undefined;
    return is.inconsistent(
      'rsvp_status',
      `must be ${allowed.map(String).join(' or ')} for the role ${role as string}`,
    );
  },
  key: ['user_id', 'event_id'],
  copies: {
    from: 'events',
    by: 'event_id',
    columns: { starts_at: 'o.starts_at', event_is_draft: 'o.is_draft', event_is_deleted: 'o.is_deleted' },
  },
  // What comes with its member is nothing new to anybody. A trigger keeps it true.
  besides: { changed_in: 'CASE WHEN n.id IS NULL THEN pg_current_xact_id()::text::bigint END' },
  joins: `LEFT JOIN ${NEW_USERS} n ON n.id = s.user_id`,
});

const userAchievements = recordType({
  name: 'user_achievements',
  fields: {
    user_id: is.required(is.idOfMember),
    ...is.columns(UserAchievement, 'achievement_id', 'progress', 'earned_at', 'pin_position'),
  },
  check: ({ earned_at, pin_position }) =>
    earned_at === null && typeof pin_position === 'number'
      ? is.inconsistent('pin_position', 'only what is earned can be pinned')
      : undefined,
  rules: [
    twice(
      'user_achievements',
      ['user_id', 'pin_position'],
      "'pin_position: the same of this member already stands in line ' || d.first",
    ),
    `SELECT s.line, ${code('taken')}, 'pin_position: is taken by achievement ' || t.achievement_id FROM import_user_achievements s
  JOIN user_achievements t ON t.user_id = s.user_id AND t.pin_position = s.pin_position
    AND t.achievement_id <> s.achievement_id
  WHERE NOT EXISTS (SELECT FROM import_user_achievements r
    WHERE r.user_id = t.user_id AND r.achievement_id = t.achievement_id)`,
  ],
  key: ['user_id', 'achievement_id'],
  copies: { from: 'users', by: 'user_id', columns: { user_is_disabled: 'o.is_disabled' } },
  release: [
    `UPDATE user_achievements t SET pin_position = NULL FROM import_user_achievements s
  WHERE s.user_id = t.user_id AND s.achievement_id = t.achievement_id
    AND t.pin_position IS NOT NULL AND s.pin_position IS DISTINCT FROM t.pin_position`,
  ],
});

/** In the order in which they refer to one another. */
export const RECORD_TYPES: readonly RecordType[] = [
  users,
  achievements,
  events,
  participants,
  connections,
  userAchievements,
];
