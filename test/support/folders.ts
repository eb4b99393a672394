import { chownSync } from 'node:fs';

const NOBODY = 65_534;

/** Returns a folder of another user: `own`, with its owner changed if permitted, otherwise a system folder. */
export function foreignFolder(own: string): string {
  if (process.getuid!() !== 0) return '/usr';
  chownSync(own, NOBODY, NOBODY);
  return own;
}
