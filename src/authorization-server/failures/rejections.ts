import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { recordEventIf, type LoneEvent } from '../../audit/audit.js';
import { Logger } from '../../runtime/logger.js';
import { Meter } from '../../runtime/meter.js';
import { networkOf } from '../../values/network.js';
import { looksSecret } from '../../values/secret-forms.js';
import { OauthDatabase } from '../requests/oauth-database.js';
import { KNOWN_ERRORS, type RejectionWords } from '../reasons/rejection-reasons.js';

const MAX_PER_MINUTE = 100;
/** Maximum rejections kept per minute from one network, so that a flood from it does not use up the limit for all. */
const MAX_PER_MINUTE_AND_ADDRESS = 10;

const KEEP = `INSERT INTO oauth_refusals (error_id, route, error, reason, client_id, redirect_uri, ip)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (place) DO UPDATE SET occurred_at = EXCLUDED.occurred_at, error_id = EXCLUDED.error_id, route = EXCLUDED.route,
  error = EXCLUDED.error, reason = EXCLUDED.reason, client_id = EXCLUDED.client_id, redirect_uri = EXCLUDED.redirect_uri,
  ip = EXCLUDED.ip`;

/** A rejection without a known member. `clientId` and `redirectUri` are as sent, and untrusted. */
export interface Rejected extends RejectionWords {
  readonly errorId: string;
  readonly route: string;
  readonly clientId?: unknown;
  readonly redirectUri?: unknown;
  readonly ip: string | undefined;
}

/** Records at most one event per app, type, reason and hour, and none for apps without a row, since anyone can cause rejections. */
const RECORD_ONCE = `WITH first AS (
  SELECT FROM oauth_clients WHERE id = $4 AND NOT EXISTS (SELECT FROM auth_events
    WHERE client_id = $4 AND type = $1 AND details->>'reason' = $8::jsonb->>'reason' AND occurred_at > now() - interval '1 hour')
) ${recordEventIf('first', 1)}`;

/** Keeps the latest 10,000 rejections without a known member, for admins; each process stores at most 100 per minute. */
@Injectable()
export class Rejections {
  readonly #kept = new MinuteBudgets();
  /** Prevents concurrent statements for the same event, which would not see each other's row. */
  readonly #recording = new Set<string>();

  constructor(
    private readonly database: OauthDatabase,
    private readonly logger: Logger,
    private readonly meter: Meter,
  ) {}

  count(error: string): void {
    this.meter.count('oauth_errors_total', { error: KNOWN_ERRORS.has(error) ? error : 'other' });
  }

  /** Stores a rejection. Logs an error of the database instead of throwing it, so that the response does not fail. */
  async keep({ errorId, route, error, reason, clientId, redirectUri, ip }: Rejected): Promise<void> {
    const budgets = { all: MAX_PER_MINUTE, [networkOf(ip ?? '')]: MAX_PER_MINUTE_AND_ADDRESS };
    if (!this.#kept.spend(budgets)) return;
    const sent = [maskedInput(clientId, 100), placeOf(redirectUri)];
    try {
      await this.database.rows(KEEP, [errorId, route, error, reason, ...sent, ip ?? null]);
    } catch (failure) {
      this.logger.warn({ reason: (failure as Error).message }, 'a rejection could not be stored');
    }
  }

  async record(event: LoneEvent): Promise<void> {
    const what = JSON.stringify([event.clientId, event.type, event.details]);
    if (this.#recording.has(what)) return;
    this.#recording.add(what);
    try {
      await this.database.rows(RECORD_ONCE, this.database.eventValues(event));
    } catch (failure) {
      this.logger.warn({ reason: (failure as Error).message }, 'a rejection could not be recorded');
    } finally {
      this.#recording.delete(what);
    }
  }
}

/** Matches UUIDs, such as the ids of members' apps, which are not secret. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Matches a run of characters that may be a token, code, key or hash. */
const LONG_RUN = /[\w%~+=-]{20,}/g;
/** Matches words and short numbers, which are not secret. */
const WORDS = /^([a-z]+|\d{1,4})([-_]([a-z]+|\d{1,4}))*$/i;
/** Schemes of URLs without a host, whose content may be secret. */
const OPAQUE = ['data:', 'javascript:', 'blob:', 'about:', 'mailto:'];

/** Masks possible secrets, and returns the first `longest` characters; null for empty text, and for values that are not text. */
export function maskedInput(sent: unknown, longest: number): string | null {
  if (typeof sent !== 'string' || sent === '') return null;
  if (UUID.test(sent)) return sent;
  return sent
    .slice(0, 2_000)
    .replace(/[^\x21-\x7e]+/g, '?')
    .replace(LONG_RUN, (run) => (WORDS.test(run) && !looksSecret(run) ? run : '***'))
    .slice(0, longest);
}

/** Returns a URL's scheme, host and masked path; only the scheme of an opaque URL. Omits the query, which may contain secrets. */
export function placeOf(redirectUri: unknown): string | null {
  const url = typeof redirectUri === 'string' ? URL.parse(redirectUri.slice(0, 2_000)) : null;
  if (!url) return null;
  if (OPAQUE.includes(url.protocol)) return url.protocol;
  return maskedInput(`${url.protocol}${url.host === '' ? '' : `//${url.host}`}${url.pathname}`, 200);
}

/** Limits actions per minute by name. */
export class MinuteBudgets {
  readonly #spent = new LRUCache<string, number>({ max: 10_000, ttl: 60_000, noUpdateTTL: true });

  /** Counts an action for each name, unless a name has reached its limit. @param budgets limits by name @returns whether it was counted */
  spend(budgets: Readonly<Record<string, number>>): boolean {
    if (this.areSpent(budgets)) return false;
    for (const name of Object.keys(budgets)) this.#spent.set(name, (this.#spent.get(name) ?? 0) + 1);
    return true;
  }

  areSpent(budgets: Readonly<Record<string, number>>): boolean {
    return Object.entries(budgets).some(([name, most]) => (this.#spent.get(name) ?? 0) >= most);
  }
}
