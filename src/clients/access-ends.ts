import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { audited, recordEvent, type NewAuthEvent } from '../audit/audit.js';
import { boundChanges } from '../auth/owner.js';
import { Config } from '../config/config.js';
import { choicesFor, secondsOf, type AccessClient, type Duration } from './access-durations.js';
import { IS_LIVE } from './connected-apps.js';

/** SQL: an {@link AccessClient} for each app in $2; `isPublicBrowser` requires a refresh token of the member $1 without a DPoP key. */
const ACCESS_CLIENTS = `SELECT c.id AS client_id, c.longest_access, c.owner_id IS NOT NULL AND c.approved_at IS NULL AS "isUnapproved",
  c.type = 'web' AND c.jwks IS NULL AND c.secret_auth_method IS NULL AND c.document_read_at IS NULL AND EXISTS (
    SELECT FROM oauth_grants g JOIN oauth_tokens t ON t.grant_id = g.id
    WHERE g.user_id = $1 AND g.client_id = c.id AND t.model = 'RefreshToken' AND t.payload->>'jkt' IS NULL) AS "isPublicBrowser"
FROM oauth_clients c WHERE c.id = ANY ($2)`;

/** Omits one-time access, which has no refresh token. Announces changed grants, so that credential caches forget the previous end. */
const CHANGE = `WITH changed AS (
  UPDATE oauth_grants g SET access_ends_at = now() + make_interval(secs => $3)
  WHERE g.user_id = $1 AND g.client_id = $2 AND ${IS_LIVE}
    AND (g.access_ends_at > g.created_at + interval '1 hour') IS NOT FALSE
  RETURNING g.id
), remembered AS (
  UPDATE oauth_consents SET duration = $4, access_ends_at = now() + make_interval(secs => $3)
  WHERE user_id = $1 AND client_id = $2 AND EXISTS (SELECT FROM changed)
) SELECT announce_revocations('grant', ARRAY[id]) FROM changed`;

/** Lets members change an app's access duration without another authorization request. */
@Injectable()
export class AccessEnds {
  constructor(
    private readonly dataSource: DataSource,
    @Inject(Config) private readonly config: Pick<Config, 'accessLongest' | 'accessPreselected'>,
  ) {}

  async choicesOf(userId: number, clientIds: readonly string[]): Promise<Map<string, readonly Duration[]>> {
    const values = [userId, clientIds];
    const rows = await this.dataSource.query<(AccessClient & { client_id: string })[]>(
      ACCESS_CLIENTS,
      values,
    );
    const choices = (row: AccessClient) => choicesFor(row, this.config).filter((one) => one !== 'once');
    return new Map(rows.map((row) => [row.client_id, choices(row)]));
  }

  /** Changes the end of an app's current access and consent. @returns false if no access can change @throws TooManyChanges */
  change(
    userId: number,
    clientId: string,
    duration: Duration,
    actor: Pick<NewAuthEvent, 'actor' | 'ip'>,
  ): Promise<boolean> {
    return audited(this.dataSource, async (manager) => {
      await boundChanges(manager, userId);
      const values = [userId, clientId, secondsOf(duration), duration];
      const { length: grants } = await manager.query<unknown[]>(CHANGE, values);
      if (grants === 0) return false;
      const details = { grants, duration };
      await recordEvent(manager, { ...actor, type: 'access.changed', userId, clientId, details });
      return true;
    });
  }
}
