import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { audited, recordEvent, type NewAuthEvent } from '../audit/audit.js';
import { boundChanges } from '../auth/owner.js';
import type { Config } from '../config/config.js';
import { endedBy, foldedText } from '../database/sql.js';
import { choicesFor, secondsOf, type AccessClient, type Duration } from './access-durations.js';

/** An app that has live access to a member's data. */
export interface ConnectedApp {
  readonly client_id: string;
  readonly client_name: string;
  readonly redirect_uri: string;
  readonly has_logo: boolean;
  /** Whether the client_id is the URL of the app's metadata document, which replaces a registration. */
  readonly has_document: boolean;
  readonly scopes: string[];
  /** Time in the API's format. */
  readonly since: string;
  readonly access_ends_at: string | null;
  readonly last_used_at: string | null;
}

/** SQL: whether a grant (`g`) is live: it has not ended, and has an unexpired token or an unused, unexpired code. */
const IS_LIVE = `LEAST(g.expires_at, g.access_ends_at) > now() AND EXISTS (
    SELECT FROM oauth_tokens t WHERE t.grant_id = g.id AND t.expires_at > now()
      AND (t.consumed_at IS NULL OR t.model <> 'AuthorizationCode'))`;

/** SQL: a {@link ConnectedApp} for each app that has live access to the data of the member $1. */
export const CONNECTED_APPS = `SELECT c.id AS client_id, c.name AS client_name, c.redirect_uris[1] AS redirect_uri,
  c.logo IS NOT NULL AS has_logo, c.document_read_at IS NOT NULL AS has_document, a.scopes,
  api_time(a.since) AS since, api_time(a.access_ends_at) AS access_ends_at, api_time(a.last_used_at) AS last_used_at
FROM (
  SELECT g.client_id, min(g.created_at) AS since, max(u.last_used_at) AS last_used_at,
    CASE WHEN bool_and(g.access_ends_at IS NOT NULL) THEN max(g.access_ends_at) END AS access_ends_at,
    COALESCE(array_agg(DISTINCT s.scope) FILTER (WHERE s.scope <> ''), '{}') AS scopes
  FROM oauth_grants g LEFT JOIN oauth_grant_usage u ON u.grant_id = g.id
  LEFT JOIN LATERAL unnest(string_to_array(concat_ws(' ', g.payload->'openid'->>'scope', (
    SELECT string_agg(resource.value, ' ') FROM jsonb_each_text(g.payload->'resources') resource)), ' ')) AS s (scope) ON true
  WHERE g.user_id = $1 AND ${IS_LIVE}
  GROUP BY g.client_id
) a JOIN oauth_clients c ON c.id = a.client_id`;

export interface BrowserSession {
  /** Identifies the session in forms; it grants no access. */
  readonly id: string;
  readonly signed_in_at: string;
  readonly last_seen_at: string;
  readonly ip: string | null;
  readonly user_agent: string | null;
}

const SHOWN = 100;

export interface Shown<Row> {
  readonly shown: readonly Row[];
  /** Total number, including items that the list omits. */
  readonly count: number;
}

const LOCK_CONSENTS =
  'SELECT FROM oauth_consents WHERE user_id = $1 AND ($2::text IS NULL OR client_id = $2) ORDER BY client_id FOR UPDATE';

/** SQL: whether the member can change a grant's end: not for one-time access, which has no refresh token. */
const IS_CHANGEABLE = `${IS_LIVE} AND (g.access_ends_at > g.created_at + interval '1 hour') IS NOT FALSE`;

