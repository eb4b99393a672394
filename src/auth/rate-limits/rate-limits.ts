import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Response } from 'express';
import { Logger } from '../../runtime/logger.js';
import { Meter } from '../../runtime/meter.js';
import type { LabelsOf } from '../../runtime/metrics.js';
import { Periodic } from '../../runtime/periodic-work.js';
import { networkOf } from '../../values/network.js';
import { Problem } from '../../http/output/problems.js';
import type { Caller, Credential } from '../principal.js';
import { postgresCounts, type CountStore } from './count-stores.js';
import { Config } from '../../config/config.js';

/** OAuth limit in multiples of RATE_LIMIT_AUTH: a sign-in takes about ten requests, and a backend refreshes many members' tokens. */
const OAUTH_REQUESTS_PER_REFUSAL = 100;

/** Windows start with the minutes of the host's clock. */
const WINDOW_SECONDS = 60;
/** Maximum callers per limit, about 350 bytes each; one more caller clears this instance's counts for the limit. */
const MAX_CALLERS = 100_000;
/** Maximum keys per exchange; further keys follow in the next exchange. */
const MAX_EXCHANGED = 5_000;

type LimitName = LabelsOf<'rate_limit_refusals_total'>['limit'];
type CredentialKind = LabelsOf<'rate_limit_refusals_total'>['credential'];

/** The limits of docs/api-contract.md §10. Instances share the counts through PostgreSQL; the embedded database supports only one. */
@Injectable()
export class RateLimits implements OnApplicationShutdown {
  readonly #quotas: Readonly<Record<LimitName, number>>;
  readonly #counter: Counter;

