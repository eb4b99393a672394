import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';
import { eventValues, recordEventIf } from '../../audit/audit.js';
import { writeGoodRows } from '../usage-batch.js';

const FLUSH_MS = 30_000;

interface Use {
  count: number;
  at: Date;
  ip: string | undefined;
}

/** A key's hash under the previous pepper, and the one that takes its place. */
interface Rehash {
  readonly before: Buffer;
  readonly after: Buffer;
  readonly pepperId: Buffer;
}

/** Remembers when keys were used, and writes it in batches: never on the way of a request. */
@Injectable()
export class ApiKeyUsageRecorder implements OnModuleInit, OnApplicationShutdown {
  #uses = new Map<string, Use>();
  #rehashes = new Map<string, Rehash>();
  #timer: NodeJS.Timeout | undefined;

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

  /**
   * The first time counts: who sees `exposed_at` should know since when the key can be in other hands.
   *
   * @param origin the header Origin, or Sec-Fetch-Site, as it was sent
   */
  async recordExposure(keyId: string, userId: number | null, origin: string): Promise<void> {
    await this.database.rows(
      `WITH first AS (
  INSERT INTO api_key_usage (key_id, exposed_at, exposed_origin) VALUES ($1, now(), $2)
  ON CONFLICT (key_id) DO UPDATE SET exposed_at = now(), exposed_origin = EXCLUDED.exposed_origin
    WHERE api_key_usage.exposed_at IS NULL
  RETURNING key_id)
${recordEventIf('first', 3)}`,
      [keyId, originOf(origin), ...eventValues({ type: 'key.exposed', actor: 'system', userId, keyId })],
    );
  }

  /** Writes what was gathered. What cannot be written now is kept for the next time; a row that never can is dropped. */
  async flush(): Promise<void> {
    const [uses, rehashes] = [this.#uses, this.#rehashes];
    this.#uses = new Map();
    this.#rehashes = new Map();
    await Promise.all([this.#writeUses(uses), this.#writeRehashes(rehashes)]);
  }

  async #writeUses(uses: Map<string, Use>): Promise<void> {
    try {
      await writeGoodRows(
        [...uses],
        async (rows) => {
          await this.database.rows(
            // Keys that are gone are left out; the others cannot go before this has written.
            `INSERT INTO api_key_usage AS u (key_id, last_used_at, last_used_ip, uses_count)
SELECT k.id, r.at, r.ip, r.count
FROM jsonb_to_recordset($1) AS r (key_id text, at timestamptz, ip inet, count bigint) JOIN api_keys k ON k.id = r.key_id
ORDER BY k.id FOR KEY SHARE OF k
ON CONFLICT (key_id) DO UPDATE SET last_used_at = GREATEST(u.last_used_at, EXCLUDED.last_used_at),
  last_used_ip = EXCLUDED.last_used_ip, uses_count = u.uses_count + EXCLUDED.uses_count`,
            [
              JSON.stringify(
                rows.map(([key_id, { count, at, ip }]) => ({ key_id, count, at, ip: ip ?? null })),
              ),
            ],
          );
          for (const [keyId] of rows) uses.delete(keyId);
        },
        ([keyId], error) => {
          uses.delete(keyId);
          this.logger.warn(
            { err: error, key_id: keyId },
            'the use of a key cannot be written: it is dropped',
          );
        },
      );
    } catch (error) {
      this.logger.warn({ err: error }, 'the use of keys could not be written; it is kept');
      for (const [keyId, use] of uses) {
        const newer = this.#uses.get(keyId);
        if (newer) newer.count += use.count;
        else this.#uses.set(keyId, use);
      }
    }
  }

  async #writeRehashes(rehashes: Map<string, Rehash>): Promise<void> {
    if (rehashes.size === 0) return;
    const rows = [...rehashes.values()];
    try {
      await this.database.rows(
        `UPDATE api_keys k SET hash = r.after, pepper_id = r.pepper_id
FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::bytea[]) AS r (id, before, after, pepper_id)
WHERE k.id = r.id AND k.hash = r.before`,
        [
          [...rehashes.keys()],
          rows.map(({ before }) => before),
          rows.map(({ after }) => after),
          rows.map(({ pepperId }) => pepperId),
        ],
      );
    } catch (error) {
      this.logger.warn({ err: error }, 'keys could not be hashed anew; it is tried again');
      for (const [keyId, rehash] of rehashes)
        if (!this.#rehashes.has(keyId)) this.#rehashes.set(keyId, rehash);
    }
  }
}

/** Of the page that sent the request, or its site; nothing else of what stands there. */
function originOf(sent: string): string {
  if (['null', 'cross-site', 'same-site', 'same-origin', 'none'].includes(sent)) return sent;
  const { origin = 'null' } = URL.parse(sent) ?? {};
  return origin === 'null' ? 'unknown' : origin.slice(0, 300);
}
