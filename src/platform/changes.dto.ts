import { ApiProperty, ApiSchema } from '../http/output/swagger.js';
import { Cursor, ListOf, WholeNumber } from '../http/input/parameters.js';
import {
  BooleanField,
  EnumField,
  IdField,
  ObjectListField,
  TextField,
  TextListField,
  TimestampField,
} from '../http/output/fields.js';

/** What members do that the platform is told of. */
export const PLATFORM_CHANGE_TYPES = [
  'profile.updated',
  'consent.granted',
  'consent.revoked',
  'member.signed_in',
] as const;
export type PlatformChangeType = (typeof PLATFORM_CHANGE_TYPES)[number];

/** Seconds. */
export const LONGEST_WAIT = 30;

export class PlatformChangesQuery {
  @Cursor('`next` of the last response; without it the oldest that is kept comes first')
  after?: string;

  @WholeNumber(1, 1000, 'How many at most')
  limit = 100;

  @ListOf(PLATFORM_CHANGE_TYPES, 'Only changes of these types')
  types?: PlatformChangeType[];

  @WholeNumber(0, LONGEST_WAIT, 'Seconds to wait for a first change where there is none yet')
  wait = 0;
}

@ApiSchema({ name: 'PlatformChange' })
export class PlatformChangeItem {
  @TextField({
    description: 'Names it; to be compared with itself alone, since the order is that of the list',
  })
  sequence: string;

  @EnumField(PLATFORM_CHANGE_TYPES, { description: 'What the member did' })
  type: PlatformChangeType;

  @TimestampField({ description: 'When' })
  at: string;

  @IdField({ description: 'Who' })
  member_id: number;

  @TextField({
    nullable: true,
    description: 'Id of the app or key with which, or for which, they did it; null: none',
  })
  by: string | null;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'string', nullable: true },
    nullable: true,
    example: { bio: 'Walks in the mountains' },
    description: 'Of profile.updated: the fields that changed, with what they are now; else null',
  })
  fields: Record<string, string | null> | null;

  @TextListField({
    description: 'Of a consent: the scopes that were allowed, or are allowed no more; else empty',
  })
  scopes: string[];
}

@ApiSchema({ name: 'PlatformChanges' })
export class PlatformChangesAnswer {
  @ObjectListField(PlatformChangeItem, { description: 'The oldest first, in the order of commits' })
  data: PlatformChangeItem[];

  @TextField({ description: 'Where to go on from' })
  next: string;

  @BooleanField({ description: 'Whether there is more to read at once' })
  more: boolean;
}
