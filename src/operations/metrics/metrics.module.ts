import { Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module.js';
import { Metrics } from './metrics.js';

@Module({ imports: [AuthModule], providers: [Metrics], exports: [Metrics] })
export class MetricsModule {}
