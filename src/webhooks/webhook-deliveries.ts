import { by, type Owner } from '../auth/owner.js';
import type { DataSource, EntityManager } from 'typeorm';
import { audited, recordEvent, type AuditedTransaction, type NewAuthEvent } from '../audit/audit.js';
import { prepared } from '../database/postgres/data-source.js';
import { AHEAD, HORIZON, keyed } from '../database/sql.js';
import { LEASE_SECONDS, MAX_PER_ENDPOINT, waitAfter, type Attempt } from '../runtime/outbox.js';
import { concernedBy, kindFor, readScopeSql } from '../resources/resources.js';
import { IS_PENDING, TakenMessages } from './taken-messages.js';
import { TEST_TYPE, type Message } from './webhook-sender.js';

const MAX_DAYS_FAILING = 5;

/** Maximum changes and members per transaction; after a timeout, the server uses the next smaller slice. */
const SLICES = [
  { changes: 200, members: 2_000 },
  { changes: 20, members: 200 },
  { changes: 1, members: 20 },
  { changes: 1, members: 1 },
];
/** Error code of a statement that PostgreSQL canceled, for example after a timeout (appendix A). */
const STATEMENT_TIMEOUT = '57014';
/** Number of slices without a timeout after which the server tries the next larger size again. */
const ENOUGH_IN_TIME = 20;
/** SQL: whether the endpoint `e` is the platform's, so belongs to no app or key. */
const OF_PLATFORM = 'e.client_id IS NULL AND e.key_id IS NULL';

/** SQL: endpoints that may get messages about `members`, with scopes: of a valid key, or of an app with a live grant and token. */
const subscribersOf = (members: string) => `SELECT w.endpoint_id, w.user_id, w.scopes FROM (
    SELECT e.id AS endpoint_id, k.user_id, k.scopes FROM ${members} m JOIN api_keys k ON k.user_id = m.user_id
    JOIN webhook_endpoints e ON e.key_id = k.id
    WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
    UNION ALL
    SELECT e.id, g.user_id, string_to_array((SELECT string_agg(value, ' ') FROM jsonb_each_text(g.payload->'resources')), ' ')
    FROM ${members} m JOIN oauth_grants g ON g.user_id = m.user_id JOIN webhook_endpoints e ON e.client_id = g.client_id
    JOIN oauth_clients c ON c.id = g.client_id
    WHERE c.disabled_at IS NULL AND LEAST(g.expires_at, g.access_ends_at) > now()
      AND EXISTS (SELECT FROM oauth_tokens t WHERE t.grant_id = g.id AND t.expires_at > now()
        AND (t.consumed_at IS NULL OR t.model <> 'AuthorizationCode'))
  ) w JOIN users u ON u.id = w.user_id WHERE u.disabled_at IS NULL`;

/** SQL: types of messages that are sent even after the access has ended. */
const ENDS = `'access.ended', 'credential.ended'`;

/** SQL: condition and order of the due messages of an endpoint `e`. */
const IS_DUE = `d.endpoint_id = e.id AND d.status = 'pending' AND d.due_at <= now() ORDER BY d.due_at`;

/** Tells whether there are changes to process (`behind`) and messages to send (`due`). */
export const LOOK = `SELECT
  EXISTS (SELECT FROM webhook_endpoints WHERE disabled_at IS NULL) AND EXISTS (SELECT FROM change_places p
    WHERE p.name = 'told' AND (p.unfinished IS NOT NULL OR p.changed_in > ${AHEAD} OR EXISTS (SELECT FROM changes c
      WHERE (c.changed_in, c.sequence) > (p.changed_in, p.sequence) AND c.changed_in < ${HORIZON}))) AS behind,
  EXISTS (SELECT FROM endpoints_due()) AS due`;

/** Locks the position in the change log; returns no row if another instance has locked it. `ahead`: it comes from a restored dump. */
const LOCK_PLACE = `SELECT changed_in, sequence, changed_in > ${AHEAD} AS ahead FROM change_places
WHERE name = 'told' FOR NO KEY UPDATE SKIP LOCKED`;

