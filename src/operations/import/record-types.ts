import type { EntityManager } from 'typeorm';
import { eraseMembers } from '../../accounts/erasure.js';
import { audited } from '../../audit/audit.js';
import type { NewAuthEvent } from '../../audit/audit.js';
import {
  absent,
  countryCode,
  degrees,
  flag,
  id,
  integer,
  into,
  moment,
  oneOf,
  orElse,
  email,
  passwordHash,
  required,
  tags,
  text,
  timeZone,
  url,
  username,
} from './fields.js';
import type { FaultCode, Fields, LineFault } from './fields.js';
import {
  CONNECTION_SOURCES,
  EVENT_ROLES,
  EVENT_STATUSES,
  EVENT_VISIBILITIES,
  LENGTHS,
  MAX_LATITUDE,
  MAX_LONGITUDE,
  MAX_PINNED,
  RSVP_STATUSES,
  RSVP_STATUSES_BY_ROLE,
} from '../../values/vocabulary.js';
import { isUsername, USERNAME_RULE } from '../../values/names.js';
import type { EventRole } from '../../values/vocabulary.js';

/** One file of the folder: its fields, the rules between records, and how the rows get into their table. */
export interface RecordType {
  /** The name of the file and of the table. */
  readonly name: string;
  readonly fields: Fields;
  /** Names of other types that records of this one refer to. */
  readonly refersTo: readonly string[];
  /** Columns of the staging table besides those of the fields, filled by {@link RecordType.complete}. */
  readonly extraColumns?: readonly (readonly [column: string, type: string])[];
  /** Adds the extra columns to a row. */
  readonly complete?: (row: Record<string, unknown>, record: Record<string, unknown>) => void;
  /** What is wrong between the fields of one record. */
  readonly check?: (row: Record<string, unknown>) => LineFault | undefined;
  /** Queries for (line, code, reason) of staged records `s` that are wrong whatever other lines say of the same record. */
  readonly references: readonly string[];
  /** The same of those that other lines or records of the database rule out. */
  readonly rules: readonly string[];
  /** Columns that keep their value if a record does not say it → the column that says whether it does; null if null says that it does not. */
  readonly silent?: Readonly<Record<string, string | null>>;
  /** Rows of the table for the staged records: `s`, with every name that {@link RecordType.values} uses. */
  readonly source: string;
  /** Rows of the table that one record makes. */
  readonly rowsPerRecord: number;
  readonly key: readonly string[];
  /** Column → SQL over `s` and the row that is there, `t`. */
  readonly values: Readonly<Record<string, string>>;
  /** Columns of {@link RecordType.values} that stand in unique indexes, or what they hold is computed from them. */
  readonly referred?: readonly string[];
  /** What is compared with `t` instead of the value, to tell whether anything changes. */
  readonly compared?: Readonly<Record<string, string>>;
  /** Join of the row `o` that values are copied from; only the write needs it. */
  readonly joins?: string;
  /** Runs before the write, and releases unique values that other rows will take. */
  readonly release?: string;
  /** Sequence that must be advanced beyond the ids. */
  readonly sequence?: string;
  /** Values with `--keep-profile`, instead of those of {@link RecordType.values}. */
  readonly kept?: Readonly<Record<string, string>>;
  /** Columns of the staging table, each of which identifies a record by itself. */
  readonly identities: readonly (readonly string[])[];
  /** Whoever of its two members asked, it is the same record. */
  readonly isMutual?: boolean;
  /** Columns of the staging table that identify a record permanently, and under which its version is stored. */
  readonly version: readonly string[];
  /** What `"op": "delete"` does, and in some files `"deleted": true`. */
  readonly removal: Removal;
}

export interface Removal {
  /** The fields that identify a record; all others in the line are ignored. */
  readonly fields: Fields;
  readonly check?: (row: Record<string, unknown>) => LineFault | undefined;
  readonly complete?: (row: Record<string, unknown>) => void;
  /** Query for the {@link Removal.key} of the rows to delete. */
  readonly rows: string;
  /** Primary key of the table. */
  readonly key: readonly string[];
  /** For rows that are kept when they end, the columns that say so: column → SQL. */
  readonly ends?: Readonly<Record<string, string>>;
  /** How rows go that do not go alone. @param ids of the rows, in order */
  readonly remove?: (manager: EntityManager, ids: number[], by: Author) => Promise<unknown>;
}

