import { UnknownKey } from '../../auth/api-keys/api-keys.service.js';
import { LimitReached } from '../../auth/owner.js';
import { ClientFault } from '../../clients/client-rules.js';
import { UnknownClient } from '../../clients/clients.service.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';

/** Checks the form of an id from the URL. @throws PageFault if it cannot be the id of an app or key */
export function checkedId(id: string): string {
  if (!/^[\w-]{1,100}$/.test(id)) throw nothingHere();
  return id;
}

/** Catches the faults that a form shows; rethrows everything else. */
export async function caught<T>(work: () => Promise<T>): Promise<T | ClientFault | LimitReached> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ClientFault || error instanceof LimitReached) return error;
    return hideUnknown(error);
  }
}

/** Responds 404 to another member's app or key, as to one that does not exist. */
export function hideUnknown(error: unknown): never {
  throw error instanceof UnknownClient || error instanceof UnknownKey ? nothingHere() : error;
}

/** Makes the 404 page, for what does not exist or is not this member's. */
export function nothingHere(): PageFault {
  return new PageFault(404, 'nothingHere');
}
