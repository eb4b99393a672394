import { Entity } from 'typeorm';
import {
  bigint,
  boolean,
  bytea,
  identity,
  inet,
  integer,
  jsonb,
  row,
  anyText,
  timestamptz,
  uuid,
} from '../../../../model/column.js';
import { Expires, OfMember } from '../../../../model/declarations.js';
import { User } from '../../../../resources/profile/table.js';

/** An app that signs members in. */
@Entity('oauth_clients')
@OfMember<OauthClient>({
  owner: ['owner_id'],
  export: { as: 'own_apps', without: ['document_read_at', 'disabled_by_owner'], called: { id: 'client_id' } },
})
export class OauthClient extends row({
  id: anyText.primary,
  name: anyText,
  type: anyText.as<'web' | 'native'>(),
  redirect_uris: anyText.array,
  post_logout_redirect_uris: anyText.array.sqlDefault("'{}'"),
  /** Origins whose pages may call the token endpoint. */
  allowed_origins: anyText.array.sqlDefault("'{}'"),
  scopes: anyText.array,
  /** Public keys of a confidential client (private_key_jwt); null for a public one, empty for one with a secret. */
  jwks: jsonb.as<{ keys: object[] }>().nullable,
  /** Where a client's document says that its keys are; they are stored in `jwks`. */
  jwks_uri: anyText.nullable,
  /** Whether its document lets it leave out the signature by its keys. */
  assertion_optional: boolean.default(false),
  /** What follows from it stands in `clients/profiles.ts`. */
  profile: anyText.as<'oauth21' | 'oidc' | 'fapi2'>().default('oauth21'),
  /** `optional`: it may leave PKCE out where it sends a nonce. */
  pkce: anyText.as<'required' | 'optional' | 'off'>().default('required'),
  /** How it sends its secret; null for a client that authenticates with its keys, or is public. */
  secret_auth_method: anyText.as<'client_secret_basic' | 'client_secret_post'>().nullable,
  created_at: timestamptz.sqlDefault('now()'),
  disabled_at: timestamptz.nullable,
  client_uri: anyText.nullable,
  policy_uri: anyText.nullable,
  /** An image of at most 64 KB, served by this server. */
  logo: bytea.nullable,
  id_token_signed_response_alg: anyText.as<'ES256' | 'RS256'>().default('ES256'),
  /** Where it is told that a session has ended. */
  backchannel_logout_uri: anyText.nullable,
  /** When the document was last read, for a client whose id is its document's address; null for a registered client. */
  document_read_at: timestamptz.nullable,
  /** The member who registered it; null for one that an admin registered, or that a document describes. */
  owner_id: bigint.nullable.refersTo(() => User),
  /** Whether its owner disabled it: what others disabled, the owner cannot enable. */
  disabled_by_owner: boolean.default(false),
  /** The longest time for which members may allow it access; null for the default of its kind (`clients/access-durations.ts`). */
  longest_access: anyText.as<'once' | '30' | '180' | 'unlimited'>().nullable,
  /** What its owner wrote when they last applied for a review; reasons by scope. */
  application: jsonb.as<{ purpose: string; reasons: Record<string, string> }>().nullable,
  /** Since when the application waits for a review; null if none does. */
  applied_at: timestamptz.nullable,
  /** When the platform approved the columns as they are. */
  approved_at: timestamptz.nullable,
  /** Why the platform rejected the last application; null if it did not. */
  rejection: anyText.nullable,
  /** Columns of an approved app as its owner wants them, until they are approved; the logo in base64. */
  pending_changes: jsonb.as<{
    name?: string;
    redirect_uris?: string[];
    scopes?: string[];
    logo?: string | null;
  }>().nullable,
}) {}

/** A member whom an app's owner invited by username to use the app before its approval. */
@Entity('app_testers')
@OfMember<AppTester>({
  owner: ['client_id', 'user_id'],
  export: { as: 'app_tests' },
})
export class AppTester extends row({
  client_id: anyText.primary.refersTo(() => OauthClient, 'CASCADE'),
  /** As its owner typed it, in the form for comparing. */
  username: anyText.primary,
  /** Whose username it was; null if nobody's, which its owner is not told. */
  user_id: bigint.nullable.refersTo(() => User, 'CASCADE'),
  invited_at: timestamptz.sqlDefault('now()'),
  accepted_at: timestamptz.nullable,
}) {}

/** A secret of a confidential client that cannot sign. Two are valid while one replaces the other. */
@Entity('oauth_client_secrets')
@Expires({ at: 'expires_at', kept: '7 days' })
@OfMember<OauthClientSecret>({
  owner: ['client_id'],
  secrets: ['hash', 'pepper_id'],
  export: { as: 'own_apps_secrets', without: ['id'] },
})
export class OauthClientSecret extends row({
  id: identity('BY DEFAULT'),
  client_id: anyText.refersTo(() => OauthClient, 'CASCADE'),
  /** HMAC-SHA-256 of the secret; {@link OauthClientSecret.pepper_id} identifies the pepper. */
  hash: bytea.unselected,
  pepper_id: bytea.unselected,
  last_four: anyText,
  created_at: timestamptz.sqlDefault('now()'),
  /** null if it never expires. */
  expires_at: timestamptz.nullable,
  /** Written in batches. */
  last_used_at: timestamptz.nullable,
}) {}

