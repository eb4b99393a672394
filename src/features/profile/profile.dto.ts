import { Model } from '../../model/json-schema.js';
import {
  countField,
  enumField,
  idField,
  IN_NODE,
  objectField,
  textField,
  timestampField,
  type ValueOf,
} from '../../http/output/fields.js';
import { httpUrl, text, type BodyOf } from '../../http/input/body.js';
import { LENGTHS } from '../../values/vocabulary.js';

const ON_PLATFORM = 'Unique on the platform';
const IMAGE = 'URL of an image';

/** A person, as others may see them: `users.card` is its JSON text. */
export const UserCard = new Model('UserCard', {
  id: idField(),
  username: textField(IN_NODE, ON_PLATFORM),
  display_name: textField(),
  profile_picture: textField(IN_NODE, IMAGE).nullable,
});

const USERNAME = textField('u.username', ON_PLATFORM);
const BIO = textField('u.bio', {
  maxLength: LENGTHS.users.bio[1],
  description: 'What the member says about themselves',
}).nullable;
const PICTURE = textField('u.profile_picture', IMAGE).nullable;
const WRITTEN = 'As written by the member';
/** Of a member `u` (users). */
const NAMED_MEMBER = {
  id: idField('u.id'),
  username: USERNAME,
  first_name: textField('u.first_name', { maxLength: LENGTHS.users.first_name[1], description: WRITTEN })
    .nullable,
  last_name: textField('u.last_name', { maxLength: LENGTHS.users.last_name[1], description: WRITTEN })
    .nullable,
  display_name: textField('u.display_name'),
};

export const Me = new Model('Me', { ...NAMED_MEMBER, profile_picture: PICTURE });
export type Me = ValueOf<typeof Me>;

/** The profile of a member `u`, with the member’s totals, `t`. */
export const Profile = new Model('Profile', {
  id: idField('u.id'),
  username: USERNAME,
  display_name: textField(
    'u.display_name',
    'The name set on the platform; first and last name, or the username, if there is none',
  ),
  bio: BIO,
  profile_picture: PICTURE,
  created_at: timestampField('u.created_at', {
    example: '2026-01-31 18:00:00',
    description: 'When the member joined',
  }),
  achievements_count: countField(
    'COALESCE(t.achievements_count, 0)',
    'Equals `pagination.total` of the default achievements list',
  ),
  connections_count: countField(
    'COALESCE(t.connections_count, 0)',
    'Equals `pagination.total` of the default connections list',
  ),
});

export const ChangedProfile = new Model('ChangedProfile', {
  ...NAMED_MEMBER,
  bio: BIO,
  profile_picture: PICTURE,
});

export const ProfileUpdated = new Model('ProfileUpdated', {
  message: enumField(['Profile updated.']),
  profile: objectField(ChangedProfile),
});
export type ProfileUpdated = ValueOf<typeof ProfileUpdated>;

/** Body of PUT /profile: only included fields change, null clears. */
export const ProfileChanges = new Model('ProfileChanges', {
  first_name: text(LENGTHS.users.first_name, { example: 'Ada' }),
  last_name: text(LENGTHS.users.last_name),
  bio: text(LENGTHS.users.bio),
  profile_picture: httpUrl(LENGTHS.users.profile_picture),
});
export type ProfileChanges = BodyOf<typeof ProfileChanges>;