/** Who brings the records, for the audit trail. */
export interface Author {
  readonly actor: NewAuthEvent['actor'];
  readonly keyId?: string;
}

/** Names the temporary table in which records of the type are staged. */
export const staged = (name: string) => `import_${name}`;

/** Temporary table of the members that this import brings. */
export const NEW_USERS = 'import_new_users';

const code = (name: FaultCode) => `'${name}'`;

/** What is wrong between fields of one record. */
const together = (path: string, text: string): LineFault => ({ path, code: 'inconsistent', text });

/** A record that another line may contradict: where lines were settled, not one that deletes. */
const EXCLUSIVE = 'NOT (deleted AND counts IS TRUE)';

/** Same `columns` as an earlier line. */
const twice = (name: string, columns: string, what: string) =>
  `SELECT s.line, ${code('duplicate')}, '${what} already stands in line ' || d.first FROM ${staged(name)} s
  JOIN (SELECT ${columns}, min(line) AS first FROM ${staged(name)} WHERE ${EXCLUSIVE} GROUP BY ${columns} HAVING count(*) > 1) d
    USING (${columns}) WHERE s.line > d.first AND ${EXCLUSIVE}`;

/** `column` names a row of `table` that is neither in the folder nor in the database. */
const missing = (name: string, column: string, table: string) =>
  `SELECT s.line, ${code('unknown_reference')}, '${column}: there is no such record in ${table}: ' || s.${column} FROM ${staged(name)} s
  WHERE NOT s.deleted AND s.${column} IS NOT NULL
    AND NOT EXISTS (SELECT FROM ${staged(table)} r WHERE r.id = s.${column} AND NOT r.deleted)
    AND NOT EXISTS (SELECT FROM ${table} r WHERE r.id = s.${column})`;

/** `column` names a member who was erased, or is by another line, an earlier one where lines were settled: nothing of them comes back. */
const erased = (name: string, column: string) =>
  `SELECT s.line, ${code('member_erased')}, '${column}: the member ' || r.id || ' was erased' FROM ${staged(name)} s
  JOIN users r ON r.id = s.${column} WHERE NOT s.deleted AND r.erased_at IS NOT NULL
  UNION ALL SELECT s.line, ${code('member_erased')}, '${column}: line ' || r.line || ' deletes the member ' || r.id FROM ${staged(name)} s
  JOIN ${staged('users')} r ON r.id = s.${column} AND r.deleted AND (r.line < s.line OR s.counts IS NULL)
  WHERE NOT s.deleted`;

/** Each column as the record has it. */
const as = (...columns: string[]) => Object.fromEntries(columns.map((column) => [column, `s.${column}`]));

