import { Model } from '../../model/json-schema.js';
import { User } from './table.js';
import { countField, enumField, objectField, relation, type ValueOf } from '../../model/response.js';
import { Writable } from '../../http/input/body.js';
import { LENGTHS } from '../../values/vocabulary.js';

const u = relation(User, 'u');

/** A person's data that other members can see; `users.card` is its JSON text. */
export const UserCard = new Model('UserCard', {
  id: u.id,
  username: u.username,
  display_name: u.display_name,
  profile_picture: u.profile_picture,
});

const BIO = u.bio.with({ maxLength: LENGTHS.users.bio[1] });
const NAMED_MEMBER = {
  id: u.id,
  username: u.username,
  first_name: u.first_name.with({ maxLength: LENGTHS.users.first_name[1] }),
  last_name: u.last_name.with({ maxLength: LENGTHS.users.last_name[1] }),
  display_name: u.display_name,
};

export const Me = new Model('Me', { ...NAMED_MEMBER, profile_picture: u.profile_picture });
export type Me = ValueOf<typeof Me>;

/** The profile of a member `u`, with the totals `t`. */
export const Profile = new Model('Profile', {
  id: u.id,
  username: u.username,
  display_name: u.display_name.with({
    description: 'The name set on the platform; otherwise first and last name, or the username',
  }),
  bio: BIO,
  profile_picture: u.profile_picture,
  created_at: u.created_at.with({ example: '2026-01-31 18:00:00' }),
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
  profile_picture: u.profile_picture,
});

export const ProfileUpdated = new Model('ProfileUpdated', {
  message: enumField(['Profile updated.']),
  profile: objectField(ChangedProfile),
});
export type ProfileUpdated = ValueOf<typeof ProfileUpdated>;

/** Body of PUT /profile: changes only the fields that it contains; null clears a field. */
export class ProfileChanges {
  @Writable(User.fields.first_name, { example: 'Ada' })
  first_name?: string | null;

  @Writable(User.fields.last_name)
  last_name?: string | null;

  @Writable(User.fields.bio)
  bio?: string | null;

  @Writable(User.fields.profile_picture, { format: 'uri' })
  profile_picture?: string | null;
}
