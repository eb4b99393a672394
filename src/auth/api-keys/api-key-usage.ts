import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';
import { eventValues, recordEventIf } from '../../audit/audit.js';
import { addressOf } from '../../values/network.js';
import { UsageTally } from '../usage/usage-tally.js';

interface KeyUse {
  readonly key_id: string;
  /** Of the last use. */
  ip: string | undefined;
}

/** A key's hash under the previous pepper, and its replacement. */
interface Rehash {
  readonly before: Buffer;
  readonly after: Buffer;
  readonly pepperId: Buffer;
}

/** Records when and from where keys were used, and what their use reveals: an exposure, or a hash under the previous pepper. */
@Injectable()
export class ApiKeyUsageRecorder extends UsageTally<KeyUse> {
  #rehashes = new Map<string, Rehash>();

  constructor(database: Database, logger: Logger) {
    super(
      database,
      logger,
      'a key',
      `INSERT INTO api_key_usage AS u (key_id, last_used_at, last_used_ip, uses_count)
SELECT k.id, r.at, r.ip, r.uses
FROM jsonb_to_recordset($1) AS r (key_id text, at timestamptz, ip inet, uses bigint) JOIN api_keys k ON k.id = r.key_id
ORDER BY k.id FOR KEY SHARE OF k
ON CONFLICT (key_id) DO UPDATE SET last_used_at = GREATEST(u.last_used_at, EXCLUDED.last_used_at),
  last_used_ip = EXCLUDED.last_used_ip, uses_count = u.uses_count + EXCLUDED.uses_count`,
    );
  }

  finished(request: Request, status: number): void {
    const { principal } = request;
    if (principal?.kind === 'api_key' && status < 400)
      this.record(principal.credentialId, addressOf(request));
  }

  record(keyId: string, ip: string | undefined): void {
    const use = this.again(keyId);
    if (use) use.ip = ip;
    else this.begin(keyId, { key_id: keyId, ip });
  }

  /** Replaces a key's hash under the previous pepper with one under the current pepper, at the next flush. */
  rehash(keyId: string, before: Buffer, after: Buffer, pepperId: Buffer): void {
    this.#rehashes.set(keyId, { before, after, pepperId });
  }

  /**
   * Records the first exposure only: `exposed_at` says since when others may have had the key.
   *
   * @param origin the Origin or Sec-Fetch-Site header, as sent
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

  override async flush(): Promise<void> {
    const rehashes = this.#rehashes;
    this.#rehashes = new Map();
    await Promise.all([super.flush(), this.#writeRehashes(rehashes)]);
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

/** The origin of the page that sent the request, or its Sec-Fetch-Site value; anything else is dropped. */
function originOf(sent: string): string {
  if (['null', 'cross-site', 'same-site', 'same-origin', 'none'].includes(sent)) return sent;
  const { origin = 'null' } = URL.parse(sent) ?? {};
  return origin === 'null' ? 'unknown' : origin.slice(0, 300);
}
