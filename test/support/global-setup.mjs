import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { build } from '../../bin/build.mjs';

/** Migrates one database, once: each test file starts from a copy of it. */
export default async function setUp() {
  await build(); // the command line and second server processes are tested as they are run
  const { loadConfig } = await import('../../dist/src/config/config.js');
  const { createDataSource } = await import('../../dist/src/database/data-source.js');
  const { openEmbedded } = await import('../../dist/src/database/embedded.js');
  const { migrate } = await import('../../dist/src/database/migrate.js');

  const folder = mkdtempSync(join(tmpdir(), 'pua-test-'));
  process.env.TEST_FOLDER = folder;
  process.env.TEST_SECRET_KEY = Buffer.alloc(32, 'test').toString('base64');
  const settings = (environment) =>
    loadConfig({ NODE_ENV: 'test', SECRET_KEY: process.env.TEST_SECRET_KEY, ...environment });
  const migrateOnce = async (config) => {
    const dataSource = await createDataSource(config, 'maintenance').initialize();
    await migrate(dataSource);
    await dataSource.destroy();
  };

  const server = process.env.TEST_DATABASE_URL;
  if (server) {
    const admin = await createDataSource(settings({ DATABASE_URL: server }), 'maintenance').initialize();
    await admin.query('DROP DATABASE IF EXISTS template_pua');
    await admin.query('CREATE DATABASE template_pua');
    await admin.destroy();
    await migrateOnce(settings({ DATABASE_URL: server.replace(/\/postgres$/, '/template_pua') }));
    return;
  }
  const embedded = await openEmbedded(folder);
  await migrateOnce(settings({ DATA_DIR: folder }));
  await embedded.close();
  const database = await PGlite.create(join(folder, 'embedded'));
  writeFileSync(
    join(folder, 'snapshot.tar'),
    Buffer.from(await (await database.dumpDataDir('none')).arrayBuffer()),
  );
  await database.close();
}
