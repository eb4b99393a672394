import { Schema } from '../../http/output/schema.js';
import { CHANGE_KINDS } from '../../changes/changes.js';
import type { MemberChange } from '../../changes/changes.js';
import { RESOURCES } from '../../changes/resources.js';
import type { Resource } from '../../changes/resources.js';
import { Cursor, ListOf, WholeNumber } from '../../http/input/parameters.js';
import {
  BooleanField,
  EnumField,
  EnumListField,
  IdField,
  ObjectListField,
  TextField,
} from '../../http/output/fields.js';

export class SyncQuery {
  @WholeNumber(1, 1000, 'Maximum number of changes')
  limit = 100;

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

@Schema('Change')
class ChangeItem {
  @EnumField(RESOURCES, { description: 'The resource that changed' })
  resource: Resource;

  @IdField({ description: 'Id of the event, connection or achievement; for a profile, id of the member' })
  id: number;

  @EnumField(CHANGE_KINDS, {
    description: 'updated: it is new or has changed; removed: it is no longer in the member’s lists',
  })
  kind: MemberChange['kind'];
}

@Schema('Changes')
export class SyncAnswer {
  @ObjectListField(ChangeItem, { description: 'Each item once, in the order of their most recent changes' })
  data: MemberChange[];

  @TextField({ description: 'Cursor for the next call' })
  next: string;

  @BooleanField({ description: 'Whether there are more changes to read now' })
  more: boolean;

  @EnumListField(RESOURCES, {
    description: 'The resources that the response covers: those requested that the credential may read',
  })
  resources: readonly Resource[];
}
