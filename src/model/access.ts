/** Maps rows of the change log `s` to members and items. */
interface Trace {
  readonly of: string;
  /** Joins from `s` to the members' rows that it affects; absent if `s` itself names the member. */
  readonly through?: string;
  /** Condition on the affected rows; default with `through`: `isShown`. */
  readonly where?: string;
  /** SQL of both ids; default: the resource's `member` and `id` with `through`, otherwise `s.user_id` and `s.id`. */
  readonly item?: readonly [member: string, id: string];
}

/** A resource of the API, with SQL that finds members' rows, the visible ones, and changes that affect them. */
export interface ResourceDeclaration {
  readonly about: string;
  /** Description of the scope `<resource>:read` on the consent page. */
  readonly scope: string;
  readonly rows: string;
  readonly member: string;
  readonly id: string;
  /** SQL: condition for rows that the member sees. */
  readonly isShown: string;
  readonly traces: readonly Trace[];
}

/** Returns SQL: the condition for log rows that name a member. */
export const ownRows = (...kinds: string[]) =>
  `s.user_id IS NOT NULL AND s.resource IN (${kinds.map((kind) => `'${kind}'`).join(', ')})`;
/** Returns SQL: the condition for log rows that name no member, since several members can see the data. */
export const sharedRows = (kind: string) => `s.user_id IS NULL AND s.resource = '${kind}'`;
/** Extends the condition to records that left all lists: members may have seen them before. */
export const orRemoved = (isShown: string) => `(${isShown} OR s.kind = 'removed')`;
