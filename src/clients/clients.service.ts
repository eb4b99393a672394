import { Inject, Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { audited, recordEvent, type NewAuthEvent } from '../audit/audit.js';
import type { WithApiTimes } from '../audit/audit-log.js';
import { boundChanges, by, takeSlot, type Owner } from '../auth/owner.js';
import { ALL_SCOPES } from '../auth/scopes.js';
import { Config } from '../config/config.js';
import { BASE62, randomText, randomUUID } from '../crypto/random.js';
import { CLIENT_SECRET_PREFIX } from '../values/secret-forms.js';
import { SecretHashes } from '../crypto/secret-hashes.js';
import type { SigningAlgorithm } from '../crypto/signing-keys.js';
import { OauthClient, OauthGrant } from '../database/schema/entities/credentials/oauth.entity.js';
import { OperatorError } from '../values/operator-error.js';
import type { AuthMethod } from './profiles.js';
import { SigningKeysService } from './signing-keys.service.js';
import { allowedOriginsOf, checkClient, type ChangeableClient, type NewClient } from './client-rules.js';
import { isChanged, readClient, storedKeysOf, UnknownClient, writeClient } from './registrations.js';
import {
  APPLIED_FOR,
  changesToReview,
  REVIEW_STATE,
  wantedClient,
  withoutUnreviewed,
  type ReviewState,
} from './reviews.js';

export type { ChangeableClient, NewClient } from './client-rules.js';

export type ClientChanges = Partial<ChangeableClient>;

/** A client secret's metadata. Times are in the API's format. */
export interface SecretDetails {
  readonly last_four: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
}

/** A client as its owner or an admin sees it. */
export interface ClientDetails extends WithApiTimes<
  Omit<OauthClient, 'id' | 'jwks' | 'secret_auth_method' | 'logo' | 'document_read_at' | 'pending_changes'>
> {
  readonly client_id: string;
  /** `none`: a public client. */
  readonly token_endpoint_auth_method: AuthMethod;
  /** Newest first, including expired secrets that still exist. */
  readonly secrets: readonly SecretDetails[];
  readonly has_logo: boolean;
  readonly review: ReviewState;
  /** The owner's changes that wait for an approval. */
  readonly pending_changes:
    (Omit<NonNullable<OauthClient['pending_changes']>, 'logo'> & { readonly has_logo?: boolean }) | null;
  readonly live_grants_count: number;
}

const DETAILS = `SELECT c.id AS client_id, c.name, c.type,
  COALESCE(c.secret_auth_method, CASE WHEN c.jwks IS NULL THEN 'none' ELSE 'private_key_jwt' END) AS token_endpoint_auth_method,
  c.profile, c.pkce, COALESCE((SELECT jsonb_agg(jsonb_build_object('last_four', s.last_four, 'created_at', api_time(s.created_at),
    'expires_at', api_time(s.expires_at), 'last_used_at', api_time(s.last_used_at)) ORDER BY s.id DESC)
    FROM oauth_client_secrets s WHERE s.client_id = c.id), '[]') AS secrets,
  c.redirect_uris, c.post_logout_redirect_uris, c.allowed_origins, c.scopes, c.client_uri, c.policy_uri,
  c.logo IS NOT NULL AS has_logo, c.id_token_signed_response_alg, c.backchannel_logout_uri,
  api_time(c.created_at) AS created_at, api_time(c.disabled_at) AS disabled_at, c.disabled_by_owner, c.owner_id,
  c.longest_access, ${REVIEW_STATE} AS review, api_time(c.applied_at) AS applied_at, api_time(c.approved_at) AS approved_at,
  c.application, c.rejection, c.pending_changes - 'logo' || CASE WHEN c.pending_changes ? 'logo'
    THEN jsonb_build_object('has_logo', c.pending_changes->>'logo' IS NOT NULL) ELSE '{}' END AS pending_changes,
  count(g.id) AS live_grants_count
FROM oauth_clients c LEFT JOIN oauth_grants g ON g.client_id = c.id AND g.expires_at > now()`;

export const MAX_OWN_CLIENTS = 10;

/** Length of a secret: 62^43 > 2^256. Form encoding (RFC 6749 §2.3.1), which some libraries omit, does not change base 62. */
const SECRET_LENGTH = 43;

/** Manages clients. With an `owner`, only that member's clients are visible. */
@Injectable()
export class ClientsService {
  readonly #secretHashes: SecretHashes;

  constructor(
    private readonly dataSource: DataSource,
    @Inject(Config) private readonly config: Pick<Config, 'production' | 'secrets'>,
  ) {
    this.#secretHashes = new SecretHashes(config.secrets, 'oauth_client_secrets');
  }

  /** @returns the client's id @throws ClientFault, LimitReached, TooManyChanges */
  async create(wanted: NewClient, within: EntityManager = this.dataSource.manager): Promise<string> {
    checkClient(wanted, this.config.production);
    const { actor, owner, id = randomUUID(), scopes = [...ALL_SCOPES], ...columns } = wanted;
    await this.#provideKeys(columns.id_token_signed_response_alg);
    await audited(within, async (manager) => {
      if (owner)
        await takeSlot(
          manager,
          owner,
          `SELECT count(*) >= ${MAX_OWN_CLIENTS} AS is_full FROM oauth_clients WHERE owner_id = $1`,
          `${MAX_OWN_CLIENTS} apps already`,
        );
      const client = { ...columns, jwks: storedKeysOf(columns), id, scopes, owner_id: owner?.userId ?? null };
      await manager.insert(OauthClient, client as Partial<OauthClient>);
      await recordEvent(manager, {
        type: 'client.created',
        actor,
        ...by(owner),
        clientId: id,
        details: { name: wanted.name, scopes, redirect_uris: wanted.redirect_uris },
      });
    });
    return id;
  }

  /** Lists the newest clients first. @param pending only apps that wait for a review */
  async list(owner?: Owner, id?: string, pending = false): Promise<ClientDetails[]> {
    const clients = await this.dataSource.query<ClientDetails[]>(
      `${DETAILS} WHERE ($1::bigint IS NULL OR c.owner_id = $1) AND ($2::text IS NULL OR c.id = $2)
  AND (NOT $3 OR c.applied_at IS NOT NULL) GROUP BY c.id ORDER BY c.created_at DESC, c.id`,
      [owner?.userId ?? null, id ?? null, pending],
    );
    return clients.map((client) => ({
      ...client,
      allowed_origins: allowedOriginsOf(client, client.token_endpoint_auth_method), // includes the default origins
    }));
  }

  async find(id: string, owner?: Owner): Promise<ClientDetails> {
    const [client] = await this.list(owner, id);
    if (!client) throw new UnknownClient(id);
    return client;
  }

  /** Updates a client. @returns changed columns and number of ended grants @throws UnknownClient, ClientFault, TooManyChanges */
  async update(
    id: string,
    change: (client: ChangeableClient) => ClientChanges,
    actor: NewAuthEvent['actor'],
    owner?: Owner,
  ): Promise<{ changed: string[]; grants: number }> {
    await this.#provideKeys(
      change(await readClient(this.dataSource.manager, id, owner, false)).id_token_signed_response_alg,
    );
    return audited(this.dataSource, async (manager) => {
      const live = await readClient(manager, id, owner);
      if (owner) await boundChanges(manager, owner.userId);
      const before = owner ? wantedClient(live) : live;
      const after = { ...before, ...change(before) };
      checkClient(after, this.config.production, before.name);
      const isOther = APPLIED_FOR.some((column) => isChanged(column, before, after));
      const pending_changes = owner && live.approved_at ? changesToReview(live, after) : live.pending_changes;
      const written = await writeClient(
        manager,
        live,
        {
          ...after,
          ...(owner && pending_changes ? withoutUnreviewed(live, after, pending_changes) : {}),
          pending_changes,
          applied_at: owner && isOther ? null : live.applied_at,
        },
        owner && 'client',
      );
      const { changed, lost, grants, saved } = written;
      if (changed.length === 0) return { changed, grants };
      await recordEvent(manager, {
        type: 'client.updated',
        actor,
        ...by(owner),
        clientId: id,
        details: {
          changed,
          redirect_uris: changed.includes('redirect_uris') ? saved.redirect_uris : undefined,
          scopes: changed.includes('scopes') ? saved.scopes : undefined,
          grants: lost.length === 0 ? undefined : grants,
        },
      });
      return { changed, grants };
    });
  }

  /** Creates missing RS256 keys, before the transaction, since generating an RSA key can take a second. */
  async #provideKeys(alg: SigningAlgorithm = 'ES256'): Promise<void> {
    if (alg !== 'ES256') await new SigningKeysService(this.dataSource, this.config).provide(alg);
  }

  /** Adds a secret. Limits the previous one to the overlap, and deletes older ones. @throws UnknownClient, TooManyChanges, OperatorError */
  async rotateSecret(
    id: string,
    { overlapSeconds, expiresInSeconds }: { overlapSeconds: number; expiresInSeconds: number | null },
    actor: NewAuthEvent['actor'],
    owner?: Owner,
    within: EntityManager = this.dataSource.manager,
  ): Promise<string> {
    return audited(within, async (manager) => {
      const client = await readClient(manager, id, owner);
      if (client.secret_auth_method === null)
        throw new OperatorError(
          `The client ${id} has no secret: \`pua clients update ${id} --auth client_secret_basic\` lets it authenticate with one`,
        );
      if (owner) await boundChanges(manager, owner.userId);
      const secret = CLIENT_SECRET_PREFIX + randomText(SECRET_LENGTH, BASE62);
      await manager.query(
        `DELETE FROM oauth_client_secrets WHERE client_id = $1 AND id <> (SELECT max(id) FROM oauth_client_secrets WHERE client_id = $1)`,
        [id],
      );
      await manager.query(
        `UPDATE oauth_client_secrets SET expires_at = LEAST(expires_at, now() + make_interval(secs => $2)) WHERE client_id = $1`,
        [id, overlapSeconds],
      );
      await manager.query(
        `INSERT INTO oauth_client_secrets (client_id, hash, pepper_id, last_four, expires_at)
VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))`,
        [id, ...Object.values(this.#secretHashes.store(secret)), expiresInSeconds],
      );
      // Servers cache clients with their secrets, and could reject the new secret without this.
      await manager.query(`SELECT announce_revocations('client', ARRAY[$1])`, [id]);
      await recordEvent(manager, {
        type: 'client.secret_rotated',
        actor,
        ...by(owner),
        clientId: id,
        details: { overlap_seconds: overlapSeconds },
      });
      return secret;
    });
  }

  /** Deletes a client and its grants; the audit log keeps its id. @returns number of deleted grants @throws UnknownClient */
  async delete(
    id: string,
    actor: NewAuthEvent['actor'],
    owner?: Owner,
    within: EntityManager = this.dataSource.manager,
  ): Promise<number> {
    return audited(within, async (manager) => {
      const client = await readClient(manager, id, owner);
      const { affected: grants } = await manager.delete(OauthGrant, { client_id: id });
      await manager.delete(OauthClient, { id });
      await recordEvent(manager, {
        type: 'client.deleted',
        actor,
        ...by(owner),
        clientId: id,
        details: { name: client.name, grants: grants! },
      });
      return grants!;
    });
  }

  /** Disables or enables a client. An owner can enable a client only if they disabled it. @returns whether anything changed */
  async setDisabled(
    id: string,
    disabled: boolean,
    actor: NewAuthEvent['actor'],
    owner?: Owner,
  ): Promise<boolean> {
    return audited(this.dataSource, async (manager) => {
      const { disabled_at, disabled_by_owner } = await readClient(manager, id, owner);
      const takesOver = disabled && disabled_by_owner && !owner;
      if ((disabled_at !== null) === disabled && !takesOver) return false;
      if (owner && !disabled) await boundChanges(manager, owner.userId);
      await manager.update(
        OauthClient,
        { id },
        {
          disabled_at: disabled ? () => 'COALESCE(disabled_at, now())' : null,
          disabled_by_owner: disabled && owner !== undefined,
        },
      );
      const type = disabled ? 'client.disabled' : 'client.enabled';
      await recordEvent(manager, { type, actor, ...by(owner), clientId: id });
      return true;
    });
  }
}
