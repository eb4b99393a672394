import { Injectable } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { audited, eventValues, recordEvent, recordEventIf, type NewAuthEvent } from '../audit/audit.js';
import { takeSlot } from '../auth/owner.js';
import { USED, type UsageTally } from '../auth/usage/usage-tally.js';
import { Usage } from '../auth/usage/usage.js';
import { Config } from '../config/config.js';
import { randomBytes } from '../crypto/random.js';
import { eitherOf, TokenKeys } from '../crypto/hmac.js';
import { Database } from '../database/database.js';
import { keyed } from '../database/sql.js';
import { CALENDAR_PREFIX } from '../http/pipeline/api-headers.js';

/** Maximum links per member; the database also enforces this limit. */
export const MAX_LINKS = 10;
/** Maximum code points of a name; the database also enforces this limit. */
export const MAX_NAME_LENGTH = 60;

/** A link without its secret. Times are in the API's format. */
export interface CalendarLinkDetails {
  readonly id: number;
  readonly name: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

export interface ReadableLink {
  readonly id: number;
  readonly user_id: number;
}

type Actor = Pick<NewAuthEvent, 'actor' | 'ip'>;

const MODEL = 'CalendarLink';
const SECRET_BYTES = 32;

const FIND = {
  name: 'find-calendar-link',
  text: `SELECT l.id, l.user_id, l.key FROM calendar_links l JOIN ${keyed('users u', 'u.id = l.user_id')}
WHERE l.key IN ($1, $2) AND u.disabled_at IS NULL`,
};

const USED_LINKS = `UPDATE calendar_links l SET last_used_at = GREATEST(l.last_used_at, r.at)
FROM (SELECT l.id, r.at FROM ${USED} JOIN calendar_links l ON l.id = r.name::bigint ORDER BY l.id FOR NO KEY UPDATE OF l) r
WHERE l.id = r.id`;

/** Manages secret URLs from which calendar apps read a member's events. */
@Injectable()
export class CalendarLinks {
  readonly uses: UsageTally;

  constructor(
    private readonly config: Config,
    private readonly database: Database,
    private readonly keys: TokenKeys,
    usage: Usage,
  ) {
    this.uses = usage.tally('a calendar link', USED_LINKS);
  }

  list(userId: number): Promise<CalendarLinkDetails[]> {
    return this.database.rows<CalendarLinkDetails>(
      `SELECT id, name, api_time(created_at) AS created_at, api_time(last_used_at) AS last_used_at
FROM calendar_links WHERE user_id = $1 ORDER BY id DESC`,
      [userId],
    );
  }

  /** @param name at most {@link MAX_NAME_LENGTH} code points @returns the URL, which is not stored @throws LimitReached, TooManyChanges */
  create(
    userId: number,
    name: string,
    actor: Actor,
    manager: EntityManager = this.database.dataSource.manager,
  ): Promise<string> {
    return audited(manager, async (transaction) => {
      await takeSlot(
        transaction,
        { userId, ip: actor.ip ?? null },
        `SELECT count(*) >= ${MAX_LINKS} AS is_full FROM calendar_links WHERE user_id = $1`,
        `${MAX_LINKS} calendar links`,
      );
      const secret = randomBytes(SECRET_BYTES).toString('base64url');
      const [link] = await transaction.query<{ id: number }[]>(
        `INSERT INTO calendar_links (user_id, slot, name, key)
SELECT $1, min(slot), $2, $3 FROM generate_series(1, ${MAX_LINKS}) slot
WHERE NOT EXISTS (SELECT FROM calendar_links l WHERE l.user_id = $1 AND l.slot = slot.slot) RETURNING id`,
        [userId, name, this.keys.keyOf(MODEL, secret)],
      );
      const details = { link: link!.id };
      await recordEvent(transaction, { ...actor, type: 'calendar_link.created', userId, details });
      return `${this.config.publicUrl}${CALENDAR_PREFIX}/${secret}.ics`;
    });
  }

  /** @returns whether the member had this link */
  async revoke(userId: number, id: number, actor: Actor): Promise<boolean> {
    const event = { ...actor, type: 'calendar_link.revoked', userId, details: { link: id } } as const;
    const gone = await this.database.rows(
      `WITH gone AS (DELETE FROM calendar_links WHERE user_id = $1 AND id = $2 RETURNING id
), told AS (${recordEventIf('gone', 3)}) SELECT FROM gone`,
      [userId, id, ...eventValues(event)],
    );
    return gone.length > 0;
  }

  async revokeAll(
    userId: number,
    actor: Actor,
    within: DataSource | EntityManager = this.database.dataSource,
  ): Promise<void> {
    await audited(within, async (manager) => {
      const [, links] = await manager.query<[unknown, number]>(
        'DELETE FROM calendar_links WHERE user_id = $1',
        [userId],
      );
      if (links > 0)
        await recordEvent(manager, { ...actor, type: 'calendar_link.revoked', userId, details: { links } });
    });
  }

  /** @returns undefined if the link is unknown or revoked, or its member is disabled; always queries the database */
  async find(secret: string): Promise<ReadableLink | undefined> {
    const keys = this.keys.keysOf(MODEL, secret);
    const [link] = await this.database.read<ReadableLink & { key: Buffer }>(FIND, eitherOf(keys));
    if (link !== undefined && !link.key.equals(keys[0]!)) {
      // Found under SECRET_KEY_PREVIOUS: stores the key under SECRET_KEY, so that an admin can remove the previous secret.
      await this.database.rows('UPDATE calendar_links SET key = $2 WHERE id = $1', [link.id, keys[0]]);
    }
    return link;
  }
}
