import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { concernedBy, kindFor, type Resource } from '../resources/resources.js';

/** removed: it is no longer in the member's lists, for whatever reason. */
export const CHANGE_KINDS = ['updated', 'removed'] as const;

/** An item that changed, and whether the member still sees it. */
export interface MemberChange {
  readonly resource: Resource;
  readonly id: number;
  readonly kind: (typeof CHANGE_KINDS)[number];
}

/** A position in a member's changes: just after one of the items that a change, identified by its number and its transaction, is about. */
export interface ChangePlace {
  /** The database that numbers the transactions, and its timeline: after a restore or a failover, the same numbers may mean other transactions. */
  readonly origin: string;
  readonly changedIn: number;
  readonly sequence: number;
  /** One change can be about several items: a change of an organizer's name, for example. '' and 0: before all of them. */
  readonly resource: Resource | '';
  readonly id: number;
}

/** Changes of a member, in their order. */
interface ChangesPage {
  readonly changes: readonly MemberChange[];
  /** The position after them; if there are no more, after everything that can be read now. */
  readonly next: ChangePlace;
  readonly more: boolean;
}

/** No open transaction can add anything before this number: whoever reads up to it leaves no gap that is filled later. */
export const HORIZON = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint';
/** The database and its timeline: in another one, numbers of transactions may be used a second time. */
export const ORIGIN = `(SELECT system_identifier FROM pg_control_system()) || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8)`;

/** A number that is not below this one comes from another server, from a dump of which this database was restored. */
export const AHEAD = 'pg_snapshot_xmax(pg_current_snapshot())::text::bigint';

const READ_PLACE = {
  name: 'read-change-place',
  text: `SELECT ${ORIGIN} AS origin, ${HORIZON} AS horizon`,
};

/**
 * The changes of the member ($1) in the resources ($4) behind a place ($2, $3, $5, $6), each thing once, where it changed last; $7: how
 * many at most. Rows of the member's own are in the log; of what others see, too, the log is asked for each thing in the member's lists.
 * Planned for each call: one who was here a second ago and one who was away for a month need other ways through it.
 */
const READ_CHANGES = `WITH changed AS (
  SELECT * FROM (${concernedBy('changes')}) concerned
  WHERE user_id = $1 AND resource = ANY ($4::text[])
    AND (changed_in, sequence) >= ($2::bigint, $3::bigint) AND changed_in < ${HORIZON}
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
  (SELECT COALESCE(json_agg(json_build_object('resource', resource, 'id', id, 'changedIn', changed_in, 'sequence', sequence,
    'kind', ${kindFor('$1', 'resource', 'page.id')}) ORDER BY changed_in, sequence, resource, id), '[]') FROM page) AS items`;

interface Reading {
  origin: string;
  horizon: number;
  ahead: number;
  swept: boolean;
  items: (MemberChange & Pick<ChangePlace, 'changedIn' | 'sequence'>)[];
}

/** The changes of what members' APIs show (docs/changes.md): the database records them, whoever writes. */
@Injectable()
export class Changes {
  constructor(private readonly database: Database) {}

  /** The position after everything that can be read now: any later read contains everything before it. */
  async here(): Promise<ChangePlace> {
    const [row] = await this.database.read<Pick<Reading, 'origin' | 'horizon'>>(READ_PLACE, []);
    return before(row!.origin, row!.horizon);
  }

  /**
   * Lists what changed for the member after a position, each item once.
   *
   * @returns undefined where that is not known any more
   */
  async of(
    userId: number,
    resources: readonly Resource[],
    place: ChangePlace,
    limit: number,
  ): Promise<ChangesPage | undefined> {
    const [row] = await this.database.long<Reading>({ text: READ_CHANGES }, [
      userId,
      place.changedIn,
      place.sequence,
      resources,
      place.resource,
      place.id,
      limit,
    ]);
    const { origin, horizon, ahead, swept, items } = row!;
    if (swept || origin !== place.origin || place.changedIn > ahead) return undefined;
    const more = items.length > limit;
    const shown = items.slice(0, limit);
    const last = shown.at(-1)!;
    return {
      changes: shown.map(({ resource, id, kind }) => ({ resource, id, kind })),
      next: more
        ? {
            origin,
            changedIn: last.changedIn,
            sequence: last.sequence,
            resource: last.resource,
            id: last.id,
          }
        : before(origin, horizon),
      more,
    };
  }
}

/** The position before everything that this transaction and later ones write. */
function before(origin: string, transaction: number): ChangePlace {
  return { origin, changedIn: transaction, sequence: 0, resource: '', id: 0 };
}
