import { setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Database } from '../database/database.js';
import { AHEAD, HORIZON, ORIGIN } from '../database/sql.js';
import { Problem } from '../http/output/problems.js';
import { confirmCredential, withoutSlot } from '../http/pipeline/request-context.js';
import { extendDeadline } from '../http/pipeline/response-deadline.js';
import { SignedCursors } from '../http/paging.js';
import { Readiness } from '../operations/health/readiness.js';
import type { PlatformChangeItem, PlatformChangesAnswer, PlatformChangesQuery } from './changes.dto.js';

type CursorPlace = [origin: string, changedIn: number, sequence: number];

/** $4: types; null for all types. `items` has one change more than the limit $3 if more changes exist. */
const READ = `SELECT ${ORIGIN} AS origin, ${HORIZON} AS horizon, ${AHEAD} AS ahead,
  EXISTS (SELECT FROM change_places WHERE name = 'platform_swept' AND (changed_in, sequence) > ($1::bigint, $2::bigint)
    AND changed_in < ${AHEAD}) AS swept,
  (SELECT COALESCE(json_agg(json_build_object('changedIn', changed_in, 'sequence', sequence, 'type', type,
    'at', api_time(changed_at), 'member_id', user_id, 'by', by_id, 'fields', fields, 'scopes', COALESCE(scopes, '{}'),
    'notice', notice, 'name', name)
    ORDER BY changed_in, sequence), '[]')
  FROM (SELECT * FROM platform_changes WHERE (changed_in, sequence) > ($1, $2) AND changed_in < ${HORIZON}
    AND ($4::text[] IS NULL OR type = ANY ($4)) ORDER BY changed_in, sequence LIMIT $3::integer + 1) page) AS items`;

interface Reading {
  origin: string;
  horizon: number;
  ahead: number;
  swept: boolean;
  items: (Omit<PlatformChangeItem, 'sequence'> & { changedIn: number; sequence: number })[];
}

const NEWEST = `SELECT changed_in FROM platform_changes WHERE changed_in < ${HORIZON} ORDER BY changed_in DESC LIMIT 1`;
const LOOK_MS = 250;

const BINDING = ['platform-changes'];

/** Lists members' changes for the platform, with long polling. */
@Injectable()
export class PlatformChangesService {
  waiting = 0;
  #look: Promise<number> | undefined;

  constructor(
    private readonly database: Database,
    private readonly readiness: Readiness,
    private readonly cursors: SignedCursors,
  ) {}

  /** Returns changes after the cursor; without any, waits up to `wait` seconds for one. @throws Problem invalid_cursor, cursor_expired */
  async list(
    { after, limit, types, wait }: PlatformChangesQuery,
    request: Request,
  ): Promise<PlatformChangesAnswer> {
    const place = after === undefined ? undefined : this.cursors.read<CursorPlace>(BINDING, after, 'after');
    let page = await this.#read(place, limit, types);
    if (page.data.length === 0 && wait > 0) {
      extendDeadline(request, 1000 * wait);
      const until = performance.now() + 1000 * wait;
      const changed = () => this.#changeSince(page.next[1], until, request);
      while (page.data.length === 0 && (await withoutSlot(request, changed))) {
        await confirmCredential(request); // the request may have waited for its slot
        page = await this.#read(page.next, limit, types);
      }
    }
    return { data: page.data, next: this.cursors.make(BINDING, page.next), more: page.more };
  }

  /** Waits for a change by this or a later transaction. @returns false if none comes in time @throws Problem invalid_credentials */
  async #changeSince(transaction: number, until: number, request: Request): Promise<boolean> {
    const { context } = request;
    this.waiting++;
    try {
      while (performance.now() < until && !context.isOver && !this.readiness.ending) {
        // All waiting callers of this process share one query.
        this.#look ??= this.#newest().finally(() => (this.#look = undefined));
        const newest = await this.#look;
        await confirmCredential(request);
        if (newest >= transaction) return true;
      }
      return false;
    } finally {
      this.waiting--;
    }
  }

  /** @returns transaction of the newest change; Infinity after an error, which the caller's next read reports */
  async #newest(): Promise<number> {
    await setTimeout(LOOK_MS, undefined, { ref: false });
    try {
      const [row] = await this.database.prepared<{ changed_in: number }>(NEWEST, []);
      return row?.changed_in ?? -1;
    } catch {
      return Infinity;
    }
  }

  async #read(place: CursorPlace | undefined, limit: number, types: readonly string[] | undefined) {
    const [origin, changedIn, sequence] = place ?? [undefined, -1, 0];
    const [row] = await this.database.prepared<Reading>(READ, [changedIn, sequence, limit, types ?? null]);
    const { items, ...now } = row!;
    const isKnown = origin === now.origin && changedIn <= now.ahead && !now.swept;
    if (place && !isKnown) throw new Problem('cursor_expired');
    const more = items.length > limit;
    const shown = items.slice(0, limit);
    const last = shown.at(-1)!;
    const next: CursorPlace = more
      ? [now.origin, last.changedIn, last.sequence]
      : [now.origin, now.horizon, 0];
    const data = shown.map(({ changedIn: transaction, sequence: number, ...item }) => ({
      sequence: `${transaction}-${number}`,
      ...item,
    }));
    return { data, next, more };
  }
}
