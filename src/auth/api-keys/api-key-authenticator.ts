import { timingSafeEqual } from 'node:crypto';
import { BlockList, isIPv6 } from 'node:net';
import { Inject, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { CONFIG } from '../../config/config.js';
import type { Config } from '../../config/config.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problems.js';
import { invalidCredentials } from '../challenges.js';
import { CredentialCache } from '../credential-cache.js';
import type { KnownCredential } from '../credential-cache.js';
import type { Principal } from '../principal.js';
import type { Scope } from '../scopes.js';
import { hashKey, parseKey, peppersOf } from './api-key-format.js';
import type { Pepper } from './api-key-format.js';
import { ApiKeyUsageRecorder } from './api-key-usage.js';

interface KeyRow extends Record<string, unknown> {
  user_id: number;
  scopes: Scope[];
  hash: Buffer;
  pepper_id: Buffer;
  allowed_cidrs: string[];
  created_at: string;
  expires_at: string | null;
  revoked: boolean;
  /** Until it expires, by the database's clock; Infinity for never. */
  seconds_left: number;
  owner_disabled: boolean;
}

const FIND_KEY = {
  name: 'find-api-key',
  text: `SELECT k.user_id, k.scopes, k.hash, k.pepper_id, k.allowed_cidrs::text[] AS allowed_cidrs,
  api_time(k.created_at) AS created_at, api_time(k.expires_at) AS expires_at,
  k.revoked_at IS NOT NULL AS revoked, CASE WHEN k.expires_at IS NULL THEN 'Infinity' ELSE EXTRACT(epoch FROM k.expires_at - now()) END::float8 AS seconds_left,
  u.disabled_at IS NOT NULL AS owner_disabled
FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.id = $1 AND k.environment = $2`,
};

/** Compared with where the id is unknown, so that this takes as long as a wrong secret. */
const NO_HASH = Buffer.alloc(32);

/** X-API-Key → Principal in one indexed read, or none where the key is known. */
@Injectable()
export class ApiKeyAuthenticator {
  readonly #peppers: readonly Pepper[];

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly database: Database,
    private readonly usage: ApiKeyUsageRecorder,
    private readonly cache: CredentialCache,
  ) {
    this.#peppers = peppersOf(config.secrets);
  }

  /** @throws Problem invalid_credentials (one answer for every reason), api_key_in_browser, ip_not_allowed */
  async authenticate(key: string, request: Request): Promise<Principal> {
    const known = this.cache.find(key) ?? (await this.cache.learn(key, () => this.#lookUp(key, request)));
    const { principal, allowedCidrs } = known;
    const origin = request.headers.origin ?? request.headers['sec-fetch-site'];
    if (origin !== undefined) {
      await this.usage.recordExposure(principal.credentialId, principal.userId, String(origin));
      throw new Problem('api_key_in_browser');
    }
    if (allowedCidrs.length > 0 && !isInside(allowedCidrs, request.ip)) throw new Problem('ip_not_allowed');
    this.usage.record(principal.credentialId, request.ip);
    return principal;
  }

  async #lookUp(key: string, request: Request): Promise<KnownCredential> {
    const parsed = parseKey(key);
    if (!parsed) throw this.#refusal(request, 'not a key');
    if (parsed.environment === 'test' && this.config.production)
      throw this.#refusal(request, 'a test key in production');
    const [row] = await this.database.read<KeyRow>(FIND_KEY, [parsed.id, parsed.environment]);
    const pepper = this.#peppers.find(({ id }) => row?.pepper_id.equals(id)) ?? this.#peppers[0]!;
    const matches = timingSafeEqual(hashKey(key, pepper), row?.hash ?? NO_HASH);
    if (!row) throw this.#refusal(request, 'unknown key');
    request.context.credentialId = parsed.id;
    if (!matches) throw this.#refusal(request, 'wrong secret');
    if (row.revoked) throw this.#refusal(request, 'revoked');
    if (row.seconds_left <= 0) throw this.#refusal(request, 'expired');
    if (row.owner_disabled) throw this.#refusal(request, 'owner disabled');
    const current = this.#peppers[0]!;
    if (pepper !== current) this.usage.rehash(parsed.id, row.hash, hashKey(key, current), current.id);
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
        createdAt: row.created_at,
      },
      expiresAtMs: performance.now() + row.seconds_left * 1000,
      allowedCidrs: row.allowed_cidrs,
    };
  }

  #refusal(request: Request, reason: string): Problem {
    request.context.refusal = reason;
    return invalidCredentials(this.config.publicUrl, 'api_key');
  }
}

/** Whether the address is inside one of the networks; IPv4 in IPv6 (`::ffff:…`) counts as IPv4. */
export function isInside(cidrs: readonly string[], address: string | undefined): boolean {
  if (address === undefined) return false;
  const networks = new BlockList();
  for (const cidr of cidrs) {
    const [network, bits] = cidr.split('/') as [string, string];
    networks.addSubnet(network, Number(bits), isIPv6(network) ? 'ipv6' : 'ipv4');
  }
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  return networks.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
}