/** Sets the position to {@link HORIZON}, so skips all earlier changes. */
export const BEGIN_HERE = `UPDATE change_places SET changed_in = ${HORIZON}, sequence = 0, unfinished = NULL
WHERE name = 'told'`;

/**
 * Creates messages about at most $4 members for apps and keys, and messages for the platform; advances the position ($1, $2). Reads all
 * unfinished changes, then new ones up to $3 in total, and chooses members round-robin among them. Creates all messages about a member
 * at once, to keep their order. For an unfinished change, `after` and `ahead` record the members that already have their messages.
 */
const FAN_OUT = `WITH unfinished AS MATERIALIZED (
  SELECT c.*, u.after, u.ahead FROM change_places p
  CROSS JOIN jsonb_to_recordset(p.unfinished) u (changed_in bigint, sequence bigint, after bigint, ahead bigint[])
  JOIN changes c ON c.changed_in = u.changed_in AND c.sequence = u.sequence WHERE p.name = 'told'
), next AS MATERIALIZED (
  SELECT * FROM changes WHERE (changed_in, sequence) > ($1::bigint, $2::bigint) AND changed_in < ${HORIZON}
  ORDER BY changed_in, sequence LIMIT GREATEST(0, $3::bigint - (SELECT count(*) FROM unfinished))
), batch AS MATERIALIZED (
  SELECT * FROM unfinished UNION ALL SELECT *, 0, '{}' FROM next
), found AS MATERIALIZED (
  SELECT b.sequence, c.user_id, row_number() OVER (PARTITION BY b.sequence ORDER BY c.user_id) AS turn
  FROM batch b CROSS JOIN LATERAL (
    SELECT s.user_id FROM (${concernedBy('(SELECT b.*)')}) s WHERE s.user_id > b.after AND s.user_id <> ALL (b.ahead)
    ORDER BY s.user_id LIMIT $4::integer + 1
  ) c
), members AS MATERIALIZED (
  SELECT user_id FROM found GROUP BY user_id ORDER BY min(turn), user_id LIMIT $4::integer
), remaining AS MATERIALIZED (
  SELECT f.sequence, count(*) > $4::integer AS has_more,
    COALESCE(min(f.user_id) FILTER (WHERE m.user_id IS NULL) - 1, max(f.user_id)) AS after
  FROM found f LEFT JOIN members m ON m.user_id = f.user_id
  GROUP BY f.sequence HAVING count(*) > $4::integer OR bool_or(m.user_id IS NULL)
), concerned AS MATERIALIZED (
  SELECT c.* FROM (
    SELECT f.sequence, f.user_id FROM found f JOIN members m ON m.user_id = f.user_id
    UNION SELECT r.sequence, m.user_id FROM remaining r CROSS JOIN members m WHERE r.has_more
  ) pair JOIN batch b ON b.sequence = pair.sequence AND pair.user_id > b.after AND pair.user_id <> ALL (b.ahead)
  CROSS JOIN LATERAL (SELECT * FROM (${concernedBy('(SELECT b.*)')}) s WHERE s.user_id = pair.user_id) c
), changed AS MATERIALIZED (
  SELECT DISTINCT ON (user_id, resource, id) * FROM concerned ORDER BY user_id, resource, id, changed_in DESC, sequence DESC
), subscribers AS MATERIALIZED (
  SELECT DISTINCT w.endpoint_id, w.user_id, scope FROM (${subscribersOf('members')}) w CROSS JOIN unnest(w.scopes) scope
), messages AS (
  SELECT w.endpoint_id, c.user_id, c.resource || '.' || ${kindFor('c.user_id', 'c.resource', 'c.id')} AS type, c.id, c.changed_at,
    c.changed_in, c.sequence
  FROM changed c JOIN subscribers w ON w.user_id = c.user_id AND w.scope = ${readScopeSql('c.resource')}
  UNION ALL
  -- The platform is notified of the item itself, not of each member who sees it.
  SELECT e.id, COALESCE(b.user_id, 0), b.resource || '.' || b.kind, b.id, b.changed_at, b.changed_in, b.sequence
  FROM next b JOIN webhook_endpoints e ON ${OF_PLATFORM} WHERE b.resource <> 'people'
), made AS (
  INSERT INTO webhook_deliveries (endpoint_id, user_id, type, thing_id, changed_at)
  SELECT m.endpoint_id, m.user_id, m.type, m.id, m.changed_at FROM messages m
  JOIN webhook_endpoints e ON e.id = m.endpoint_id AND e.disabled_at IS NULL AND m.type = ANY (e.types)
  ORDER BY m.changed_in, m.sequence, m.endpoint_id, m.user_id, m.type, m.id RETURNING 1
), last AS (
  SELECT changed_in, sequence FROM next UNION ALL SELECT $1, $2 ORDER BY changed_in DESC, sequence DESC LIMIT 1
), left_over AS (
  SELECT jsonb_agg(jsonb_build_object('changed_in', b.changed_in, 'sequence', b.sequence, 'after', r.after, 'ahead', ARRAY(
    SELECT unnest(b.ahead) UNION SELECT c.user_id FROM concerned c WHERE c.sequence = b.sequence AND c.user_id > r.after
  ))) AS unfinished
  FROM remaining r JOIN batch b ON b.sequence = r.sequence
), moved AS (
  UPDATE change_places p SET changed_in = last.changed_in, sequence = last.sequence, unfinished = left_over.unfinished
  FROM last, left_over WHERE p.name = 'told'
)
SELECT (SELECT count(*)::integer FROM made) AS made,
  (SELECT count(*) FROM next) = $3 OR (SELECT unfinished IS NOT NULL FROM left_over) AS behind`;

