import { Module } from '@nestjs/common';
import { OperationsModule } from '../operations/operations.module.js';
import { PlatformChangesService } from './changes.service.js';
import { FeedService } from './feed.service.js';
import { PlatformController } from './platform.controller.js';

/** The routes under `/api/platform`, for the platform's own backend. */
@Module({
  imports: [OperationsModule],
  controllers: [PlatformController],
  providers: [FeedService, PlatformChangesService],
})
export class PlatformModule {}
