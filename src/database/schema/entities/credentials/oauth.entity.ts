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
  /** Origins of the client's pages; if empty, `allowedOriginsOf` chooses the defaults. */
  allowed_origins: anyText.array.sqlDefault("'{}'"),
  scopes: anyText.array,
  /** Public keys of a confidential client (private_key_jwt); null for a public client, empty for a client with a secret. */
  jwks: jsonb.as<{ keys: object[] }>().nullable,
  /** URL of the keys according to the client's document; the keys are stored in `jwks`. */
  jwks_uri: anyText.nullable,
  /** Whether the client's document allows requests without an assertion. */
  assertion_optional: boolean.default(false),
  /** `clients/profiles.ts` contains the rules of each profile. */
  profile: anyText.as<'oauth21' | 'oidc' | 'fapi2'>().default('oauth21'),
  /** `optional`: the client may omit PKCE if it sends a nonce. */
  pkce: anyText.as<'required' | 'optional' | 'off'>().default('required'),
  /** How the client sends its secret; null for a public client, and for a client with keys. */
  secret_auth_method: anyText.as<'client_secret_basic' | 'client_secret_post'>().nullable,
  created_at: timestamptz.sqlDefault('now()'),
  disabled_at: timestamptz.nullable,
  client_uri: anyText.nullable,
  policy_uri: anyText.nullable,
  /** An image of at most 64 KB, served by this server. */
  logo: bytea.nullable,
  id_token_signed_response_alg: anyText.as<'ES256' | 'RS256'>().default('ES256'),
  backchannel_logout_uri: anyText.nullable,
  /** Last read of the document, for a client whose id is its document's URL; null for a registered client. */
  document_read_at: timestamptz.nullable,
  /** The member who registered the client; null if an admin registered it, or a document describes it. */
  owner_id: bigint.nullable.refersTo(() => User),
  /** Whether the owner disabled the client: the owner cannot enable a client that others disabled. */
  disabled_by_owner: boolean.default(false),
  /** Maximum duration of access that members can choose; null for the default (`clients/access-durations.ts`). */
  longest_access: anyText.as<'once' | '30' | '180' | 'unlimited'>().nullable,
  /** The owner's last application for a review; reasons by scope. */
  application: jsonb.as<{ purpose: string; reasons: Record<string, string> }>().nullable,
  /** Time of the application that waits for a review; null if none waits. */
  applied_at: timestamptz.nullable,
  /** Time of the last approval by the platform; null if there is none. */
  approved_at: timestamptz.nullable,
  /** Why the platform rejected the last application; null if it did not reject it. */
  rejection: anyText.nullable,
  /** Changes by the owner of an approved app that wait for approval; the logo in base64. */
  pending_changes: jsonb.as<{
    name?: string;
    redirect_uris?: string[];
    scopes?: string[];
    logo?: string | null;
  }>().nullable,
}) {}

/** An invitation by an app's owner to use the app before its approval. */
@Entity('app_testers')
@OfMember<AppTester>({
  owner: ['client_id', 'user_id'],
  export: { as: 'app_tests' },
})
export class AppTester extends row({
  client_id: anyText.primary.refersTo(() => OauthClient, 'CASCADE'),
  /** The username that the app's owner typed, normalized for comparison. */
  username: anyText.primary,
  /** Active member with this username at the time of the invitation; null if there was none. Hidden from the app's owner. */
  user_id: bigint.nullable.refersTo(() => User, 'CASCADE'),
  invited_at: timestamptz.sqlDefault('now()'),
  accepted_at: timestamptz.nullable,
}) {}

/** A secret of a confidential client without private_key_jwt. During a rotation, two can be valid. */
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
  /** null if the secret never expires. */
  expires_at: timestamptz.nullable,
  /** Last use, written in batches. */
  last_used_at: timestamptz.nullable,
}) {}

/** A member's decisions on the scopes that a client requested: for each scope, the latest. */
@Entity('oauth_consents')
@OfMember<OauthConsent>({ export: { as: 'consents', without: ['redirect_origins', 'seen_as'] } })
export class OauthConsent extends row({
  user_id: bigint.primary.refersTo(() => User, 'CASCADE'),
  client_id: anyText.primary.refersTo(() => OauthClient, 'CASCADE'),
  granted: anyText.array,
  rejected: anyText.array,
  /** Origins of redirect URIs for which the consent counts; null: all of the app's, until they change. */
  redirect_origins: anyText.array.nullable,
  /** Digest of the app's details when the member consented; null for an app that an admin registered. */
  seen_as: anyText.nullable,
  /** Duration that the member chose last; null for a consent from before members could choose. */
  duration: anyText.as<'once' | '30' | '180' | 'unlimited'>().nullable,
  /** End of the consent: afterwards, the member must consent again; null for no end. */
  access_ends_at: timestamptz.nullable,
  created_at: timestamptz.sqlDefault('now()'),
  updated_at: timestamptz.sqlDefault('now()'),
}) {}

/** The last or the previous refresh token of ended access: an error response to it contains the reason. Triggers write the row. */
@Entity('ended_refresh_tokens')
@Expires({ at: 'ended_at', kept: '30 days' })
export class EndedRefreshToken extends row({
  key: bytea.primary,
  client_id: anyText,
  ended_at: timestamptz,
  /** `unused`: the access expired without use. */
  reason: anyText.as<'member' | 'app' | 'platform' | 'expired' | 'unused'>(),
}) {}