const MESSAGE = `d.sequence, replace(d.id::text, '-', '') AS id, d.endpoint_id, d.type, d.user_id, d.thing_id, d.changed_at, d.details,
  d.attempts, d.leased_until::text AS lease, e.url, e.secret, e.failing_since IS NOT NULL AS failing,
  CASE WHEN e.previous_secret_until > now() THEN e.previous_secret END AS previous_secret`;

const IS_LEASED = 'd.leased_until > now()';

/** If an endpoint has fewer due messages, the claim lists their members; otherwise it searches pending messages by member. */
const MAX_LISTED = 200;

/**
 * Locks endpoints with due messages for a claim; skips endpoints that other instances have locked. Disables sorts, so that the claim reads
 * messages in the order of an index: on a small table, PostgreSQL would keep a plan that sorts all waiting messages.
 */
const LOCK_READY = `SELECT e.id, set_config('enable_sort', 'off', true)
FROM endpoints_due() due JOIN webhook_endpoints e ON e.id = due.endpoint_id WHERE e.disabled_at IS NULL
ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED`;

/**
 * Claims at most $3 due messages of the endpoints $1 for $4 seconds, at most $2 in progress per endpoint (one if it is failing). Claims
 * one message per member at a time, in order; a message that failed twice does not block the next. Shares capacity round-robin: each
 * endpoint continues after its last member ($5), and endpoints with fewer messages in progress come first. Messages that the credential
 * may no longer see get the status `withheld`. Each order, and BETWEEN, needs the index of few rows: a plan made for a small table could
 * otherwise read all the endpoint's messages.
 */
