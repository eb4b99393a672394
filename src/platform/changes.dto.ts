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
import { Described, Schema } from '../http/output/schema.js';

/** The members’ actions that the platform is notified of. */
export const PLATFORM_CHANGE_TYPES = [
  'profile.updated',
  'consent.granted',
  'consent.revoked',
  'member.signed_in',
] as const;
export type PlatformChangeType = (typeof PLATFORM_CHANGE_TYPES)[number];

/** In seconds. */
export const LONGEST_WAIT = 30;

export class PlatformChangesQuery {
  @Cursor(
    '`next` from the previous response; without it, the list starts with the oldest change that is kept',
  )
  after?: string;

  @WholeNumber(1, 1000, 'Maximum number of changes')
  limit = 100;

  @ListOf(PLATFORM_CHANGE_TYPES, 'Only changes of these types')
  types?: PlatformChangeType[];

  @WholeNumber(0, LONGEST_WAIT, 'How many seconds to wait for a change if there is none yet')
  wait = 0;
}

@Schema('PlatformChange')
export class PlatformChangeItem {
  @TextField({
    description:
      'Identifies the change. Compare it for equality only: the order of changes is that of the list',
  })
  sequence: string;

  @EnumField(PLATFORM_CHANGE_TYPES, { description: 'What the member did' })
  type: PlatformChangeType;

  @TimestampField({ description: 'When the member did it' })
  at: string;

  @IdField({ description: 'Id of the member' })
  member_id: number;

  @TextField({
    nullable: true,
    description: 'Id of the app or key that was used, or that the consent concerns; null if there is none',
  })
  by: string | null;

  @Described({
    type: ['object', 'null'],
    additionalProperties: { type: ['string', 'null'] },
    example: { bio: 'Walks in the mountains' },
    description: 'For profile.updated, the changed fields with their new values; otherwise null',
  })
  fields: Record<string, string | null> | null;

  @TextListField({
    description: 'For a consent, the scopes that were granted or revoked; otherwise empty',
  })
  scopes: string[];
}

@Schema('PlatformChanges')
export class PlatformChangesAnswer {
  @ObjectListField(PlatformChangeItem, { description: 'Oldest first, in commit order' })
  data: PlatformChangeItem[];

  @TextField({ description: 'Cursor for the next call' })
  next: string;

  @BooleanField({ description: 'Whether there are more changes to read now' })
  more: boolean;
}
