import { BlockList, isIPv6 } from 'node:net';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Request } from 'express';
import { eventValues, recordEventIf } from '../../audit/audit.js';
import { Database } from '../../database/database.js';
import { Logger } from '../../runtime/logger.js';
import type { KnownCredential } from '../credential-cache.js';
import { rejection } from '../www-authenticate.js';
import type { Caller, Credential } from '../principal.js';
import type { PlatformScope, Scope } from '../scopes.js';
import { SecretHashes } from '../../crypto/secret-hashes.js';
import { HashRenewal } from '../hash-renewal.js';
import { parseKey } from './api-key-format.js';
import { Config } from '../../config/config.js';

interface KeyRow {
  /** null for a platform key. */
  user_id: number | null;
  scopes: (Scope | PlatformScope)[];
  hash: Buffer;
  pepper_id: Buffer;
  allowed_cidrs: string[];
  created_at: string;
  expires_at: string | null;
  /** Seconds until the key expires, by the database's clock; Infinity for never. */
  seconds_left: number;
  self_issued: boolean;
  fault: string | null;
}

const FIND_KEY = {
  name: 'find-api-key',
  text: `SELECT k.user_id, k.scopes, k.hash, k.pepper_id, k.allowed_cidrs::text[] AS allowed_cidrs,
  api_time(k.created_at) AS created_at, api_time(k.expires_at) AS expires_at, k.self_issued,
  CASE WHEN k.expires_at IS NULL THEN 'Infinity' ELSE EXTRACT(epoch FROM k.expires_at - now()) END::float8 AS seconds_left,
  CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= now() THEN 'expired'
    WHEN u.disabled_at IS NOT NULL THEN 'owner disabled' END AS fault
FROM api_keys k LEFT JOIN users u ON u.id = k.user_id WHERE k.id = $1 AND k.environment = $2`,
};

/** The hash to compare with if the id is unknown, so that timing does not reveal ids. */
const NO_HASH = Buffer.alloc(32);

const MAX_EXPOSED = 20_000;

/** Finds API keys, and records the keys that browsers send. */
@Injectable()
export class ApiKeyAuthenticator {
  readonly #exposed = new LRUCache<string, Promise<void>>({ max: MAX_EXPOSED });
  readonly #hashes: SecretHashes;
  readonly #renewal: HashRenewal;

  constructor(
    private readonly config: Config,
    private readonly database: Database,
    logger: Logger,
  ) {
    this.#hashes = new SecretHashes(config.secrets, 'api_keys');
    this.#renewal = new HashRenewal(this.#hashes, database, logger);
  }

  async lookUp(credential: Credential, request: Request): Promise<KnownCredential> {
    const refuse = (reason: string) => rejection(this.config.publicUrl, credential, request, reason);
    const { secret } = credential;
    const parsed = parseKey(secret);
    if (!parsed) throw refuse('not of the kind api_key');
    if (parsed.environment === 'test' && this.config.production) throw refuse('a test key in production');
    const [row] = await this.database.read<KeyRow>(FIND_KEY, [parsed.id, parsed.environment]);
    const matches = this.#hashes.matches(row?.hash ?? NO_HASH, secret);
    if (!row) throw refuse('unknown key');
    request.context.credentialId = parsed.id;
    const developedApp = row.self_issued ? ({ kind: 'key', id: parsed.id } as const) : undefined;
    request.context.developedApp = developedApp;
    if (!matches) throw refuse('wrong secret');
    if (row.fault !== null) throw refuse(row.fault);
    this.#renewal.renew({ id: parsed.id, ...row }, secret);
    return {
      principal: {
        kind: 'api_key',
        userId: row.user_id,
        scopes: row.scopes,
        scopesText: row.scopes.join(', '),
        credentialId: parsed.id,
        keyId: parsed.id,
        clientId: null,
        expiresAt: row.expires_at,
        accessEndsAt: row.expires_at,
        createdAt: row.created_at,
      } as Caller, // a CHECK in the database prevents platform scopes in members' keys, and members' scopes in platform keys
      expiresAtMs: performance.now() + row.seconds_left * 1000,
      allowed: row.allowed_cidrs.length > 0 ? buildBlockList(row.allowed_cidrs) : undefined,
      developedApp,
    };
  }

  /** Records, once per key, that a browser sent the key and so exposed it. @param origin the Origin or Sec-Fetch-Site header */
  recordExposure(caller: Caller, origin: string): Promise<void> {
    const { credentialId } = caller;
    let recorded = this.#exposed.get(credentialId);
    if (!recorded) {
      this.#exposed.set(credentialId, (recorded = this.#recordExposure(caller, origin)));
      recorded.catch(() => this.#exposed.delete(credentialId));
    }
    return recorded;
  }

  async #recordExposure({ credentialId: keyId, userId }: Caller, origin: string): Promise<void> {
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
}

/** Returns the page's origin, cut to 300 characters, the Sec-Fetch-Site value, or `null`; `unknown` for anything else. */
function originOf(sent: string): string {
  if (['null', 'cross-site', 'same-site', 'same-origin', 'none'].includes(sent)) return sent;
  const { origin = 'null' } = URL.parse(sent) ?? {};
  return origin === 'null' ? 'unknown' : origin.slice(0, 300);
}

function buildBlockList(cidrs: readonly string[]): BlockList {
  const networks = new BlockList();
  for (const cidr of cidrs) {
    const [network, bits] = cidr.split('/') as [string, string];
    networks.addSubnet(network, Number(bits), isIPv6(network) ? 'ipv6' : 'ipv4');
  }
  return networks;
}

/** Tells whether the address is in one of the networks. @param address as `addressOf` returns it: IPv4-mapped IPv6 as IPv4 */
export function isInside(networks: BlockList, address: string | undefined): boolean {
  return address !== undefined && networks.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
