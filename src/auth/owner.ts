import type { EntityManager } from 'typeorm';
import type { AuthEventType } from '../audit/audit.js';
import { OperatorError } from '../values/operator-error.js';

/** A member who acts on their own keys and apps only. */
export interface Owner {
  readonly userId: number;
  readonly ip: string | null;
}

/** Returns the member and address for an audit event. */
export const by = (owner: Owner | undefined) => (owner ? { userId: owner.userId, ip: owner.ip } : {});

export class LimitReached extends OperatorError {}

/** Thrown if a member has made {@link MAX_CHANGES} {@link REPEATABLE} changes within 24 hours. */
export class TooManyChanges extends Error {
  override name = 'TooManyChanges';
}

/** Maximum {@link REPEATABLE} changes per member in 24 hours, since the audit log keeps each change. */
const MAX_CHANGES = 100;

/** Changes that a member can repeat or reverse any number of times. */
const REPEATABLE = [
  'client.created',
  'client.updated',
  'client.secret_rotated',
  'client.enabled',
  'client.applied',
  'tester.invited',
  'key.created',
  'key.rotated',
  'calendar_link.created',
  'passkey.added',
  'webhook.created',
  'webhook.rotated',
  'webhook.tested',
  'webhook.redelivered',
  'user.password_switched',
  'access.changed',
  'notice.chosen',
] as const satisfies AuthEventType[];

/** Limits a member's {@link REPEATABLE} changes. @throws TooManyChanges after {@link MAX_CHANGES} in 24 hours */
export async function boundChanges(
  database: { query(text: string, values: unknown[]): Promise<unknown> },
  userId: number,
): Promise<void> {
  const found = await database.query(
    `SELECT FROM auth_events WHERE user_id = $1 AND actor = 'user' AND occurred_at > now() - interval '1 day'
AND type = ANY ($2) OFFSET ${MAX_CHANGES - 1} LIMIT 1`,
    [userId, REPEATABLE],
  );
  if ((found as unknown[]).length > 0) throw new TooManyChanges();
}

/** Locks the member, then checks limits. @param isFull SQL: SELECT of `is_full`; $1 is the member @throws LimitReached, TooManyChanges */
export async function takeSlot(
  manager: EntityManager,
  { userId }: Owner,
  isFull: string,
  what: string,
  ...more: readonly unknown[]
): Promise<void> {
  const members = await manager.query<unknown[]>(
    'SELECT FROM users WHERE id = $1 AND disabled_at IS NULL FOR NO KEY UPDATE',
    [userId],
  );
  await boundChanges(manager, userId);
  const [place] = await manager.query<{ is_full: boolean }[]>(isFull, [userId, ...more]);
  if (members.length === 0 || place!.is_full) throw new LimitReached(`the member has ${what}`);
}