/** A member's latest response to a client's request for consent. */
@Entity('oauth_consents')
@OfMember<OauthConsent>({ export: { as: 'consents', without: ['redirect_origins', 'seen_as'] } })
export class OauthConsent extends row({
  user_id: bigint.primary.refersTo(() => User, 'CASCADE'),
  client_id: anyText.primary.refersTo(() => OauthClient, 'CASCADE'),
  granted: anyText.array,
  rejected: anyText.array,
  /** Origins to which it lets codes be sent; null: those of the app's redirect URIs, as long as nobody adds another. */
  redirect_origins: anyText.array.nullable,
  /** Digest of what the member saw of an app that nobody reviewed; null for other apps. */
  seen_as: anyText.nullable,
  /** What the member chose last; null if that was before they could choose. */
  duration: anyText.as<'once' | '30' | '180' | 'unlimited'>().nullable,
  /** Until then the app gets access again without asking; null for no end. */
  access_ends_at: timestamptz.nullable,
  created_at: timestamptz.sqlDefault('now()'),
  updated_at: timestamptz.sqlDefault('now()'),
}) {}

/** The last refresh token of access that has ended: its app gets the reason. Triggers write it when grants and tokens are deleted. */
@Entity('ended_refresh_tokens')
@Expires({ at: 'ended_at', kept: '30 days' })
export class EndedRefreshToken extends row({
  key: bytea.primary,
  client_id: anyText,
  ended_at: timestamptz,
  /** `unused`: it ended because nobody used it. */
  reason: anyText.as<'member' | 'app' | 'platform' | 'expired' | 'unused'>(),
}) {}

/** One sign-in of one member in one client on one device: a family of tokens. Its id is no credential. */
@Entity('oauth_grants')
@Expires({ at: 'expires_at' })
@Expires({ at: 'access_ends_at', name: 'ended_access' })
@OfMember<OauthGrant>({ export: { in: 'connected_apps' } })
export class OauthGrant extends row({
  id: anyText.primary,
  user_id: bigint.refersTo(() => User, 'CASCADE'),
  client_id: anyText.refersTo(() => OauthClient, 'CASCADE'),
  payload: jsonb.as<Record<string, unknown>>(),
  created_at: timestamptz.sqlDefault('now()'),
  /** A day after it ends if it is not used until then: written at most once a day. */
  expires_at: timestamptz,
  /** The end that the member chose; null for none. Programs of the previous version insert the default. */
  access_ends_at: timestamptz.nullable.sqlDefault("now() + interval '14 days'"),
  /** When its member was notified that it ends soon, and when its app was. */
  ending_notified_at: timestamptz.nullable,
  ending_told_at: timestamptz.nullable,
}) {}

/** When a grant's tokens were last used, written in batches. */
@Entity('oauth_grant_usage')
@OfMember<OauthGrantUsage>({ owner: ['grant_id'], export: { in: 'connected_apps' } })
export class OauthGrantUsage extends row({
  grant_id: anyText.primary.refersTo(() => OauthGrant, 'CASCADE'),
  last_used_at: timestamptz,
}) {}

/**
 * A grant ends with its last token. It is not deleted here but when its own `expires_at` has passed, since deleting a live grant is
 * announced to every instance. A token that expired less than a minute ago may still be in use by a request: neither it nor its
 * grant is touched. Access that an app never had, since it did not redeem the code, ends at its beginning.
 */
const END_GRANTS = {
  columns: 'grant_id, model, consumed_at',
  statement: `UPDATE oauth_grants e SET expires_at = now(), access_ends_at = CASE WHEN EXISTS (
      SELECT FROM gone WHERE gone.grant_id = e.id AND gone.model = 'AuthorizationCode' AND gone.consumed_at IS NULL
    ) THEN created_at ELSE access_ends_at END WHERE ctid = ANY(ARRAY(
    SELECT g.ctid FROM oauth_grants g WHERE g.id IN (SELECT grant_id FROM gone) AND g.expires_at > now()
      AND NOT EXISTS (SELECT FROM oauth_tokens t WHERE t.grant_id = g.id AND t.expires_at >= now() - interval '1 minute')
    FOR UPDATE SKIP LOCKED))`,
};

