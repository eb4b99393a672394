import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';
import type { Principal } from '../principal.js';
import { writeGoodRows } from '../usage-batch.js';

const FLUSH_MS = 30_000;
const DAY_MS = 86_400_000;
/** Rows of one statement: some 50 ms of work. */
const BATCH = 2_000;

interface Use {
  readonly user_id: number;
  readonly day: string;
  readonly app_kind: 'client' | 'key';
  readonly app_id: string;
  readonly scope: string;
  uses: number;
  /** In ms since 1970. */
  atMs: number;
}

/** Counts which app used what of a member on which day, and writes it in batches: never on the way of a request. */
@Injectable()
export class MemberUsageRecorder implements OnModuleInit, OnApplicationShutdown {
  #uses = new Map<string, Use>();
  #timer: NodeJS.Timeout | undefined;
  #written = Promise.resolve();
  /** Days since 1970, and how the database writes the last one. */
  #dayNumber = 0;
  #day = '';

  constructor(
    private readonly database: Database,
    private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  record({ userId, clientId, keyId }: Principal, scope: string): void {
    const atMs = Date.now();
    const dayNumber = Math.floor(atMs / DAY_MS);
    if (dayNumber !== this.#dayNumber) {
      this.#dayNumber = dayNumber;
      this.#day = new Date(atMs).toISOString().slice(0, 10);
    }
    const appId = clientId ?? keyId!;
    // Ids of apps may hold anything: the last part. A key's never stands where an app's would.
    const name = `${dayNumber} ${userId} ${scope} ${clientId === null ? 'key' : 'client'} ${appId}`;
    const use = this.#uses.get(name);
    if (use) {
      use.uses++;
      use.atMs = atMs;
      return;
    }
    this.#uses.set(name, {
      user_id: userId,
      day: this.#day,
      app_kind: clientId === null ? 'key' : 'client',
      app_id: appId,
      scope,
      uses: 1,
      atMs,
    });
  }

  /** Writes what was gathered until now. What cannot be written is kept for the next time; a row that never can is dropped. */
  flush(): Promise<void> {
    return (this.#written = this.#written.then(() => this.#write()));
  }

  async #write(): Promise<void> {
    const uses = this.#uses;
    this.#uses = new Map();
    const all = [...uses];
    try {
      for (let start = 0; start < all.length; start += BATCH)
        await writeGoodRows(
          all.slice(start, start + BATCH),
          async (rows) => {
            await this.database.rows(
              // Of members who are erased nothing is written; the others cannot be erased before this has written.
              `INSERT INTO member_usage AS u (user_id, day, app_kind, app_id, scope, uses, last_used_at)
SELECT r.user_id, r.day, r.app_kind, r.app_id, r.scope, r.uses, r.at
FROM jsonb_to_recordset($1) AS r (user_id bigint, day date, app_kind text, app_id text, scope text, uses bigint, at timestamptz)
JOIN users m ON m.id = r.user_id AND m.erased_at IS NULL
ORDER BY r.user_id, r.day, r.app_kind, r.app_id, r.scope FOR KEY SHARE OF m
ON CONFLICT (user_id, day, app_kind, app_id, scope) DO UPDATE SET uses = u.uses + EXCLUDED.uses,
  last_used_at = GREATEST(u.last_used_at, EXCLUDED.last_used_at)`,
              [JSON.stringify(rows.map(([, { atMs, ...use }]) => ({ ...use, at: new Date(atMs) })))],
            );
            for (const [name] of rows) uses.delete(name);
          },
          ([name, { user_id }], error) => {
            uses.delete(name);
            this.logger.warn(
              { err: error, user_id },
              'a use of a member’s data cannot be written: it is dropped',
            );
          },
        );
    } catch (error) {
      this.logger.warn({ err: error }, 'uses of members’ data could not be written; they are kept');
      for (const [name, use] of uses) {
        const newer = this.#uses.get(name);
        if (newer) newer.uses += use.uses;
        else this.#uses.set(name, use);
      }
    }
  }
}
