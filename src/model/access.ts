/** Maps rows of the change log `s` to members and items. */
interface Trace {
  readonly of: string;
  /** Affected rows of members, as joins after `s` in a FROM; default: the log row itself. */
  readonly through?: string;
  /** Condition on the affected rows; default with `through`: the member sees them. */
  readonly where?: string;
  /** SQL of the member and the item; default: the columns of the member's rows, or of the log row. */
  readonly item?: readonly [member: string, id: string];
}

/** A resource: a member's rows, the visible ones, and changes that affect them. All properties except `about` and `scope` are SQL. */
export interface ResourceDeclaration {
  readonly about: string;
  /** Description of the scope `<resource>:read` on the consent page. */
  readonly scope: string;
  readonly rows: string;
  readonly member: string;
  readonly id: string;
  /** Condition for rows that the member sees. */
  readonly isShown: string;
  readonly traces: readonly Trace[];
}

/** Selects rows about a member's own data. */
export const ownRows = (...kinds: string[]) =>
  `s.user_id IS NOT NULL AND s.resource IN (${kinds.map((kind) => `'${kind}'`).join(', ')})`;
/** Selects rows about data that others also see. */
export const sharedRows = (kind: string) => `s.user_id IS NULL AND s.resource = '${kind}'`;
/** Also selects members who saw a record before it left all lists. */
export const orRemoved = (isShown: string) => `(${isShown} OR s.kind = 'removed')`;
