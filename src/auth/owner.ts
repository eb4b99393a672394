import type { EntityManager } from 'typeorm';
import { OperatorError } from '../values/operator-error.js';

/** A member acting on their own keys and apps, with access to nothing else. */
export interface Owner {
  readonly userId: number;
  /** The address that they called from. */
  readonly ip: string | null;
}

/** The member has as many as the limit allows. */
export class LimitReached extends OperatorError {}

/**
 * Makes sure that a member may have one more. Locks the member, so a concurrent transaction doing the same waits for this one.
 *
 * @param manager of the transaction that creates it
 * @param isFull SQL: a SELECT of one boolean, `is_full`, for the member $1
 * @throws LimitReached also for a member who is disabled
 */
export async function takePlace(
  manager: EntityManager,
  { userId }: Owner,
  isFull: string,
  what: string,
): Promise<void> {
  const members = await manager.query<unknown[]>(
    'SELECT FROM users WHERE id = $1 AND disabled_at IS NULL FOR NO KEY UPDATE',
    [userId],
  );
  const [place] = await manager.query<{ is_full: boolean }[]>(isFull, [userId]);
  if (members.length === 0 || place!.is_full) throw new LimitReached(`the member has ${what}`);
}
