import { Entity } from 'typeorm';
import {
  bigint,
  bytea,
  identity,
  integer,
  jsonb,
  row,
  anyText,
  timestamptz,
  uuid,
} from '../../../../model/column.js';
import { Expires, OfMember } from '../../../../model/declarations.js';
import { ApiKey } from '../credentials/api-key.entity.js';
import { OauthClient } from '../credentials/oauth.entity.js';

/** A receiver of messages about changes. */
@Entity('webhook_endpoints')
@OfMember<WebhookEndpoint>({
  owner: ['client_id', 'key_id'],
  secrets: ['secret', 'previous_secret'],
  export: { as: 'webhooks', without: ['previous_secret_until'] },
})
export class WebhookEndpoint extends row({
  id: anyText.primary,
  url: anyText,
  types: anyText.array,
  /** The client that it sees members as; or {@link WebhookEndpoint.key_id}; if neither, it sees them as the platform. */
  client_id: anyText.nullable.refersTo(() => OauthClient, 'CASCADE'),
  key_id: anyText.nullable.refersTo(() => ApiKey, 'CASCADE'),
  /** Encrypted. */
  secret: bytea.unselected,
  /** Encrypted; signs in addition to the current one until {@link WebhookEndpoint.previous_secret_until}. */
  previous_secret: bytea.nullable.unselected,
  previous_secret_until: timestamptz.nullable,
  created_at: timestamptz.sqlDefault('now()'),
  /** Since when no message was accepted. */
  failing_since: timestamptz.nullable,
  disabled_at: timestamptz.nullable,
  disabled_because: anyText.as<'admin' | 'failing' | 'gone'>().nullable,
}) {}

/** A message to an endpoint, sent or pending. */
@Entity('webhook_deliveries')
@Expires({ at: 'ended_at', kept: '7 days', only: `status <> 'pending'` })
@OfMember<WebhookDelivery>({
  // Apps still get the message that their access to an erased member has ended.
  only: `type <> 'access.ended'`,
  export: { none: 'pending messages to webhook endpoints, for a few days; the change is in the export' },
})
export class WebhookDelivery extends row({
  /** The order in which an endpoint's messages are sent. */
  sequence: identity('ALWAYS'),
  id: uuid.unique.sqlDefault('gen_random_uuid()'),
  endpoint_id: anyText.refersTo(() => WebhookEndpoint, 'CASCADE'),
  type: anyText,
  /** The member whose lists it is about; 0 if of no single member. */
  user_id: bigint,
  thing_id: bigint,
  changed_at: timestamptz,
  /** withheld: the credential may no longer see it. dead: delivery was given up. */
  status: anyText.as<'pending' | 'delivered' | 'dead' | 'withheld'>().default('pending'),
  /** Attempts that have ended. */
  attempts: integer.default(0),
  due_at: timestamptz.sqlDefault('now()'),
  /** Until when one instance is sending it. */
  leased_until: timestamptz.nullable,
  attempted_at: timestamptz.nullable,
  response_status: integer.nullable,
  /** Why the last attempt got no response. */
  error: anyText.nullable,
  duration_ms: integer.nullable,
  ended_at: timestamptz.nullable,
  /** Of a message about access. */
  details: jsonb.as<AccessDetails>().nullable,
}) {}

export interface AccessDetails {
  readonly scopes: readonly string[];
  /** In the API's format; null for no end. */
  readonly access_ends_at: string | null;
  /** null unless it has ended. */
  readonly reason: 'member' | 'app' | 'platform' | 'expired' | 'unused' | null;
}

/** Access of an app that changed or ended: a moment later a message (schema/access-messages.sql). Triggers write it. */
@Entity('access_changes')
@OfMember<AccessChange>({
  erase: { keep: 'the server notifies apps, seconds later, that their access has ended' },
  export: { none: 'pending messages to apps about their access, for seconds' },
})
export class AccessChange extends row({
  id: identity('ALWAYS'),
  user_id: bigint,
  client_id: anyText,
  /** Of a grant that ended. */
  reason: anyText.as<'member' | 'app' | 'platform' | 'expired' | 'unused'>().nullable,
  ended_at: timestamptz.nullable,
  scopes: anyText.array.nullable,
  access_ends_at: timestamptz.nullable,
}) {}
