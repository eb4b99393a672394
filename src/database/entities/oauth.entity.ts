import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { User } from './user.entity.js';

/** An app that signs members in. */
@Entity('oauth_clients')
export class OauthClient {
  @PrimaryColumn('text')
  id: string;

  @Column('text')
  name: string;

  @Column('text')
  type: 'web' | 'native';

  @Column('text', { array: true })
  redirect_uris: string[];

  @Column('text', { array: true, default: () => "'{}'" })
  post_logout_redirect_uris: string[];

  /** Origins whose pages may call the token endpoint. */
  @Column('text', { array: true, default: () => "'{}'" })
  allowed_origins: string[];

  /** Scopes that it may request. */
  @Column('text', { array: true })
  scopes: string[];

  /** Public keys of a confidential client (private_key_jwt); null for a public one. */
  @Column('jsonb', { nullable: true })
  jwks: { keys: object[] } | null;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  @Column('timestamptz', { nullable: true })
  disabled_at: Date | null;

  /** URL of its home page. */
  @Column('text', { nullable: true })
  client_uri: string | null;

  /** URL of its privacy policy. */
  @Column('text', { nullable: true })
  policy_uri: string | null;

  /** An image of at most 64 KB, served by this server. */
  @Column('bytea', { nullable: true })
  logo: Buffer | null;

  /** Algorithm that signs its ID tokens. */
  @Column('text', { default: 'ES256' })
  id_token_signed_response_alg: 'ES256' | 'RS256';

  /** When the document was last read, for a client whose id is its document's address; null for a registered client. */
  @Column('timestamptz', { nullable: true })
  document_read_at: Date | null;

  /** The member who registered it; null for one that an admin registered, or that a document describes. */
  @Column('bigint', { nullable: true })
  @ForeignKey(() => User)
  owner_id: number | null;

  /** Whether its owner disabled it: what others disabled, the owner cannot enable. */
  @Column('boolean', { default: false })
  disabled_by_owner: boolean;
}

/** A member's latest response to a client's request for consent. */
@Entity('oauth_consents')
export class OauthConsent {
  @PrimaryColumn('bigint')
  @ForeignKey(() => User, { onDelete: 'CASCADE' })
  user_id: number;

  @PrimaryColumn('text')
  @ForeignKey(() => OauthClient, { onDelete: 'CASCADE' })
  client_id: string;

  @Column('text', { array: true })
  granted: string[];

  @Column('text', { array: true })
  rejected: string[];

  /** Origins to which it lets codes be sent; null: those of the app's redirect URIs, as long as nobody adds another. */
  @Column('text', { array: true, nullable: true })
  redirect_origins: string[] | null;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  @Column('timestamptz', { default: () => 'now()' })
  updated_at: Date;
}

/** One sign-in of one member in one client on one device: a family of tokens. Its id is no credential. */
@Entity('oauth_grants')
export class OauthGrant {
  @PrimaryColumn('text')
  id: string;

  @Column('bigint')
  @ForeignKey(() => User, { onDelete: 'CASCADE' })
  user_id: number;

  @Column('text')
  @ForeignKey(() => OauthClient, { onDelete: 'CASCADE' })
  client_id: string;

  @Column('jsonb')
  payload: Record<string, unknown>;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  @Column('timestamptz')
  expires_at: Date;
}

/** When a grant's tokens were last used, written in batches. */
@Entity('oauth_grant_usage')
export class OauthGrantUsage {
  @PrimaryColumn('text')
  @ForeignKey(() => OauthGrant, { onDelete: 'CASCADE' })
  grant_id: string;

  @Column('timestamptz')
  last_used_at: Date;
}

/** An authorization code, access token or refresh token, found by an HMAC of its secret. */
@Entity('oauth_tokens')
export class OauthToken {
  @PrimaryColumn('bytea')
  key: Buffer;

  @Column('text')
  model: 'AuthorizationCode' | 'AccessToken' | 'RefreshToken';

  @Column('text')
  @ForeignKey(() => OauthGrant, { onDelete: 'CASCADE' })
  grant_id: string;

  @Column('jsonb')
  payload: Record<string, unknown>;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  @Column('timestamptz', { nullable: true })
  consumed_at: Date | null;

  @Column('timestamptz')
  expires_at: Date;

  /**
   * The response to the refresh that consumed this token, encrypted with a key derived from the token itself; null again when it
   * can no longer be requested, some ten seconds later.
   */
  @Column('bytea', { nullable: true })
  successor: Buffer | null;
}

/** A browser's session. */
@Entity('oauth_sessions')
export class OauthSession {
  @PrimaryColumn('bytea')
  uid_key: Buffer;

  @Column('bytea', { unique: true })
  key: Buffer;

  /** Names the session in forms and logs; it is no credential. */
  @Column('uuid', { unique: true, default: () => 'gen_random_uuid()' })
  public_id: string;

  @Column('bigint', { nullable: true })
  @ForeignKey(() => User, { onDelete: 'CASCADE' })
  user_id: number | null;

  /** Encrypted. */
  @Column('bytea')
  payload: Buffer;

  @Column('timestamptz', { nullable: true })
  signed_in_at: Date | null;

  @Column('timestamptz', { default: () => 'now()' })
  last_seen_at: Date;

  @Column('timestamptz')
  expires_at: Date;

  @Column('text', { nullable: true })
  user_agent: string | null;

  @Column('inet', { nullable: true })
  ip: string | null;

  /** For a session from the platform's own login: HMAC of that login's subject. */
  @Column('bytea', { nullable: true })
  upstream_subject_key: Buffer | null;

  /** For the same: HMAC of the session there. */
  @Column('bytea', { nullable: true })
  upstream_session_key: Buffer | null;
}

/** State that lives for minutes: interactions, pushed authorization requests, ids of used proofs. */
@Entity('oauth_state')
export class OauthState {
  @PrimaryColumn('bytea')
  key: Buffer;

  @Column('text')
  model:
    | 'Interaction'
    | 'PushedAuthorizationRequest'
    | 'ReplayDetection'
    | 'UpstreamSignIn'
    | 'PasskeySignIn'
    | 'PasskeyRegistration'
    | 'PasswordReset';

  /** For an interaction: the member whose sign-in continues it. */
  @Column('bigint', { nullable: true })
  @ForeignKey(() => User, { onDelete: 'CASCADE' })
  user_id: number | null;

  /** Encrypted; null where only the key matters. */
  @Column('bytea', { nullable: true })
  payload: Buffer | null;

  @Column('timestamptz', { nullable: true })
  consumed_at: Date | null;

  @Column('timestamptz')
  expires_at: Date;
}

/** A key that signs ID tokens. At most one each is next, current and previous. */
@Entity('signing_keys')
export class SigningKey {
  @PrimaryColumn('text')
  kid: string;

  @Column('text')
  status: 'next' | 'current' | 'previous' | 'retired';

  @Column('text')
  alg: 'ES256' | 'RS256';

  @Column('jsonb')
  public_jwk: Record<string, unknown>;

  /** Encrypted; null once retired. */
  @Column('bytea', { nullable: true, select: false })
  private_jwk: Buffer | null;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  @Column('timestamptz', { nullable: true })
  activated_at: Date | null;

  @Column('timestamptz', { nullable: true })
  retired_at: Date | null;
}
