import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Paging, SignedCursors } from './paging.js';
import { ProblemFilter } from './output/problem.filter.js';
import { RouteTable } from './route-table.js';

@Global()
@Module({
  imports: [DiscoveryModule],
  providers: [Paging, ProblemFilter, RouteTable, SignedCursors],
  exports: [Paging, ProblemFilter, RouteTable, SignedCursors],
})
export class HttpModule {}
