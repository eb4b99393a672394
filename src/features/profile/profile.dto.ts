import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { TIMESTAMP_PATTERN } from '../../values/timestamps.js';
import { HttpUrl, Text } from '../../http/input/body.js';

/** A person, as others may see them. */
@ApiSchema({ name: 'UserCard' })
export class UserCard {
  @ApiProperty({ type: 'integer', minimum: 1 })
  id: number;

  @ApiProperty()
  username: string;

  @ApiProperty()
  display_name: string;

  @ApiProperty({ type: String, nullable: true })
  profile_picture: string | null;
}

@ApiSchema({ name: 'Me' })
export class Me {
  @ApiProperty({ type: 'integer', minimum: 1 })
  id: number;

  @ApiProperty()
  username: string;

  @ApiProperty({ type: String, nullable: true, maxLength: 100 })
  first_name: string | null;

  @ApiProperty({ type: String, nullable: true, maxLength: 100 })
  last_name: string | null;

  @ApiProperty()
  display_name: string;

  @ApiProperty({ type: String, nullable: true })
  profile_picture: string | null;
}

@ApiSchema({ name: 'Profile' })
export class Profile {
  @ApiProperty({ type: 'integer', minimum: 1 })
  id: number;

  @ApiProperty()
  username: string;

  @ApiProperty({ description: 'The platform’s; first and last name or the username where it has none' })
  display_name: string;

  @ApiProperty({ type: String, nullable: true, maxLength: 500 })
  bio: string | null;

  @ApiProperty({ type: String, nullable: true })
  profile_picture: string | null;

  @ApiProperty({ pattern: TIMESTAMP_PATTERN, example: '2026-01-31 18:00:00' })
  created_at: string;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: '`pagination.total` of the default achievements list',
  })
  achievements_count: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: '`pagination.total` of the default connections list',
  })
  connections_count: number;
}

@ApiSchema({ name: 'ChangedProfile' })
export class ChangedProfile extends Me {
  @ApiProperty({ type: String, nullable: true, maxLength: 500 })
  bio: string | null;
}

@ApiSchema({ name: 'ProfileUpdated' })
export class ProfileUpdated {
  @ApiProperty({ enum: ['Profile updated.'] })
  message: string;

  @ApiProperty({ type: ChangedProfile })
  profile: ChangedProfile;
}

/** Body of PUT /profile: only included fields change, null clears. */
@ApiSchema({ name: 'ProfileChanges' })
export class ProfileChanges {
  @Text(100)
  @ApiPropertyOptional({ type: String, nullable: true, maxLength: 100, example: 'Ada' })
  first_name?: string | null;

  @Text(100)
  @ApiPropertyOptional({ type: String, nullable: true, maxLength: 100 })
  last_name?: string | null;

  @Text(500)
  @ApiPropertyOptional({ type: String, nullable: true, maxLength: 500 })
  bio?: string | null;

  @HttpUrl(2048)
  @ApiPropertyOptional({ type: String, nullable: true, maxLength: 2048, format: 'uri' })
  profile_picture?: string | null;
}

/** Fields that exist, but are not the caller's to change. */
export const READ_ONLY_FIELDS = [
  'id',
  'username',
  'display_name',
  'created_at',
  'achievements_count',
  'connections_count',
] as const;
