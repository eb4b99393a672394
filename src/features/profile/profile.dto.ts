import { Schema } from '../../http/output/schema.js';
import {
  CountField,
  EnumField,
  IdField,
  ObjectField,
  TextField,
  TimestampField,
} from '../../http/output/fields.js';
import { ChangesOf, HttpUrl, Text } from '../../http/input/body.js';
import { LENGTHS } from '../../values/vocabulary.js';

/** A person, as others may see them: `users.card` is its JSON text. */
@Schema('UserCard')
export class UserCard {
  @IdField()
  id: number;

  @TextField({ description: 'Unique on the platform' })
  username: string;

  @TextField()
  display_name: string;

  @TextField({ nullable: true, description: 'URL of an image' })
  profile_picture: string | null;
}

/** Of a member `u` (users). */
class NamedMember {
  @IdField({ from: 'u.id' })
  id: number;

  @TextField({ from: 'u.username', description: 'Unique on the platform' })
  username: string;

  @TextField({
    from: 'u.first_name',
    nullable: true,
    maxLength: LENGTHS.users.first_name[1],
    description: 'As written by the member',
  })
  first_name: string | null;

  @TextField({
    from: 'u.last_name',
    nullable: true,
    maxLength: LENGTHS.users.last_name[1],
    description: 'As written by the member',
  })
  last_name: string | null;

  @TextField({ from: 'u.display_name' })
  display_name: string;
}

@Schema('Me')
export class Me extends NamedMember {
  @TextField({ from: 'u.profile_picture', nullable: true, description: 'URL of an image' })
  profile_picture: string | null;
}

/** The profile of a member `u`, with the member’s totals, `t`. */
@Schema('Profile')
export class Profile {
  @IdField({ from: 'u.id' })
  id: number;

  @TextField({ from: 'u.username', description: 'Unique on the platform' })
  username: string;

  @TextField({
    from: 'u.display_name',
    description: 'The name set on the platform; first and last name, or the username, if there is none',
  })
  display_name: string;

  @TextField({
    from: 'u.bio',
    nullable: true,
    maxLength: LENGTHS.users.bio[1],
    description: 'What the member says about themselves',
  })
  bio: string | null;

  @TextField({ from: 'u.profile_picture', nullable: true, description: 'URL of an image' })
  profile_picture: string | null;

  @TimestampField({
    from: 'u.created_at',
    example: '2026-01-31 18:00:00',
    description: 'When the member joined',
  })
  created_at: string;

  @CountField({
    from: 'COALESCE(t.achievements_count, 0)',
    description: 'Equals `pagination.total` of the default achievements list',
  })
  achievements_count: number;

  @CountField({
    from: 'COALESCE(t.connections_count, 0)',
    description: 'Equals `pagination.total` of the default connections list',
  })
  connections_count: number;
}

@Schema('ChangedProfile')
export class ChangedProfile extends NamedMember {
  @TextField({
    from: 'u.bio',
    nullable: true,
    maxLength: LENGTHS.users.bio[1],
    description: 'What the member says about themselves',
  })
  bio: string | null;

  @TextField({ from: 'u.profile_picture', nullable: true, description: 'URL of an image' })
  profile_picture: string | null;
}

@Schema('ProfileUpdated')
export class ProfileUpdated {
  @EnumField(['Profile updated.'])
  message: 'Profile updated.';

  @ObjectField(ChangedProfile)
  profile: ChangedProfile;
}

/** Body of PUT /profile: only included fields change, null clears. */
@Schema('ProfileChanges')
@ChangesOf(Profile)
export class ProfileChanges {
  @Text(LENGTHS.users.first_name, { example: 'Ada' })
  first_name?: string | null;

  @Text(LENGTHS.users.last_name)
  last_name?: string | null;

  @Text(LENGTHS.users.bio)
  bio?: string | null;

  @HttpUrl(LENGTHS.users.profile_picture)
  profile_picture?: string | null;
}