const users: RecordType = {
  name: 'users',
  refersTo: [],
  identities: [['id']],
  fields: {
    id: required(id),
    username: required(username),
    first_name: text(LENGTHS.users.first_name),
    last_name: text(LENGTHS.users.last_name),
    display_name: into('stored_display_name', text(LENGTHS.users.stored_display_name)),
    bio: text(LENGTHS.users.bio),
    profile_picture: url(LENGTHS.users.profile_picture),
    external_id: absent('as it was; null for a new member', text(LENGTHS.users.external_id)),
    email: absent('as it was; null for a new member', email),
    password_hash: absent('as it was; null for a new member', passwordHash),
    created_at: absent('the time of the import', moment),
    disabled_at: absent('as it was; null for a new member', moment),
  },
  // None of them is part of the profile: where the file is silent, what was set here stays.
  extraColumns: [
    ['says_external_id', 'boolean'],
    ['says_email', 'boolean'],
    ['says_password', 'boolean'],
    ['says_disabled', 'boolean'],
    ['is_well_named', 'boolean'],
  ],
  complete: (row, record) => {
    row.says_external_id = Object.hasOwn(record, 'external_id');
    row.says_email = Object.hasOwn(record, 'email');
    row.says_password = Object.hasOwn(record, 'password_hash');
    row.says_disabled = Object.hasOwn(record, 'disabled_at');
    row.is_well_named = isUsername(row.username as string);
  },
  silent: {
    external_id: 'says_external_id',
    email: 'says_email',
    password_hash: 'says_password',
    disabled_at: 'says_disabled',
    created_at: null,
  },
  references: [erased('users', 'id')],
  rules: [
    twice('users', 'id', 'id: the same'),
    // A member who has such a name already keeps it.
    `SELECT s.line, ${code('invalid_characters')}, 'username: must ${USERNAME_RULE}' FROM import_users s
  WHERE NOT s.is_well_named AND NOT EXISTS (SELECT FROM users t WHERE t.id = s.id AND t.username = s.username)`,
    `SELECT s.line, ${code('duplicate')}, 'username: line ' || d.first || ' has the same' FROM import_users s
  JOIN (SELECT fold_case(username) AS folded, min(line) AS first FROM import_users GROUP BY 1 HAVING count(*) > 1) d
    ON d.folded = fold_case(s.username) WHERE s.line > d.first`,
    `SELECT s.line, ${code('taken')}, 'username: is taken by member ' || t.id FROM import_users s
  JOIN users t ON t.folded_username = fold_case(s.username) AND t.id <> s.id
  WHERE NOT EXISTS (SELECT FROM import_users r WHERE r.id = t.id)`,
    `SELECT s.line, ${code('duplicate')}, 'external_id: line ' || d.first || ' has the same' FROM import_users s
  JOIN (SELECT external_id, min(line) AS first FROM import_users GROUP BY 1 HAVING count(*) > 1) d USING (external_id)
  WHERE s.line > d.first`,
    `SELECT s.line, ${code('taken')}, 'external_id: is taken by member ' || t.id FROM import_users s
  JOIN users t ON t.external_id = s.external_id AND t.id <> s.id
  WHERE NOT EXISTS (SELECT FROM import_users r WHERE r.id = t.id AND (r.deleted OR r.says_external_id))`,
  ],
  source: '(SELECT * FROM import_users WHERE NOT deleted) s',
  rowsPerRecord: 1,
  key: ['id'],
  values: {
    ...as('id', 'username', 'first_name', 'last_name', 'stored_display_name', 'bio', 'profile_picture'),
    external_id: 'CASE WHEN s.says_external_id THEN s.external_id ELSE t.external_id END',
    email: 'CASE WHEN s.says_email THEN s.email ELSE t.email END',
    password_hash: 'CASE WHEN s.says_password THEN s.password_hash ELSE t.password_hash END',
    created_at: 'COALESCE(s.created_at, t.created_at, now())',
    disabled_at: 'CASE WHEN s.says_disabled THEN s.disabled_at ELSE t.disabled_at END',
    edited_fields: `'{}'::text[]`,
  },
  referred: ['username', 'external_id', 'disabled_at'],
  compared: { edited_fields: 't.edited_fields' },
  kept: {
    ...Object.fromEntries(
      ['first_name', 'last_name', 'bio', 'profile_picture'].map((field) => [
        field,
        `CASE WHEN '${field}' = ANY (t.edited_fields) THEN t.${field} ELSE s.${field} END`,
      ]),
    ),
    edited_fields: `COALESCE(t.edited_fields, '{}')`,
  },
  release: `UPDATE users t SET username = gen_random_uuid() FROM import_users s
  WHERE s.id = t.id AND (s.deleted OR fold_case(s.username) <> t.folded_username)
    AND EXISTS (SELECT FROM import_users r WHERE fold_case(r.username) = t.folded_username AND r.id <> t.id);
UPDATE users t SET external_id = NULL FROM import_users s
  WHERE s.id = t.id AND (s.deleted OR s.says_external_id AND s.external_id IS DISTINCT FROM t.external_id)
    AND EXISTS (SELECT FROM import_users r WHERE r.external_id = t.external_id AND r.id <> t.id)`,
  sequence: 'users_id_seq',
  version: ['id'],
  removal: {
    fields: { id: required(id) },
    rows: `SELECT t.id FROM import_users s JOIN users t ON t.id = s.id WHERE s.deleted AND t.erased_at IS NULL`,
    key: ['id'],
    remove: (manager, ids, by) => audited(manager, (transaction) => eraseMembers(transaction, ids, by)),
  },
};