/** An authorization code, access token or refresh token, found by an HMAC of its secret. */
@Entity('oauth_tokens')
// A code that is used twice within ten minutes reveals a theft, so its use is remembered for as long.
@Expires({
  at: 'expires_at',
  kept: '10 minutes',
  name: 'authorization_codes',
  only: `model = 'AuthorizationCode'`,
  also: END_GRANTS,
})
@Expires({ at: 'expires_at', kept: '1 minute', only: `model <> 'AuthorizationCode'`, also: END_GRANTS })
@OfMember<OauthToken>({
  owner: ['grant_id'],
  secrets: ['key', 'payload', 'successor'],
  export: { none: 'hashes of secrets; connected_apps lists their scopes' },
})
export class OauthToken extends row({
  key: bytea.primary,
  model: anyText.as<'AuthorizationCode' | 'AccessToken' | 'RefreshToken'>(),
  grant_id: anyText.refersTo(() => OauthGrant, 'CASCADE'),
  payload: jsonb.as<Record<string, unknown>>(),
  created_at: timestamptz.sqlDefault('now()'),
  consumed_at: timestamptz.nullable,
  expires_at: timestamptz,
  /** The response to the refresh that used this token, encrypted by a key from it; null after some ten seconds. */
  successor: bytea.nullable,
}) {}

@Entity('oauth_sessions')
@Expires({ at: 'expires_at' })
@OfMember<OauthSession>({
  secrets: ['uid_key', 'key', 'payload', 'upstream_subject_key', 'upstream_session_key'],
  export: { as: 'sessions', without: ['public_id', 'expires_at'], where: 't.expires_at > now()' },
})
export class OauthSession extends row({
  uid_key: bytea.primary,
  key: bytea.unique,
  /** Names the session in forms and logs; it is no credential. */
  public_id: uuid.unique.sqlDefault('gen_random_uuid()'),
  user_id: bigint.nullable.refersTo(() => User, 'CASCADE'),
  /** Encrypted. */
  payload: bytea,
  signed_in_at: timestamptz.nullable,
  last_seen_at: timestamptz.sqlDefault('now()'),
  expires_at: timestamptz,
  user_agent: anyText.nullable,
  ip: inet.nullable,
  /** For a session from the platform's own login: HMAC of that login's subject. */
  upstream_subject_key: bytea.nullable,
  /** For the same: HMAC of the session there. */
  upstream_session_key: bytea.nullable,
  /** The clients that it signed its member in to, by id: how each of them knows it (`sid`). */
  clients: jsonb.as<Record<string, string>>().sqlDefault("'{}'"),
}) {}

/** A client that is to be told that a session has ended (OpenID Connect Back-Channel Logout 1.0). */
@Entity('oauth_logouts')
@Expires({ at: 'ended_at', kept: '3 days' })
@OfMember<OauthLogout>({
  erase: { keep: 'apps are still notified of the member’s ended sessions, for three days at most' },
  export: { none: 'pending notifications of ended sessions to apps, for three days at most' },
})
export class OauthLogout extends row({
  id: identity('ALWAYS'),
  client_id: anyText.refersTo(() => OauthClient, 'CASCADE'),
  user_id: bigint,
  sid: anyText,
  ended_at: timestamptz.sqlDefault('now()'),
  /** Attempts that have begun. */
  attempts: integer.default(0),
  /** When to try next; of one that an instance is sending: when it is anybody's again. */
  due_at: timestamptz.sqlDefault('now()'),
}) {}

/** State that lives for minutes: interactions, pushed authorization requests, ids of used proofs. */
@Entity('oauth_state')
@Expires({ at: 'expires_at' })
@OfMember<OauthState>({
  secrets: ['key', 'payload', 'session_uid_key'],
  export: { none: 'sign-ins in progress, for minutes' },
})
export class OauthState extends row({
  key: bytea.primary,
  model: anyText.as<
    | 'Interaction'
    | 'PushedAuthorizationRequest'
    | 'ReplayDetection'
    | 'UpstreamSignIn'
    | 'PasskeySignIn'
    | 'PasskeyRegistration'
    | 'PasswordReset'
  >(),
  /** For an interaction: the member whose sign-in continues it. */
  user_id: bigint.nullable.refersTo(() => User, 'CASCADE'),
  /** For the same: the app whose request it is. */
  client_id: anyText.nullable,
  /** For the same: the key of the browser session to which it belongs. */
  session_uid_key: bytea.nullable,
  /** Encrypted; null where only the key matters. */
  payload: bytea.nullable,
  consumed_at: timestamptz.nullable,
  expires_at: timestamptz,
}) {}

/** A key that signs ID tokens. At most one each is next, current and previous. */
@Entity('signing_keys')
export class SigningKey extends row({
  kid: anyText.primary,
  status: anyText.as<'next' | 'current' | 'previous' | 'retired'>(),
  alg: anyText.as<'ES256' | 'RS256'>(),
  public_jwk: jsonb.as<Record<string, unknown>>(),
  /** Encrypted; null once retired. */
  private_jwk: bytea.nullable.unselected,
  created_at: timestamptz.sqlDefault('now()'),
  activated_at: timestamptz.nullable,
  retired_at: timestamptz.nullable,
}) {}
