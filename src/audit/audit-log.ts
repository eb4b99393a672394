import { setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { AuthEvent } from '../database/schema/entities/credentials/auth-event.entity.js';

/** A row whose times the database writes in the API's format (`api_time`). */
export type WithApiTimes<Row> = {
  readonly [Column in keyof Row]: Date extends Row[Column]
    ? string | Exclude<Row[Column], Date>
    : Row[Column];
};

export interface AuditEvent extends WithApiTimes<Omit<AuthEvent, 'id'>> {
  /** null for a rejection without a member, which comes from another table. */
  readonly id: number | null;
}

type StoredEvent = AuditEvent & { readonly id: number };

export interface AuditFilter {
  readonly userId?: number | undefined;
  readonly clientId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly errorId?: string | undefined;
  /** A type, or the part before its dot for a group of types. */
  readonly type?: string | undefined;
  readonly sinceSeconds?: number | undefined;
}

const LINE = `id, api_time(occurred_at) AS occurred_at, type, actor, user_id, client_id, key_id, host(ip) AS ip, error_id, details`;

/** SQL: the condition of {@link AuditFilter}; every part is optional. */
const MATCHES = `($1::bigint IS NULL OR user_id = $1) AND ($2::text IS NULL OR client_id = $2) AND ($3::text IS NULL OR key_id = $3)
  AND ($4::text IS NULL OR error_id = $4) AND ($5::text IS NULL OR $5 IN (type, split_part(type, '.', 1)))
  AND ($6::float8 IS NULL OR occurred_at >= now() - make_interval(secs => $6))`;

const FIND_REFUSALS = `SELECT NULL::bigint AS id, api_time(occurred_at) AS occurred_at,
  CASE route WHEN '/oauth/token' THEN 'token.refused' ELSE 'authorization.refused' END AS type, 'client' AS actor, NULL::bigint AS user_id,
  client_id, NULL AS key_id, host(ip) AS ip, error_id,
  jsonb_strip_nulls(jsonb_build_object('error', error, 'reason', reason, 'route', route, 'redirect_uri', redirect_uri)) AS details
FROM oauth_refusals WHERE error_id = $1 ORDER BY oauth_refusals.occurred_at DESC`;

/** Time in ms after which all events with lower ids are assumed to be committed. */
const COMMITTED_AFTER_MS = 10_000;
const FOLLOWED = 1_000;

@Injectable()
export class AuditLog {
  constructor(private readonly dataSource: DataSource) {}

  /** Returns events, newest first; for an error id, followed by rejections without a member. */
  async find(filter: AuditFilter, limit: number): Promise<AuditEvent[]> {
    const events = await this.dataSource.query<AuditEvent[]>(
      `SELECT ${LINE} FROM auth_events WHERE ${MATCHES} ORDER BY auth_events.occurred_at DESC, id DESC LIMIT ${limit}`,
      valuesOf(filter),
    );
    if (filter.errorId === undefined) return events;
    return [...events, ...(await this.#refusals(filter.errorId))].slice(0, limit);
  }

  /** Yields old events by time (for an error id, after rejections), then new ones, until `signal` aborts. @param everyMs poll interval */
  async *follow(filter: AuditFilter, signal: AbortSignal, everyMs: number): AsyncGenerator<AuditEvent> {
    const start = await this.#lastId(COMMITTED_AFTER_MS);
    if (filter.errorId !== undefined) yield* await this.#refusals(filter.errorId);
    yield* this.#past(filter, start, signal);
    /** Highest ids, each with the time of reading: after COMMITTED_AFTER_MS, all events up to that id are committed. */
    const heads = [{ at: performance.now(), id: start }];
    const seen = new Set<number>();
    while (!signal.aborted) {
      const head = { at: performance.now(), id: await this.#lastId() };
      const found = await this.dataSource.query<StoredEvent[]>(
        `SELECT ${LINE} FROM auth_events WHERE ${MATCHES} AND id > $7 AND id <> ALL ($8) ORDER BY id LIMIT ${FOLLOWED}`,
        [...valuesOf(filter), heads[0]!.id, [...seen]],
      );
      for (const line of found) {
        seen.add(line.id);
        yield line;
      }
      if (found.length === FOLLOWED) continue;
      heads.push(head);
      while (heads[1]!.at < performance.now() - COMMITTED_AFTER_MS) heads.shift();
      for (const id of seen) if (id <= heads[0]!.id) seen.delete(id);
      await setTimeout(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async *#past(filter: AuditFilter, upTo: number, signal: AbortSignal): AsyncGenerator<AuditEvent> {
    let found: (StoredEvent & { readonly at: string })[] | undefined;
    while (!signal.aborted && (found === undefined || found.length === FOLLOWED)) {
      const last = found?.at(-1); // may be deleted in the meantime
      found = await this.dataSource.query(
        `SELECT ${LINE}, auth_events.occurred_at::text AS at FROM auth_events WHERE ${MATCHES} AND id <= $7
  AND ($8::timestamptz IS NULL OR (auth_events.occurred_at, id) > ($8, $9::bigint)) ORDER BY auth_events.occurred_at, id LIMIT ${FOLLOWED}`,
        [...valuesOf(filter), upTo, last?.at ?? null, last?.id ?? null],
      );
      for (const { at: _, ...event } of found!) yield event;
    }
  }

  #refusals(errorId: string): Promise<AuditEvent[]> {
    return this.dataSource.query<AuditEvent[]>(FIND_REFUSALS, [errorId]);
  }

  /** @param ageMs minimum age of the event */
  async #lastId(ageMs = 0): Promise<number> {
    const [row] = await this.dataSource.query<{ id: number }[]>(
      'SELECT COALESCE(max(id), 0) AS id FROM auth_events WHERE occurred_at <= clock_timestamp() - make_interval(secs => $1)',
      [ageMs / 1000],
    );
    return row!.id;
  }
}

function valuesOf({ userId, clientId, keyId, errorId, type, sinceSeconds }: AuditFilter): unknown[] {
  return [userId, clientId, keyId, errorId, type, sinceSeconds].map((value) => value ?? null);
}
