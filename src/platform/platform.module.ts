import { Module } from '@nestjs/common';
import { FeedController } from './feed.controller.js';
import { FeedService } from './feed.service.js';

/** What the platform's own backend calls: `/api/platform`. */
@Module({ controllers: [FeedController], providers: [FeedService] })
export class PlatformModule {}
