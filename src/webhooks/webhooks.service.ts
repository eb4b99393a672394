import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { audited, recordEvent, type NewAuthEvent } from '../audit/audit.js';
import { by, boundChanges, takeSlot, type Owner } from '../auth/owner.js';
import { Config } from '../config/config.js';
import { BASE62, randomText } from '../crypto/random.js';
import { makeWebhookSecret } from '../crypto/webhook-signatures.js';
import type { WebhookDelivery, WebhookEndpoint } from '../database/schema/entities/changes/webhook.entity.js';
import { LEASE_SECONDS, type Attempt } from '../runtime/outbox.js';
import { CHANGE_KINDS, readScope, RESOURCES } from '../resources/resources.js';
import { OperatorError } from '../values/operator-error.js';
import { findEndpointFault } from '../values/endpoint-urls.js';
import { BEGIN_HERE, MAKE_TEST, switchOff, WebhookDeliveries } from './webhook-deliveries.js';
import { TEST_TYPE, WebhookSecrets, type WebhookSender, type Message } from './webhook-sender.js';

/** Types of messages about changes: `<resource>.<kind>`, except profile.removed: members always see their own profiles. */
export const WEBHOOK_TYPES = RESOURCES.flatMap((resource) =>
  CHANGE_KINDS.map((kind) => `${resource}.${kind}`),
).filter((type) => type !== 'profile.removed');

export const MAX_OWN_WEBHOOKS = 5;

/** Types of messages about the access of an app, or about a key. */
export const CREDENTIAL_TYPES: Readonly<Record<'client' | 'key', readonly string[]>> = {
  client: ['access.changed', 'access.ending', 'access.ended'],
  key: ['credential.ending', 'credential.ended'],
};

export const ALL_TYPES: readonly string[] = [
  ...WEBHOOK_TYPES,
  ...CREDENTIAL_TYPES.client,
  ...CREDENTIAL_TYPES.key,
];

/** Lists the types that an app or key with these scopes may receive. */
export function typesFor(scopes: readonly string[], kind: keyof typeof CREDENTIAL_TYPES): string[] {
  const changes = WEBHOOK_TYPES.filter((type) => scopes.includes(scopeOf(type)));
  return [...changes, ...CREDENTIAL_TYPES[kind]];
}

const scopeOf = (type: string) => readScope(type.split('.')[0]!);

const SHOWN_DELIVERIES = 20;

/** SQL: whether the app $2 or key $3 of the member $1 has the maximum number of endpoints. */
const IS_FULL = `SELECT count(*) >= ${MAX_OWN_WEBHOOKS} AS is_full FROM webhook_endpoints
WHERE $1::bigint IS NOT NULL AND (client_id = $2 OR key_id = $3)`;

/** Makes all dead messages of the endpoint $1, or its dead or delivered message $3, due again, unless their type is $2. */
const REDELIVER = `UPDATE webhook_deliveries SET status = 'pending', attempts = 0, due_at = now(), ended_at = NULL, leased_until = NULL
WHERE endpoint_id = $1 AND type <> $2 AND CASE WHEN $3::uuid IS NULL THEN status = 'dead'
  ELSE id = $3 AND status IN ('dead', 'delivered') END`;

type Actor = NewAuthEvent['actor'];

interface NewWebhook {
  readonly url: string;
  readonly types: readonly string[];
  /** The app or key that the endpoint belongs to; without either, it belongs to the platform. */
  readonly clientId?: string | null | undefined;
  readonly keyId?: string | null | undefined;
  readonly actor: Actor;
  readonly owner?: Owner;
}

/** An endpoint without its secret; times are in the API's format. */
export interface WebhookDetails extends Pick<
  WebhookEndpoint,
  'id' | 'url' | 'types' | 'client_id' | 'key_id' | 'disabled_because'
> {
  /** `no_access`: the client or key is no longer valid; `failing`: messages have failed since `failing_since`. */
  readonly status: 'active' | 'failing' | 'no_access' | 'disabled';
  readonly created_at: string;
  /** Time until which messages have two signatures. */
  readonly previous_secret_until: string | null;
  readonly failing_since: string | null;
  readonly disabled_at: string | null;
  readonly pending_count: number;
}

/** A message of an endpoint; times are in the API's format. */
export interface DeliveryDetails extends Pick<
  WebhookDelivery,
  'type' | 'status' | 'attempts' | 'response_status' | 'error' | 'duration_ms'
> {
  /** Value of the `webhook-id` header. */
  readonly id: string;
  /** null if the message is not about a single member. */
  readonly member_id: number | null;
  readonly attempted_at: string | null;
  /** Only for a pending message. */
  readonly next_attempt_at: string | null;
  readonly changed_at: string;
}

