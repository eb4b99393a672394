import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import type { WithApiTimes } from '../../audit/audit-log.js';
import { Config } from '../../config/config.js';
import { TokenKeys } from '../../crypto/hmac.js';
import { Database } from '../../database/database.js';
import type { DeveloperRequest } from '../../database/schema/entities/credentials/auth-event.entity.js';
import { Logger } from '../../runtime/logger.js';
import type { DevelopedApp } from '../../http/pipeline/request-context.js';
import { namedKeyId } from '../api-keys/api-key-format.js';
import { findOpaqueSecret } from '../../values/secret-forms.js';
import { APPS, developedUse, type DevelopedUse } from './developed-use.js';
import { writeGoodRows } from './usage-tally.js';

/** Maximum requests kept per app, in memory and in the database. */
export const MAX_KEPT = 100;
const HOUR_MS = 3_600_000;
/** Maximum apps per flush that only unauthenticated requests name, since anyone can send any app's id. */
const MAX_UNPROVEN = 200;

/** The app, key or token that a request names; for a token, `id` lists its possible storage keys in hex. */
type Named = DevelopedApp | { readonly kind: 'token'; readonly id: string };

/** A request as its developer sees it: without member data and secrets. */
export interface ShownRequest extends WithApiTimes<Omit<DeveloperRequest, 'id' | 'client_id' | 'key_id'>> {
  readonly app_name: string;
}

interface DeveloperRequestRow extends Omit<ShownRequest, 'occurred_at' | 'app_name' | 'duration_ms'> {
  /** Time of the start, by `process.hrtime`. */
  readonly startedAt: bigint;
}

/** Requests of one app since the last flush: the latest requests, and counts per kind and hour. */
interface Gathered {
  readonly app: Named;
  readonly rows: object[];
  readonly counts: Map<string, { readonly requests: number }>;
}

/** Keeps the last requests of self-made apps and keys, including rejected requests. */
@Injectable()
export class DeveloperRequests {
  readonly #enabled: boolean;
  #gathered = new Map<string, Gathered>();
  #unproven = 0;
  #written = Promise.resolve();

  constructor(
    config: Config,
    private readonly database: Database,
    private readonly logger: Logger,
    private readonly tokenKeys: TokenKeys,
  ) {
    this.#enabled = config.developerConsole;
  }

