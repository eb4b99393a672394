import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { WaysIn } from '../accounts/ways-in.js';
import { ApiKeysService } from '../auth/api-keys/api-keys.service.js';
import { CalendarLinks } from '../calendar/calendar-links.js';
import { Config } from '../config/config.js';
import { Database } from '../database/database.js';
import type { List, ListQuery } from '../database/list.js';
import type { Place } from '../database/keyset.js';
import { AllQuery } from '../features/achievements/achievement.dto.js';
import { CATALOGUE_LIST } from '../features/achievements/achievements.queries.js';
import { CONNECTIONS, ConnectionsQuery } from '../features/connections/connection.dto.js';
import { EventsQuery } from '../features/events/event.dto.js';
import { EVENTS_IN_ANY_ZONE } from '../features/events/events.queries.js';
import { ClientsService } from '../oauth/admin/clients.service.js';
import { ConnectedApps } from '../oauth/admin/connected-apps.js';
import { timestampOf } from '../values/timestamps.js';

/** Rows per statement: each takes some milliseconds, with time for other work in between. */
const AT_ONCE = 500;

/** More than anybody has. */
const ALL = 1_000_000;

const PROFILE = `SELECT id, username, display_name, first_name, last_name, stored_display_name, external_id, email, bio, profile_picture,
  password_hash IS NOT NULL AS has_password, api_time(password_off_at) AS password_off_at,
  api_time(created_at) AS created_at FROM users WHERE id = $1`;

const USAGE = `SELECT to_char(day, 'YYYY-MM-DD') AS day, app_kind, app_id, scope, uses, api_time(last_used_at) AS last_used_at
FROM member_usage WHERE user_id = $1 AND (day, app_kind, app_id, scope) > ($2::date, $3, $4, $5)
ORDER BY day, app_kind, app_id, scope LIMIT ${AT_ONCE}`;

/** Microseconds: what a row's place is found by. */
const TRAIL = `SELECT id, occurred_at::text AS place, api_time(occurred_at) AS occurred_at, type, actor, client_id, key_id,
  host(ip) AS ip, details FROM auth_events WHERE user_id = $1 AND (occurred_at, id) < ($2::timestamptz, $3)
ORDER BY occurred_at DESC, id DESC LIMIT ${AT_ONCE}`;

type Row = Record<string, unknown>;
type Piece = string | Buffer;

/**
 * Everything that is held about a member, as one JSON object: what the API shows, with the same items, and what the account
 * pages show. It contains no secret, and of other people only what the API shows. However much there is, a few hundred rows are read at a time.
 */
@Injectable()
export class PersonalData {
  readonly #keys: ApiKeysService;
  readonly #access: ConnectedApps;
  readonly #clients: ClientsService;
  readonly #waysIn: WaysIn;

  constructor(
    config: Config,
    dataSource: DataSource,
    private readonly database: Database,
    private readonly links: CalendarLinks,
  ) {
    this.#keys = new ApiKeysService(dataSource, config);
    this.#access = new ConnectedApps(dataSource);
    this.#clients = new ClientsService(dataSource, config);
    this.#waysIn = new WaysIn(dataSource);
  }

  /** Yields the text in pieces. A failure in the middle leaves it unfinished, and therefore not valid JSON. */
  async *of(userId: number): AsyncGenerator<Piece> {
    const { shown: apps } = await this.#access.listApps(userId, ALL);
    const { shown: sessions } = await this.#access.listSessions(userId, [], ALL);
    yield `{"exported_at":"${timestampOf(new Date())}"`;
    yield* section('profile', [JSON.stringify((await this.database.rows<Row>(PROFILE, [userId]))[0])]);
    yield* section('events', this.#list(userId, EVENTS_IN_ANY_ZONE.whole, new EventsQuery()), '[]');
    yield* section('connections', this.#list(userId, CONNECTIONS, new ConnectionsQuery()), '[]');
    const pending = Object.assign(new ConnectionsQuery(), { status: ['pending_sent', 'pending_received'] });
    yield* section('pending_connections', this.#list(userId, CONNECTIONS, pending), '[]');
    const catalogue = Object.assign(new AllQuery(), { action: 'all' });
    yield* section('achievements', this.#list(userId, CATALOGUE_LIST, catalogue), '[]');
    yield* section('connected_apps', itemsOf(apps), '[]');
    yield* section('sessions', itemsOf(sessions.map((session) => without(session, ['id']))), '[]');
    yield* section('keys', itemsOf(await this.#keys.list({ userId })), '[]');
    yield* section('passkeys', itemsOf(await this.#waysIn.listPasskeys(userId)), '[]');
    yield* section('own_apps', itemsOf(await this.#clients.list({ userId, ip: null })), '[]');
    yield* section('calendar_links', itemsOf(await this.links.list(userId)), '[]');
    yield* section('usage', this.#usage(userId), '[]');
    yield* section('account_events', this.#trail(userId), '[]');
    yield '}\n';
  }

  async *#list<Query extends ListQuery>(
    userId: number,
    list: List<Query>,
    query: Query,
  ): AsyncGenerator<Piece> {
    const asked = { ...query, limit: AT_ONCE };
    let place: Place | undefined;
    do {
      const { items, found, far_key, far_id } = await list.page(this.database, userId, asked, place);
      if (items !== null) {
        if (place) yield ',';
        yield items;
      }
      place = found > AT_ONCE ? { side: 'after', key: far_key, id: far_id! } : undefined;
    } while (place);
  }

  async *#usage(userId: number): AsyncGenerator<Piece> {
    let place: unknown[] = ['-infinity', '', '', ''];
    for (let first = true; ; first = false) {
      const rows = await this.database.rows<Row>(USAGE, [userId, ...place]);
      yield* itemsOf(rows, first);
      const last = rows.at(-1);
      if (!last || rows.length < AT_ONCE) return;
      place = [last.day, last.app_kind, last.app_id, last.scope];
    }
  }

  async *#trail(userId: number): AsyncGenerator<Piece> {
    let place: unknown[] = ['infinity', Number.MAX_SAFE_INTEGER];
    for (let first = true; ; first = false) {
      const rows = await this.database.rows<Row>(TRAIL, [userId, ...place]);
      yield* itemsOf(
        rows.map((event) => without(event, ['id', 'place'])),
        first,
      );
      const last = rows.at(-1);
      if (!last || rows.length < AT_ONCE) return;
      place = [last.place, last.id];
    }
  }
}

async function* section(
  name: string,
  value: Iterable<Piece> | AsyncIterable<Piece>,
  brackets = '',
): AsyncGenerator<Piece> {
  yield `,\n"${name}":${brackets.slice(0, 1)}`;
  yield* value;
  yield brackets.slice(1);
}

function* itemsOf(rows: readonly object[], first = true): Generator<Piece> {
  if (rows.length === 0) return;
  if (!first) yield ',';
  yield rows.map((row) => JSON.stringify(row)).join(',');
}

function without(row: object, names: readonly string[]): object {
  return Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name)));
}