export const CLAIM = `WITH chosen AS MATERIALIZED (
  SELECT next.sequence, next.turn, e.id AS endpoint_id
  FROM unnest($1::text[], $5::bigint[]) ready (id, last) JOIN webhook_endpoints e ON e.id = ready.id
  CROSS JOIN LATERAL (
    SELECT count(*) AS count, array_agg(leased.user_id) AS members FROM (
      SELECT d.user_id FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND ${IS_LEASED} ORDER BY d.leased_until
    ) leased
  ) in_progress
  CROSS JOIN LATERAL (
    -- If little is due, this reads nothing else, regardless of the number of waiting messages.
    SELECT count(*) < ${MAX_LISTED} AS is_little, array_agg(listed.user_id) AS members FROM (
      SELECT d.user_id FROM webhook_deliveries d WHERE ${IS_DUE} LIMIT ${MAX_LISTED}
    ) listed
  ) due
  CROSS JOIN LATERAL (
    -- First members after the last one, then members up to it.
    WITH RECURSIVE members (user_id, lap) AS (
      SELECT ready.last, 0
      UNION ALL
      SELECT COALESCE(following.user_id, -1), CASE WHEN following.user_id IS NULL THEN 2 ELSE GREATEST(m.lap, 1) END
      FROM members m LEFT JOIN LATERAL (
        SELECT min(member) AS user_id FROM unnest(due.members) member WHERE member > m.user_id HAVING due.is_little
        UNION ALL
        (SELECT d.user_id FROM webhook_deliveries d
          WHERE NOT due.is_little AND d.endpoint_id = e.id AND d.status = 'pending' AND d.user_id > m.user_id AND d.due_at <= now()
          ORDER BY d.user_id LIMIT 1)
      ) following ON true
      WHERE m.lap < 2 OR following.user_id <= ready.last
    )
    SELECT first.sequence, in_progress.count + row_number() OVER () AS turn FROM members m CROSS JOIN LATERAL (
      (SELECT d.sequence FROM webhook_deliveries d
        WHERE m.user_id = 0 AND d.endpoint_id = e.id AND d.status = 'pending' AND d.user_id = 0 AND d.due_at <= now()
          AND ${IS_LEASED} IS NOT TRUE
        ORDER BY d.due_at, d.sequence LIMIT $2)
      UNION ALL
      SELECT f.sequence FROM (SELECT d.sequence, d.due_at FROM webhook_deliveries d
        WHERE d.endpoint_id = e.id AND d.status = 'pending' AND d.user_id BETWEEN m.user_id AND m.user_id
          AND (d.attempts < 2 OR d.due_at <= now())
        ORDER BY d.user_id, d.sequence LIMIT 1) f
      WHERE m.user_id > 0 AND f.due_at <= now() AND m.user_id = ANY (in_progress.members) IS NOT TRUE
    ) first WHERE m.lap > 0
    LIMIT GREATEST(0, CASE WHEN e.failing_since IS NULL THEN $2::integer ELSE 1 END - in_progress.count)
  ) next ORDER BY next.turn, next.sequence LIMIT $3
), judged AS MATERIALIZED (
  SELECT d.sequence, c.turn, c.endpoint_id, d.type IN ('${TEST_TYPE}', ${ENDS}) OR ${OF_PLATFORM} OR EXISTS (
    SELECT FROM (${subscribersOf('(SELECT d.user_id) ')}) w
    WHERE w.endpoint_id = e.id AND (d.details IS NOT NULL OR ${readScopeSql(`split_part(d.type, '.', 1)`)} = ANY (w.scopes))) AS may_know
  FROM chosen c JOIN ${keyed('webhook_deliveries d', 'd.sequence = c.sequence')}
  JOIN ${keyed('webhook_endpoints e', 'e.id = c.endpoint_id')}
)
UPDATE webhook_deliveries d SET leased_until = CASE WHEN j.may_know THEN now() + make_interval(secs => $4) END,
  status = CASE WHEN j.may_know THEN 'pending' ELSE 'withheld' END, ended_at = CASE WHEN NOT j.may_know THEN now() END
FROM judged j, webhook_endpoints e
WHERE d.sequence = j.sequence AND d.sequence = ANY (ARRAY(SELECT sequence FROM judged)) AND e.id = j.endpoint_id
  AND ${IS_PENDING} AND ${IS_LEASED} IS NOT TRUE
RETURNING ${MESSAGE}, NOT j.may_know AS withheld, j.turn`;

