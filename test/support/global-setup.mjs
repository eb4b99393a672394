import { randomInt } from 'node:crypto';
import { mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from '../../bin/build.mjs';
import { keepCompiled } from '../../bin/compile-cache.mjs';

/** Of property tests, unless `FUZZ_SEED` says another: a number, or `random`. */
const SEED = 20_261_121;

const MEMORY = '/dev/shm';
/** More than all embedded databases that are open at a time; a container has 64 MB, if nobody says otherwise. */
const ENOUGH_BYTES = 2e9;

/** A folder that is no disk, where there is one: an embedded database writes a little, again and again. */
function inMemory() {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > ENOUGH_BYTES ? mkdtempSync(join(MEMORY, 'pua-test-')) : undefined;
  } catch {
    return undefined; // not Linux
  }
}

/** Migrates one database, once, unless it is there from before: each test file starts from a copy of it. */
export default async function setUp() {
  await build(); // what is tested is what was built
  keepCompiled();
  const { FUZZ_SEED = String(SEED) } = process.env;
  process.env.FUZZ_SEED = FUZZ_SEED === 'random' ? String(randomInt(2 ** 31)) : FUZZ_SEED;
  console.log(`Seed of the property tests: FUZZ_SEED=${process.env.FUZZ_SEED}`);
  const folder = mkdtempSync(join(tmpdir(), 'pua-test-'));
  process.env.TEST_FOLDER = folder;
  process.env.TEST_DATABASES_FOLDER = inMemory() ?? folder;
  process.env.TEST_SECRET_KEY = Buffer.alloc(32, 'test').toString('base64');

  const server = process.env.TEST_DATABASE_URL;
  const { readySnapshot } = await import('../../dist/src/database/embedded-snapshot.js');
  if (!server) {
    await readySnapshot();
    return;
  }
  const { loadConfig } = await import('../../dist/src/config/config.js');
  const { createDataSource } = await import('../../dist/src/database/data-source.js');
  const { migrate } = await import('../../dist/src/database/migrate.js');
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
