import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';
import { UsageTally } from '../usage/usage-tally.js';

interface GrantUse {
  readonly grant_id: string;
}

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