/** Creates a message of the type $2 for the endpoint $1, and claims it for $3 seconds. */
export const MAKE_TEST = `WITH d AS (
  INSERT INTO webhook_deliveries (endpoint_id, type, user_id, thing_id, changed_at, leased_until)
  VALUES ($1, $2, 0, 0, now(), now() + make_interval(secs => $3)) RETURNING *)
SELECT ${MESSAGE} FROM d JOIN webhook_endpoints e ON e.id = d.endpoint_id`;

export interface Outcome {
  readonly status: 'delivered' | 'pending' | 'dead';
  /** Seconds since the change. */
  readonly delaySeconds: number;
  /** Why the attempt disabled the endpoint; undefined if it did not. */
  readonly disabledBecause: 'failing' | 'gone' | undefined;
}

interface Claimed extends Message {
  readonly withheld: boolean;
  /** The message's rank among the endpoint's messages in progress. */
  readonly turn: number;
}

export class WebhookDeliveries {
  /** Index into `slices`, and number of slices without a timeout since the index last changed. */
  #size = 0;
  #inTime = 0;
  /** The member of the last message that this instance claimed for each endpoint. */
  readonly #last = new Map<string, number>();

  readonly #taken: TakenMessages;

  constructor(
    readonly dataSource: DataSource,
    private readonly slices = SLICES,
  ) {
    this.#taken = new TakenMessages(dataSource);
  }

  /**
   * Creates the next messages. @returns their number (0 if another instance is creating messages), and whether changes remain
   */
  async fanOut(): Promise<{ made: number; behind: boolean }> {
    let told;
    try {
      told = await this.#tell(this.slices[this.#size]!);
    } catch (error) {
      if ((error as { code?: unknown }).code !== STATEMENT_TIMEOUT || this.#size === this.slices.length - 1)
        throw error;
      this.#size++;
      this.#inTime = 0;
      return { made: 0, behind: true };
    }
    if (this.#size > 0 && ++this.#inTime === ENOUGH_IN_TIME) {
      this.#size--;
      this.#inTime = 0;
    }
    return told;
  }

  #tell({ changes, members }: (typeof SLICES)[number]): Promise<{ made: number; behind: boolean }> {
    return this.dataSource.transaction(async (manager) => {
      const [place] =
        await manager.query<{ changed_in: number; sequence: number; ahead: boolean }[]>(LOCK_PLACE);
      if (place && !place.ahead) {
        const values = [place.changed_in, place.sequence, changes, members];
        const [told] = await manager.query<{ made: number; behind: boolean }[]>(FAN_OUT, values);
        return told!;
      }
      if (place) await manager.query(BEGIN_HERE);
      return { made: 0, behind: false };
    });
  }

