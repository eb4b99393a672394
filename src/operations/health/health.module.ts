import { Module } from '@nestjs/common';
import { ChannelLog } from './channel-log.js';
import { DatabaseCheck } from './database-check.js';
import { HealthController } from './health.controller.js';
import { Readiness } from './readiness.js';

@Module({
  controllers: [HealthController],
  providers: [ChannelLog, DatabaseCheck, Readiness],
  exports: [Readiness],
})
export class HealthModule {}
