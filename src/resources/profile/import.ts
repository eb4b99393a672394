import { eraseMembers } from '../../accounts/erasure.js';
import * as is from '../../import/fields.js';
import { code, erased, recordType, twice } from '../../import/record-type.js';
import { isUsername, USERNAME_RULE } from '../../values/string-rules.js';
import { LENGTHS } from '../../values/vocabulary.js';
import { User } from './table.js';

/** SQL condition: a line for another member has the username of the member `t`. */
export const USERNAME_IS_WANTED =
  'EXISTS (SELECT FROM import_users r WHERE fold_case(r.username) = t.folded_username AND r.id <> t.id)';
/** SQL condition: a line for another member has the `external_id` of the member `t`. */
export const EXTERNAL_ID_IS_WANTED =
  'EXISTS (SELECT FROM import_users r WHERE r.external_id = t.external_id AND r.id <> t.id)';

export const users = recordType({
  name: 'users',
  fields: {
    id: is.required(is.id),
    username: is.required(is.username),
    ...is.columns(User, 'first_name', 'last_name'),
    display_name: { ...is.column(User, 'stored_display_name'), column: 'stored_display_name' },
    ...is.columns(User, 'bio'),
    profile_picture: is.url(LENGTHS.users.profile_picture),
    external_id: is.keeping(is.column(User, 'external_id')),
    email: is.keeping(is.email),
    password_hash: is.keeping(is.passwordHash),
    ...is.columns(User, 'created_at'),
    disabled_at: is.keeping(is.column(User, 'disabled_at')),
  },
  notes: { is_well_named: ({ username }) => isUsername(username as string) },
  references: [erased('users', 'id')],
  rules: [
    // A member may keep an existing username that breaks the rule.
    `SELECT s.line, ${code('invalid_characters')}, 'username: must ${USERNAME_RULE}' FROM import_users s
  WHERE NOT s.is_well_named AND NOT EXISTS (SELECT FROM users t WHERE t.id = s.id AND t.username = s.username)`,
    twice('users', ['fold_case(username)'], "'username: line ' || d.first || ' already has this username'"),
    `SELECT s.line, ${code('taken')}, 'username: is taken by member ' || t.id FROM import_users s
  JOIN users t ON t.folded_username = fold_case(s.username) AND t.id <> s.id
  WHERE NOT EXISTS (SELECT FROM import_users r WHERE r.id = t.id)`,
    twice('users', ['external_id'], "'external_id: line ' || d.first || ' already has this external_id'"),
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
