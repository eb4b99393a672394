import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { PrimaryWal } from '../database/replicas/primary-wal.js';
import { Logger } from '../runtime/logger.js';
import { DatabaseCheck } from './health/database-check.js';
import { HealthController } from './health/health.controller.js';
import { Readiness } from './health/readiness.js';
import { Metrics, prometheus } from './metrics/metrics.js';
import { Sweeper } from './sweeper/sweeper.js';
import { Upkeep } from './upkeep.js';

@Module({
  imports: [AuthModule],
  controllers: [HealthController],
  providers: [DatabaseCheck, Metrics, prometheus, Readiness, Sweeper, Upkeep],
  exports: [Metrics, Readiness],
})
export class OperationsModule {
  constructor(wal: PrimaryWal, logger: Logger) {
    wal.onChange = (reason) => {
      if (reason === undefined)
        logger.info({}, 'the channel of member writes is connected again: reads use replicas');
      else logger.warn({ reason }, 'the channel of member writes is disconnected: reads use the primary');
    };
  }
}
