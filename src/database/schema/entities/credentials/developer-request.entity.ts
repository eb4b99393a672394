import { Entity } from 'typeorm';
import { identity, row, smallint, text, timestamptz } from '../../columns.js';
import { OfMember } from '../../of-member.js';
import { ApiKey } from './api-key.entity.js';
import { OauthClient } from './oauth.entity.js';

/** A recent request of an app or a key whose developer is a member, for their troubleshooting. */
@Entity('developer_requests')
@OfMember<DeveloperRequest>({
  owner: ['client_id', 'key_id'],
  erase: 'delete',
  export: {
    as: 'own_apps_requests',
    without: ['id'],
    also: '(SELECT name FROM oauth_clients c WHERE c.id = t.client_id UNION ALL SELECT name FROM api_keys k WHERE k.id = t.key_id) AS app_name',
  },
})
export class DeveloperRequest extends row({
  id: identity('ALWAYS'),
  /** Either this or {@link DeveloperRequest.key_id}. */
  client_id: text.nullable.refersTo(() => OauthClient, 'CASCADE'),
  key_id: text.nullable.refersTo(() => ApiKey, 'CASCADE'),
  occurred_at: timestamptz,
  method: text,
  /** Template of the route, such as `/api/public/events/:id`. */
  route: text,
  status: smallint,
  /** Code of the problem or of the OAuth error; null if the request succeeded. */
  error: text.nullable,
  /** Why, as one of the words in docs/audit.md. */
  reason: text.nullable,
  /** The part of the request that was at fault. */
  parameter: text.nullable,
  /** The value sent, without what could be a secret. */
  value: text.nullable,
  /** The error id that the response showed. */
  error_id: text.nullable,
}) {}
