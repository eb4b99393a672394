import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isInstalled } from '../../config/config.js';
import { ownFolder, secretFolder, UnsafeFolder } from '../../config/own-folder.js';
import { embeddedAddress, socketPath, type EmbeddedAddress } from './address.js';
import { takeEmbeddedLock } from './lock.js';
import { fillFromSnapshot } from './snapshot.js';
import { startThread } from './thread.js';
import { isListening } from '../../values/network.js';
import { OperatorError } from '../../values/operator-error.js';

export interface EmbeddedDatabase extends EmbeddedAddress {
  /** @param patienceMs time limit in ms for open connections to end, by default 5,000 */
  close(patienceMs?: number): Promise<void>;
}

/**
 * Serves the embedded database on a Unix socket. Takes a lock, since two PGlites would silently lose writes. @returns undefined if another
 * process serves the database @throws OperatorError if PGlite is not installed, or the folder is unsafe, stays locked, or cannot be opened
 */
export async function openEmbedded(dataDir: string): Promise<EmbeddedDatabase | undefined> {
  if (!isInstalled('@electric-sql/pglite')) {
    throw new OperatorError(
      'The embedded database is not part of this installation, which is for production: set DATABASE_URL',
    );
  }
  const address = embeddedAddress(dataDir);
  const socket = socketPath(address.host);
  const folder = join(dataDir, 'embedded');
  try {
    ownFolder(dataDir);
    if (address.host !== dataDir) secretFolder(address.host);
  } catch (error) {
    if (!(error instanceof UnsafeFolder)) throw error;
    throw new OperatorError(`The embedded database’s folder is not safe: ${error.message}`, { cause: error });
  }
  const unlock = await takeEmbeddedLock(dataDir, () => isListening({ path: socket }));
  if (!unlock) return undefined;
  rmSync(socket, { force: true });
  try {
    process.umask(0o077); // makes the new socket inaccessible to other users
    if (!existsSync(folder) || readdirSync(folder).length === 0) await fillFromSnapshot(folder);
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o700); // protects the folder's files, whose modes PGlite sets
    const { close } = await startThread({ folder, socket });
    return {
      ...address,
      close: async (patienceMs) => {
        await close(patienceMs);
        unlock();
      },
    };
  } catch (error) {
    unlock();
    throw new OperatorError(
      `The embedded database in ${dataDir} cannot be opened (${(error as Error).message}): ` +
        'rename the folder to start with an empty database, or set DATABASE_URL',
      { cause: error },
    );
  }
}