/** SQL: an {@link AccessClient} for each app in $2 whose access can change; `isPublicBrowser` requires a refresh token of the member $1 without a DPoP key. */
const ACCESS_CLIENTS = `SELECT c.id AS client_id, c.longest_access, c.owner_id IS NOT NULL AND c.approved_at IS NULL AS "isUnapproved",
  c.type = 'web' AND c.jwks IS NULL AND c.secret_auth_method IS NULL AND c.document_read_at IS NULL AND EXISTS (
    SELECT FROM oauth_grants g JOIN oauth_tokens t ON t.grant_id = g.id
    WHERE g.user_id = $1 AND g.client_id = c.id AND t.model = 'RefreshToken' AND t.payload->>'jkt' IS NULL) AS "isPublicBrowser"
FROM oauth_clients c WHERE c.id = ANY ($2) AND EXISTS (
  SELECT FROM oauth_grants g WHERE g.user_id = $1 AND g.client_id = c.id AND ${IS_CHANGEABLE})`;

/** Allows a warning before the new end. Announces changed grants, so that credential caches forget the previous end. */
const CHANGE = `WITH changed AS (
  UPDATE oauth_grants g
  SET access_ends_at = now() + make_interval(secs => $3), ending_told_at = NULL, ending_notified_at = NULL
  WHERE g.user_id = $1 AND g.client_id = $2 AND ${IS_CHANGEABLE} RETURNING g.id
), remembered AS (
  UPDATE oauth_consents SET duration = $4, access_ends_at = now() + make_interval(secs => $3)
  WHERE user_id = $1 AND client_id = $2 AND EXISTS (SELECT FROM changed)
) SELECT announce_revocations('grant', ARRAY[id]) FROM changed`;

type Actor = Pick<NewAuthEvent, 'actor' | 'ip'>;

/** Lists and ends apps' access and browser sessions, and changes how long apps have access. */
@Injectable()
export class ConnectedApps {
  constructor(private readonly dataSource: DataSource) {}

  /** Lists apps by name. */
  async listApps(userId: number): Promise<Shown<ConnectedApp>> {
    const rows = await this.dataSource.query<(ConnectedApp & Counted)[]>(
      `SELECT count(*) OVER ()::integer AS count, a.* FROM (${CONNECTED_APPS}) a
ORDER BY ${foldedText('a.client_name')}, a.client_id LIMIT ${SHOWN}`,
      [userId],
    );
    return shownOf(rows);
  }

  /** Lists the durations that the member can choose for each app, without another authorization request. */
  async findChoices(
    userId: number,
    clientIds: readonly string[],
    config: Pick<Config, 'accessLongest' | 'accessPreselected'>,
  ): Promise<Map<string, readonly Duration[]>> {
    const rows = await this.dataSource.query<(AccessClient & { client_id: string })[]>(ACCESS_CLIENTS, [
      userId,
      clientIds,
    ]);
    const choices = (row: AccessClient) => choicesFor(row, config).filter((one) => one !== 'once');
    return new Map(rows.map((row) => [row.client_id, choices(row)]));
  }

