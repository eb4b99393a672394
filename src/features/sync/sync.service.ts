import { Injectable } from '@nestjs/common';
import type { Principal } from '../../auth/principal.js';
import { Usage } from '../../auth/usage/usage.js';
import { Database } from '../../database/database.js';
import type { List } from '../../database/list.js';
import { MemberReads } from '../../database/member-reads.js';
import { AHEAD, HORIZON, ORIGIN, totalOfMember } from '../../database/sql.js';
import { invalidParameter } from '../../http/input/query.js';
import { Problem } from '../../http/output/problems.js';
import { JsonResponse } from '../../http/output/responses.js';
import { SignedCursors } from '../../http/paging.js';
import { concernedBy, kindFor, readScope, RESOURCES, type Resource } from '../../resources/resources.js';
import { WHOLE_EARNED_LIST } from '../../resources/achievements/achievements.service.js';
import { CONNECTIONS } from '../../resources/connections/api.js';
import { EventsService } from '../../resources/events/events.service.js';
import { ProfileService } from '../../resources/profile/profile.service.js';
import { MAX_CHANGES_WITH_DATA, type Change, type SyncAnswer, type SyncQuery } from './sync.dto.js';

/**
 * Position in a member's changes, after one item of a change: one change (such as an organizer's new name) can affect several items.
 * Resource '' and id 0: before all items of the change.
 */
type Place = readonly [
  origin: string,
  changedIn: number,
  sequence: number,
  resource: Resource | '',
  id: number,
];

const READ_PLACE = {
  name: 'read-change-place',
  text: `SELECT ${ORIGIN} AS origin, ${HORIZON} AS horizon`,
};

/** Maximum rows of a member for the shared plan: for so few rows, planning would take longer than reading. */
const FEW_ROWS = 200;

/** Selects at most $7 + 1 changes of the member ($1) in the resources ($4) after a place ($2, $3, $5, $6), each item at its last change. */
const readChanges = (
  value: (parameter: string) => string,
  itemsIf: (items: string) => string,
) => `WITH changed AS (
  SELECT * FROM (${concernedBy('changes')}) concerned
  WHERE user_id = ${value('$1::bigint')} AND resource = ANY (${value('$4::text[]')})
    AND (changed_in, sequence) >= (${value('$2::bigint')}, ${value('$3::bigint')}) AND changed_in < ${HORIZON}
), last AS (
  SELECT DISTINCT ON (resource, id) resource, id, changed_in, sequence FROM changed
  ORDER BY resource, id, changed_in DESC, sequence DESC
), page AS (
  SELECT * FROM last WHERE (changed_in, sequence, resource, id) > ($2, $3, $5, $6::bigint)
  ORDER BY changed_in, sequence, resource, id LIMIT $7::int + 1
)
SELECT ${ORIGIN} AS origin, ${HORIZON} AS horizon, ${AHEAD} AS ahead,
  EXISTS (SELECT FROM change_places
    WHERE name = 'swept' AND (changed_in, sequence) >= ($2, $3) AND changed_in < ${AHEAD}) AS swept,
  ${itemsIf(`(SELECT COALESCE(json_agg(json_build_object('resource', resource, 'id', id, 'changedIn', changed_in, 'sequence', sequence,
    'kind', ${kindFor('$1', 'resource', 'page.id')}) ORDER BY changed_in, sequence, resource, id), '[]') FROM page)`)} AS items`;

/** Returns no items if the member has many rows. Sub-selects hide the values from the planner, so that sessions keep one plan. */
const READ_CHANGES = {
  name: 'read-changes',
  text: readChanges(
    (parameter) => `(SELECT ${parameter})${parameter.slice(2)}`,
    (items) =>
      `CASE WHEN ${totalOfMember('events_count')} + ${totalOfMember('connections_count')} <= ${FEW_ROWS} THEN ${items} END`,
  ),
};

/** Shows the values to the planner: for a member with many rows, few changes and many changes need different plans. */
const READ_CHANGES_OF_MANY = {
  name: 'read-changes-of-many',
  text: readChanges(
    (parameter) => parameter,
    (items) => items,
  ),
};

interface Reading {
  readonly origin: string;
  readonly horizon: number;
  readonly ahead: number;
  readonly swept: boolean;
  readonly items: (Change & { changedIn: number; sequence: number })[];
}

/** Reads, by id, the JSON texts of records that the member can see. */
type ReadRecords = (userId: number, ids: readonly number[]) => Promise<ReadonlyMap<number, string>>;

