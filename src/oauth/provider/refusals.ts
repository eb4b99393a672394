import { Injectable } from '@nestjs/common';
import { Logger } from '../../http/logger.js';
import { Meter } from '../../http/meter.js';
import { networkOf } from '../../values/network.js';
import { looksSecret } from '../../values/string-rules.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { isKnownError } from './refusal-reasons.js';
import type { RefusalWords } from './refusal-reasons.js';

/** Refusals that are kept, of one process: more are in the log alone. */
const MOST_A_MINUTE = 100;
/** Of one address: whoever develops an app finds theirs though somebody else floods the server. */
const MOST_A_MINUTE_OF_AN_ADDRESS = 10;
const MINUTE_MS = 60_000;

const KEEP = `INSERT INTO oauth_refusals (error_id, route, error, reason, client_id, redirect_uri, ip)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (place) DO UPDATE SET occurred_at = EXCLUDED.occurred_at, error_id = EXCLUDED.error_id, route = EXCLUDED.route,
  error = EXCLUDED.error, reason = EXCLUDED.reason, client_id = EXCLUDED.client_id, redirect_uri = EXCLUDED.redirect_uri,
  ip = EXCLUDED.ip`;

/** A refusal that concerns no member. What the caller sent of it may be anything. */
export interface Refused extends RefusalWords {
  readonly errorId: string;
  readonly route: string;
  readonly clientId?: unknown;
  readonly redirectUri?: unknown;
  readonly ip: string | undefined;
}

/**
 * Keeps refusals that concern no member where an admin finds them by the error id that the caller saw: a client id that was
 * mistyped, a redirect URI that nobody registered. Anybody can cause them, so they stand not in the audit trail but in a
 * ring of 10,000, and few of them a minute; and what was sent is kept without what could be a secret.
 */
@Injectable()
export class Refusals {
  #minute = 0;
  readonly #kept = new Map<string, number>();
  #keptOfAll = 0;

  constructor(
    private readonly database: OauthDatabase,
    private readonly logger: Logger,
    private readonly meter: Meter,
  ) {}

  /** Counts an answer that is an error, whomever it concerns and whether it is kept. @param error code of the answer */
  count(error: string): void {
    this.meter.count('oauth_errors_total', { error: isKnownError(error) ? error : 'other' });
  }

  /** An answer never fails, and never waits for long, because its refusal could not be kept. */
  async keep({ errorId, route, error, reason, clientId, redirectUri, ip }: Refused): Promise<void> {
    if (looksSecret(errorId) || !this.#hasRoom(ip)) return;
    try {
      await this.database.rows(KEEP, [
        errorId,
        route,
        error,
        reason,
        withoutSecrets(clientId, 100),
        placeOf(redirectUri),
        ip ?? null,
      ]);
    } catch (failure) {
      this.logger.warn({ reason: (failure as Error).message }, 'a refusal could not be kept');
    }
  }

  #hasRoom(ip: string | undefined): boolean {
    const minute = Math.floor(performance.now() / MINUTE_MS);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#kept.clear();
      this.#keptOfAll = 0;
    }
    const network = networkOf(ip ?? '');
    const kept = this.#kept.get(network) ?? 0;
    if (this.#keptOfAll >= MOST_A_MINUTE || kept >= MOST_A_MINUTE_OF_AN_ADDRESS) return false;
    this.#keptOfAll++;
    this.#kept.set(network, kept + 1);
    return true;
  }
}

/** Random UUIDs, as ids of clients are: they open nothing. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Without a break so long that it could be a token, code, key or hash … */
const LONG_RUN = /[\w%~+=-]{20,}/g;
/** … unless these are words. */
const WORDS = /^([a-z]+|\d{1,4})([-_]([a-z]+|\d{1,4}))*$/i;
/** These hold no place, but anything. */
const OPAQUE = ['data:', 'javascript:', 'blob:', 'about:', 'mailto:'];

/** Leaves of what was sent the first `longest` characters, without what could be a secret. @returns null where nothing is left of it */
export function withoutSecrets(sent: unknown, longest: number): string | null {
  if (typeof sent !== 'string' || sent === '') return null;
  if (UUID.test(sent)) return sent;
  return sent
    .slice(0, 2_000)
    .replace(/[^\x21-\x7e]+/g, '?')
    .replace(LONG_RUN, (run) => (WORDS.test(run) ? run : '***'))
    .slice(0, longest);
}

/** Takes scheme, host and path of a URL: what has to be registered. Codes and tokens stand behind it. */
export function placeOf(redirectUri: unknown): string | null {
  const url = typeof redirectUri === 'string' ? URL.parse(redirectUri.slice(0, 2_000)) : null;
  if (!url) return null;
  if (OPAQUE.includes(url.protocol)) return url.protocol;
  return withoutSecrets(`${url.protocol}${url.host === '' ? '' : `//${url.host}`}${url.pathname}`, 200);
}
