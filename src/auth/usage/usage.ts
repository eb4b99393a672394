import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { Request } from 'express';
import { GrantUsageRecorder } from '../access-tokens/grant-usage.js';
import { ApiKeyUsageRecorder } from '../api-keys/api-key-usage.js';
import { MemberUsageRecorder } from './member-usage.js';
import type { UsageListener } from './usage-listener.js';

export type { UsageListener };

const FLUSH_MS = 30_000;

/**
 * The one place that hears of each request that has to come with a credential, when it is answered: last use of keys and grants, and what
 * was used of a member, are counted from here, and whoever else is to know of requests listens here.
 */
@Injectable()
export class Usage implements OnModuleInit, OnApplicationShutdown {
  readonly #listeners: UsageListener[];
  #timer: NodeJS.Timeout | undefined;

  constructor(keys: ApiKeyUsageRecorder, grants: GrantUsageRecorder, members: MemberUsageRecorder) {
    this.#listeners = [keys, grants, members];
  }

  onModuleInit(): void {
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  /** From now on the listener is told as well. */
  listen(listener: UsageListener): void {
    this.#listeners.push(listener);
  }

  /**
   * Tells of the request once it is answered: to be called before its credential is looked at.
   *
   * @param scope that it uses; null: nothing of the member's
   */
  watch({ context }: Request, scope: string | null): void {
    context.scope = scope;
    context.whenWritten = this.#written;
  }

  /** Writes all that was gathered. */
  async flush(): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.flush()));
  }

  /** One function for all requests: a closure of each would cost more than all that is done here. */
  readonly #written = (message: IncomingMessage, { statusCode }: ServerResponse): void => {
    for (const listener of this.#listeners) listener.finished(message as Request, statusCode);
  };
}