const achievements: RecordType = {
  name: 'achievements',
  refersTo: [],
  identities: [['id']],
  fields: {
    id: required(id),
    key: text(LENGTHS.achievements.key),
    name: required(text(LENGTHS.achievements.name)),
    description: text(LENGTHS.achievements.description),
    icon_url: url(LENGTHS.achievements.icon_url),
    category: required(text(LENGTHS.achievements.category)),
    points: orElse(0, integer(0)),
    is_hidden: orElse(false, flag),
    criteria: text(LENGTHS.achievements.criteria),
    target: integer(1),
    position: orElse(0, integer(-2_147_483_648)),
    retired_at: moment,
  },
  references: [],
  rules: [
    twice('achievements', 'id', 'id: the same'),
    twice('achievements', 'key', 'key: the same'),
    `SELECT s.line, ${code('taken')}, 'key: is taken by achievement ' || t.id FROM import_achievements s
  JOIN achievements t ON t.key = s.key AND t.id <> s.id
  WHERE NOT EXISTS (SELECT FROM import_achievements r WHERE r.id = t.id AND NOT r.deleted)`,
  ],
  source: '(SELECT * FROM import_achievements WHERE NOT deleted) s',
  rowsPerRecord: 1,
  key: ['id'],
  values: as(
    'id',
    'key',
    'name',
    'description',
    'icon_url',
    'category',
    'points',
    'is_hidden',
    'criteria',
    'target',
    'position',
    'retired_at',
  ),
  release: `UPDATE achievements t SET key = NULL FROM import_achievements s
  WHERE s.id = t.id AND NOT s.deleted AND s.key IS DISTINCT FROM t.key`,
  sequence: 'achievements_id_seq',
  version: ['id'],
  removal: {
    fields: { id: required(id) },
    rows: `SELECT t.id FROM import_achievements s JOIN achievements t ON t.id = s.id WHERE s.deleted AND t.retired_at IS NULL`,
    key: ['id'],
    ends: { retired_at: 'now()' },
  },
};

const events: RecordType = {
  name: 'events',
  refersTo: ['users'],
  identities: [['id']],
  fields: {
    id: required(id),
    title: required(text(LENGTHS.events.title)),
    summary: text(LENGTHS.events.summary),
    description: text(LENGTHS.events.description),
    status: required(oneOf(EVENT_STATUSES)),
    visibility: required(oneOf(EVENT_VISIBILITIES)),
    starts_at: required(moment),
    ends_at: moment,
    timezone: required(timeZone),
    is_all_day: orElse(false, flag),
    is_online: orElse(false, flag),
    online_url: url(LENGTHS.events.online_url),
    location: {
      prefix: 'location',
      fields: {
        name: text(LENGTHS.events.location_name),
        city: text(LENGTHS.events.location_city),
        country_code: countryCode,
        address: text(LENGTHS.events.location_address),
        latitude: degrees(MAX_LATITUDE),
        longitude: degrees(MAX_LONGITUDE),
      },
    },
    cover_image: url(LENGTHS.events.cover_image),
    organizer_id: required(id),
    capacity: integer(0),
    tags,
    created_at: absent('the time of the import', moment),
    updated_at: absent('the time of the import that changes it', moment),
    cancelled_at: moment,
    cancellation_reason: text(LENGTHS.events.cancellation_reason),
    deleted_at: moment,
  },
  check: ({ starts_at, ends_at }) =>
    starts_at && ends_at && ends_at < starts_at
      ? together('ends_at', 'must not be before starts_at')
      : undefined,
  silent: { created_at: null },
  references: [
    missing('events', 'organizer_id', 'users'),
    `SELECT s.line, ${code('invalid_value')}, 'timezone: must be an IANA time zone' FROM import_events s
  WHERE s.timezone NOT IN (SELECT name FROM pg_timezone_names WHERE name !~ '^(posix|right)/|^(posixrules|localtime|Factory)$')`,
  ],
  rules: [twice('events', 'id', 'id: the same')],
  source: '(SELECT * FROM import_events WHERE NOT deleted) s',
  rowsPerRecord: 1,
  key: ['id'],
  values: {
    ...as(
      'id',
      'title',
      'summary',
      'description',
      'status',
      'visibility',
      'starts_at',
      'ends_at',
      'timezone',
    ),
    ...as('is_all_day', 'is_online', 'online_url', 'location_name', 'location_city', 'location_country_code'),
    ...as('location_address', 'location_latitude', 'location_longitude', 'cover_image', 'organizer_id'),
    ...as('capacity', 'tags', 'cancelled_at', 'cancellation_reason', 'deleted_at'),
    created_at: 'COALESCE(s.created_at, t.created_at, now())',
    updated_at: 'COALESCE(s.updated_at, now())',
  },
  compared: { updated_at: 'COALESCE(s.updated_at, t.updated_at)' },
  sequence: 'events_id_seq',
  version: ['id'],
  removal: {
    fields: { id: required(id) },
    rows: `SELECT t.id FROM import_events s JOIN events t ON t.id = s.id WHERE s.deleted AND t.deleted_at IS NULL`,
    key: ['id'],
    ends: { deleted_at: 'now()', updated_at: 'now()' },
  },
};

