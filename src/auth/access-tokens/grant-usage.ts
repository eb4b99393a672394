import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';
import { writeGoodRows } from '../usage-batch.js';

const FLUSH_MS = 30_000;

/** Remembers when grants were used, and writes it in batches: never on the way of a request. */
@Injectable()
export class GrantUsageRecorder implements OnModuleInit, OnApplicationShutdown {
  #uses = new Map<string, Date>();
  #timer: NodeJS.Timeout | undefined;
  #written = Promise.resolve();

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

  record(grantId: string): void {
    this.#uses.set(grantId, new Date());
  }

  /** Writes what was gathered until now. What cannot be written is kept for the next time; a row that never can is dropped. */
  flush(): Promise<void> {
    return (this.#written = this.#written.then(() => this.#write()));
  }

  async #write(): Promise<void> {
    const uses = this.#uses;
    this.#uses = new Map();
    try {
      await writeGoodRows(
        [...uses],
        async (rows) => {
          await this.database.rows(
            // Grants that ended meanwhile are left out; the others cannot end before this has written.
            `INSERT INTO oauth_grant_usage AS u (grant_id, last_used_at)
SELECT g.id, r.at FROM jsonb_to_recordset($1) AS r (grant_id text, at timestamptz) JOIN oauth_grants g ON g.id = r.grant_id
ORDER BY g.id FOR KEY SHARE OF g
ON CONFLICT (grant_id) DO UPDATE SET last_used_at = GREATEST(u.last_used_at, EXCLUDED.last_used_at)`,
            [JSON.stringify(rows.map(([grant_id, at]) => ({ grant_id, at })))],
          );
          for (const [grantId] of rows) uses.delete(grantId);
        },
        ([grantId], error) => {
          uses.delete(grantId);
          this.logger.warn(
            { err: error, grant: grantId },
            'the use of a grant cannot be written: it is dropped',
          );
        },
      );
    } catch (error) {
      this.logger.warn({ err: error }, 'the use of grants could not be written; it is kept');
      for (const [grantId, at] of uses) if (!this.#uses.has(grantId)) this.#uses.set(grantId, at);
    }
  }
}
