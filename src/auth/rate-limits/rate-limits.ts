import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Response } from 'express';
import { Logger } from '../../http/logger.js';
import { Meter } from '../../http/meter.js';
import type { LabelsOf } from '../../http/metrics.js';
import { Periodic } from '../../http/periodic-work.js';
import { networkOf } from '../../values/network.js';
import { Problem } from '../../http/output/problems.js';
import type { Caller, Credential } from '../principal.js';
import { postgresCounts, redisCounts } from './count-stores.js';
import { Counter, WINDOW_SECONDS } from './counter.js';
import { Config } from '../../config/config.js';

/** Of RATE_LIMIT_AUTH: a sign-in takes some ten requests, and a partner's backend refreshes the tokens of all its members. */
const OAUTH_REQUESTS_PER_REFUSAL = 100;

type LimitName = LabelsOf<'rate_limit_refusals_total'>['limit'];
type CredentialKind = LabelsOf<'rate_limit_refusals_total'>['credential'];

/**
 * The limits of docs/api-contract.md §10: calls per user and credential; failed authentications, and requests to the authorization
 * server, per address. Instances share them through Redis where there is one, else through PostgreSQL; the embedded database has one.
 */
@Injectable()
export class RateLimits implements OnApplicationShutdown {
  readonly #quotas: Readonly<Record<LimitName, number>>;
  readonly #counter: Counter;

  constructor(
    config: Config,
    logger: Logger,
    private readonly meter: Meter,
  ) {
    const { rateLimits, platformRateLimit, redisUrl, databaseDirectUrl, databaseDeadlines } = config;
    this.#quotas = {
      read: rateLimits.read,
      write: rateLimits.write,
      platform: platformRateLimit,
      failed_authentication: rateLimits.auth,
      oauth_requests: rateLimits.auth * OAUTH_REQUESTS_PER_REFUSAL,
    };
    const [url, counts] = redisUrl ? [redisUrl, redisCounts] : [databaseDirectUrl, postgresCounts];
    this.#counter = new Counter(url ? counts(url, databaseDeadlines) : undefined, logger);
    if (url) meter.read('rate_limits_shared', () => [[{}, this.#counter.alone ? 0 : 1]]);
  }

  /** Tells the other instances what was counted here, and learns what they counted. */
  @Periodic({
    work: 'rate_limits',
    everyMs: ({ rateLimitSyncMs }) => rateLimitSyncMs,
    failure: 'rate limits could not be exchanged',
    waits: true,
  })
  exchange(): Promise<void> {
    return this.#counter.exchange();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#counter.end();
  }

  /**
   * Counts a call with a valid credential and sets RateLimit and RateLimit-Policy.
   *
   * @returns the problem to respond with where the limit is used up; the caller decides when, since the scope is checked first
   */
  countCall(
    name: 'read' | 'write' | 'platform',
    { userId, credentialId, kind }: Pick<Caller, 'userId' | 'credentialId'> & { kind: CredentialKind },
    response: Response,
  ): Problem | undefined {
    const count = this.#take(name, `${userId ?? 'platform'}:${credentialId}`, kind);
    if (!count) return undefined;
    response.gather('RateLimit-Policy', `"${name}";q=${this.#quotas[name]};w=${WINDOW_SECONDS}`);
    response.gather('RateLimit', `"${name}";r=${count.left};t=${count.resetSeconds}`);
    return refusalOf(count);
  }

  /**
   * Counts `error` if it refuses a credential; an unreachable database says nothing about one.
   *
   * @returns what to respond with: `error`, or 429 after too many
   */
  afterRefusal(error: unknown, { kind }: Credential, address: string | undefined): unknown {
    if (!(error instanceof Problem) || error.definition.code !== 'invalid_credentials') return error;
    return this.countRefused(kind, address) ?? error;
  }

  /** Counts a refused credential. @returns the problem to respond with after too many */
  countRefused(kind: CredentialKind, address: string | undefined): Problem | undefined {
    return refusalOf(this.#take('failed_authentication', networkOf(address), kind));
  }

  /** Counts a request to the authorization server or its pages. @returns after too many, the whole seconds until the next window */
  countOauthRequest(address: string | undefined): number | undefined {
    const count = this.#take('oauth_requests', networkOf(address), 'none');
    return count?.admitted === false ? count.resetSeconds : undefined;
  }

  /** @returns undefined if the limit is switched off */
  #take(limit: LimitName, caller: string, credential: CredentialKind) {
    if (this.#quotas[limit] === 0) return undefined;
    const count = this.#counter.take(limit, caller, this.#quotas[limit]);
    if (!count.admitted) this.meter.count('rate_limit_refusals_total', { limit, credential });
    return count;
  }
}

function refusalOf(count: ReturnType<Counter['take']> | undefined): Problem | undefined {
  if (count?.admitted !== false) return undefined;
  return new Problem('rate_limited', {
    detail: `Too many requests: the next window begins in ${count.resetSeconds} s.`,
    extensions: { retry_after: count.resetSeconds },
    headers: { 'Retry-After': String(count.resetSeconds) },
  });
}