const participants: RecordType = {
  name: 'participants',
  refersTo: ['users', 'events'],
  identities: [['event_id', 'user_id']],
  fields: {
    event_id: required(id),
    user_id: required(id),
    role: required(oneOf(EVENT_ROLES)),
    rsvp_status: oneOf(RSVP_STATUSES),
    responded_at: moment,
    checked_in_at: moment,
    deleted: orElse(false, flag),
  },
  check: ({ role, rsvp_status }) => {
    const statuses: readonly string[] = RSVP_STATUSES_BY_ROLE[role as EventRole] ?? [];
    const allowed: unknown[] = statuses.length > 0 ? [...statuses] : [null];
    if (role === undefined || rsvp_status === undefined || allowed.includes(rsvp_status)) return undefined;
    return together(
      'rsvp_status',
      `must be ${allowed.map(String).join(' or ')} for the role ${role as string}`,
    );
  },
  references: [
    missing('participants', 'event_id', 'events'),
    missing('participants', 'user_id', 'users'),
    erased('participants', 'user_id'),
  ],
  rules: [twice('participants', 'event_id, user_id', 'event_id, user_id: the same pair')],
  source: '(SELECT * FROM import_participants WHERE NOT deleted) s',
  rowsPerRecord: 1,
  key: ['user_id', 'event_id'],
  values: {
    ...as('user_id', 'event_id', 'role', 'rsvp_status', 'responded_at', 'checked_in_at'),
    starts_at: 'o.starts_at',
    event_is_draft: 'o.is_draft',
    event_is_deleted: 'o.is_deleted',
    // What comes with its member is nothing new to anybody.
    changed_in: 'CASE WHEN n.id IS NULL THEN pg_current_xact_id()::text::bigint END',
  },
  // The foreign key keeps them true, and a trigger the last one.
  compared: {
    changed_in: 't.changed_in',
    starts_at: 't.starts_at',
    event_is_draft: 't.event_is_draft',
    event_is_deleted: 't.event_is_deleted',
  },
  joins: `JOIN events o ON o.id = s.event_id LEFT JOIN ${NEW_USERS} n ON n.id = s.user_id`,
  version: ['user_id', 'event_id'],
  removal: {
    fields: { event_id: required(id), user_id: required(id) },
    rows: `SELECT t.user_id, t.event_id FROM import_participants s
  JOIN participants t ON t.user_id = s.user_id AND t.event_id = s.event_id WHERE s.deleted`,
    key: ['user_id', 'event_id'],
  },
};