  /** Records a request of a known app, or a rejected request whose headers name an app. */
  finished(request: Request, status: number): void {
    if (!this.#enabled) return;
    const { context } = request;
    const proven = context.developedApp;
    const app = proven ?? (status < 400 ? undefined : this.#namedBy(request));
    if (app === undefined) return;
    this.record(
      app,
      {
        startedAt: context.startedAt,
        method: request.method,
        route: context.route ?? (request.route as { path: string } | undefined)?.path ?? '',
        status,
        error: context.problem ?? null,
        reason: context.refusal ?? null,
        parameter: plain(context.concerns),
        value: null,
        error_id: status < 400 ? null : context.id,
      },
      proven !== undefined,
    );
  }

  /** @param proven whether the app is known to exist and to belong to a member; otherwise the database checks */
  record(app: Named, { startedAt, error_id, ...row }: DeveloperRequestRow, proven: boolean): void {
    if (!this.#enabled) return;
    const name = `${app.kind} ${app.id}`;
    let gathered = this.#gathered.get(name);
    if (!gathered) {
      if (!proven && ++this.#unproven > MAX_UNPROVEN) return;
      this.#gathered.set(name, (gathered = { app, rows: [], counts: new Map() }));
    }
    const { rows, counts } = gathered;
    const now = Date.now();
    rows.push({
      ...row,
      error_id,
      occurred_at: new Date(now),
      duration_ms: Number((process.hrtime.bigint() - startedAt) / 1_000_000n),
      requests: 0,
    });
    if (rows.length > MAX_KEPT) rows.shift();
    const { method, route, status, error } = row;
    const hour = new Date(now - (now % HOUR_MS));
    const kind = { occurred_at: hour, method, route, status, error };
    const key = JSON.stringify(kind);
    counts.set(key, { ...kind, requests: (counts.get(key)?.requests ?? 0) + 1 });
  }

  /** Writes gathered requests, then returns the last requests of a member's apps and keys, latest first. @param of only this app or key */
  async last(userId: number, of: string | null): Promise<ShownRequest[]> {
    await this.flush();
    return this.database.rows<ShownRequest>(LAST, [userId, of]);
  }

  /** Writes gathered requests, then counts responses of the last 24 hours and 30 days. @param of only this app or key */
  async use(userId: number, of: string | null): Promise<DevelopedUse> {
    await this.flush();
    return developedUse(this.database, userId, of);
  }

  /** Writes gathered requests, and deletes requests beyond the limit. */
  flush(): Promise<void> {
    return (this.#written = this.#written.then(() => this.#write()));
  }

  /** Finds the key or possible token in the credential headers of a rejected request. */
  #namedBy({ headers, principal }: Request): Named | undefined {
    if (principal !== undefined) return undefined;
    const { 'x-api-key': key, authorization } = headers;
    const sent = `${typeof key === 'string' ? key : ''} ${authorization ?? ''}`.slice(0, 500);
    const keyId = namedKeyId(sent);
    if (keyId !== undefined) return { kind: 'key', id: keyId };
    const token = findOpaqueSecret(sent);
    if (token === undefined || this.#unproven > MAX_UNPROVEN) return undefined;
    const keys = this.tokenKeys.keysOf('AccessToken', token);
    return { kind: 'token', id: keys.map((stored) => stored.toString('hex')).join(' ') };
  }

  async #write(): Promise<void> {
    const gathered = [...this.#gathered.values()];
    this.#gathered = new Map();
    this.#unproven = 0;
    if (gathered.length === 0) return;
    const all = gathered.flatMap(({ app, rows, counts }) =>
      [...rows, ...counts.values()].map((row) => ({
        ...row,
        client: app.kind === 'client' ? app.id : null,
        key: app.kind === 'key' ? app.id : null,
        token_keys: app.kind === 'token' ? app.id.split(' ') : [],
      })),
    );
    const kept = new Set<string>();
    try {
      await writeGoodRows(
        all,
        async (rows) => {
          const written = await this.database.rows<{ id: string }>(KEEP, [JSON.stringify(rows)]);
          for (const { id } of written) kept.add(id);
        },
        (_, error) => this.logger.warn({ err: error }, 'a request cannot be shown to its developer'),
      );
      // One list for both kinds: client ids and key ids never collide.
      if (kept.size > 0) await this.database.rows(FORGET, [[...kept].toSorted()]);
    } catch (error) {
      this.logger.warn({ err: error }, 'requests could not be kept for their developers');
    }
  }
}

/** Stores requests of self-made apps and keys. Rows with `requests` > 0 are counts; rows with 0 are single requests. */
const KEEP = `WITH sent AS (
  SELECT c.id AS client_id, k.id AS key_id, r.* FROM jsonb_to_recordset($1) AS r (client text, key text, occurred_at timestamptz,
    method text, route text, status smallint, error text, reason text, parameter text, value text, error_id text, duration_ms integer,
    requests bigint, token_keys text[])
  LEFT JOIN oauth_tokens t ON t.key IN (SELECT decode(one, 'hex') FROM unnest(r.token_keys) one) AND t.model = 'AccessToken'
  LEFT JOIN oauth_grants g ON g.id = t.grant_id
  LEFT JOIN oauth_clients c ON c.id = COALESCE(r.client, g.client_id) AND c.owner_id IS NOT NULL
  LEFT JOIN api_keys k ON k.id = r.key AND k.self_issued
  WHERE num_nonnulls(c.id, k.id) = 1
), counted AS (
  INSERT INTO developer_request_counts AS n (client_id, key_id, hour, method, route, status, error, requests)
  SELECT client_id, key_id, occurred_at, method, route, status, error, sum(requests) FROM sent WHERE requests > 0
  GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
  ON CONFLICT (client_id, key_id, hour, method, route, status, error) DO UPDATE SET requests = n.requests + EXCLUDED.requests
)
INSERT INTO developer_requests
  (client_id, key_id, occurred_at, method, route, status, error, reason, parameter, value, error_id, duration_ms)
SELECT client_id, key_id, occurred_at, method, route, status, error, reason, parameter, value, error_id, duration_ms
FROM sent WHERE requests = 0 RETURNING COALESCE(client_id, key_id) AS id`;

/** SQL: requests of each app beyond the limit. */
const older = (column: string) => `
SELECT old.id FROM unnest($1::text[]) AS app (id) CROSS JOIN LATERAL (
  SELECT d.id FROM developer_requests d WHERE d.${column} = app.id
  ORDER BY d.occurred_at DESC, d.id DESC OFFSET ${MAX_KEPT}) old`;

const FORGET = `DELETE FROM developer_requests WHERE id IN (${older('client_id')} UNION ALL ${older('key_id')})`;

const lastOf = (column: string) => `
SELECT d.* FROM developer_requests d WHERE d.${column} = app.${column} ORDER BY d.occurred_at DESC, d.id DESC LIMIT ${MAX_KEPT}`;

const LAST = `SELECT api_time(d.occurred_at) AS occurred_at, app.name AS app_name, d.method, d.route, d.status, d.error, d.reason,
  d.parameter, d.value, d.error_id, d.duration_ms
FROM (${APPS}
) app CROSS JOIN LATERAL ((${lastOf('client_id')}) UNION ALL (${lastOf('key_id')})) d
ORDER BY d.occurred_at DESC, d.id DESC LIMIT ${MAX_KEPT}`;

/** Returns a short, plain name; `***` for other text, which could be a secret that the client sent in the wrong place. */
function plain(name: string | undefined): string | null {
  if (name === undefined) return null;
  return /^[\w/:.-]{1,40}$/.test(name) ? name : '***';
}
