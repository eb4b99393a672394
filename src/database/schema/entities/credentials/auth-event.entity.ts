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

/** An audit event, without secrets. Triggers allow changes only for an erased member, and deletion only after seven days. */
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
  /** `admin`: an operator at the command line. */
  actor: anyText.as<'user' | 'client' | 'admin' | 'system'>(),
  user_id: bigint.nullable,
  client_id: anyText.nullable,
  key_id: anyText.nullable,
  ip: inet.nullable,
  /** Error id on the error page or in the response. */
  error_id: anyText.nullable,
  details: jsonb.as<Record<string, unknown>>().sqlDefault("'{}'"),
}) {}

/** A recent request of a member's own app or key, for troubleshooting. */
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
  /** Null if {@link DeveloperRequest.key_id} is set. */
  client_id: anyText.nullable.refersTo(() => OauthClient, 'CASCADE'),
  key_id: anyText.nullable.refersTo(() => ApiKey, 'CASCADE'),
  occurred_at: timestamptz,
  method: anyText,
  /** Template of the route, such as `/api/public/events/:id`. */
  route: anyText,
  status: smallint,
  /** Code of the problem or of the OAuth error; null if the request succeeded. */
  error: anyText.nullable,
  /** A reason from docs/operators/audit.md. */
  reason: anyText.nullable,
  parameter: anyText.nullable,
  /** The parameter's value as sent, without possible secrets. */
  value: anyText.nullable,
  error_id: anyText.nullable,
  duration_ms: integer.nullable,
}) {}

/** Number of requests of a member's own app or key in one hour with the same method, route and outcome. */
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
  /** Null if {@link DeveloperRequestCount.key_id} is set. */
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

/** A rejected request of an unknown member, found by its error id. Only 10,000 are kept, since anyone can cause rejections. */
@Entity('oauth_refusals')
@Expires({ at: 'occurred_at', kept: '30 days' })
export class OauthRejection extends row({
  place: smallint.primary.sqlDefault("nextval('oauth_refusals_place')"),
  occurred_at: timestamptz.sqlDefault('now()'),
  error_id: anyText,
  /** Template of the route, such as `/oauth/authorize`. */
  route: anyText,
  error: anyText,
  /** A reason from docs/operators/audit.md. */
  reason: anyText,
  /** As sent, without possible secrets; the client may not exist. */
  client_id: anyText.nullable,
  /** Without query, fragment and possible secrets. */
  redirect_uri: anyText.nullable,
  ip: inet.nullable,
}) {}