/** Both sides of every connection that stays. */
const SIDES = `(SELECT line, id, requester_id AS user_id, addressee_id AS peer_id, source, met_at_event_id, requested_at, connected_at,
    CASE status WHEN 'pending' THEN 'pending_sent' ELSE status END AS status FROM import_connections WHERE NOT deleted
  UNION ALL SELECT line, id, addressee_id, requester_id, source, met_at_event_id, requested_at, connected_at,
    CASE status WHEN 'pending' THEN 'pending_received' ELSE status END FROM import_connections WHERE NOT deleted) s`;

const connections: RecordType = {
  name: 'connections',
  refersTo: ['users', 'events'],
  identities: [['id'], ['requester_id', 'addressee_id']],
  isMutual: true,
  fields: {
    id: required(id),
    requester_id: required(id),
    addressee_id: required(id),
    status: required(oneOf(['accepted', 'pending'])),
    source: oneOf(CONNECTION_SOURCES),
    met_at_event_id: id,
    requested_at: absent('the time of the import', moment),
    connected_at: moment,
    deleted: orElse(false, flag),
  },
  check: ({ requester_id, addressee_id, status, connected_at }) => {
    if (requester_id !== undefined && requester_id === addressee_id)
      return together('addressee_id', 'nobody can be connected with themselves');
    if (connected_at === undefined) return undefined;
    if (status === 'accepted' && connected_at === null)
      return together('connected_at', 'is needed where status is accepted');
    if (status === 'pending' && connected_at !== null)
      return together('connected_at', 'must be null where status is pending');
    return undefined;
  },
  silent: { requested_at: null },
  references: [
    missing('connections', 'requester_id', 'users'),
    missing('connections', 'addressee_id', 'users'),
    erased('connections', 'requester_id'),
    erased('connections', 'addressee_id'),
    missing('connections', 'met_at_event_id', 'events'),
  ],
  rules: [
    twice('connections', 'id', 'id: the same'),
    `SELECT s.line, ${code('duplicate')}, 'requester_id, addressee_id: line ' || d.first || ' connects the two already'
  FROM import_connections s
  JOIN (SELECT least(requester_id, addressee_id) AS one, greatest(requester_id, addressee_id) AS other, min(line) AS first
    FROM import_connections WHERE ${EXCLUSIVE} GROUP BY 1, 2 HAVING count(*) > 1) d
    ON d.one = least(s.requester_id, s.addressee_id) AND d.other = greatest(s.requester_id, s.addressee_id)
  WHERE s.line > d.first AND ${EXCLUSIVE}`,
    // Unless that one gives its id up: it is in the folder, with another id or deleted.
    `SELECT s.line, ${code('taken')}, 'id: is that of a connection between other members' FROM import_connections s
  JOIN connections t ON t.id = s.id AND t.user_id < t.peer_id
  WHERE NOT s.deleted AND (t.user_id, t.peer_id) <> (least(s.requester_id, s.addressee_id), greatest(s.requester_id, s.addressee_id))
    AND NOT EXISTS (SELECT FROM import_connections r WHERE r.deleted AND r.id = t.id
      OR least(r.requester_id, r.addressee_id) = t.user_id AND greatest(r.requester_id, r.addressee_id) = t.peer_id)`,
  ],
  source: SIDES,
  rowsPerRecord: 2,
  key: ['user_id', 'peer_id'],
  values: {
    ...as('user_id', 'id', 'peer_id', 'status', 'source', 'met_at_event_id', 'connected_at'),
    requested_at: 'COALESCE(s.requested_at, t.requested_at, now())',
    peer_is_disabled: 'o.is_disabled',
    peer_name: 'o.folded_name',
    peer_username: 'o.folded_username',
  },
  // The foreign key keeps them true.
  compared: {
    peer_is_disabled: 't.peer_is_disabled',
    peer_name: 't.peer_name',
    peer_username: 't.peer_username',
  },
  joins: 'JOIN users o ON o.id = s.peer_id',
  // Pairs whose id changes are written anew, so that two of them can change places.
  release: `WITH gone AS (
  DELETE FROM connections t USING ${SIDES}
  WHERE t.user_id = s.user_id AND t.peer_id = s.peer_id AND t.id <> s.id RETURNING s.line, t.requested_at
) UPDATE import_connections s SET requested_at = COALESCE(s.requested_at, gone.requested_at) FROM gone WHERE gone.line = s.line`,
  sequence: 'connections_id_seq',
  version: ['id'],
  removal: {
    fields: { id, requester_id: id, addressee_id: id },
    check: (row) =>
      row.id === null && (row.requester_id === null || row.addressee_id === null)
        ? {
            path: '',
            code: 'missing',
            text: 'id, or requester_id and addressee_id, are needed to delete a connection',
          }
        : undefined,
    complete: (row) => {
      if (row.id !== null) row.requester_id = row.addressee_id = null; // the id alone counts
    },
    rows: `SELECT t.user_id, t.id FROM import_connections s JOIN connections t ON t.id = s.id WHERE s.deleted
  UNION SELECT t.user_id, t.id FROM import_connections s
  JOIN connections t ON t.user_id = s.requester_id AND t.peer_id = s.addressee_id WHERE s.deleted
  UNION SELECT t.user_id, t.id FROM import_connections s
  JOIN connections t ON t.user_id = s.addressee_id AND t.peer_id = s.requester_id WHERE s.deleted`,
    key: ['user_id', 'id'],
  },
};

