import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Request } from 'express';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';
import { Periodic } from '../../http/periodic-work.js';
import { ApiKeyUsageRecorder } from '../api-keys/api-key-usage.js';
import { UsageTally, type UsageListener } from './usage-tally.js';

const FLUSH_MS = 30_000;
const DAY_MS = 86_400_000;

interface GrantUse {
  readonly grant_id: string;
}

/** Counts when grants were last used. */
@Injectable()
export class GrantUsageRecorder extends UsageTally<GrantUse> {
  constructor(database: Database, logger: Logger) {
    super(
      database,
      logger,
      'a grant',
      `INSERT INTO oauth_grant_usage AS u (grant_id, last_used_at)
SELECT g.id, r.at FROM jsonb_to_recordset($1) AS r (grant_id text, at timestamptz) JOIN oauth_grants g ON g.id = r.grant_id
ORDER BY g.id FOR KEY SHARE OF g
ON CONFLICT (grant_id) DO UPDATE SET last_used_at = GREATEST(u.last_used_at, EXCLUDED.last_used_at)`,
    );
  }

  finished({ principal }: Request, status: number): void {
    if (principal?.kind === 'oauth_token' && status < 400) this.record(principal.credentialId);
  }

  record(grantId: string): void {
    if (!this.again(grantId)) this.begin(grantId, { grant_id: grantId });
  }
}

interface MemberUse {
  readonly user_id: number;
  readonly day: string;
  readonly app_kind: 'client' | 'key';
  readonly app_id: string;
  readonly scope: string;
}

/** Counts which app used which data of a member on which day. */
@Injectable()
export class MemberUsageRecorder extends UsageTally<MemberUse> {
  /** Days since 1970, and how the database writes the last one. */
  #dayNumber = 0;
  #day = '';

  constructor(database: Database, logger: Logger) {
    super(
      database,
      logger,
      'members’ data',
      `INSERT INTO member_usage AS u (user_id, day, app_kind, app_id, scope, uses, last_used_at)
SELECT r.user_id, r.day, r.app_kind, r.app_id, r.scope, r.uses, r.at
FROM jsonb_to_recordset($1) AS r (user_id bigint, day date, app_kind text, app_id text, scope text, uses bigint, at timestamptz)
JOIN users m ON m.id = r.user_id AND m.erased_at IS NULL
ORDER BY r.user_id, r.day, r.app_kind, r.app_id, r.scope FOR KEY SHARE OF m
ON CONFLICT (user_id, day, app_kind, app_id, scope) DO UPDATE SET uses = u.uses + EXCLUDED.uses,
  last_used_at = GREATEST(u.last_used_at, EXCLUDED.last_used_at)`,
    );
  }

  finished({ principal, context: { scope } }: Request, status: number): void {
    if (principal === undefined || status >= 400 || principal.userId === null || scope === null) return;
    const { userId, clientId, keyId } = principal;
    const dayNumber = Math.floor(Date.now() / DAY_MS);
    if (dayNumber !== this.#dayNumber) {
      this.#dayNumber = dayNumber;
      this.#day = new Date(dayNumber * DAY_MS).toISOString().slice(0, 10);
    }
    const kind = clientId === null ? 'key' : 'client';
    const appId = clientId ?? keyId!;
    // Ids of apps may contain anything, so they are the last part. A key's id is never in the place of an app's.
    const name = `${dayNumber} ${userId} ${scope} ${kind} ${appId}`;
    if (this.again(name)) return;
    this.begin(name, { user_id: userId, day: this.#day, app_kind: kind, app_id: appId, scope });
  }
}

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
