import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DataSource } from 'typeorm';
import { embeddedAddress, socketPath } from './address.js';
import { startThread } from './thread.js';
import { migrate, collectStatements, stepsOf } from '../schema/migrate.js';
import { REPEATABLE_DIGEST } from '../schema/schema.js';
import { MIGRATIONS } from '../schema/tables.js';
import { sha256 } from '../../crypto/digests.js';

/** A folder in the build (`dist`): users who cannot change the program must not be able to change snapshots. */
const SNAPSHOTS = join(import.meta.dirname, '../../../.snapshots');
/** Age in ms after which drafts and other versions' snapshots may be removed. */
const OLD_MS = 3_600_000;
/** Drops the template databases, so that copies are smaller: the server creates no other database. */
const WITHOUT_TEMPLATES = [
  'UPDATE pg_database SET datistemplate = false',
  'DROP DATABASE template0',
  'DROP DATABASE template1',
];

/** Copies the snapshot to `folder`, which is faster than migrations. Does nothing if there is no snapshot. */
export async function fillFromSnapshot(folder: string): Promise<void> {
  const snapshot = await readySnapshot();
  if (snapshot === undefined) return;
  const draft = `${folder}.new`;
  rmSync(draft, { recursive: true, force: true }); // files of a killed process
  cpSync(snapshot, draft, { recursive: true });
  renameSync(draft, folder); // atomically
}

/** Finds or makes the snapshot; concurrent processes may do this. @returns its path; undefined if there is none and none can be written */
export async function readySnapshot(): Promise<string | undefined> {
  const snapshot = join(SNAPSHOTS, await version());
  if (existsSync(snapshot)) return snapshot;
  const draft = emptyDraft();
  if (draft === undefined) return undefined;
  console.error('Creating the embedded database (a few seconds, once for each version of the schema) …');
  try {
    await makeDatabase(draft);
    if (!existsSync(snapshot)) renameSync(draft, snapshot);
    removeOld(snapshot);
  } catch (error) {
    if (!existsSync(snapshot)) throw error; // another process was first: its snapshot is complete
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return snapshot;
}

/** Returns a digest of PGlite's version and all schema statements. */
async function version(): Promise<string> {
  const library = fileURLToPath(import.meta.resolve('@electric-sql/pglite'));
  const parts = [
    readFileSync(join(library, '../../package.json'), 'utf8'),
    WITHOUT_TEMPLATES.join(),
    REPEATABLE_DIGEST,
  ];
  for (const Migration of MIGRATIONS) {
    const migration = new Migration();
    parts.push(Migration.name, ...stepsOf(migration), ...(await collectStatements(migration, 'up')));
  }
  return sha256(parts.join('\n'), 'hex').slice(0, 16);
}

function emptyDraft(): string | undefined {
  try {
    mkdirSync(SNAPSHOTS, { recursive: true, mode: 0o700 });
    return mkdtempSync(join(SNAPSHOTS, 'draft-'));
  } catch {
    return undefined;
  }
}

async function makeDatabase(folder: string): Promise<void> {
  const host = mkdtempSync(join(tmpdir(), 'pua-'));
  const thread = await startThread({ folder, socket: socketPath(host) });
  try {
    const dataSource = new DataSource({
      type: 'postgres',
      ...embeddedAddress(host),
      username: 'postgres',
      database: 'postgres',
      migrations: MIGRATIONS,
    });
    await dataSource.initialize();
    await migrate(dataSource);
    for (const statement of WITHOUT_TEMPLATES) await dataSource.query(statement);
    await dataSource.destroy();
  } finally {
    await thread.close();
    rmSync(host, { recursive: true });
  }
}

function removeOld(snapshot: string): void {
  for (const path of readdirSync(SNAPSHOTS).map((name) => join(SNAPSHOTS, name))) {
    if (path !== snapshot && Date.now() - statSync(path).mtimeMs > OLD_MS)
      rmSync(path, { recursive: true, force: true });
  }
}
