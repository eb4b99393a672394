import { randomInt } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { build } from '../../bin/build.mjs';
import { keepCompiled } from '../../bin/compile-cache.mjs';
import { startEmbeddedHost } from './embedded-host.mjs';
import { removeFolders } from './global-teardown.mjs';

/** Default seed of property tests; `FUZZ_SEED` overrides it with a number or `random`. */
const SEED = 20_261_121;

const MEMORY = '/dev/shm';
/** Memory for more embedded databases than are open at a time; containers have 64 MB by default. */
const ENOUGH_BYTES = 2e9;

/**
 * Creates the temporary folder of this run, for all temporary files of tests and of the programs that they start. The end of the run
 * deletes it with all remaining files.
 */
function makeFolders() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, () => {
      removeFolders();
      process.kill(process.pid, signal);
    });
  const folder = mkdtempSync(join(tmpdir(), 'pua-test-'));
  chmodSync(folder, 0o711); // PostgreSQL runs as another user
  process.env.TEST_FOLDER = folder;
  process.env.TEST_DATABASES_FOLDER = inMemory(basename(folder)) ?? folder;
  process.env.TMPDIR = folder;
}

/** Creates a folder in memory if possible: an embedded database writes often, a little at a time. */
function inMemory(name) {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    const folder = join(MEMORY, name);
    if (bavail * bsize <= ENOUGH_BYTES) return undefined;
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  } catch {
    return undefined; // not Linux
  }
}

/** Migrates one database, unless one exists already: each test file starts from a copy of it. */
export default async function setUp() {
  await build(); // tests run the build
  keepCompiled();
  const { FUZZ_SEED = String(SEED) } = process.env;
  process.env.FUZZ_SEED = FUZZ_SEED === 'random' ? String(randomInt(2 ** 31)) : FUZZ_SEED;
  console.log(`Seed of the property tests: FUZZ_SEED=${process.env.FUZZ_SEED}`);
  makeFolders();
  process.env.TEST_SECRET_KEY = Buffer.alloc(32, 'test').toString('base64');

  const server = process.env.TEST_DATABASE_URL;
  const { readySnapshot } = await import('../../dist/src/database/embedded/snapshot.js');
  if (!server) {
    await readySnapshot();
    process.env.TEST_EMBEDDED_HOST = join(process.env.TEST_FOLDER, 'embedded.sock');
    await startEmbeddedHost(process.env.TEST_EMBEDDED_HOST);
    return;
  }
  const { loadConfig } = await import('../../dist/src/config/config.js');
  const { createDataSource } = await import('../../dist/src/database/postgres/data-source.js');
  const { migrate } = await import('../../dist/src/database/schema/migrate.js');
  const connect = (url) => {
    const settings = { NODE_ENV: 'test', SECRET_KEY: process.env.TEST_SECRET_KEY, DATABASE_URL: url };
    return createDataSource(loadConfig(settings), 'maintenance').initialize();
  };
  const admin = await connect(server);
  await admin.query('DROP DATABASE IF EXISTS template_pua');
  await admin.query('CREATE DATABASE template_pua');
  await admin.destroy();
  const template = await connect(server.replace(/\/postgres$/, '/template_pua'));
  await migrate(template);
  await template.destroy();
}
