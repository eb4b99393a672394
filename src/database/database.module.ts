import { Global, Module } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { CONFIG } from '../config/config.js';
import type { Config } from '../config/config.js';
import { createDataSource } from './data-source.js';
import { Database } from './database.js';

/** The pool outlives the application: {@link closeApp} ends it when the last hook has written. */
@Global()
@Module({
  providers: [
    {
      provide: DataSource,
      inject: [CONFIG],
      useFactory: (config: Config) => createDataSource(config, 'requests').initialize(),
    },
    Database,
  ],
  exports: [DataSource, Database],
})
export class DatabaseModule {}
