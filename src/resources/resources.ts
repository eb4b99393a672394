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

/** Resources of the members' API; each change concerns one of them. */
export const RESOURCES = Object.keys(DECLARATIONS) as (keyof typeof DECLARATIONS)[];
export type Resource = keyof typeof DECLARATIONS;

const ENTRIES: readonly (readonly [string, ResourceDeclaration])[] = Object.entries(DECLARATIONS);

/** Kinds of changes for a member. `removed`: no longer in the member's lists, for any reason. */
export const CHANGE_KINDS = ['updated', 'removed'] as const;

export const ABOUT: ReadonlyMap<string, string> = new Map(ENTRIES.map(([name, { about }]) => [name, about]));

export const READ_SCOPES = Object.fromEntries(
  ENTRIES.map(([name, { scope }]) => [`${name}:read`, scope]),
) as { readonly [Name in Resource as `${Name}:read`]: (typeof DECLARATIONS)[Name]['scope'] };

/** SQL conditions: the resource's rows that belong to the member ($1), and the rows that the member sees. */
export function accessTo(resource: Resource): { readonly own: string; readonly access: string } {
  const { member, isShown } = DECLARATIONS[resource];
  const own = `${member} = $1`;
  return { own, access: isShown === 'true' ? own : `${own} AND ${isShown}` };
}

/** The access rule of events, over `p` (participants): the member ($1) has a relation to the event, with a role that can see it. */
export const EVENT_ACCESS = accessTo('events').access;

/** Derives list properties from the resource's declaration. */
export function listOf(resource: Resource) {
  const { rows, id } = DECLARATIONS[resource];
  return { name: resource, rows, id, ...accessTo(resource) };
}

/** Scope that a credential requires to read the resource. */
export const readScope = <Name extends string>(resource: Name) => `${resource}:read` as const;
/** The scope in SQL. */
export const readScopeSql = (resource: string) => `(${resource} || ':read')`;

/** SQL of the change's kind: `updated` if the lists' access rules now show the item to the member, else `removed`. */
export const kindFor = (member: string, resource: string, id: string) => `CASE WHEN CASE ${resource}
${ENTRIES.map(
  ([name, { rows, isShown, ...row }]) =>
    `      WHEN '${name}' THEN EXISTS (SELECT FROM ${rows} WHERE ${row.member} = ${member} AND ${row.id} = ${id} AND ${isShown})`,
).join('\n')}
      END THEN 'updated' ELSE 'removed' END`;

/**
 * SQL: the members and items that rows of `log` (changes) affect, one row for each: (resource, user_id, id, changed_at, changed_in,
 * sequence). Filter by one member, or by the latest changes. {@link kindFor} computes the kind for that member.
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

/** SQL: whether a transaction was committed at this time or later, or a few seconds earlier; true if no change mark is old enough. */
export const committedSince = (transaction: string, moment: string) =>
  `committed_after(${transaction}, (SELECT last_mark_before(${moment}::timestamptz)))`;

/** SQL: whether an item of the member ($1) changed since `moment`; true for all if those changes were deleted. @param id SQL of the id */
export const changedSince = (resource: Resource, id: string) => (moment: string) =>
  `EXISTS (SELECT FROM change_places WHERE name = 'swept' AND ${committedSince('changed_in', moment)})
  OR ${id} IN (SELECT s.id FROM (${concernedBy('changes', resource)}) s
    WHERE s.user_id = $1 AND ${committedSince('s.changed_in', moment)})`;
