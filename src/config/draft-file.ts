import { openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { randomUUID } from '../crypto/random.js';

/** Makes an unguessable name for a draft of a file, so that other users cannot create a link or file there (CWE-59, CWE-377). */
const draftOf = (path: string) => `${path}.${randomUUID()}`;

/** Creates an empty draft next to a file, readable only by this user. @returns the draft's path, and a descriptor that appends */
export function openDraft(path: string): { readonly draft: string; readonly descriptor: number } {
  const draft = draftOf(path);
  return { draft, descriptor: openSync(draft, 'ax', 0o600) };
}

/** Writes a draft next to a file, then publishes it: by default, the draft atomically replaces the file. */
export function writeWhole(
  path: string,
  content: string | Uint8Array,
  mode = 0o600,
  publish: (draft: string, path: string) => void = renameSync,
): void {
  const draft = draftOf(path);
  try {
    writeFileSync(draft, content, { mode, flag: 'wx' });
    publish(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}
