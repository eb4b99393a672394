import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { CONFIG } from '../../config/config.js';
import type { Config } from '../../config/config.js';
import { Database } from '../../database/database.js';
import { LOGGER } from '../../http/logger.js';
import { networkOf } from '../../http/network.js';
import { Problem } from '../../http/problems.js';
import type { Principal } from '../principal.js';
import { WINDOW_SECONDS, WindowCounter } from './window-counter.js';

/** How often instances tell one another what they counted. */
const SHARE_MS = 500;

/**
 * Of RATE_LIMIT_AUTH. It bounds floods, not use: a sign-in takes some ten requests, and a partner's backend refreshes the
 * tokens of all its members from one address.
 */
const OAUTH_REQUESTS_PER_REFUSAL = 100;

/** Where instances add up what each of them counted. */
interface SharedCounts {
  /** Adds `counts`, and returns the totals of the same keys. */
  add(window: number, counts: ReadonlyMap<string, number>): Promise<Map<string, number>>;
  end(): Promise<void>;
}

/**
 * The limits of the contract §10, per user and credential, and of failed authentication and of requests to the
 * authorization server per address. Over one database they hold for all instances together, to within what is counted in {@link SHARE_MS}. Where the shared
 * store is away, each instance limits alone.
 */
@Injectable()
export class RateLimits implements OnModuleInit, OnApplicationShutdown {
  readonly #counter = new WindowCounter();
  #shared: SharedCounts | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly database: Database,
  ) {}

  async onModuleInit(): Promise<void> {
    const { redisUrl, databaseUrl } = this.config;
    if (redisUrl !== undefined) this.#shared = await RedisCounts.connect(redisUrl);
    else if (databaseUrl !== undefined) this.#shared = new PostgresCounts(this.database);
    // The embedded database has one server: its memory is all there is to know.
    if (this.#shared) this.#timer = setInterval(() => void this.share(), SHARE_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.#timer);
    await this.#shared?.end();
  }

  /**
   * Counts a call with a valid credential and says what is left (RateLimit, RateLimit-Policy).
   *
   * @returns the problem to answer where the limit is used up; the caller decides when, since scope goes first
   */
  countCall(principal: Principal, request: Request, response: Response): Problem | undefined {
    const kind = request.method === 'GET' || request.method === 'HEAD' ? 'read' : 'write';
    const limit = this.config.rateLimits[kind];
    if (limit === 0) return undefined;
    const { used, resetSeconds } = this.#counter.count(
      `${kind}:${principal.userId}:${principal.credentialId}`,
    );
    response.setHeader('RateLimit-Policy', `"${kind}";q=${limit};w=${WINDOW_SECONDS}`);
    response.setHeader('RateLimit', `"${kind}";r=${Math.max(0, limit - used)};t=${resetSeconds}`);
    return used > limit ? rateLimited(resetSeconds) : undefined;
  }

  /**
   * Counts `error` where it refuses a credential: a database that is away says nothing about one.
   *
   * @returns what to answer: `error`, or 429 where there were too many
   */
  afterRefusal(error: unknown, address: string | undefined): unknown {
    const limit = this.config.rateLimits.auth;
    if (limit === 0 || !(error instanceof Problem) || error.definition.code !== 'invalid_credentials')
      return error;
    const { used, resetSeconds } = this.#counter.count(`auth:${networkOf(address ?? '')}`);
    return used > limit ? rateLimited(resetSeconds) : error;
  }

  /**
   * Counts a request to the authorization server or its pages, whatever comes of it.
   *
   * @returns the whole seconds until the next one may come where there were too many
   */
  countOauthRequest(address: string | undefined): number | undefined {
    const limit = this.config.rateLimits.auth * OAUTH_REQUESTS_PER_REFUSAL;
    if (limit === 0) return undefined;
    const { used, resetSeconds } = this.#counter.count(`oauth:${networkOf(address ?? '')}`);
    return used > limit ? resetSeconds : undefined;
  }

  /** Tells the others, and hears from them. */
  async share(): Promise<void> {
    const { window, counts } = this.#counter.takeUnshared();
    if (counts.size === 0) return;
    try {
      this.#counter.merge(window, await this.#shared!.add(window, counts));
    } catch (error) {
      this.logger.warn(
        { reason: (error as Error).message },
        'rate limits are not shared: each instance counts alone',
      );
    }
  }
}

function rateLimited(resetSeconds: number): Problem {
  return new Problem('rate_limited', {
    detail: `Too many requests: the next window begins in ${resetSeconds} s.`,
    extensions: { retry_after: resetSeconds },
    headers: { 'Retry-After': String(resetSeconds) },
  });
}

class PostgresCounts implements SharedCounts {
  #swept = 0;

  constructor(private readonly database: Database) {}

  async add(window: number, counts: ReadonlyMap<string, number>): Promise<Map<string, number>> {
    if (window !== this.#swept) {
      this.#swept = window;
      await this.database.rows('DELETE FROM rate_limit_counts WHERE window_number < $1', [window]);
    }
    const rows = await this.database.rows<{ key: string; used: number }>(
      // In the order of keys, so that instances wait for one another and never deadlock.
      `INSERT INTO rate_limit_counts AS c (key, window_number, used)
       SELECT key, $1, used FROM unnest($2::text[], $3::int[]) AS r (key, used) ORDER BY key
       ON CONFLICT (key) DO UPDATE SET window_number = EXCLUDED.window_number,
         used = EXCLUDED.used + CASE WHEN c.window_number = EXCLUDED.window_number THEN c.used ELSE 0 END
       RETURNING key, used`,
      [window, [...counts.keys()], [...counts.values()]],
    );
    return new Map(rows.map(({ key, used }) => [key, used]));
  }

  async end(): Promise<void> {}
}

class RedisCounts implements SharedCounts {
  readonly #redis: Redis;

  private constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Where there is no Redis, its client is not loaded. */
  static async connect(url: string): Promise<RedisCounts> {
    const { Redis } = await import('ioredis');
    const redis = new Redis(url, {
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      connectTimeout: 1_000,
    });
    redis.on('error', () => undefined); // told by the commands that fail
    return new RedisCounts(redis);
  }

  async add(window: number, counts: ReadonlyMap<string, number>): Promise<Map<string, number>> {
    const commands = this.#redis.pipeline();
    for (const [key, used] of counts) {
      commands.incrby(`rate:${window}:${key}`, used).expire(`rate:${window}:${key}`, 2 * WINDOW_SECONDS);
    }
    const results = (await commands.exec()) ?? [];
    return new Map(
      [...counts.keys()].flatMap((key, i) => {
        const [error, total] = results[2 * i] ?? [new Error('no answer'), 0];
        return error ? [] : [[key, Number(total)] as const];
      }),
    );
  }

  async end(): Promise<void> {
    this.#redis.disconnect();
  }
}
