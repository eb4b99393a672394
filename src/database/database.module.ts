import { Global, Module } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { createDataSource } from './postgres/data-source.js';
import { Database } from './database.js';
import { MemberReads } from './member-reads.js';
import { PrimaryWal } from './replicas/primary-wal.js';
import { isUnavailable } from './postgres/unavailable.js';
import { Config } from '../config/config.js';

/** Time in ms for which the first connection is retried at startup, when the database may still be starting. */
const PATIENCE_MS = 5_000;

async function connectPatiently(config: Config): Promise<DataSource> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await createDataSource(config, 'requests').initialize();
    } catch (error) {
      if (!isUnavailable(error) || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** {@link closeApp} ends the pool after the last shutdown hook. */
@Global()
@Module({
  providers: [
    {
      provide: DataSource,
      inject: [Config],
      useFactory: connectPatiently,
    },
    Database,
    MemberReads,
    PrimaryWal,
  ],
  exports: [DataSource, Database, MemberReads, PrimaryWal],
})
export class DatabaseModule {}
