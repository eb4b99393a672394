import { NOTICE_TYPES } from '../audit/notices.js';
import { Cursor, ListOf, WholeNumber } from '../http/input/parameters.js';
import {
  booleanField,
  cursorField,
  enumField,
  declareField,
  idField,
  IN_NODE,
  objectListField,
  textField,
  textListField,
  timestampField,
  type ValueOf,
} from '../model/response.js';
import { Model } from '../model/json-schema.js';

const PLATFORM_CHANGE_TYPES = [
  'profile.updated',
  'consent.granted',
  'consent.revoked',
  'member.signed_in',
  'notice',
] as const;
type PlatformChangeType = (typeof PLATFORM_CHANGE_TYPES)[number];

export class PlatformChangesQuery {
  @Cursor('`next` from the previous response; without it, the list starts with the oldest stored change')
  after?: string;

  @WholeNumber(1, 1000, 'Maximum number of changes')
  limit = 100;

  @ListOf(PLATFORM_CHANGE_TYPES, 'Only changes of these types')
  types?: PlatformChangeType[];

  @WholeNumber(0, 30, 'Seconds to wait for a change if there is none yet')
  wait = 0;
}

export const PlatformChangeItem = new Model('PlatformChange', {
  sequence: textField(
    IN_NODE,
    'Identifies the change. Compare it only for equality: the list defines the order of changes',
  ),
  type: enumField(PLATFORM_CHANGE_TYPES, IN_NODE, 'The member’s action; `notice` for a notice to the member'),
  at: timestampField(IN_NODE, 'Time of the change'),
  member_id: idField(IN_NODE, 'Id of the member'),
  by: textField(
    IN_NODE,
    'Id of the app or key that was used, or that the consent or the notice concerns; null if there is none',
  ).nullable,
  fields: declareField<Record<string, string | null> | null>({
    type: ['object', 'null'],
    additionalProperties: { type: ['string', 'null'] },
    example: { bio: 'Walks in the mountains' },
    description: 'For profile.updated, the changed fields with their new values; otherwise null',
  }),
  scopes: textListField(IN_NODE, 'For a consent, the scopes that were granted or revoked; otherwise empty'),
  notice: enumField(
    NOTICE_TYPES,
    IN_NODE,
    'For a notice, the audit event that the member is notified of; otherwise null',
  ).nullable,
  name: textField(
    IN_NODE,
    'For a notice, the name of the app, key, calendar link or passkey; null if there is none',
  ).nullable,
});
export type PlatformChangeItem = ValueOf<typeof PlatformChangeItem>;

export const PlatformChangesAnswer = new Model('PlatformChanges', {
  data: objectListField(PlatformChangeItem, IN_NODE, 'Oldest first, by transaction'),
  next: cursorField('Cursor for the next request'),
  more: booleanField(IN_NODE, 'Whether there are more changes to read now'),
});
export type PlatformChangesAnswer = ValueOf<typeof PlatformChangesAnswer>;
