import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DataSource } from 'typeorm';
import { parseKey } from '../../auth/api-keys/api-key-format.js';
import { ApiKeysService } from '../../auth/api-keys/api-keys.service.js';
import { ALL_SCOPES } from '../../auth/scopes.js';
import type { Config } from '../../config/config.js';
import { apiKeyHmac } from '../../crypto/peppers.js';
import { FIRST_ID } from './demo-data.js';
import { OperatorError } from '../../values/operator-error.js';

const LIFETIME_SECONDS = 90 * 86_400;

/**
 * Finds or makes the first demo member's test key, which every start prints. It is kept in DATA_DIR, readable by its owner only; if
 * it was revoked, has expired, or belongs to another database, a new one is made.
 *
 * @returns undefined if that member is missing or disabled
 * @throws OperatorError if DATA_DIR cannot be written to
 */
export async function testKey(dataSource: DataSource, config: Config): Promise<string | undefined> {
  const owners = await dataSource.query<unknown[]>(
    'SELECT FROM users WHERE id = $1 AND disabled_at IS NULL',
    [FIRST_ID],
  );
  if (owners.length === 0) return undefined;
  const file = join(config.dataDir, 'test-key');
  const kept = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
  if (kept !== undefined && (await isAccepted(dataSource, config, kept))) return kept;
  const { key } = await new ApiKeysService(dataSource, config).create({
    userId: FIRST_ID,
    name: 'demo',
    scopes: ALL_SCOPES,
    environment: 'test',
    cidrs: [],
    expiresInSeconds: LIFETIME_SECONDS,
    actor: 'system',
  });
  keep(file, key, config.dataDir);
  return key;
}

async function isAccepted(dataSource: DataSource, config: Config, key: string): Promise<boolean> {
  const parsed = parseKey(key);
  if (!parsed) return false;
  const [row] = await dataSource.query<{ hash: Buffer }[]>(
    `SELECT hash FROM api_keys WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`,
    [parsed.id, FIRST_ID],
  );
  return row !== undefined && apiKeyHmac(config.secrets).verify(row.hash, key);
}

function keep(file: string, key: string, dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const draft = `${file}.${process.pid}`;
    writeFileSync(draft, `${key}\n`, { mode: 0o600 });
    renameSync(draft, file);
  } catch (error) {
    throw new OperatorError(
      `DATA_DIR ${dataDir} cannot be used (${(error as NodeJS.ErrnoException).code ?? 'unknown error'}): ` +
        'name a folder that this user may write to',
      { cause: error },
    );
  }
}