  /** Claims due messages. @param most maximum number @returns `withheld`: number of messages that the credential may no longer see */
  async claim(most: number): Promise<{ messages: Message[]; withheld: number }> {
    const rows = await this.dataSource.transaction(async (manager) => {
      // Locks the endpoints, so that each claim sees the results of the previous one.
      const ready = await prepared<{ id: string }>(manager, LOCK_READY, []);
      if (ready.length === 0) return [];
      const ids = ready.map(({ id }) => id);
      const last = ids.map((id) => this.#last.get(id) ?? -1);
      const values = [ids, MAX_PER_ENDPOINT, most, LEASE_SECONDS, last];
      return prepared<Claimed>(manager, CLAIM, values);
    });
    rows.sort((one, other) => one.turn - other.turn);
    for (const { endpoint_id: id, user_id: member } of rows) this.#last.set(id, member);
    const messages = rows.filter(({ withheld }) => !withheld);
    return { messages, withheld: rows.length - messages.length };
  }

  /** Records an attempt. @returns undefined if the message is no longer pending or, after a failure, if its claim has changed */
  async finish(message: Message, attempt: Attempt): Promise<Outcome | undefined> {
    if (!attempt.taken) return this.#failed(message, attempt);
    // Locks the endpoint before the message, as claims do.
    if (message.failing)
      await this.dataSource.query('UPDATE webhook_endpoints SET failing_since = NULL WHERE id = $1', [
        message.endpoint_id,
      ]);
    const delaySeconds = await this.#taken.record(message.sequence, attempt);
    return delaySeconds === undefined
      ? undefined
      : { status: 'delivered', delaySeconds, disabledBecause: undefined };
  }

  /** Releases the message of an aborted attempt: any instance may send it at once. */
  async release({ sequence, lease }: Message): Promise<void> {
    await this.dataSource.query(
      `UPDATE webhook_deliveries SET leased_until = NULL WHERE sequence = $1 AND leased_until = $2::timestamptz`,
      [sequence, lease],
    );
  }

  async #failed(message: Message, attempt: Attempt): Promise<Outcome | undefined> {
    const isTest = message.type === TEST_TYPE;
    const { status, error, seconds, gone } = attempt;
    const wait = isTest ? undefined : waitAfter(message.attempts, attempt);
    return audited(this.dataSource, async (manager) => {
      const failsTooLong = !isTest && (await noteFailure(manager, message.endpoint_id));
      const because = isTest ? undefined : gone ? 'gone' : failsTooLong ? 'failing' : undefined;
      const [rows] = await manager.query<[{ status: 'pending' | 'dead'; delay: number }[], number]>(
        `UPDATE webhook_deliveries d SET attempts = attempts + 1, attempted_at = now(), response_status = $3, error = $4, duration_ms = $7,
  leased_until = NULL, due_at = now() + make_interval(secs => $5), status = CASE WHEN $6 THEN 'dead' ELSE 'pending' END,
  ended_at = CASE WHEN $6 THEN now() END
WHERE sequence = $1 AND ${IS_PENDING} AND leased_until = $2::timestamptz
RETURNING status, EXTRACT(epoch FROM now() - changed_at)::float8 AS delay`,
        [
          message.sequence,
          message.lease,
          status,
          error,
          wait ?? 0,
          wait === undefined || because !== undefined,
          Math.round(seconds * 1_000),
        ],
      );
      const isDisabled = because && (await switchOff(manager, message.endpoint_id, because, 'system'));
      const disabledBecause = isDisabled ? because : undefined;
      return rows[0] && { status: rows[0].status, delaySeconds: rows[0].delay, disabledBecause };
    });
  }
}

/** Records that the endpoint is failing. @returns whether it has failed for so long that it must be disabled */
async function noteFailure(manager: EntityManager, endpointId: string): Promise<boolean> {
  const [rows] = await manager.query<[{ too_long: boolean }[], number]>(
    `UPDATE webhook_endpoints SET failing_since = COALESCE(failing_since, now())
WHERE id = $1 AND disabled_at IS NULL RETURNING failing_since <= now() - make_interval(days => $2) AS too_long`,
    [endpointId, MAX_DAYS_FAILING],
  );
  return rows[0]?.too_long === true;
}

/** Disables an endpoint permanently. @returns false if it is already disabled or does not exist */
export async function switchOff(
  manager: AuditedTransaction,
  endpointId: string,
  reason: 'admin' | 'failing' | 'gone',
  actor: NewAuthEvent['actor'],
  owner?: Owner,
): Promise<boolean> {
  const [[endpoint]] = await manager.query<[{ client_id: string | null; key_id: string | null }[], number]>(
    `UPDATE webhook_endpoints SET disabled_at = now(), disabled_because = $2 WHERE id = $1 AND disabled_at IS NULL
RETURNING client_id, key_id`,
    [endpointId, reason],
  );
  if (!endpoint) return false;
  await manager.query(
    `UPDATE webhook_deliveries SET status = 'dead', ended_at = now(), leased_until = NULL WHERE endpoint_id = $1 AND status = 'pending'`,
    [endpointId],
  );
  const { client_id: clientId, key_id: keyId } = endpoint;
  const details = { webhook: endpointId, reason };
  await recordEvent(manager, { type: 'webhook.disabled', actor, ...by(owner), clientId, keyId, details });
  return true;
}
