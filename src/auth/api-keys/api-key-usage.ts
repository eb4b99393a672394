import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { Logger } from 'pino';
import { Database } from '../../database/database.js';
import { LOGGER } from '../../http/logger.js';

const FLUSH_MS = 30_000;

interface Use {
  count: number;
  at: Date;
  ip: string | undefined;
}

/** Remembers when keys were used, and writes it in batches: never on the way of a request. */
@Injectable()
export class ApiKeyUsageRecorder implements OnModuleInit, OnApplicationShutdown {
  #uses = new Map<string, Use>();
  #rehashes = new Map<string, { before: Buffer; after: Buffer; pepperId: Buffer }>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly database: Database,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  record(keyId: string, ip: string | undefined): void {
    const use = this.#uses.get(keyId);
    if (use) {
      use.count++;
      use.at = new Date();
      use.ip = ip;
    } else {
      this.#uses.set(keyId, { count: 1, at: new Date(), ip });
    }
  }

  /** The key was made under the previous pepper: it gets a hash under the current one. */
  rehash(keyId: string, before: Buffer, after: Buffer, pepperId: Buffer): void {
    this.#rehashes.set(keyId, { before, after, pepperId });
  }

  /** The first time counts: who sees `exposed_at` should know since when the key can be in other hands. */
  async recordExposure(keyId: string, userId: number, origin: string): Promise<void> {
    await this.database.rows(
      `WITH first AS (
  INSERT INTO api_key_usage (key_id, exposed_at, exposed_origin) VALUES ($1, now(), $2)
  ON CONFLICT (key_id) DO UPDATE SET exposed_at = now(), exposed_origin = EXCLUDED.exposed_origin
    WHERE api_key_usage.exposed_at IS NULL
  RETURNING key_id)
INSERT INTO auth_events (type, actor, user_id, key_id, details)
SELECT 'key.exposed', 'system', $3, key_id, jsonb_build_object('origin', $2::text) FROM first`,
      [keyId, origin.slice(0, 300), userId],
    );
  }

  /** Writes what was gathered; what cannot be written now is kept for the next time. */
  async flush(): Promise<void> {
    const uses = this.#uses;
    const rehashes = this.#rehashes;
    this.#uses = new Map();
    this.#rehashes = new Map();
    try {
      if (uses.size > 0) {
        const rows = [...uses].map(([key_id, { count, at, ip }]) => ({ key_id, count, at, ip: ip ?? null }));
        await this.database.rows(
          `INSERT INTO api_key_usage AS u (key_id, last_used_at, last_used_ip, uses_count)
SELECT key_id, at, ip, count FROM jsonb_to_recordset($1) AS r (key_id text, at timestamptz, ip inet, count bigint) ORDER BY key_id
ON CONFLICT (key_id) DO UPDATE SET last_used_at = GREATEST(u.last_used_at, EXCLUDED.last_used_at),
  last_used_ip = EXCLUDED.last_used_ip, uses_count = u.uses_count + EXCLUDED.uses_count`,
          [JSON.stringify(rows)],
        );
        uses.clear();
      }
      for (const [keyId, { before, after, pepperId }] of rehashes) {
        await this.database.rows(
          'UPDATE api_keys SET hash = $3, pepper_id = $4 WHERE id = $1 AND hash = $2',
          [keyId, before, after, pepperId],
        );
      }
    } catch (error) {
      this.logger.warn({ err: error }, 'the use of keys could not be written; it is kept');
      for (const [keyId, use] of uses) {
        const newer = this.#uses.get(keyId);
        if (newer) newer.count += use.count;
        else this.#uses.set(keyId, use);
      }
    }
  }
}
