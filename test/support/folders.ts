import { chownSync } from 'node:fs';

const NOBODY = 65_534;

/** Returns a folder that belongs to another user: `own`, given away if this user may do that, otherwise a system folder. */
export function foreignFolder(own: string): string {
  if (process.getuid!() !== 0) return '/usr';
  chownSync(own, NOBODY, NOBODY);
  return own;
}
