import type { ResourceDeclaration } from '../model/access.js';
import { achievementsAccess } from './achievements/access.js';
import { connectionsAccess } from './connections/access.js';
import { eventsAccess } from './events/access.js';
import { profileAccess } from './profile/access.js';

const DECLARATIONS = {
  profile: profileAccess,
  events: eventsAccess,
  connections: connectionsAccess,
  achievements: achievementsAccess,
};

/** Names of the resources of the members' API. */
export const RESOURCES = Object.keys(DECLARATIONS) as (keyof typeof DECLARATIONS)[];
export type Resource = keyof typeof DECLARATIONS;

const ENTRIES: readonly (readonly [string, ResourceDeclaration])[] = Object.entries(DECLARATIONS);

/** Kinds of changes for a member. `removed` means that the item is no longer in the member's lists. */
export const CHANGE_KINDS = ['updated', 'removed'] as const;

export const ABOUT: ReadonlyMap<string, string> = new Map(ENTRIES.map(([name, { about }]) => [name, about]));

export const READ_SCOPES = Object.fromEntries(
  ENTRIES.map(([name, { scope }]) => [`${name}:read`, scope]),
) as { readonly [Name in Resource as `${Name}:read`]: (typeof DECLARATIONS)[Name]['scope'] };

/** Returns SQL conditions. `own`: the row belongs to the member ($1). `access`: the member can also see it. */
export function accessTo(resource: Resource): { readonly own: string; readonly access: string } {
  const { member, isShown } = DECLARATIONS[resource];
  const own = `${member} = $1`;
  return { own, access: isShown === 'true' ? own : `${own} AND ${isShown}` };
}

/** SQL condition: `p` is the member's ($1) row in `participants`, and the member can see the event. */
export const EVENT_ACCESS = accessTo('events').access;

/** Derives list properties from the resource's declaration. */
export function listOf(resource: Resource) {
  const { rows, id } = DECLARATIONS[resource];
  return { name: resource, rows, id, ...accessTo(resource) };
}

/** Returns the scope that reading the resource requires. */
export const readScope = <Name extends string>(resource: Name) => `${resource}:read` as const;
/** Like {@link readScope}, but in SQL. @param resource SQL of the name */
export const readScopeSql = (resource: string) => `(${resource} || ':read')`;

/** Returns SQL of a change's kind: `updated` if the member can see the item now, else `removed`. */
export const kindFor = (member: string, resource: string, id: string) => `CASE WHEN CASE ${resource}
${ENTRIES.map(
  ([name, { rows, isShown, ...row }]) =>
    `      WHEN '${name}' THEN EXISTS (SELECT FROM ${rows} WHERE ${row.member} = ${member} AND ${row.id} = ${id} AND ${isShown})`,
).join('\n')}
      END THEN 'updated' ELSE 'removed' END`;

/**
 * SQL: the members and items that the changes in `log` affect, as rows (resource, user_id, id, changed_at, changed_in, sequence),
 * possibly repeated. Filter by one member, or by the latest changes. {@link kindFor} computes the kind for that member.
 */
export const concernedBy = (log: string, resource?: Resource) =>
  ENTRIES.filter(([name]) => resource === undefined || name === resource)
    .flatMap(([name, { traces, isShown, member, id }]) =>
      traces.map((trace) => {
        const usual = trace.through
          ? { where: isShown, item: [member, id] }
          : { through: '', where: 'true', item: ['s.user_id', 's.id'] };
        const { of, through, where, item } = { ...usual, ...trace };
        return `SELECT text '${name}' COLLATE "C" AS resource, ${item[0]} AS user_id, ${item[1]} AS id,
  s.changed_at, s.changed_in, s.sequence
  FROM ${log} s ${through}
  WHERE ${of} AND ${where}`;
      }),
    )
    .join('\nUNION ALL\n');

/** SQL: whether a transaction was committed after the last change mark before `moment`; true if there is no such mark. */
export const committedSince = (transaction: string, moment: string) =>
  `committed_after(${transaction}, (SELECT last_mark_before(${moment}::timestamptz)))`;

/** SQL: whether the sweeper deleted changes, or a restore undid changes, after the last change mark before `moment`. */
export const lostSince = (place: 'swept' | 'restored', moment: string) =>
  `EXISTS (SELECT FROM change_places WHERE name = '${place}' AND ${committedSince('changed_in', moment)})`;

/** SQL: whether an item of the member ($1) changed since `moment`; true if some of these changes were deleted. @param id SQL of the id */
export const changedSince = (resource: Resource, id: string) => (moment: string) =>
  `${lostSince('swept', moment)} OR ${id} IN (SELECT s.id FROM (${concernedBy('changes', resource)}) s
    WHERE s.user_id = $1 AND ${committedSince('s.changed_in', moment)})`;
