import { setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { KEY_DETAILS } from '../auth/api-keys/api-keys.service.js';
import { CONNECTED_APPS } from '../clients/connected-apps.js';
import { Database } from '../database/database.js';
import { EXPORTED_ROWS, type MemberRows } from '../database/schema/member-tables.js';
import type { CursorPosition, List, ListQuery } from '../database/list.js';
import { AllQuery } from '../resources/achievements/achievement.dto.js';
import { CATALOGUE_LIST } from '../resources/achievements/achievements.service.js';
import { CONNECTIONS, ConnectionsQuery } from '../resources/connections/api.js';
import { EventsQuery } from '../resources/events/event.dto.js';
import { EVENTS_IN_ANY_ZONE } from '../resources/events/events.service.js';
import { Semaphore } from '../database/postgres/semaphore.js';
import { isUnavailable } from '../database/postgres/unavailable.js';
import { formatTimestamp } from '../values/timestamps.js';

/** Items per statement, so that results stay small, even with the longest texts. */
const AT_ONCE = { events: 5, connections: 50, achievements: 20, rows: 100 } as const;

const ATTEMPTS = 20;
const AGAIN_MS = 250;

/** Maximum waiting statements: never reached, since few exports run at the same time. */
const MAX_WAITING = 100;
/** Maximum wait in ms; after it, the attempt counts as failed. */
const PATIENCE_MS = 5_000;

/** Parts from shared queries, instead of all columns of one table. */
const SHOWN_ROWS: readonly MemberRows[] = [
  {
    name: 'connected_apps',
    item: 'a.*',
    from: `(${CONNECTED_APPS}) a WHERE true`,
    key: [['a.client_id', 'text']],
  },
  {
    name: 'keys',
    item: 'k.*',
    from: `(${KEY_DETAILS} WHERE k.user_id = $1) k WHERE true`,
    key: [['k.id', 'text']],
  },
];

const PROFILE = `SELECT id, username, display_name, first_name, last_name, stored_display_name, external_id, email, bio, profile_picture,
  edited_fields, password_hash IS NOT NULL AS has_password, api_time(password_off_at) AS password_off_at,
  api_time(created_at) AS created_at FROM users WHERE id = $1`;

type Row = Record<string, unknown>;
type Piece = string | Buffer;
type Read = <T>(one: () => Promise<T>) => Promise<T>;

/** A member's data export: one JSON object, without secrets. */
@Injectable()
export class PersonalData {
  /** Runs the exports' statements (except each export's first) one at a time, so that exports use few connections. */
  readonly #turns = new Semaphore(1, MAX_WAITING, PATIENCE_MS);

  constructor(private readonly database: Database) {}

  /** Yields the JSON in pieces; after a failure, it is incomplete. @param confirm runs before every later statement; rejects to stop */
  async *of(userId: number, confirm: () => Promise<void>): AsyncGenerator<Piece> {
    const read = <T>(one: () => Promise<T>) =>
      this.#patiently(async () => {
        await confirm();
        return one();
      });
    const [profile] = await this.database.rows<Row>(PROFILE, [userId]);
    yield `{"exported_at":"${formatTimestamp(new Date())}",\n"profile":${JSON.stringify(profile)}`;
    const pending = Object.assign(new ConnectionsQuery(), { status: ['pending_sent', 'pending_received'] });
    const catalogue = Object.assign(new AllQuery(), { action: 'all' });
    const { events, connections, achievements } = AT_ONCE;
    yield* part('events', this.#list(read, userId, EVENTS_IN_ANY_ZONE.whole, new EventsQuery(), events));
    yield* part('connections', this.#list(read, userId, CONNECTIONS, new ConnectionsQuery(), connections));
    yield* part('pending_connections', this.#list(read, userId, CONNECTIONS, pending, connections));
    yield* part('achievements', this.#list(read, userId, CATALOGUE_LIST, catalogue, achievements));
    for (const rows of [...SHOWN_ROWS, ...EXPORTED_ROWS])
      yield* part(rows.name, this.#rows(read, userId, rows));
    yield '}\n';
  }

  async *#list<Query extends ListQuery>(
    read: Read,
    userId: number,
    list: List<Query>,
    query: Query,
    limit: number,
  ): AsyncGenerator<Piece> {
    let position: CursorPosition | undefined;
    do {
      const page = () => list.page(this.database, userId, { ...query, limit }, position);
      const { items, found, far_key, far_id } = await read(page);
      if (items !== null) yield items;
      position = found > limit ? { side: 'after', key: far_key, id: far_id! } : undefined;
    } while (position);
  }

  async *#rows(read: Read, userId: number, rows: MemberRows): AsyncGenerator<Piece> {
    const places = rows.key.map((_, i) => `place ${i}`);
    let last: Row | undefined;
    do {
      const values = last ? [userId, ...places.map((place) => last![place])] : [userId];
      const statement = writePage(rows, last !== undefined);
      const page = await read(() => this.database.prepared<Row>(statement, values));
      if (page.length > 0) yield page.map((row) => JSON.stringify(without(row, places))).join(',');
      last = page.length === AT_ONCE.rows ? page.at(-1) : undefined;
    } while (last);
  }

  /** Retries while the database is unavailable, since a failure would end an export that has begun. */
  async #patiently<T>(read: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#turns.take(read);
      } catch (error) {
        if (attempt === ATTEMPTS || !isUnavailable(error)) throw error;
        await setTimeout(AGAIN_MS);
      }
    }
  }
}

function writePage({ item, from, key, descending = false }: MemberRows, isLater: boolean): string {
  const columns = key.map(([column]) => column);
  const places = columns.map((column, i) => `${column}::text AS "place ${i}"`);
  const after = key.map(([, type], i) => `$${i + 2}::${type}`);
  const beyond = isLater
    ? ` AND (${columns.join(', ')}) ${descending ? '<' : '>'} (${after.join(', ')})`
    : '';
  const order = columns.map((column) => `${column}${descending ? ' DESC' : ''}`);
  return `SELECT ${item}, ${places.join(', ')} FROM ${from}${beyond} ORDER BY ${order.join(', ')} LIMIT ${AT_ONCE.rows}`;
}

async function* part(name: string, items: AsyncIterable<Piece>): AsyncGenerator<Piece> {
  let before = `,\n"${name}":[`;
  for await (const piece of items) {
    yield before;
    yield piece;
    before = ',';
  }
  yield before === ',' ? ']' : `${before}]`;
}

function without(row: Row, names: readonly string[]): Row {
  return Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name)));
}