const userAchievements: RecordType = {
  name: 'user_achievements',
  refersTo: ['users', 'achievements'],
  identities: [['user_id', 'achievement_id']],
  fields: {
    user_id: required(id),
    achievement_id: required(id),
    progress: orElse(0, integer(0)),
    earned_at: moment,
    pin_position: integer(1, MAX_PINNED),
  },
  check: ({ earned_at, pin_position }) =>
    earned_at === null && typeof pin_position === 'number'
      ? together('pin_position', 'only what is earned can be pinned')
      : undefined,
  references: [
    missing('user_achievements', 'user_id', 'users'),
    erased('user_achievements', 'user_id'),
    missing('user_achievements', 'achievement_id', 'achievements'),
  ],
  rules: [
    twice('user_achievements', 'user_id, achievement_id', 'user_id, achievement_id: the same pair'),
    twice('user_achievements', 'user_id, pin_position', 'pin_position: the same of this member'),
    `SELECT s.line, ${code('taken')}, 'pin_position: is taken by achievement ' || t.achievement_id FROM import_user_achievements s
  JOIN user_achievements t ON t.user_id = s.user_id AND t.pin_position = s.pin_position
    AND t.achievement_id <> s.achievement_id
  WHERE NOT EXISTS (SELECT FROM import_user_achievements r
    WHERE r.user_id = t.user_id AND r.achievement_id = t.achievement_id)`,
  ],
  source: '(SELECT * FROM import_user_achievements WHERE NOT deleted) s',
  rowsPerRecord: 1,
  key: ['user_id', 'achievement_id'],
  values: {
    ...as('user_id', 'achievement_id', 'progress', 'earned_at', 'pin_position'),
    user_is_disabled: 'o.is_disabled',
  },
  // The foreign key keeps it true.
  compared: { user_is_disabled: 't.user_is_disabled' },
  joins: 'JOIN users o ON o.id = s.user_id',
  release: `UPDATE user_achievements t SET pin_position = NULL FROM import_user_achievements s
  WHERE s.user_id = t.user_id AND s.achievement_id = t.achievement_id
    AND t.pin_position IS NOT NULL AND s.pin_position IS DISTINCT FROM t.pin_position`,
  version: ['user_id', 'achievement_id'],
  removal: {
    fields: { user_id: required(id), achievement_id: required(id) },
    rows: `SELECT t.user_id, t.achievement_id FROM import_user_achievements s
  JOIN user_achievements t ON t.user_id = s.user_id AND t.achievement_id = s.achievement_id WHERE s.deleted`,
    key: ['user_id', 'achievement_id'],
  },
};

/** In the order in which they refer to one another. */
export const RECORD_TYPES: readonly RecordType[] = [
  users,
  achievements,
  events,
  participants,
  connections,
  userAchievements,
];