/** Reads the changes that both the member and the credential may see (docs/operators/changes.md). */
@Injectable()
export class SyncService {
  readonly #records: Readonly<Record<Resource, ReadRecords>>;

  constructor(
    private readonly database: Database,
    private readonly reads: MemberReads,
    private readonly cursors: SignedCursors,
    private readonly usage: Usage,
    profiles: ProfileService,
    events: EventsService,
  ) {
    const itemsOf =
      (list: Pick<List<never>, 'items'>): ReadRecords =>
      (userId, ids) =>
        list.items(reads.of(userId), userId, ids);
    this.#records = {
      profile: async (userId) => new Map([[userId, String((await profiles.profile(userId)).json)]]),
      events: (userId, ids) => events.wholeEvents(userId, ids),
      connections: itemsOf(CONNECTIONS),
      achievements: itemsOf(WHOLE_EARNED_LIST),
    };
  }

  /** @throws Problem, such as invalid_cursor for another member's cursor, and cursor_expired after a restore */
  async changes(
    principal: Principal,
    { cursor, limit, include, resources: asked = RESOURCES }: SyncQuery,
  ): Promise<SyncAnswer | JsonResponse> {
    const { userId, scopes } = principal;
    if (include && limit > MAX_CHANGES_WITH_DATA) {
      const detail = `limit must be a whole number from 1 to ${MAX_CHANGES_WITH_DATA} with include=data.`;
      throw invalidParameter('limit', detail);
    }
    const resources = RESOURCES.filter(
      (resource) => asked.includes(resource) && scopes.includes(readScope(resource)),
    );
    const binding = ['sync', userId, resources];
    if (cursor === undefined) {
      const [here] = await this.database.read<Reading>(READ_PLACE, []);
      await this.reads.advance(userId); // later reads must not be older than this position
      return { data: [], next: this.cursors.make(binding, after(here!)), more: false, resources };
    }

    const place = this.cursors.read<Place>(binding, cursor);
    const [origin, changedIn, sequence, ...item] = place;
    const values = [userId, changedIn, sequence, resources, ...item, limit];
    const { items, ...now } = await this.#read(values);
    if (now.swept || now.origin !== origin || changedIn > now.ahead) throw new Problem('cursor_expired');
    if (items.length > 0) await this.reads.advance(userId);
    const more = items.length > limit;
    const shown = items.slice(0, limit);
    const last = shown.at(-1)!;
    const next: Place = more
      ? [now.origin, last.changedIn, last.sequence, last.resource, last.id]
      : after(now);
    const data = shown.map(({ resource, id, kind }): Change => ({ resource, id, kind }));
    const rest = { next: this.cursors.make(binding, next), more, resources };
    if (!include) return { data, ...rest };
    const records = await this.#recordsOf(principal, data);
    return new JsonResponse(`{"data":[${records.join()}],${JSON.stringify(rest).slice(1)}`);
  }

  async #read(values: unknown[]): Promise<Reading> {
    const [few] = await this.database.long<Reading | { items: null }>(READ_CHANGES, values);
    if (few!.items) return few!;
    const [all] = await this.database.long<Reading>(READ_CHANGES_OF_MANY, values);
    return all!;
  }

  /** Writes the JSON of each change with its record. A change whose record is no longer in the member's lists becomes `removed`. */
  async #recordsOf(principal: Principal, changes: readonly Change[]): Promise<string[]> {
    const { userId } = principal;
    const updated = Map.groupBy(
      changes.filter(({ kind }) => kind === 'updated'),
      ({ resource }) => resource,
    );
    const found = new Map(
      await Promise.all(
        Array.from(updated, async ([resource, items]) => {
          const records = await this.#records[resource](
            userId,
            items.map(({ id }) => id),
          );
          this.usage.countData(principal, readScope(resource));
          return [resource, records] as const;
        }),
      ),
    );
    return changes.map(({ resource, id, kind }) => {
      const record = kind === 'updated' ? found.get(resource)!.get(id) : undefined;
      const change = JSON.stringify({ resource, id, kind: record === undefined ? 'removed' : kind });
      return `${change.slice(0, -1)},"data":${record ?? 'null'}}`;
    });
  }
}

/** Returns the position after all readable changes: later reads of the data contain all changes before this position. */
function after({ origin, horizon }: Pick<Reading, 'origin' | 'horizon'>): Place {
  return [origin, horizon, 0, '', 0];
}
