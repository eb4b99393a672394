import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { CONFIG } from '../config/config.js';
import { createLogger, LOGGER } from './logger.js';
import { Meter } from './meter.js';
import { Paging } from './paging.js';
import { ProblemFilter } from './output/problem.filter.js';
import { RouteTable } from './route-table.js';

/** What every endpoint shares. */
@Global()
@Module({
  imports: [DiscoveryModule],
  providers: [
    { provide: LOGGER, inject: [CONFIG], useFactory: createLogger },
    Meter,
    Paging,
    ProblemFilter,
    RouteTable,
  ],
  exports: [LOGGER, Meter, Paging, ProblemFilter, RouteTable],
})
export class HttpModule {}
