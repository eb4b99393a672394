import { Entity } from 'typeorm';
import { bigint, identity, jsonb, row, anyText, timestamptz } from '../../../../model/column.js';
import { Expires, OfMember, recordedAs } from '../../../../model/declarations.js';

/** Snapshot of the transactions that had ended at a time, to recognize later commits. */
@Entity('change_marks')
export class ChangeMark extends row({
  taken_at: timestamptz.primary,
  /** A pg_snapshot. */
  snapshot: anyText,
}) {}

/** A change to data that members see through the API. Only the database writes it. */
@Entity('changes')
@Expires({ at: 'changed_at', kept: { setting: 'changesRetentionSeconds' }, also: recordedAs('swept') })
@OfMember<Change>({
  export: { none: 'item ids with their times of change, for 30 days by default; the export has the items' },
})
export class Change extends row({
  /** Number of the transaction (xid8). */
  changed_in: bigint.primary.sqlDefault('pg_current_xact_id()::text::bigint'),
  sequence: identity('ALWAYS'),
  /** Member whose list contains the item; null for all members whose lists contain it. */
  user_id: bigint.nullable,
  resource: anyText.as<'profile' | 'events' | 'connections' | 'achievements' | 'people'>(),
  id: bigint,
  kind: anyText.as<'updated' | 'removed' | 'returned'>(),
  changed_at: timestamptz.sqlDefault('now()'),
}) {}

/** Positions in the change logs: of background tasks, and of the last `restored` database. `identity` is a hash that each restore changes. */
@Entity('change_places')
export class ChangePlace extends row({
  name: anyText.as<'coalesced' | 'swept' | 'told' | 'platform_swept' | 'restored' | 'identity'>().primary,
  changed_in: bigint.default(0),
  sequence: bigint.default(0),
  /** For `told`: earlier changes whose messages some members still lack, and the members who already have these messages. */
  unfinished:
    jsonb.as<{ changed_in: number; sequence: number; after: number; ahead: readonly number[] }[]>().nullable,
}) {}

/** A member's action, or a notice to a member, for the platform's backend. */
@Entity('platform_changes')
@Expires({
  at: 'changed_at',
  kept: { setting: 'changesRetentionSeconds' },
  also: recordedAs('platform_swept'),
})
@OfMember<PlatformChange>({ export: { as: 'platform_news', without: ['changed_in', 'sequence'] } })
export class PlatformChange extends row({
  /** Number of the transaction (xid8). */
  changed_in: bigint.primary.sqlDefault('pg_current_xact_id()::text::bigint'),
  sequence: identity('ALWAYS'),
  type: anyText.as<
    'profile.updated' | 'consent.granted' | 'consent.revoked' | 'member.signed_in' | 'notice'
  >(),
  user_id: bigint,
  /** Id of the app or key that was used, or that the change is about; null if there is none. */
  by_id: anyText.nullable,
  /** For profile.updated: the changed fields and their new values. */
  fields: jsonb.as<Record<string, string | null>>().nullable,
  /** For a consent: the granted or withdrawn scopes. */
  scopes: anyText.array.nullable,
  /** For a notice: its type. */
  notice: anyText.nullable,
  /** For a notice: the name of the app, key, link or passkey at that time. */
  name: anyText.nullable,
  changed_at: timestamptz.sqlDefault('now()'),
}) {}
