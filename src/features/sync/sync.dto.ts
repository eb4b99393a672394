import { ApiSchema } from '../../http/output/swagger.js';
import { CHANGE_KINDS, RESOURCES } from '../../changes/changes.js';
import type { MemberChange, Resource } from '../../changes/changes.js';
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
  @WholeNumber(1, 1000, 'How many changes at most')
  limit = 100;

  @Cursor('`next` of the last response; without it the response has no change, but a place to start from')
  cursor?: string;

  @ListOf(RESOURCES, 'Only changes of these; a cursor is good for the ones that it was made for')
  resources?: Resource[];
}

@ApiSchema({ name: 'Change' })
class ChangeItem {
  @EnumField(RESOURCES, { description: 'Where it is read' })
  resource: Resource;

  @IdField({ description: 'Of the event, connection or achievement; of a profile, the member’s' })
  id: number;

  @EnumField(CHANGE_KINDS, {
    description: 'updated: it is new, or something of it is; removed: it is in the member’s lists no more',
  })
  kind: MemberChange['kind'];
}

@ApiSchema({ name: 'Changes' })
export class SyncAnswer {
  @ObjectListField(ChangeItem, { description: 'Each thing once, in the order in which they changed last' })
  data: MemberChange[];

  @TextField({ description: 'Where to go on from' })
  next: string;

  @BooleanField({ description: 'Whether there is more to read at once' })
  more: boolean;

  @EnumListField(RESOURCES, {
    description: 'What the response is about: of what was asked, what the credential may read',
  })
  resources: readonly Resource[];
}