/** A token family: the tokens of one sign-in of a member to a client. Its id is not a credential. */
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
  /** Expiry without use; up to a day late, to save writes. If no token is left, the sweeper sets it to the current time. */
  expires_at: timestamptz,
  /** End of access by the member's choice; null for no end. Servers of the previous version insert the default. */
  access_ends_at: timestamptz.nullable.sqlDefault("now() + interval '14 days'"),
  /** Times of the notices that the access ends soon: to the member, and to the app. */
  ending_notified_at: timestamptz.nullable,
  ending_told_at: timestamptz.nullable,
}) {}

/** Last use of a grant's tokens, written in batches. */
@Entity('oauth_grant_usage')
@OfMember<OauthGrantUsage>({ owner: ['grant_id'], export: { in: 'connected_apps' } })
export class OauthGrantUsage extends row({
  grant_id: anyText.primary.refersTo(() => OauthGrant, 'CASCADE'),
  last_used_at: timestamptz,
}) {}

/**
 * A grant expires with its last token. The sweeper deletes it later, since the database announces the deletion of a live grant to every
 * instance. A request may still use a token that expired less than a minute ago, so this token and its grant stay.
 * If the app never redeemed the code, the access counts as ended when it began.
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
// A code stays for ten minutes after its expiry, because its second use reveals a theft.
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
  export: { none: 'hashes of tokens; connected_apps lists the tokens’ scopes' },
})
export class OauthToken extends row({
  key: bytea.primary,
  model: anyText.as<'AuthorizationCode' | 'AccessToken' | 'RefreshToken'>(),
  grant_id: anyText.refersTo(() => OauthGrant, 'CASCADE'),
  payload: jsonb.as<Record<string, unknown>>(),
  created_at: timestamptz.sqlDefault('now()'),
  consumed_at: timestamptz.nullable,
  expires_at: timestamptz,
  /** Response to the refresh that used this token, encrypted with a key derived from the token; null after about ten seconds. */
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
  /** Identifies the session in forms and logs; not a credential. */
  public_id: uuid.unique.sqlDefault('gen_random_uuid()'),
  user_id: bigint.nullable.refersTo(() => User, 'CASCADE'),
  /** Encrypted. */
  payload: bytea,
  signed_in_at: timestamptz.nullable,
  last_seen_at: timestamptz.sqlDefault('now()'),
  expires_at: timestamptz,
  user_agent: anyText.nullable,
  ip: inet.nullable,
  /** For a session from the external identity provider: HMAC of the provider's `sub`. */
  upstream_subject_key: bytea.nullable,
  /** For such a session: HMAC of the provider's `sid`; null if the provider sent none. */
  upstream_session_key: bytea.nullable,
  /** Clients in which this session signed the member in, by id, with the `sid` in each client's ID token. */
  clients: jsonb.as<Record<string, string>>().sqlDefault("'{}'"),
}) {}

/** A pending notification to a client about an ended session (OpenID Connect Back-Channel Logout 1.0). */
@Entity('oauth_logouts')
@Expires({ at: 'ended_at', kept: '3 days' })
@OfMember<OauthLogout>({
  erase: { keep: 'the server still notifies apps of the member’s ended sessions, for three days at most' },
  export: { none: 'pending notifications to apps about ended sessions, for three days at most' },
})
export class OauthLogout extends row({
  id: identity('ALWAYS'),
  client_id: anyText.refersTo(() => OauthClient, 'CASCADE'),
  user_id: bigint,
  sid: anyText,
  ended_at: timestamptz.sqlDefault('now()'),
  /** Number of started attempts. */
  attempts: integer.default(0),
  /** Time of the next attempt; while an instance sends the notification, the end of its lease. */
  due_at: timestamptz.sqlDefault('now()'),
}) {}

/** Temporary state, such as interactions, pushed authorization requests, used proofs, and counts of password resets. */
@Entity('oauth_state')
@Expires({ at: 'expires_at' })
@OfMember<OauthState>({
  secrets: ['key', 'payload', 'session_uid_key'],
  export: { none: 'sign-ins in progress, and counts of password reset emails, for a day at most' },
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
  /** For an interaction: the member whose sign-in it relies on, if any; for a password reset or its count: the member. */
  user_id: bigint.nullable.refersTo(() => User, 'CASCADE'),
  /** For an interaction: the app that sent the request. */
  client_id: anyText.nullable,
  /** For an interaction: the key of its browser session. */
  session_uid_key: bytea.nullable,
  /** Encrypted state; null if only the key matters. */
  payload: bytea.nullable,
  consumed_at: timestamptz.nullable,
  expires_at: timestamptz,
}) {}

/** A key that signs ID tokens. Per algorithm, at most one key is `next`, one `current`, and one `previous`. */
@Entity('signing_keys')
export class SigningKey extends row({
  kid: anyText.primary,
  status: anyText.as<'next' | 'current' | 'previous' | 'retired'>(),
  alg: anyText.as<'ES256' | 'RS256'>(),
  public_jwk: jsonb.as<Record<string, unknown>>(),
  /** Encrypted; null for a retired key. */
  private_jwk: bytea.nullable.unselected,
  created_at: timestamptz.sqlDefault('now()'),
  activated_at: timestamptz.nullable,
  retired_at: timestamptz.nullable,
}) {}
