/** A way from rows of the log `s` to what members see of their change. */
interface Trace {
  /** Condition on the rows of the log. */
  readonly of: string;
  /** The member's rows that the change concerns, as the rest of a FROM behind `s`; the row of the log itself if not given. */
  readonly through?: string;
  /** Condition on those rows, if it is not that the member sees them. */
  readonly where?: string;
  /** SQL of the member and the item, if they are not those of the member's rows, or else of the row of the log. */
  readonly item?: readonly [member: string, id: string];
}

/** What a member has of a resource, what of it the member's lists show, who may read it, and which changes concern it. All of it is SQL but `about` and `scope`. */
interface ResourceDeclaration {
  /** What it is, in the API's documentation. */
  readonly about: string;
  /** What the scope `<resource>:read` allows, as the consent page says it. */
  readonly scope: string;
  readonly rows: string;
  readonly member: string;
  readonly id: string;
  /** Which of the rows the member sees. */
  readonly isShown: string;
  readonly traces: readonly Trace[];
}

/** Rows about a member's own data. */
const own = (...kinds: string[]) =>
  `s.user_id IS NOT NULL AND s.resource IN (${kinds.map((kind) => `'${kind}'`).join(', ')})`;
/** Rows about what others see, too. */
const shared = (kind: string) => `s.user_id IS NULL AND s.resource = '${kind}'`;
/** Of the thing itself: those who saw it are told, too, that it left everybody's lists. */
const orRemoved = (isShown: string) => `(${isShown} OR s.kind = 'removed')`;

/** The rule is the function `event_visible`, whose result is stored in the row. */
const events = 'p.is_visible';
const connections = 'NOT c.peer_is_disabled';

const DECLARATIONS = {
  profile: {
    about: 'Who the member is, and what they can change about that.',
    scope: 'See your profile: names, bio, picture and counts',
    rows: 'users u',
    member: 'u.id',
    id: 'u.id',
    isShown: 'true',
    traces: [
      // It counts connections and achievements.
      { of: own('profile', 'connections', 'achievements'), item: ['s.user_id', 's.user_id'] },
      {
        of: shared('people'),
        through: 'JOIN connections c ON c.peer_id = s.id',
        where: `c.status = 'accepted' AND s.kind <> 'updated'`,
        item: ['c.user_id', 'c.user_id'],
      },
    ],
  },
  events: {
    about: 'The events that the member organises, attends or is invited to.',
    scope: 'See the events you organise, attend or are invited to',
    rows: 'participants p',
    member: 'p.user_id',
    id: 'p.event_id',
    isShown: events,
    traces: [
      { of: own('events') },
      { of: shared('events'), through: 'JOIN participants p ON p.event_id = s.id', where: orRemoved(events) },
      // Who organises an event is shown with it.
      {
        of: shared('people'),
        through: 'JOIN events e ON e.organizer_id = s.id JOIN participants p ON p.event_id = e.id',
      },
      {
        of: shared('people'),
        through: `JOIN participants h ON h.user_id = s.id AND h.role = 'co_organizer' JOIN participants p ON p.event_id = h.event_id`,
      },
    ],
  },
  connections: {
    about: 'The people whom the member is connected with.',
    scope: 'See the people you are connected with',
    rows: 'connections c',
    member: 'c.user_id',
    id: 'c.id',
    isShown: connections,
    traces: [
      { of: own('connections') },
      {
        of: shared('people'),
        through: 'JOIN connections c ON c.peer_id = s.id',
        where: orRemoved(connections),
      },
      // So is the event where two people met, to those who see it.
      {
        of: own('events'),
        through: 'JOIN connections c ON c.met_at_event_id = s.id AND c.user_id = s.user_id',
      },
      {
        of: shared('events'),
        through: `JOIN participants p ON p.event_id = s.id
    JOIN connections c ON c.met_at_event_id = p.event_id AND c.user_id = p.user_id`,
        where: `${orRemoved(events)} AND ${connections}`,
      },
    ],
  },
  achievements: {
    about: 'What the member has earned, and their progress towards the rest.',
    scope: 'See your achievements and your progress',
    rows: 'user_achievements ua',
    member: 'ua.user_id',
    id: 'ua.achievement_id',
    isShown: 'ua.earned_at IS NOT NULL',
    traces: [
      { of: own('achievements') },
      { of: shared('achievements'), through: 'JOIN user_achievements ua ON ua.achievement_id = s.id' },
    ],
  },
} satisfies Record<string, ResourceDeclaration>;

