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
  /** Messages follow the access of this client or of {@link WebhookEndpoint.key_id}; if both are null, the platform's access. */
  client_id: anyText.nullable.refersTo(() => OauthClient, 'CASCADE'),
  key_id: anyText.nullable.refersTo(() => ApiKey, 'CASCADE'),
  /** Encrypted. */
  secret: bytea.unselected,
  /** Encrypted; signs in addition to the current secret until {@link WebhookEndpoint.previous_secret_until}. */
  previous_secret: bytea.nullable.unselected,
  previous_secret_until: timestamptz.nullable,
  created_at: timestamptz.sqlDefault('now()'),
  /** Time of the first failed attempt since the last accepted message; null if there is none. */
  failing_since: timestamptz.nullable,
  disabled_at: timestamptz.nullable,
  disabled_because: anyText.as<'admin' | 'failing' | 'gone'>().nullable,
}) {}

@Entity('webhook_deliveries')
@Expires({ at: 'ended_at', kept: '7 days', only: `status <> 'pending'` })
@OfMember<WebhookDelivery>({
  // Apps still get the message that their access to an erased member has ended.
  only: `type <> 'access.ended'`,
  export: {
    none: 'messages to webhook endpoints, until seven days after their end; the change is in the export',
  },
})
export class WebhookDelivery extends row({
  sequence: identity('ALWAYS'),
  id: uuid.unique.sqlDefault('gen_random_uuid()'),
  endpoint_id: anyText.refersTo(() => WebhookEndpoint, 'CASCADE'),
  type: anyText,
  /** Member whose lists changed; 0 if the message is not about one member. */
  user_id: bigint,
  thing_id: bigint,
  changed_at: timestamptz,
  /** `withheld`: the credential no longer has access; `dead`: the server makes no further attempts. */
  status: anyText.as<'pending' | 'delivered' | 'dead' | 'withheld'>().default('pending'),
  /** Completed attempts since the message was created or resent on request. */
  attempts: integer.default(0),
  due_at: timestamptz.sqlDefault('now()'),
  /** End of the lease of the instance that is sending the message. */
  leased_until: timestamptz.nullable,
  attempted_at: timestamptz.nullable,
  response_status: integer.nullable,
  /** Why the last attempt got no response. */
  error: anyText.nullable,
  duration_ms: integer.nullable,
  ended_at: timestamptz.nullable,
  /** Only for a message about access. */
  details: jsonb.as<AccessDetails>().nullable,
}) {}

export interface AccessDetails {
  readonly scopes: readonly string[];
  /** End of access in the API's format; null if access never expires. */
  readonly access_ends_at: string | null;
  /** null unless the access has ended. */
  readonly reason: 'member' | 'app' | 'platform' | 'expired' | 'unused' | null;
}

/** A change to an app's access, or its end. Triggers write the row; a moment later it becomes a message (schema/access-messages.sql). */
@Entity('access_changes')
@OfMember<AccessChange>({
  erase: { keep: 'the server notifies apps, seconds later, that their access has ended' },
  export: { none: 'pending messages to apps about their access, for seconds' },
})
export class AccessChange extends row({
  id: identity('ALWAYS'),
  user_id: bigint,
  client_id: anyText,
  /** For a grant that ended. */
  reason: anyText.as<'member' | 'app' | 'platform' | 'expired' | 'unused'>().nullable,
  ended_at: timestamptz.nullable,
  scopes: anyText.array.nullable,
  access_ends_at: timestamptz.nullable,
}) {}
