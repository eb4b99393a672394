import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Request } from 'express';
import { Periodic } from '../../http/periodic-work.js';
import { GrantUsageRecorder } from '../access-tokens/grant-usage.js';
import { ApiKeyUsageRecorder } from '../api-keys/api-key-usage.js';
import { MemberUsageRecorder } from './member-usage.js';
import type { UsageListener } from './usage-listener.js';

export type { UsageListener };

const FLUSH_MS = 30_000;

/**
 * The one place that is notified of every request that requires a credential, when it is answered: last use of keys and grants, and what
 * was used of a member, are counted from here, and everything else that has to know of requests listens here.
 */
@Injectable()
export class Usage implements OnApplicationShutdown {
  readonly #listeners: UsageListener[];

  constructor(keys: ApiKeyUsageRecorder, grants: GrantUsageRecorder, members: MemberUsageRecorder) {
    this.#listeners = [keys, grants, members];
  }

  async onApplicationShutdown(): Promise<void> {
    await this.flush();
  }

  listen(listener: UsageListener): void {
    this.#listeners.push(listener);
  }

  /**
   * Notifies the listeners once the request is answered: to be called before its credential is checked.
   *
   * @param scope the scope that it uses; null if it uses none of the member's data
   */
  watch({ context }: Request, scope: string | null): void {
    context.scope = scope;
    context.whenWritten = this.#written;
  }

  /** Writes everything that was collected. */
  @Periodic({
    work: 'usage',
    everyMs: FLUSH_MS,
    failure: 'what was used could not be recorded',
    waits: true,
  })
  async flush(): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.flush()));
  }

  /** One function for all requests: a closure for each would cost more than everything done here. */
  readonly #written = (message: IncomingMessage, { statusCode }: ServerResponse): void => {
    for (const listener of this.#listeners) listener.finished(message as Request, statusCode);
  };
}