const DETAILS = `SELECT e.id, CASE WHEN e.disabled_at IS NOT NULL THEN 'disabled'
    WHEN c.disabled_at IS NOT NULL OR k.revoked_at IS NOT NULL OR k.expires_at <= now() THEN 'no_access'
    WHEN e.failing_since IS NOT NULL THEN 'failing' ELSE 'active' END AS status,
  e.url, e.types, e.client_id, e.key_id, api_time(e.created_at) AS created_at,
  CASE WHEN e.previous_secret_until > now() THEN api_time(e.previous_secret_until) END AS previous_secret_until,
  api_time(e.failing_since) AS failing_since, api_time(e.disabled_at) AS disabled_at, e.disabled_because,
  (SELECT count(*) FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'pending') AS pending_count
FROM webhook_endpoints e LEFT JOIN oauth_clients c ON c.id = e.client_id LEFT JOIN api_keys k ON k.id = e.key_id`;

/** SQL: whether the endpoint `e` belongs to an app or self-issued key of the member `owner`; true if `owner` is null, as for an admin. */
const isSeenBy = (owner: string) => `(${owner}::bigint IS NULL
  OR EXISTS (SELECT FROM oauth_clients own WHERE own.id = e.client_id AND own.owner_id = ${owner})
  OR EXISTS (SELECT FROM api_keys own WHERE own.id = e.key_id AND own.user_id = ${owner} AND own.self_issued))`;

const DELETE = `DELETE FROM webhook_endpoints e WHERE e.id = $1 AND ${isSeenBy('$2')} RETURNING client_id, key_id`;

/** Queues a test message of the type $3 for the active endpoint $1 of the member $2. */
const QUEUE_TEST = `WITH e AS (SELECT id, client_id, key_id FROM webhook_endpoints e
  WHERE e.id = $1 AND e.disabled_at IS NULL AND ${isSeenBy('$2')} FOR KEY SHARE
), d AS (INSERT INTO webhook_deliveries (endpoint_id, type, user_id, thing_id, changed_at)
  SELECT id, $3, 0, 0, now() FROM e)
SELECT client_id, key_id FROM e`;

interface Credential {
  readonly client_id: string | null;
  readonly key_id: string | null;
}

const DELIVERIES = `SELECT 'msg_' || replace(d.id::text, '-', '') AS id, d.type, NULLIF(d.user_id, 0) AS member_id, d.status, d.attempts,
  api_time(d.attempted_at) AS attempted_at, d.response_status, d.error, d.duration_ms,
  CASE WHEN d.status = 'pending' THEN api_time(d.due_at) END AS next_attempt_at, api_time(d.changed_at) AS changed_at
FROM webhook_endpoints e JOIN webhook_deliveries d ON d.endpoint_id = e.id WHERE e.id = $1 AND ${isSeenBy('$2')}
ORDER BY d.sequence DESC LIMIT ${SHOWN_DELIVERIES}`;

/** No message or endpoint with this id exists, or the caller may not see it. */
export class UnknownMessage extends OperatorError {
  constructor(id: string) {
    super(`There is no message ${id}: \`pua webhooks show\` lists the last messages of an endpoint`);
  }
}

@Injectable()
export class WebhooksService {
  readonly #secrets: WebhookSecrets;

  constructor(
    private readonly dataSource: DataSource,
    private readonly config: Config,
  ) {
    this.#secrets = new WebhookSecrets(config);
  }

