import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { randomUUID } from '../../crypto/random.js';
import { OperatorError } from '../../values/operator-error.js';

/** Returns the path of an embedded database's lock folder; the database is locked while the folder contains a file. */
export function embeddedLock(dataDir: string): string {
  return join(dataDir, 'embedded.holder');
}

/** Maximum attempts. They take a minute while a live process holds the lock, since opening or closing the database can be slow. */
const MAX_ATTEMPTS = 300;
const LOOK_MS = 200;

/**
 * Takes the lock, even from a killed holder. rename(2) onto a folder is atomic and requires an empty target, so one contender wins.
 * Unique names (`<pid>-<UUID>`) keep contenders from removing a live lock. @param isServed whether a live process serves the database
 * @returns the release function; undefined if a process serves the database @throws OperatorError after a minute
 */
export async function takeEmbeddedLock(
  dataDir: string,
  isServed: () => Promise<boolean>,
): Promise<(() => void) | undefined> {
  const lock = embeddedLock(dataDir);
  const mine = `${process.pid}-${randomUUID()}`;
  const offered = `${lock}.${mine}`;
  mkdirSync(offered, { mode: 0o700 });
  writeFileSync(join(offered, mine), '', { mode: 0o600 });
  try {
    for (let looks = 0; looks < MAX_ATTEMPTS; looks++) {
      if (await isServed()) return undefined;
      if (replacesEmpty(offered, lock)) return () => rmSync(join(lock, mine), { force: true });
      const holder = holderOf(lock);
      if (holder === undefined) continue;
      // A live holder is starting or stopping the database; a dead holder's file blocks the lock until its removal.
      if (isAlive(holder.pid) && holder.pid !== process.pid) await setTimeout(LOOK_MS);
      else rmSync(holder.file, { force: true });
    }
  } finally {
    rmSync(offered, { recursive: true, force: true });
  }
  throw new OperatorError(
    `The data folder is locked by process ${holderOf(lock)?.pid} (${lock}): stop that process, or name another DATA_DIR`,
  );
}

function replacesEmpty(offered: string, lock: string): boolean {
  try {
    renameSync(offered, lock);
    return true;
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    return false;
  }
}

function holderOf(lock: string): { pid: number; file: string } | undefined {
  const [name] = readdirSync(lock);
  return name === undefined ? undefined : { pid: Number.parseInt(name, 10), file: join(lock, name) };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
