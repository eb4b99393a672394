import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { audited, recordEvent } from '../audit/audit.js';
import { randomUUID } from '../crypto/random.js';
import { Config } from '../config/config.js';
import type { OauthLogout } from '../database/schema/entities/credentials/oauth.entity.js';
import { keyed } from '../database/sql.js';
import { Logger } from '../runtime/logger.js';
import { Meter } from '../runtime/meter.js';
import { attempt, LEASE_SECONDS, MAX_PER_ENDPOINT, Outbox, waitAfter } from '../runtime/outbox.js';
import { Periodic } from '../runtime/periodic-work.js';
import { PublicHttps } from '../runtime/public-https.js';
import { AuthorizationServer } from './authorization-server.js';
import { OauthDatabase, OauthRequest } from './requests/oauth-database.js';

const PAUSE_MS = 250;

/** The event in a logout token (OpenID Connect Back-Channel Logout 1.0 §2.4). */
const LOGOUT = 'http://schemas.openid.net/event/backchannel-logout';

const TOLD = 'c.backchannel_logout_uri IS NOT NULL AND c.disabled_at IS NULL';

const DUE = keyed('oauth_logouts l', 'l.client_id = c.id AND l.due_at <= now() ORDER BY l.due_at');
const LOOK = `SELECT EXISTS (SELECT FROM oauth_clients c JOIN ${DUE} WHERE ${TOLD}) AS due`;

/** $1: maximum notices to claim; $2: the client of each notice that this process is sending. */
const CLAIM = `WITH chosen AS MATERIALIZED (
  SELECT next.id, c.backchannel_logout_uri AS url FROM oauth_clients c CROSS JOIN LATERAL (
    SELECT l.id, row_number() OVER (ORDER BY l.due_at, l.id) AS turn FROM oauth_logouts l
    WHERE l.client_id = c.id AND l.due_at <= now() ORDER BY l.due_at, l.id
    LIMIT GREATEST(0, ${MAX_PER_ENDPOINT} - cardinality(array_positions($2::text[], c.id)))
  ) next WHERE ${TOLD} ORDER BY next.turn, next.id LIMIT $1
)
UPDATE oauth_logouts l SET due_at = now() + make_interval(secs => ${LEASE_SECONDS}), attempts = attempts + 1
FROM chosen WHERE l.id = chosen.id AND l.due_at <= now()
RETURNING l.id, l.client_id, l.user_id, l.sid, l.attempts, chosen.url`;

const DONE = 'DELETE FROM oauth_logouts WHERE id = $1';
const REMOVE_URI = `UPDATE oauth_clients SET backchannel_logout_uri = NULL WHERE id = $1 AND backchannel_logout_uri = $2`;
const AGAIN =
  'UPDATE oauth_logouts SET due_at = now() + make_interval(secs => $2) WHERE id = $1 AND attempts = $3';

/** `attempts` includes the current attempt. */
interface Logout extends Pick<OauthLogout, 'id' | 'client_id' | 'user_id' | 'sid' | 'attempts'> {
  readonly url: string;
}

/**
 * Notifies clients of ended sessions (OpenID Connect Back-Channel Logout 1.0). The database stores the notices (`tell_clients` in
 * schema/sign-ins.sql); this class sends them, and retries like webhooks.
 */
@Injectable()
export class BackChannelLogout implements OnApplicationShutdown {
  readonly #outbox = new Outbox<Logout>({
    claim: (most) => this.#claim(most),
    send: (logout, stop) => this.#send(logout, stop),
    failed: ({ message: reason }) =>
      this.logger.warn({ reason }, 'the result of a logout token could not be stored'),
  });

  constructor(
    private readonly config: Config,
    private readonly logger: Logger,
    private readonly meter: Meter,
    private readonly database: OauthDatabase,
    private readonly dataSource: DataSource,
    private readonly server: AuthorizationServer,
    private readonly https: PublicHttps,
  ) {}

  onApplicationShutdown(): Promise<void> {
    return this.#outbox.close();
  }

  @Periodic({ work: 'logouts', everyMs: PAUSE_MS, failure: 'apps could not be notified of sign-outs' })
  async work(end: AbortSignal): Promise<void> {
    const [found] = await this.database.rows<{ due: boolean }>(LOOK, []);
    if (found!.due) await this.#outbox.claim(end);
  }

  async #claim(most: number): Promise<{ messages: Logout[] }> {
    const clients = this.#outbox.inProgress.map(({ client_id }) => client_id);
    return { messages: await this.database.rows<Logout>(CLAIM, [most, clients]) };
  }

  async #send(logout: Logout, stop: AbortSignal): Promise<void> {
    const { id, client_id, attempts, url } = logout;
    const outcome = await attempt(async (signal) => {
      const body = String(new URLSearchParams({ logout_token: await this.#token(logout) }));
      return this.https.post({
        url: new URL(url),
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          'Content-Length': String(Buffer.byteLength(body)),
        },
        body,
        signal,
        loopback: !this.config.production,
      });
    }, stop);
    const { taken, status, error, gone } = outcome;
    if (!taken && stop.aborted) return void (await this.database.rows(AGAIN, [id, 0, attempts]));
    const isRemoved = gone && (await this.#removeUri(client_id, url));
    // If the client has changed its URI in the meantime, the new URI gets the notice at once.
    const wait = isRemoved ? undefined : gone ? 0 : waitAfter(attempts - 1, outcome);
    this.meter.count('logout_attempts_total', {
      outcome: taken ? 'delivered' : wait === undefined ? 'dead' : 'failed',
    });
    if (wait !== undefined) return void (await this.database.rows(AGAIN, [id, wait, attempts]));
    await this.database.rows(DONE, [id]);
    if (!taken)
      this.logger.warn(
        { client_id, status, reason: error },
        'a logout token could not be delivered to an app',
      );
  }

  /** Removes the URI, and the app's pending notices. @returns false if it is no longer the app's URI */
  #removeUri(clientId: string, url: string): Promise<boolean> {
    return audited(this.dataSource, async (manager) => {
      const [, clients] = await manager.query<[unknown, number]>(REMOVE_URI, [clientId, url]);
      if (clients === 0) return false;
      await manager.query('DELETE FROM oauth_logouts WHERE client_id = $1', [clientId]);
      const details = { changed: ['backchannel_logout_uri'], reason: 'gone' };
      await recordEvent(manager, { type: 'client.updated', actor: 'system', clientId, details });
      return true;
    });
  }

  /** Makes a logout token (§2.4), which is valid for two minutes. */
  #token({ client_id, user_id, sid }: Logout): Promise<string> {
    const request = new OauthRequest(randomUUID());
    return this.database.serve(request, async () => {
      const { provider } = this.server;
      const client = await provider.Client.find(client_id);
      if (!client) throw new Error('the client does not exist or is disabled');
      const token = new provider.IdToken({}, { client });
      const claims = { sub: String(user_id), sid, jti: randomUUID(), events: { [LOGOUT]: {} } };
      for (const [name, value] of Object.entries(claims)) token.set(name, value);
      return token.issue({ use: 'logout' });
    });
  }
}
