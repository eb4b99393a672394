import { Entity } from 'typeorm';
import { inet, row, smallint, text, timestamptz } from '../../columns.js';
import { Expires } from '../../expires.js';

/**
 * A refusal that concerns no member, to be found by its error id. Anyone can cause any number of them, so they are stored in a
 * ring: a new one replaces the oldest.
 */
@Entity('oauth_refusals')
@Expires({ at: 'occurred_at', kept: '30 days' })
export class OauthRefusal extends row({
  place: smallint.primary.sqlDefault("nextval('oauth_refusals_place')"),
  occurred_at: timestamptz.sqlDefault('now()'),
  /** The error id that the error page or response showed. */
  error_id: text,
  /** Template of the route, such as `/oauth/authorize`. */
  route: text,
  /** Error code of the response. */
  error: text,
  /** One of the words in docs/audit.md. */
  reason: text,
  /** As sent, so it may name no client; without what could be a secret. */
  client_id: text.nullable,
  /** As sent, without query, fragment and what could be a secret. */
  redirect_uri: text.nullable,
  ip: inet.nullable,
}) {}