/** The resources of a member's API that changes refer to. */
export const RESOURCES = Object.keys(DECLARATIONS) as (keyof typeof DECLARATIONS)[];
export type Resource = keyof typeof DECLARATIONS;

const ENTRIES: readonly (readonly [string, ResourceDeclaration])[] = Object.entries(DECLARATIONS);

/** What a change is to a member. removed: it is no longer in the member's lists, for whatever reason. */
export const CHANGE_KINDS = ['updated', 'removed'] as const;

/** What each resource is, in a sentence. */
export const ABOUT: ReadonlyMap<string, string> = new Map(ENTRIES.map(([name, { about }]) => [name, about]));

/** What `<resource>:read` allows, of each resource. */
export const READ_SCOPES = Object.fromEntries(
  ENTRIES.map(([name, { scope }]) => [`${name}:read`, scope]),
) as { readonly [Name in Resource as `${Name}:read`]: (typeof DECLARATIONS)[Name]['scope'] };

/** SQL: the condition on the rows of a resource that the member ($1) has, and on those of them that the member sees. */
export function accessTo(resource: Resource): { readonly own: string; readonly access: string } {
  const { member, isShown } = DECLARATIONS[resource];
  const own = `${member} = $1`;
  return { own, access: isShown === 'true' ? own : `${own} AND ${isShown}` };
}

/** The access rule of events, over `p` (participants): this member ($1) has a relation to the event, and its role may see it. */
export const EVENT_ACCESS = accessTo('events').access;

/** What a list of a resource's rows takes from its declaration. */
export function listOf(resource: Resource) {
  const { rows, id } = DECLARATIONS[resource];
  return { name: resource, rows, id, ...accessTo(resource) };
}

/** The scope without which a credential learns nothing of a resource. */
export const readScope = <Name extends string>(resource: Name) => `${resource}:read` as const;
/** The same in SQL. */
export const readScopeSql = (resource: string) => `(${resource} || ':read')`;

/** SQL: whether a member sees an item now, by the access rules of the lists. */
export const kindFor = (member: string, resource: string, id: string) => `CASE WHEN CASE ${resource}
${ENTRIES.map(
  ([name, { rows, isShown, ...row }]) =>
    `      WHEN '${name}' THEN EXISTS (SELECT FROM ${rows} WHERE ${row.member} = ${member} AND ${row.id} = ${id} AND ${isShown})`,
).join('\n')}
      END THEN 'updated' ELSE 'removed' END`;

/**
 * SQL: whom the rows of `log` (changes) concern, and with which item: (resource, user_id, id, changed_at, changed_in, sequence), an
 * item as often as it changed. Read from both ends: of one member, or of whatever changed last. Whether the member still sees the item is decided
 * by whoever reads on, with {@link kindFor}.
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

/** SQL: whether a transaction was committed at this time or later. */
export const committedSince = (transaction: string, moment: string) =>
  `committed_after(${transaction}, (SELECT last_mark_before(${moment}::timestamptz)))`;

/**
 * SQL: whether an item of the member ($1) changed at this time or later. If changes since then are no longer kept, every item may have.
 *
 * @param id SQL of the item's id
 */
export const changedSince = (resource: Resource, id: string) => (moment: string) =>
  `EXISTS (SELECT FROM change_places WHERE name = 'swept' AND ${committedSince('changed_in', moment)})
  OR ${id} IN (SELECT s.id FROM (${concernedBy('changes', resource)}) s
    WHERE s.user_id = $1 AND ${committedSince('s.changed_in', moment)})`;
