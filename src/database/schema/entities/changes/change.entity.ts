import { Entity } from 'typeorm';
import { bigint, identity, jsonb, row, anyText, timestamptz } from '../../../../model/column.js';
import { Expires, OfMember, recordedAs } from '../../../../model/declarations.js';

/** The transactions that had ended at a moment: by it, later commits are recognized. */
@Entity('change_marks')
export class ChangeMark extends row({
  taken_at: timestamptz.primary,
  /** A pg_snapshot. */
  snapshot: anyText,
}) {}

/** A change to what members see through the API. Written by the database alone. */
@Entity('changes')
@Expires({ at: 'changed_at', kept: { setting: 'changesRetentionSeconds' }, also: recordedAs('swept') })
@OfMember<Change>({
  export: { none: 'which item changed when, for a few days; the export has the items' },
})
export class Change extends row({
  /** Number of the transaction (xid8). */
  changed_in: bigint.primary.sqlDefault('pg_current_xact_id()::text::bigint'),
  sequence: identity('ALWAYS'),
  /** The member in whose list it is; null for all members in whose lists it is. */
  user_id: bigint.nullable,
  resource: anyText.as<'profile' | 'events' | 'connections' | 'achievements' | 'people'>(),
  id: bigint,
  kind: anyText.as<'updated' | 'removed' | 'returned'>(),
  changed_at: timestamptz.sqlDefault('now()'),
}) {}

/** How far each reader of all changes has come. */
@Entity('change_places')
export class ChangePlace extends row({
  name: anyText.as<'coalesced' | 'swept' | 'told' | 'platform_swept'>().primary,
  changed_in: bigint.default(0),
  sequence: bigint.default(0),
  /** Of `told`: earlier changes of which some members have no messages yet, and the members that have them. */
  unfinished:
    jsonb.as<{ changed_in: number; sequence: number; after: number; ahead: readonly number[] }[]>().nullable,
}) {}

/** An action of a member, for the platform's backend to fetch. */
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
  /** Id of the app or key used. */
  by_id: anyText.nullable,
  /** For profile.updated: the changed fields and their new values. */
  fields: jsonb.as<Record<string, string | null>>().nullable,
  /** For a consent: the scopes granted or withdrawn. */
  scopes: anyText.array.nullable,
  /** For a notice: the type of the audit event that it reports. */
  notice: anyText.nullable,
  /** For a notice: the name of the app, key, link or passkey at that time. */
  name: anyText.nullable,
  changed_at: timestamptz.sqlDefault('now()'),
}) {}
