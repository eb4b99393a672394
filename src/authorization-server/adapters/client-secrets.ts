import { Injectable } from '@nestjs/common';
import { errors, Provider, type Client } from 'oidc-provider';
import { USED, type UsageTally } from '../../auth/usage/usage-tally.js';
import { Usage } from '../../auth/usage/usage.js';
import { HashRenewal } from '../../auth/hash-renewal.js';
import { SecretHashes } from '../../crypto/secret-hashes.js';
import { Config } from '../../config/config.js';
import { Database } from '../../database/database.js';
import { Logger } from '../../runtime/logger.js';
import { networkOf } from '../../values/network.js';
import { because } from '../reasons/rejection-reasons.js';
import { MinuteBudgets } from '../failures/rejections.js';
import { OauthDatabase } from '../requests/oauth-database.js';
import type { ClientSecret } from './client-documents.js';

/** Maximum wrong secrets of a client per network and minute; other networks are not affected. */
const MAX_WRONG_PER_MINUTE = 10;

const USED_SECRETS = `UPDATE oauth_client_secrets s SET last_used_at = GREATEST(s.last_used_at, r.at) FROM (
  SELECT k.id, r.at FROM ${USED} JOIN oauth_client_secrets k ON k.id = r.name::bigint ORDER BY k.id FOR NO KEY UPDATE OF k
) r WHERE s.id = r.id`;

/** Compares clients' secrets with the hashes that were read with the client. */
@Injectable()
export class ClientSecrets {
  readonly #hashes: SecretHashes;
  readonly #renewal: HashRenewal;
  readonly #wrong = new MinuteBudgets();
  readonly #used: UsageTally;

  constructor(
    { secrets }: Config,
    database: Database,
    private readonly requests: OauthDatabase,
    logger: Logger,
    usage: Usage,
  ) {
    this.#hashes = new SecretHashes(secrets, 'oauth_client_secrets');
    this.#renewal = new HashRenewal(this.#hashes, database, logger);
    this.#used = usage.tally('a client secret', USED_SECRETS);
  }

  /** Compares `sent` with all hashes: timing must not reveal which one matches. @throws if it has expired, or after too many wrong ones */
  matches(client: Client, sent: string): boolean {
    const budget = {
      [`${client.clientId} ${networkOf(this.requests.current!.ip ?? '')}`]: MAX_WRONG_PER_MINUTE,
    };
    if (this.#wrong.areSpent(budget)) throw tooMany();
    const secrets = client.secrets as readonly ClientSecret[];
    const [secret] = secrets
      .map((one) => ({
        ...one,
        hash: Buffer.from(one.hash, 'hex'),
        pepper_id: Buffer.from(one.pepper_id, 'hex'),
      }))
      .filter(({ hash }) => this.#hashes.matches(hash, sent));
    if (!secret || secret.expired) this.#wrong.spend(budget);
    if (!secret) return false;
    if (secret.expired)
      throw because('client_secret_expired', new errors.InvalidClientAuth('the client secret has expired'));
    this.#used.count(String(secret.id));
    this.#renewal.renew(secret, sent);
    return true;
  }
}

function tooMany(): Error {
  Provider.ctx?.set('Retry-After', '60');
  const description = 'too many wrong client secrets from this address: try again in a minute';
  const error = new errors.TemporarilyUnavailable(description);
  return because('too_many_wrong_secrets', Object.assign(error, { statusCode: 429, status: 429 }));
}
