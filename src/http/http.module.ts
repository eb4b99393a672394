import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { createLogger, Logger } from './logger.js';
import { Meter } from './meter.js';
import { Paging, SignedCursors } from './paging.js';
import { PeriodicWork } from './periodic-work.js';
import { PublicHttps } from './public-https.js';
import { ProblemFilter } from './output/problem.filter.js';
import { RouteTable } from './route-table.js';
import { Config } from '../config/config.js';

/** What every endpoint shares. */
@Global()
@Module({
  imports: [DiscoveryModule],
  providers: [
    { provide: Logger, inject: [Config], useFactory: createLogger },
    Meter,
    Paging,
    PeriodicWork,
    PublicHttps,
    ProblemFilter,
    RouteTable,
    SignedCursors,
  ],
  exports: [Logger, Meter, Paging, PublicHttps, ProblemFilter, RouteTable, SignedCursors],
})
export class HttpModule {}
