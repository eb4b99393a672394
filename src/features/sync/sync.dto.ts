import { Model, nameWords, refTo } from '../../model/json-schema.js';
import { CHANGE_KINDS, RESOURCES, type Resource } from '../../resources/resources.js';
import { Cursor, ListOf, OneOf, WholeNumber } from '../../http/input/parameters.js';
import { AchievementDetail } from '../../resources/achievements/achievement.dto.js';
import { ConnectionItem } from '../../resources/connections/api.js';
import { EventDetail } from '../../resources/events/event.dto.js';
import { Profile } from '../../resources/profile/profile.dto.js';
import {
  booleanField,
  cursorField,
  enumField,
  enumListField,
  declareField,
  idField,
  IN_NODE,
  objectListField,
  type ValueOf,
} from '../../model/response.js';

nameWords('Resource', RESOURCES);

/** Maximum changes per page with records. */
export const MAX_CHANGES_WITH_DATA = 100;

export class SyncQuery {
  @WholeNumber(1, 1000, `Maximum number of changes; with \`include=data\`, at most ${MAX_CHANGES_WITH_DATA}`)
  limit = 100;

  @OneOf(['data'], 'data: return each change with its record, so that no further request is necessary')
  include?: 'data';

  @Cursor(
    '`next` from the previous response; without it, the response has no changes, only a cursor to start from',
  )
  cursor?: string;

  @ListOf(
    RESOURCES,
    'Only changes of these resources; a cursor is valid only for the resources that it was issued for',
  )
  resources?: Resource[];
}

const ChangeItem = new Model('Change', {
  resource: enumField(RESOURCES, IN_NODE, 'The resource that changed'),
  id: idField(IN_NODE, 'Id of the event, connection or achievement; for a profile, id of the member'),
  kind: enumField(
    CHANGE_KINDS,
    IN_NODE,
    'updated: it is new or has changed; removed: it is no longer in the member’s lists',
  ),
  data: declareField<object | null>(
    { anyOf: [...[Profile, EventDetail, ConnectionItem, AchievementDetail].map(refTo), { type: 'null' }] },
    'Only with `include=data`: the record, identical to `/profile`, `/events/{id}`, an item of `/connections` or `/achievements/{id}`; null if it was removed',
  ).optional,
});

export const SyncAnswer = new Model('Changes', {
  data: objectListField(ChangeItem, IN_NODE, 'Each item once, in the order of its latest change'),
  next: cursorField('Cursor for the next request'),
  more: booleanField(IN_NODE, 'Whether there are more changes to read now'),
  resources: enumListField(
    RESOURCES,
    IN_NODE,
    'The requested resources that the credential may read: the response covers only these',
  ),
});
export type Change = Omit<ValueOf<typeof ChangeItem>, 'data'>;
export type SyncAnswer = Omit<ValueOf<typeof SyncAnswer>, 'data'> & { data: Change[] };