  /** Registers an endpoint. @returns its id and secret @throws OperatorError, LimitReached, TooManyChanges */
  async create(
    { url, types, clientId = null, keyId = null, actor, owner }: NewWebhook,
    within: DataSource | EntityManager = this.dataSource,
  ): Promise<{ id: string; secret: string }> {
    const fault = findEndpointFault(url, this.config.production);
    if (fault !== undefined) throw new OperatorError(fault);
    const { client, key } = CREDENTIAL_TYPES;
    const allowed = [...WEBHOOK_TYPES, ...(clientId !== null ? client : keyId !== null ? key : [])];
    const foreign = types.find((type) => !allowed.includes(type));
    if (foreign !== undefined)
      throw new OperatorError(
        `The type ${foreign} is for webhooks of ${client.includes(foreign) ? 'an app: use --client' : 'an API key: use --key'}`,
      );
    const id = `wh_${randomText(16, BASE62)}`;
    const secret = makeWebhookSecret();
    await audited(within, async (manager) => {
      if (owner)
        await takeSlot(manager, owner, IS_FULL, `${MAX_OWN_WEBHOOKS} webhooks for it`, clientId, keyId);
      if (clientId !== null || keyId !== null) await checkScopes(manager, types, clientId, keyId);
      // While no endpoint is active, no instance advances the position: the first endpoint must not get the changes of that time.
      await manager.query(`SELECT FROM change_places WHERE name = 'told' FOR NO KEY UPDATE`);
      const told = await manager.query<unknown[]>(
        'SELECT FROM webhook_endpoints WHERE disabled_at IS NULL LIMIT 1',
      );
      if (told.length === 0) await manager.query(BEGIN_HERE);
      await manager.query(
        'INSERT INTO webhook_endpoints (id, url, types, client_id, key_id, secret) VALUES ($1, $2, $3, $4, $5, $6)',
        [id, url, types, clientId, keyId, this.#secrets.seal(id, secret)],
      );
      const details = { webhook: id, types };
      await recordEvent(manager, { type: 'webhook.created', actor, ...by(owner), clientId, keyId, details });
    });
    return { id, secret };
  }

  /** Lists endpoints, newest first. @param appId limits the list to an app or key @param owner limits it to the member's apps and keys */
  list(appId: string | null = null, owner?: Owner): Promise<WebhookDetails[]> {
    return this.dataSource.query<WebhookDetails[]>(
      `${DETAILS} WHERE ($1::text IS NULL OR $1 IN (e.client_id, e.key_id)) AND ${isSeenBy('$2')}
ORDER BY e.created_at DESC, e.id`,
      [appId, owner?.userId ?? null],
    );
  }

  async find(id: string, database: DataSource | EntityManager = this.dataSource): Promise<WebhookDetails> {
    const [found] = await database.query<WebhookDetails[]>(`${DETAILS} WHERE e.id = $1`, [id]);
    if (!found) throw new OperatorError(`There is no webhook ${id}: \`pua webhooks list\` shows all`);
    return found;
  }

  /** Lists the endpoint's last 20 messages, newest first. @param owner the member whose app or key must own the endpoint */
  deliveries(id: string, owner?: Owner): Promise<DeliveryDetails[]> {
    return this.dataSource.query<DeliveryDetails[]>(DELIVERIES, [id, owner?.userId ?? null]);
  }

  /** Replaces the secret; the old one also signs until the overlap ends. @throws OperatorError if it is not active, TooManyChanges */
  async rotate(
    id: string,
    overlapSeconds: number,
    actor: Actor,
    owner?: Owner,
    within: DataSource | EntityManager = this.dataSource,
  ): Promise<string> {
    const secret = makeWebhookSecret();
    await audited(within, async (manager) => {
      if (owner) await boundChanges(manager, owner.userId);
      const [endpoint] = await manager.query<({ secret: Buffer } & Credential)[]>(
        `SELECT e.secret, e.client_id, e.key_id FROM webhook_endpoints e
WHERE e.id = $1 AND e.disabled_at IS NULL AND ${isSeenBy('$2')} FOR NO KEY UPDATE`,
        [id, owner?.userId ?? null],
      );
      if (!endpoint) throw notLive(await this.find(id, manager));
      const { secret: stored, client_id: clientId, key_id: keyId } = endpoint;
      const [before] = this.#secrets.open({ endpoint_id: id, secret: stored, previous_secret: null });
      const previous = overlapSeconds > 0 ? this.#secrets.seal(id, before!, 'previous_secret') : null;
      await manager.query(
        `UPDATE webhook_endpoints SET secret = $2, previous_secret = $3,
  previous_secret_until = CASE WHEN $3::bytea IS NOT NULL THEN now() + make_interval(secs => $4) END WHERE id = $1`,
        [id, this.#secrets.seal(id, secret), previous, overlapSeconds],
      );
      const details = { webhook: id, overlap_seconds: overlapSeconds };
      await recordEvent(manager, { type: 'webhook.rotated', actor, ...by(owner), clientId, keyId, details });
    });
    return secret;
  }

  /** Disables an endpoint permanently. @returns false if it was already disabled @throws OperatorError if it does not exist */
  async disable(id: string, actor: Actor, owner?: Owner): Promise<boolean> {
    return audited(this.dataSource, async (manager) => {
      if (await switchOff(manager, id, 'admin', actor, owner)) return true;
      await this.find(id, manager);
      return false;
    });
  }

  /** Deletes an endpoint of a member's app or key, with its messages. @returns false if the member has no such endpoint */
  async delete(id: string, owner: Owner, within: EntityManager): Promise<boolean> {
    return audited(within, async (manager) => {
      const [[deleted]] = await manager.query<[Credential[], number]>(DELETE, [id, owner.userId]);
      if (!deleted) return false;
      await recordEvent(manager, { type: 'webhook.deleted', ...ofOwner(owner, deleted, id) });
      return true;
    });
  }

  /** Queues a test message to an app's or key's endpoint. @returns false if the owner has no such live endpoint @throws TooManyChanges */
  async queueTest(id: string, owner: Owner, within: EntityManager): Promise<boolean> {
    return audited(within, async (manager) => {
      await boundChanges(manager, owner.userId);
      const [tested] = await manager.query<Credential[]>(QUEUE_TEST, [id, owner.userId, TEST_TYPE]);
      if (!tested) return false;
      await recordEvent(manager, { type: 'webhook.tested', ...ofOwner(owner, tested, id) });
      return true;
    });
  }

  /** Resends a message (`msg_…`) or an endpoint's dead messages. @returns how many @throws UnknownMessage, TooManyChanges, OperatorError */
  async redeliver(
    id: string,
    actor: Actor,
    owner?: Owner,
    within: DataSource | EntityManager = this.dataSource,
  ): Promise<number> {
    const message = /^msg_([0-9a-f]{32})$/.exec(id)?.[1] ?? null;
    return audited(within, async (manager) => {
      const [found] = await manager.query<{ id: string }[]>(
        `SELECT e.id FROM webhook_endpoints e WHERE ${isSeenBy('$2')} AND ${
          message === null
            ? 'e.id = $1'
            : 'e.id = (SELECT d.endpoint_id FROM webhook_deliveries d WHERE d.id = $1::uuid)'
        }`,
        [message ?? id, owner?.userId ?? null],
      );
      if (!found && (message !== null || owner)) throw new UnknownMessage(id);
      const endpoint = await this.find(found?.id ?? id, manager);
      if (endpoint.status === 'disabled') throw notLive(endpoint);
      if (owner) await boundChanges(manager, owner.userId);
      const values = [endpoint.id, TEST_TYPE, message];
      const [, messages] = await manager.query<[unknown, number]>(REDELIVER, values);
      if (messages > 0)
        await recordEvent(manager, {
          type: 'webhook.redelivered',
          actor,
          ...by(owner),
          clientId: endpoint.client_id,
          keyId: endpoint.key_id,
          details: { webhook: endpoint.id, messages },
        });
      return messages;
    });
  }

  /** Sends one test message from this process. @throws OperatorError if there is no such active endpoint */
  async test(id: string, sender: WebhookSender): Promise<Attempt> {
    const endpoint = await this.find(id);
    if (endpoint.status === 'disabled') throw notLive(endpoint);
    const values = [id, TEST_TYPE, LEASE_SECONDS];
    const [message] = await this.dataSource.query<Message[]>(MAKE_TEST, values);
    const attempt = await sender.send(message!);
    // A test must not change whether the endpoint counts as failing.
    await new WebhookDeliveries(this.dataSource).finish({ ...message!, failing: false }, attempt);
    return attempt;
  }
}

const ofOwner = (owner: Owner, { client_id: clientId, key_id: keyId }: Credential, webhook: string) =>
  ({ actor: 'user', ...by(owner), clientId, keyId, details: { webhook } }) as const;

function notLive({ id, disabled_at }: WebhookDetails): OperatorError {
  return new OperatorError(`The webhook ${id} was disabled at ${disabled_at} UTC: create a new one`);
}

/** @throws OperatorError if the client or member's key does not exist, is not valid, or lacks a scope for one of the types */
async function checkScopes(
  manager: EntityManager,
  types: readonly string[],
  clientId: string | null,
  keyId: string | null,
): Promise<void> {
  const [found] = await manager.query<{ scopes: string[]; of_platform: boolean; live: boolean }[]>(
    clientId !== null
      ? 'SELECT scopes, false AS of_platform, disabled_at IS NULL AS live FROM oauth_clients WHERE id = $1'
      : `SELECT scopes, user_id IS NULL AS of_platform, revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AS live
FROM api_keys WHERE id = $1`,
    [clientId ?? keyId],
  );
  const name = clientId !== null ? `client ${clientId}` : `key ${keyId}`;
  if (!found) throw new OperatorError(`There is no ${name}: check the id`);
  if (!found.live)
    throw new OperatorError(`The ${name} is ${clientId !== null ? 'disabled' : 'revoked or expired'}`);
  if (found.of_platform)
    throw new OperatorError(`The ${name} is a platform key without access to a member: use --platform`);
  const needed = new Set(types.filter((type) => WEBHOOK_TYPES.includes(type)).map(scopeOf));
  const missing = [...needed].filter((scope) => !found.scopes.includes(scope));
  if (missing.length > 0)
    throw new OperatorError(`The ${name} lacks the scopes that these types require: ${missing.join(', ')}`);
}
