import { Module } from '@nestjs/common';
import { OperationsModule } from '../operations/operations.module.js';
import { PlatformChangesController } from './changes.controller.js';
import { PlatformChangesService } from './changes.service.js';
import { FeedController } from './feed.controller.js';
import { FeedService } from './feed.service.js';
import { LongPoll } from './long-poll.js';

/** The routes for the platform's own backend: `/api/platform`. */
@Module({
  imports: [OperationsModule],
  controllers: [FeedController, PlatformChangesController],
  providers: [FeedService, PlatformChangesService, LongPoll],
})
export class PlatformModule {}
