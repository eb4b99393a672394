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
export interface ResourceDeclaration {
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

/** Selects rows about a member's own data. */
export const ownRows = (...kinds: string[]) =>
  `s.user_id IS NOT NULL AND s.resource IN (${kinds.map((kind) => `'${kind}'`).join(', ')})`;
/** Selects rows about what others see, too. */
export const sharedRows = (kind: string) => `s.user_id IS NULL AND s.resource = '${kind}'`;
/** Adds to those who see a record those who saw it before it left all lists. */
export const orRemoved = (isShown: string) => `(${isShown} OR s.kind = 'removed')`;
