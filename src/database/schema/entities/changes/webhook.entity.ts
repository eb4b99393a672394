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
  /** The endpoint belongs to this client or to {@link WebhookEndpoint.key_id}; if both are null, to the platform. */
  client_id: anyText.nullable.refersTo(() => OauthClient, 'CASCADE'),
  key_id: anyText.nullable.refersTo(() => ApiKey, 'CASCADE'),
  /** Encrypted. */
  secret: bytea.unselected,
  /** Encrypted; the server signs messages also with this secret until {@link WebhookEndpoint.previous_secret_until}. */
  previous_secret: bytea.nullable.unselected,
  previous_secret_until: timestamptz.nullable,
  created_at: timestamptz.sqlDefault('now()'),
  /** Start of the current series of failures; null if there is none. */
  failing_since: timestamptz.nullable,
  disabled_at: timestamptz.nullable,
  disabled_because: anyText.as<'admin' | 'failing' | 'gone'>().nullable,
}) {}

@Entity('webhook_deliveries')
@Expires({ at: 'ended_at', kept: '7 days', only: `status <> 'pending'` })
@OfMember<WebhookDelivery>({
  // Apps still get the message that their access to an erased member's data has ended.
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
  /** Member whom the message is about; 0 if it is not about one member. */
  user_id: bigint,
  thing_id: bigint,
  changed_at: timestamptz,
  /** `withheld`: the client or key no longer has access; `dead`: the server makes no further attempts. */
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
  /** null unless the message is about an app's or a key's access. */
  details: jsonb.as<AccessDetails>().nullable,
}) {}

export interface AccessDetails {
  readonly scopes: readonly string[];
  /** End of access in the API's format; null if access never expires. */
  readonly access_ends_at: string | null;
  /** null unless the access has ended. */
  readonly reason: 'member' | 'app' | 'platform' | 'expired' | 'unused' | null;
}

/** A note that an app's access changed or ended. Triggers write the notes; `tell_apps_of_access` turns them into messages. */
@Entity('access_changes')
@OfMember<AccessChange>({
  erase: { keep: 'the server notifies apps, seconds later, that their access has ended' },
  export: { none: 'pending messages to apps about their access, for seconds' },
})
export class AccessChange extends row({
  id: identity('ALWAYS'),
  user_id: bigint,
  client_id: anyText,
  /** null unless a grant ended. */
  reason: anyText.as<'member' | 'app' | 'platform' | 'expired' | 'unused'>().nullable,
  ended_at: timestamptz.nullable,
  scopes: anyText.array.nullable,
  access_ends_at: timestamptz.nullable,
}) {}
