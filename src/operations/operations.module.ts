import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { HealthModule } from './health/health.module.js';
import { Metrics } from './metrics/metrics.js';
import { Sweeper } from './sweeper/sweeper.js';
import { Upkeep } from './upkeep.js';

@Module({ imports: [AuthModule, HealthModule], providers: [Metrics, Sweeper, Upkeep], exports: [Metrics] })
export class OperationsModule {}
