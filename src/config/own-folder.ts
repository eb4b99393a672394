import { lstatSync, mkdirSync, statSync, type Stats } from 'node:fs';

/** A folder is not safe for private files; the message names the remedy. */
export class UnsafeFolder extends Error {
  override name = 'UnsafeFolder';
}

/** Creates `folder` (mode 0700), or checks that it belongs to this user and that others cannot write to it. @throws UnsafeFolder */
export function ownFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  refuse(folder, statSync(folder), 0o022, 'is writable by others');
}

/** Creates `folder` (mode 0700), or checks that it is not a link and that other users cannot access it. @throws UnsafeFolder */
export function secretFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (!found.isDirectory()) throw new UnsafeFolder(`${folder} is a link: remove it`);
  refuse(folder, found, 0o077, 'is accessible to others');
}

function refuse(folder: string, { uid, mode }: Stats, bits: number, what: string): void {
  const own = process.getuid?.(); // Windows has neither user ids nor such modes
  if (own === undefined) return;
  if (uid !== own) throw new UnsafeFolder(`${folder} belongs to another user: name a folder of this user`);
  if ((mode & bits) !== 0) throw new UnsafeFolder(`${folder} ${what}: run \`chmod 700 ${folder}\``);
}
