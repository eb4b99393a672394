import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { ownFolder, secretFolder, UnsafeFolder } from '../config/own-folder.js';
import { embeddedAddress, socketPath } from './embedded-address.js';
import type { EmbeddedAddress } from './embedded-address.js';
import { fillFromSnapshot } from './embedded-snapshot.js';
import { startThread } from './embedded-thread.js';
import { OperatorError } from '../values/operator-error.js';

/** The embedded database (PGlite) while this process holds it open. */
export interface EmbeddedDatabase extends EmbeddedAddress {
  /** Other processes that are connected have so long to finish (5 s, unless said). */
  close(patienceMs?: number): Promise<void>;
}

/**
 * Opens the embedded database in `dataDir` and serves it on a Unix socket there. PGlite has no lock of its
 * own and two processes would lose writes silently, so a file with the holder's pid is the lock. From then on this process
 * keeps all files that it makes to its user.
 *
 * @returns `undefined` where another living process serves it already; it can be reached at the same address.
 * @throws OperatorError where others could lay something into its folders, or it cannot be opened
 */
export async function openEmbedded(dataDir: string): Promise<EmbeddedDatabase | undefined> {
  const address = embeddedAddress(dataDir);
  const socket = socketPath(address.host);
  const folder = join(dataDir, 'embedded');
  try {
    ownFolder(dataDir);
    if (address.host !== dataDir) secretFolder(address.host);
  } catch (error) {
    if (!(error instanceof UnsafeFolder)) throw error;
    throw new OperatorError(`The embedded database is not safe there: ${error.message}`, { cause: error });
  }
  const lock = join(dataDir, 'embedded.lock');
  if (!(await takeLock(lock, socket))) return undefined;
  rmSync(socket, { force: true });
  try {
    process.umask(0o077); // the socket comes into being closed to others
    if (isEmpty(folder)) await fillFromSnapshot(folder);
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o700); // of the files inside PGlite sets modes of its own
    const { close } = await startThread({ folder, socket });
    return {
      ...address,
      close: async (patienceMs) => {
        await close(patienceMs);
        rmSync(lock, { force: true });
      },
    };
  } catch (error) {
    rmSync(lock, { force: true });
    throw new OperatorError(
      `The embedded database in ${dataDir} cannot be opened (${(error as Error).message}): ` +
        'move the folder away to start afresh, or set DATABASE_URL',
      { cause: error },
    );
  }
}

/** A holder that opens or closes the database is waited for, a minute at most: a busy machine takes its time. */
const MOST_LOOKS = 300;
const LOOK_MS = 200;

/** @returns whether this process now holds the lock; false where a living process serves the socket. */
async function takeLock(lock: string, socket: string): Promise<boolean> {
  for (let attempt = 0; attempt < MOST_LOOKS; attempt++) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx', mode: 0o600 });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    if (await answers(socket)) return false;
    const holder = Number(readIfThere(lock));
    if (holder && isAlive(holder) && holder !== process.pid) {
      // Alive but not serving: it is starting or stopping. Wait for either.
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    } else {
      removeStale(lock, String(holder || ''));
    }
  }
  throw new OperatorError(
    `The data folder is locked by process ${readIfThere(lock)} (${lock}): stop that process, or name another DATA_DIR`,
  );
}

/** Removes the lock of a process that was killed, and no other: two may be here at the same time. */
function removeStale(lock: string, content: string): void {
  const aside = `${lock}.${process.pid}`;
  try {
    renameSync(lock, aside);
    if (readIfThere(aside) !== content) linkSync(aside, lock);
  } catch (error) {
    if (!['ENOENT', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
  rmSync(aside, { force: true });
}

function isEmpty(folder: string): boolean {
  return !existsSync(folder) || readdirSync(folder).length === 0;
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket);
    connection.once('connect', () => {
      connection.destroy();
      resolve(true);
    });
    connection.once('error', () => resolve(false));
  });
}
