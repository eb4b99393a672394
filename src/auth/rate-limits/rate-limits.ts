import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { Response } from 'express';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';
import { Meter } from '../../http/meter.js';
import type { LabelsOf } from '../../http/metrics.js';
import { networkOf } from '../../values/network.js';
import { Problem } from '../../http/output/problems.js';
import type { Credential } from '../credentials.js';
import type { Caller } from '../principal.js';
import { Limit } from './limit.js';
import type { Count } from './limit.js';
import { Membership } from './membership.js';
import { PostgresCounts } from './postgres-counts.js';
import { RedisCounts } from './redis-counts.js';
import { WINDOW_SECONDS } from './shared-counts.js';
import type { SharedCounts } from './shared-counts.js';
import { Config } from '../../config/config.js';

/**
 * Requests allowed per unit of RATE_LIMIT_AUTH. The limit stops floods, not ordinary use: a sign-in takes some ten requests, and a
 * partner's backend refreshes the tokens of all its members from one address.
 */
const OAUTH_REQUESTS_PER_REFUSAL = 100;

/** The share of a request's lock time-out that it may spend waiting for the counts, so that time is left for the request itself. */
const PATIENCE = 2 / 3;

type LimitName = LabelsOf<'rate_limit_refusals_total'>['limit'];
type CredentialKind = LabelsOf<'rate_limit_refusals_total'>['credential'];

/** The caller and credential that calls are counted for. */
interface CountedCaller extends Pick<Caller, 'userId' | 'credentialId'> {
  readonly kind: CredentialKind;
}

/**
 * The limits of docs/api-contract.md §10: calls per user and credential; failed authentications, and requests to the authorization
 * server, per address. All instances share them (see {@link Limit}), through Redis where there is one, else through PostgreSQL. The
 * embedded database has a single server, so memory suffices.
 */
@Injectable()
export class RateLimits implements OnModuleInit, OnApplicationShutdown {
  #limits: ReadonlyMap<LimitName, Limit> = new Map();
  #shared: SharedCounts | undefined;
  #membership: Membership | undefined;

  constructor(
    private readonly config: Config,
    private readonly logger: Logger,
    private readonly database: Database,
    private readonly meter: Meter,
  ) {}

  async onModuleInit(): Promise<void> {
    const { redisUrl, databaseUrl, rateLimits, platformRateLimit, databaseDeadlines } = this.config;
    if (redisUrl !== undefined) this.#shared = await RedisCounts.connect(redisUrl, databaseDeadlines);
    else if (databaseUrl !== undefined)
      this.#shared = await PostgresCounts.connect(this.config, this.database);
    if (this.#shared) {
      this.#membership = new Membership(this.#shared);
      await this.#membership.join();
    }
    const patienceMs = PATIENCE * databaseDeadlines.lock;
    const quotas: Record<LimitName, number> = {
      read: rateLimits.read,
      write: rateLimits.write,
      platform: platformRateLimit,
      failed_authentication: rateLimits.auth,
      oauth_requests: rateLimits.auth * OAUTH_REQUESTS_PER_REFUSAL,
    };
    const names = (Object.keys(quotas) as LimitName[]).filter((name) => quotas[name] > 0);
    this.#limits = new Map(
      names.map((name) => [
        name,
        new Limit(quotas[name], patienceMs, this.#membership, (reason) => this.#tell(name, reason)),
      ]),
    );
    if (this.#shared)
      this.meter.read('rate_limits_shared', () =>
        [...this.#limits].map(([limit, { together }]) => [{ limit }, together ? 1 : 0] as const),
      );
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.#limits.values()].map((limit) => limit.end()));
    await this.#membership?.end();
    await this.#shared?.end();
  }

  /**
   * Counts a call with a valid credential and sets RateLimit and RateLimit-Policy.
   *
   * @returns the problem to respond with where the limit is used up; the caller decides when, since the scope is checked first
   */
  countCall(
    name: 'read' | 'write' | 'platform',
    principal: CountedCaller,
    response: Response,
  ): Problem | undefined | Promise<Problem | undefined> {
    const limit = this.#limits.get(name);
    if (limit === undefined) return undefined;
    const answer = ({ admitted, left, resetSeconds }: Count) => {
      response.gather('RateLimit-Policy', `"${name}";q=${limit.quota};w=${WINDOW_SECONDS}`);
      response.gather('RateLimit', `"${name}";r=${left};t=${resetSeconds}`);
      if (admitted) return undefined;
      this.meter.count('rate_limit_refusals_total', { limit: name, credential: principal.kind });
      return rateLimited(resetSeconds);
    };
    const counted = limit.take(`${name}:${principal.userId ?? 'platform'}:${principal.credentialId}`);
    return counted instanceof Promise ? counted.then(answer) : answer(counted);
  }

  /**
   * Counts `error` if it refuses a credential; an unreachable database says nothing about one.
   *
   * @returns what to respond with: `error`, or 429 after too many
   */
  async afterRefusal(
    error: unknown,
    { kind: credential }: Credential,
    address: string | undefined,
  ): Promise<unknown> {
    if (!(error instanceof Problem) || error.definition.code !== 'invalid_credentials') return error;
    const seconds = await this.#secondsOver('failed_authentication', credential, address);
    return seconds === undefined ? error : rateLimited(seconds);
  }

  /**
   * Counts an unknown calendar link as a refused credential.
   *
   * @returns the problem to respond with after too many
   */
  async afterUnknownLink(address: string | undefined): Promise<Problem | undefined> {
    const seconds = await this.#secondsOver('failed_authentication', 'calendar_link', address);
    return seconds === undefined ? undefined : rateLimited(seconds);
  }

  /**
   * Counts a request to the authorization server or its pages, whatever its outcome.
   *
   * @returns after too many, the whole seconds until the next one is accepted
   */
  countOauthRequest(address: string | undefined): Promise<number | undefined> {
    return this.#secondsOver('oauth_requests', 'none', address);
  }

  async #secondsOver(
    name: LimitName,
    credential: CredentialKind,
    address: string | undefined,
  ): Promise<number | undefined> {
    const count = await this.#limits.get(name)?.take(`${name}:${networkOf(address)}`);
    if (count === undefined || count.admitted) return undefined;
    this.meter.count('rate_limit_refusals_total', { limit: name, credential });
    return count.resetSeconds;
  }

  /** Logs once when the store becomes unreachable, and once when it is back. */
  #tell(limit: LimitName, reason: string | undefined): void {
    if (reason === undefined) this.logger.info({ limit }, 'rate limits are shared again');
    else this.logger.warn({ limit, reason }, 'rate limits are not shared: this instance limits alone');
  }
}

function rateLimited(resetSeconds: number): Problem {
  return new Problem('rate_limited', {
    detail: `Too many requests: the next window begins in ${resetSeconds} s.`,
    extensions: { retry_after: resetSeconds },
    headers: { 'Retry-After': String(resetSeconds) },
  });
}
