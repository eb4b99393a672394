import { Entity, ForeignKey, Unique } from 'typeorm';
import {
  bigint,
  boolean,
  bytea,
  cidr,
  identity,
  inet,
  row,
  smallint,
  anyText,
  timestamptz,
} from '../../../../model/column.js';
import { OfMember } from '../../../../model/declarations.js';
import { User } from '../../../../resources/profile/table.js';

/** A key to one member's data (for a partner or the member), or a platform key. The key itself is not stored. */
@Entity('api_keys')
@OfMember<ApiKey>({ secrets: ['hash', 'pepper_id'], export: { in: 'keys' } })
@ForeignKey(() => ApiKey, ['replaced_by'], ['id'])
export class ApiKey extends row({
  id: anyText.primary,
  /** null for a platform key; `api_keys_owner_check` restricts its scopes to `platform:…`. */
  user_id: bigint.nullable.refersTo(() => User),
  name: anyText,
  environment: anyText.as<'live' | 'test'>(),
  scopes: anyText.array,
  /** HMAC-SHA-256 of the whole key; {@link ApiKey.pepper_id} identifies the pepper. */
  hash: bytea.unselected,
  pepper_id: bytea.unselected,
  last_four: anyText,
  allowed_cidrs: cidr.array.sqlDefault("'{}'"),
  created_at: timestamptz.sqlDefault('now()'),
  /** null if the key never expires; {@link ApiKey.no_expiry_reason} states why. */
  expires_at: timestamptz.nullable,
  no_expiry_reason: anyText.nullable,
  revoked_at: timestamptz.nullable,
  revocation_reason: anyText.nullable,
  self_issued: boolean.default(false),
  replaced_by: anyText.nullable,
  /** Time of the notice to the member that the key expires soon. */
  ending_notified_at: timestamptz.nullable,
  /** Set when webhooks are told that the key expires soon; at the latest, together with {@link ApiKey.ended_told_at}. */
  ending_told_at: timestamptz.nullable,
  ended_told_at: timestamptz.nullable,
}) {}

/** Use of a key, and its exposure in a browser. */
@Entity('api_key_usage')
@OfMember<ApiKeyUsage>({ owner: ['key_id'], export: { in: 'keys' } })
export class ApiKeyUsage extends row({
  key_id: anyText.primary.refersTo(() => ApiKey),
  last_used_at: timestamptz.nullable,
  last_used_ip: inet.nullable,
  uses_count: bigint.default(0),
  /** Time of the first recorded request that a browser sent with the key. */
  exposed_at: timestamptz.nullable,
  exposed_origin: anyText.nullable,
}) {}

/** A URL from which calendar apps read a member's events. Its secret is not stored. */
@Entity('calendar_links')
@Unique('calendar_links_slot_key', ['user_id', 'slot'])
@OfMember<CalendarLink>({ secrets: ['key'], export: { as: 'calendar_links', without: ['slot'] } })
export class CalendarLink extends row({
  id: identity('BY DEFAULT'),
  user_id: bigint.refersTo(() => User),
  /** Limits the number of links: each member has a fixed number of slots. */
  slot: smallint,
  name: anyText,
  /** HMAC-SHA-256 of the secret. */
  key: bytea.unique.unselected,
  created_at: timestamptz.sqlDefault('now()'),
  /** Last use, written in batches. */
  last_used_at: timestamptz.nullable,
}) {}
