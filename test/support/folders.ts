import { chownSync } from 'node:fs';

const NOBODY = 65_534;

/** A folder that belongs to another user: `own`, given away where this user may do that, else one of the system's. */
export function foreignFolder(own: string): string {
  if (process.getuid!() !== 0) return '/usr';
  chownSync(own, NOBODY, NOBODY);
  return own;
}
