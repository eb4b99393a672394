import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';
import { UsageTally } from './usage-tally.js';

const DAY_MS = 86_400_000;

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
