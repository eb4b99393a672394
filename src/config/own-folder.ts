import { lstatSync, mkdirSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';

/** Why a folder cannot be trusted with secrets, and what to do. */
export class UnsafeFolder extends Error {
  override name = 'UnsafeFolder';
}

/**
 * Makes `folder` (mode 0700), or sees that nobody but this user can lay anything there. One that others may only read stays as
 * it is: what is made in it is kept to its owner.
 *
 * @throws UnsafeFolder where it is another user's, or others may write to it
 */
export function ownFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  refuse(folder, statSync(folder), 0o022, 'may be written to by others');
}

/**
 * Makes `folder` (mode 0700) where everybody may make one, or sees that it is no link, and that nobody but this user can even
 * look into it: whoever knew its name may have been there first.
 *
 * @throws UnsafeFolder
 */
export function secretFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (!found.isDirectory()) throw new UnsafeFolder(`${folder} is a link: remove it`);
  refuse(folder, found, 0o077, 'is open to others');
}

function refuse(folder: string, { uid, mode }: Stats, bits: number, what: string): void {
  const own = process.getuid?.(); // Windows has none, and no such modes
  if (own === undefined) return;
  if (uid !== own) throw new UnsafeFolder(`${folder} belongs to another user: name one of your own`);
  if ((mode & bits) !== 0) throw new UnsafeFolder(`${folder} ${what}: run \`chmod 700 ${folder}\``);
}
