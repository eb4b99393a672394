import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Request } from 'express';
import { Database } from '../../database/database.js';
import { Logger } from '../../runtime/logger.js';
import { Periodic } from '../../runtime/periodic-work.js';
import { addressOf } from '../../values/network.js';
import type { Caller } from '../principal.js';
import { DeveloperRequests } from './developer-requests.js';
import { USED, UsageTally } from './usage-tally.js';

const FLUSH_MS = 30_000;
const DAY_MS = 86_400_000;

const USED_KEYS = `INSERT INTO api_key_usage AS u (key_id, last_used_at, last_used_ip, uses_count)
SELECT k.id, r.at, r.ip, r.uses FROM ${USED} JOIN api_keys k ON k.id = r.name ORDER BY k.id FOR KEY SHARE OF k
ON CONFLICT (key_id) DO UPDATE SET last_used_at = GREATEST(u.last_used_at, EXCLUDED.last_used_at),
  last_used_ip = EXCLUDED.last_used_ip, uses_count = u.uses_count + EXCLUDED.uses_count`;

const USED_GRANTS = `INSERT INTO oauth_grant_usage AS u (grant_id, last_used_at)
SELECT g.id, r.at FROM ${USED} JOIN oauth_grants g ON g.id = r.name ORDER BY g.id FOR KEY SHARE OF g
ON CONFLICT (grant_id) DO UPDATE SET last_used_at = GREATEST(u.last_used_at, EXCLUDED.last_used_at)`;

/** Name of a use: `<days since 1970> <member> <scope> <kind of app> <id of app>`. The id may contain spaces, so it is last. */
const USED_DATA = `INSERT INTO member_usage AS u (user_id, day, app_kind, app_id, scope, uses, last_used_at)
SELECT m.id, date '1970-01-01' + r.part[1]::integer, r.part[4], r.part[5], r.part[3], r.uses, r.at
FROM (SELECT regexp_match(r.name, '^(\\d+) (\\d+) (\\S+) (\\S+) (.*)$') AS part, r.uses, r.at FROM ${USED}) r
JOIN users m ON m.id = r.part[2]::bigint AND m.erased_at IS NULL
ORDER BY m.id, r.part FOR KEY SHARE OF m
ON CONFLICT (user_id, day, app_kind, app_id, scope) DO UPDATE SET uses = u.uses + EXCLUDED.uses,
  last_used_at = GREATEST(u.last_used_at, EXCLUDED.last_used_at)`;

/** Records the use of keys and grants, each app's daily use of member data, and the requests of developers' apps. */
@Injectable()
export class Usage implements OnApplicationShutdown {
  readonly #tallies: UsageTally[] = [];
  readonly keys: UsageTally;
  readonly grants: UsageTally;
  readonly #data: UsageTally;

  constructor(
    private readonly database: Database,
    private readonly logger: Logger,
    private readonly developers: DeveloperRequests,
  ) {
    this.keys = this.tally('a key', USED_KEYS);
    this.grants = this.tally('a grant', USED_GRANTS);
    this.#data = this.tally('members’ data', USED_DATA);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.flush();
  }

  tally(what: string, statement: string): UsageTally {
    const tally = new UsageTally(this.database, this.logger, what, statement);
    this.#tallies.push(tally);
    return tally;
  }

  /** Counts the request when it has its response; call before the credential check. @param scope null if it uses no member data */
  watch(request: Request, scope: string | null): void {
    request.scope = scope;
    request.context.whenWritten = this.#written;
  }

  /** Counts a use of member data. Routes that declare no scope call it themselves. */
  countData({ userId, clientId, keyId }: Caller, scope: string): void {
    const app = clientId === null ? `key ${keyId}` : `client ${clientId}`;
    this.#data.count(`${Math.floor(Date.now() / DAY_MS)} ${userId} ${scope} ${app}`);
  }

  @Periodic({ work: 'usage', everyMs: FLUSH_MS, failure: 'uses could not be recorded', waits: true })
  async flush(): Promise<void> {
    await Promise.all([...this.#tallies, this.developers].map((collected) => collected.flush()));
  }

  /** Runs before the caller has the response, so it must be cheap and must not query. All requests share it, which saves closures. */
  readonly #written = (message: IncomingMessage, { statusCode }: ServerResponse): void => {
    const request = message as Request;
    if (request.principal && statusCode < 400) this.#count(request, request.principal);
    this.developers.finished(request, statusCode);
  };

  #count(request: Request, caller: Caller): void {
    const { kind, userId, credentialId } = caller;
    if (kind === 'api_key') this.keys.count(credentialId, addressOf(request));
    else this.grants.count(credentialId);
    const { scope } = request;
    if (userId !== null && scope) this.countData(caller, scope);
  }
}