  /** Changes the end of an app's current access and consent. @returns false if no access can change @throws TooManyChanges */
  changeEnd(userId: number, clientId: string, duration: Duration, actor: Actor): Promise<boolean> {
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

  /** Lists the current session, then the most recently seen ones. @param own keys of the current session */
  async listSessions(userId: number, own: readonly Buffer[] = []): Promise<Shown<BrowserSession>> {
    const rows = await this.dataSource.query<(BrowserSession & Counted)[]>(
      `SELECT count(*) OVER ()::integer AS count, encode(uid_key, 'hex') AS id, api_time(signed_in_at) AS signed_in_at,
  api_time(last_seen_at) AS last_seen_at, host(ip) AS ip, user_agent
FROM oauth_sessions WHERE user_id = $1 AND expires_at > now()
ORDER BY uid_key = ANY($2::bytea[]) DESC, oauth_sessions.last_seen_at DESC, uid_key LIMIT ${SHOWN}`,
      [userId, own],
    );
    return shownOf(rows);
  }

  /** Ends an app's access, and deletes the member's consent. @param clientId null for all apps @returns number of ended grants */
  async revoke(
    userId: number,
    clientId: string | null,
    actor: Actor,
    within: DataSource | EntityManager = this.dataSource,
  ): Promise<number> {
    return audited(within, async (manager) => {
      // A transaction that stores a grant locks its consent: this statement waits for that lock, so the next statement sees the grant.
      await manager.query(LOCK_CONSENTS, [userId, clientId]);
      const [row] = await manager.query<{ count: number; forgotten: boolean }[]>(
        `WITH forgotten AS (
  DELETE FROM oauth_consents WHERE user_id = $1 AND ($2::text IS NULL OR client_id = $2) RETURNING 1
), ended AS (
  DELETE FROM oauth_grants WHERE user_id = $1 AND ($2::text IS NULL OR client_id = $2) RETURNING 1
) SELECT count(*) AS count, EXISTS (SELECT FROM forgotten) AS forgotten, ${endedBy('$3')} FROM ended`,
        [userId, clientId, actor.actor],
      );
      const { count, forgotten } = row!;
      // Records the event only if there was a grant or consent: otherwise, the member may have invented the client id.
      if (count > 0 || forgotten) {
        await recordEvent(manager, {
          ...actor,
          type: 'access.revoked',
          userId,
          clientId,
          details: { grants: count },
        });
      }
      return count;
    });
  }

  /** Ends all grants, consents, browser sessions and pending sign-ins of a member. @returns numbers of ended grants and sessions */
  async revokeAll(
    userId: number,
    actor: Actor,
    within: DataSource | EntityManager = this.dataSource,
  ): Promise<{ grants: number; sessions: number }> {
    return audited(within, async (manager) => {
      const [ended] = await manager.query<{ grants: number; sessions: number }[]>(
        `WITH forgotten AS (DELETE FROM oauth_consents WHERE user_id = $1
), ended AS (UPDATE users SET sign_ins_valid_since = clock_timestamp() WHERE id = $1 -- end_sign_ins then deletes grants and sessions
) SELECT (SELECT count(*) FROM oauth_grants WHERE user_id = $1) AS grants,
  (SELECT count(*) FROM oauth_sessions WHERE user_id = $1) AS sessions FROM (SELECT ${endedBy('$2')}) AS who`,
        [userId, actor.actor],
      );
      await recordEvent(manager, { ...actor, type: 'access.revoked', userId, details: { ...ended } });
      return ended!;
    });
  }

  /** @returns false if the member has no such session */
  async endSession(userId: number, sessionId: string, actor: Actor): Promise<boolean> {
    if (!/^[0-9a-f]{64}$/.test(sessionId)) return false;
    const details = { session: sessionId.slice(0, 16) };
    return (
      (await this.#end(this.dataSource, userId, `uid_key = decode($2, 'hex')`, sessionId, actor, details)) > 0
    );
  }

  /** Ends a member's other browser sessions. @param kept keys of the session that continues @returns number of ended sessions */
  endOtherSessions(
    userId: number,
    actor: Actor,
    kept: readonly Buffer[],
    within: DataSource | EntityManager = this.dataSource,
  ): Promise<number> {
    return this.#end(within, userId, 'uid_key <> ALL ($2::bytea[])', kept, actor);
  }

  #end(
    within: DataSource | EntityManager,
    userId: number,
    which: string,
    value: unknown,
    actor: Actor,
    details?: { session: string },
  ): Promise<number> {
    return audited(within, async (manager) => {
      const [, sessions] = await manager.query<[unknown, number]>(
        `DELETE FROM oauth_sessions WHERE user_id = $1 AND ${which}`,
        [userId, value],
      );
      if (sessions > 0) {
        const event = { ...actor, type: 'session.ended', userId, details: details ?? { sessions } } as const;
        await recordEvent(manager, event);
      }
      return sessions;
    });
  }
}

interface Counted {
  readonly count: number;
}

function shownOf<Row extends object>(rows: readonly (Row & Counted)[]): Shown<Row> {
  const shown = rows.map((row) => {
    const { count: _, ...own } = row;
    return own as unknown as Row;
  });
  return { shown, count: rows[0]?.count ?? 0 };
}
