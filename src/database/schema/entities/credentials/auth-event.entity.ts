import { Entity } from 'typeorm';
import {
  bigint,
  identity,
  inet,
  integer,
  jsonb,
  row,
  smallint,
  anyText,
  timestamptz,
} from '../../../../model/column.js';
import { Expires, OfMember } from '../../../../model/declarations.js';
import { ApiKey } from './api-key.entity.js';
import { OauthClient } from './oauth.entity.js';

/** A line of the audit trail: who did what when, without secrets. Never changed, and kept for at least a week. */
@Entity('auth_events')
@Expires({ at: 'occurred_at', kept: { setting: 'auditRetentionSeconds' } })
@OfMember<AuthEvent>({
  erase: { clear: ['ip', 'details'] },
  export: { as: 'account_events', without: ['id', 'error_id'], newestBy: ['occurred_at', 'id'] },
})
export class AuthEvent extends row({
  id: identity('ALWAYS'),
  occurred_at: timestamptz.sqlDefault('now()'),
  /** `<object>.<verb>`, as in `key.created`: see docs/operators/audit.md. */
  type: anyText,
  /** `admin` is the command line. */
  actor: anyText.as<'user' | 'client' | 'admin' | 'system'>(),
  user_id: bigint.nullable,
  client_id: anyText.nullable,
  key_id: anyText.nullable,
  ip: inet.nullable,
  /** The error id that an error page or response showed the caller. */
  error_id: anyText.nullable,
  details: jsonb.as<Record<string, unknown>>().sqlDefault("'{}'"),
}) {}

/** A recent request of an app or a key whose developer is a member, for their troubleshooting. */
@Entity('developer_requests')
@OfMember<DeveloperRequest>({
  owner: ['client_id', 'key_id'],
  export: {
    as: 'own_apps_requests',
    without: ['id'],
    also: '(SELECT name FROM oauth_clients c WHERE c.id = t.client_id UNION ALL SELECT name FROM api_keys k WHERE k.id = t.key_id) AS app_name',
  },
})
export class DeveloperRequest extends row({
  id: identity('ALWAYS'),
  /** Either this or {@link DeveloperRequest.key_id}. */
  client_id: anyText.nullable.refersTo(() => OauthClient, 'CASCADE'),
  key_id: anyText.nullable.refersTo(() => ApiKey, 'CASCADE'),
  occurred_at: timestamptz,
  method: anyText,
  /** Template of the route, such as `/api/public/events/:id`. */
  route: anyText,
  status: smallint,
  /** Code of the problem or of the OAuth error; null if the request succeeded. */
  error: anyText.nullable,
  /** Why, as one of the words in docs/operators/audit.md. */
  reason: anyText.nullable,
  /** The part of the request that was at fault. */
  parameter: anyText.nullable,
  /** The value sent, without what could be a secret. */
  value: anyText.nullable,
  error_id: anyText.nullable,
  duration_ms: integer.nullable,
}) {}

/** How many requests of such an app or key ended in the same way in one hour. */
@Entity('developer_request_counts')
@Expires({ at: 'hour', kept: '30 days' })
@OfMember<DeveloperRequestCount>({
  owner: ['client_id', 'key_id'],
  export: {
    as: 'own_apps_request_counts',
    without: ['id'],
    also: '(SELECT name FROM oauth_clients c WHERE c.id = t.client_id UNION ALL SELECT name FROM api_keys k WHERE k.id = t.key_id) AS app_name',
  },
})
export class DeveloperRequestCount extends row({
  id: identity('ALWAYS'),
  /** Either this or {@link DeveloperRequestCount.key_id}. */
  client_id: anyText.nullable.refersTo(() => OauthClient, 'CASCADE'),
  key_id: anyText.nullable.refersTo(() => ApiKey, 'CASCADE'),
  hour: timestamptz,
  method: anyText,
  route: anyText,
  status: smallint,
  /** Code of the problem or of the OAuth error; null if the requests succeeded. */
  error: anyText.nullable,
  requests: bigint,
}) {}

/** A refusal that concerns no member, by its error id. Anyone can cause any number, so a new one replaces the oldest. */
@Entity('oauth_refusals')
@Expires({ at: 'occurred_at', kept: '30 days' })
export class OauthRejection extends row({
  place: smallint.primary.sqlDefault("nextval('oauth_refusals_place')"),
  occurred_at: timestamptz.sqlDefault('now()'),
  error_id: anyText,
  /** Template of the route, such as `/oauth/authorize`. */
  route: anyText,
  error: anyText,
  /** One of the words in docs/operators/audit.md. */
  reason: anyText,
  /** As sent, so it may name no client; without what could be a secret. */
  client_id: anyText.nullable,
  /** As sent, without query, fragment and what could be a secret. */
  redirect_uri: anyText.nullable,
  ip: inet.nullable,
}) {}