  constructor(
    config: Config,
    logger: Logger,
    private readonly meter: Meter,
  ) {
    const { rateLimits, platformRateLimit, databaseDirectUrl: url, databaseDeadlines } = config;
    this.#quotas = {
      read: rateLimits.read,
      write: rateLimits.write,
      platform: platformRateLimit,
      failed_authentication: rateLimits.auth,
      oauth_requests: rateLimits.auth * OAUTH_REQUESTS_PER_REFUSAL,
    };
    this.#counter = new Counter(url ? postgresCounts(url, databaseDeadlines) : undefined, logger);
    if (url) meter.read('rate_limits_shared', () => [[{}, this.#counter.alone ? 0 : 1]]);
  }

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

  /** Returns the problem over the limit, without counting a request. */
  reached(name: 'read' | 'write', caller: Caller): Problem | undefined {
    const quota = this.#quotas[name];
    return quota === 0 ? undefined : refusalOf(this.#counter.take(name, keyOf(caller), quota, 0));
  }

  /** Counts a request and sets the rate-limit headers. @returns the problem over the limit; callers first report a missing scope */
  countCall(
    name: 'read' | 'write' | 'platform',
    caller: Pick<Caller, 'userId' | 'credentialId'> & { kind: CredentialKind },
    response: Response,
  ): Problem | undefined {
    const count = this.#take(name, keyOf(caller), caller.kind);
    if (!count) return undefined;
    response.gather('RateLimit-Policy', `"${name}";q=${this.#quotas[name]};w=${WINDOW_SECONDS}`);
    response.gather('RateLimit', `"${name}";r=${count.left};t=${count.resetSeconds}`);
    // These headers have one value: a tool that writes replaces those of its message, which counts as a read.
    const set = name === 'write' ? 'setHeader' : 'gather';
    response[set]('X-RateLimit-Limit', String(this.#quotas[name]));
    response[set]('X-RateLimit-Remaining', String(count.left));
    response[set]('X-RateLimit-Reset', String(count.resetSeconds));
    return refusalOf(count);
  }

  /** Counts `error` if it rejects a credential, not if the database is unavailable. @returns `error`, or 429 after too many rejections */
  afterRefusal(error: unknown, { kind }: Credential, address: string | undefined): unknown {
    if (!(error instanceof Problem) || error.definition.code !== 'invalid_credentials') return error;
    return this.countRefused(kind, address) ?? error;
  }

  /** Counts a rejected credential. @returns the problem after too many rejections */
  countRefused(kind: CredentialKind, address: string | undefined): Problem | undefined {
    return refusalOf(this.#take('failed_authentication', networkOf(address), kind));
  }

  /** Counts a request to the authorization server or its pages. @returns seconds until the next window; undefined within the limit */
  countOauthRequest(address: string | undefined): number | undefined {
    const count = this.#take('oauth_requests', networkOf(address), 'none');
    return count?.admitted === false ? count.resetSeconds : undefined;
  }

  #take(limit: LimitName, caller: string, credential: CredentialKind) {
    if (this.#quotas[limit] === 0) return undefined;
    const count = this.#counter.take(limit, caller, this.#quotas[limit]);
    if (!count.admitted) this.meter.count('rate_limit_refusals_total', { limit, credential });
    return count;
  }
}

const keyOf = ({ userId, credentialId }: Pick<Caller, 'userId' | 'credentialId'>) =>
  `${userId ?? 'platform'}:${credentialId}`;

function refusalOf(count: ReturnType<Counter['take']> | undefined): Problem | undefined {
  if (count?.admitted !== false) return undefined;
  return new Problem('rate_limited', {
    detail: `Too many requests: wait ${count.resetSeconds} s for the next window.`,
    extensions: { retry_after: count.resetSeconds },
    headers: { 'Retry-After': String(count.resetSeconds) },
  });
}

interface Calls {
  readonly key: string;
  /** Admitted requests to all instances, at the last exchange. */
  known: number;
  /** Admitted requests to this instance since the last exchange. */
  unsent: number;
}

/**
 * Counts requests per limit, caller and window, in memory. Instances exchange counts through the store every
 * RATE_LIMIT_SYNC ms, so together they may admit more requests than the limit (docs/operators/scaling.md).
 */
export class Counter {
  #window = 0;
  readonly #limits = new Map<string, Map<string, Calls>>();
  readonly #changed = new Set<Calls>();
  #exchanging: Promise<void> | undefined;
  /** Whether the store is unreachable, so that this instance counts alone. */
  alone = false;

  constructor(
    private readonly store: CountStore | undefined,
    private readonly logger: Pick<Logger, 'info' | 'warn'>,
  ) {}

  /** Counts `requests` (0 or 1) if the quota admits one. @returns also the requests left, and the seconds until the next window */
  take(limit: string, caller: string, quota: number, requests = 1) {
    const seconds = Date.now() / 1000;
    const window = Math.floor(seconds / WINDOW_SECONDS);
    const calls = this.#callsOf(limit, caller, window);
    const left = quota - calls.known - calls.unsent;
    if (left > 0 && requests > 0) {
      calls.unsent++;
      if (this.store) this.#changed.add(calls);
    }
    const resetSeconds = Math.ceil((window + 1) * WINDOW_SECONDS - seconds);
    return { admitted: left > 0, left: Math.max(0, left - 1), resetSeconds };
  }

  /** Exchanges counts with the store; never rejects. */
  exchange(): Promise<void> {
    return (this.#exchanging ??= this.#exchange().finally(() => (this.#exchanging = undefined)));
  }

  async end(): Promise<void> {
    await this.#exchanging;
    await this.exchange();
    await this.store?.end();
  }

  #callsOf(limit: string, caller: string, window: number): Calls {
    if (window !== this.#window) {
      this.#window = window;
      this.#limits.clear();
      this.#changed.clear();
    }
    let callers = this.#limits.get(limit);
    let calls = callers?.get(caller);
    if (calls) return calls;
    if (!callers || callers.size >= MAX_CALLERS) {
      for (const dropped of callers?.values() ?? []) this.#changed.delete(dropped);
      this.#limits.set(limit, (callers = new Map()));
    }
    calls = { key: `${window}:${limit}:${caller}`, known: 0, unsent: 0 };
    callers.set(caller, calls);
    return calls;
  }

  async #exchange(): Promise<void> {
    if (!this.store || (this.#changed.size === 0 && !this.alone)) return;
    const changed = [...this.#changed].slice(0, MAX_EXCHANGED);
    const sent = new Map(changed.map(({ key, unsent }) => [key, unsent]));
    try {
      const sums = await this.store.add(this.#window, sent);
      for (const calls of changed) {
        const added = sent.get(calls.key)!;
        calls.known = Math.max(calls.known + added, sums.get(calls.key)!); // the store may have lost its counts
        calls.unsent -= added;
        // Moves a caller with new requests to the end, and removes others; a cleared caller stays removed.
        if (this.#changed.delete(calls) && added + calls.unsent > 0) this.#changed.add(calls);
      }
      if (this.alone) this.logger.info('rate limits are shared again');
      this.alone = false;
    } catch (error) {
      // The next exchange sends these counts again. If the store has them already, they count twice, so callers reach limits earlier.
      const reason = (error as Error).message;
      if (!this.alone)
        this.logger.warn(
          { reason },
          'rate limits are not shared: this instance counts only its own requests',
        );
      this.alone = true;
    }
  }
}
