import { Entity } from 'typeorm';
import { bigint, identity, jsonb, row, text, timestamptz } from '../../columns.js';
import { Expires, recordedAs } from '../../expires.js';
import { OfMember } from '../../of-member.js';

/** An action of a member, for the platform's backend to fetch. */
@Entity('platform_changes')
@Expires({
  at: 'changed_at',
  kept: { setting: 'changesRetentionSeconds' },
  also: recordedAs('platform_swept'),
})
@OfMember<PlatformChange>({
  owner: ['user_id'],
  erase: 'delete',
  export: { as: 'platform_news', without: ['changed_in', 'sequence'] },
})
export class PlatformChange extends row({
  /** Number of the transaction (xid8). */
  changed_in: bigint.primary.sqlDefault('pg_current_xact_id()::text::bigint'),
  sequence: identity('ALWAYS'),
  type: text.as<'profile.updated' | 'consent.granted' | 'consent.revoked' | 'member.signed_in'>(),
  user_id: bigint,
  /** Id of the app or key used. */
  by_id: text.nullable,
  /** For profile.updated: the changed fields and their new values. */
  fields: jsonb.as<Record<string, string | null>>().nullable,
  /** For a consent: the scopes granted or withdrawn. */
  scopes: text.array.nullable,
  changed_at: timestamptz.sqlDefault('now()'),
}) {}
