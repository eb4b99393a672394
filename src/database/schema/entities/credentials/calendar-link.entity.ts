import { Entity, Unique } from 'typeorm';
import { bigint, bytea, identity, row, smallint, text, timestamptz } from '../../columns.js';
import { OfMember } from '../../of-member.js';
import { User } from '../members/user.entity.js';

/** A link under which calendar programs read a member's events. Its secret is not stored. */
@Entity('calendar_links')
@Unique('calendar_links_slot_key', ['user_id', 'slot'])
@OfMember<CalendarLink>({
  owner: ['user_id'],
  erase: 'delete',
  secrets: ['key'],
  export: { as: 'calendar_links', without: ['slot'] },
})
export class CalendarLink extends row({
  id: identity('BY DEFAULT'),
  user_id: bigint.refersTo(() => User),
  /** There are as many slots as a member may have links. */
  slot: smallint,
  name: text,
  /** HMAC-SHA-256 of the secret. */
  key: bytea.unique.unselected,
  created_at: timestamptz.sqlDefault('now()'),
  /** Written in batches. */
  last_used_at: timestamptz.nullable,
}) {}
