import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { AchievementsController } from '../resources/achievements/achievements.controller.js';
import { AchievementsService } from '../resources/achievements/achievements.service.js';
import { ConnectionsController } from '../resources/connections/api.js';
import { CredentialController } from './credential/credential.controller.js';
import { EventsController } from '../resources/events/events.controller.js';
import { EventsService } from '../resources/events/events.service.js';
import { ProblemsController } from './problems/problems.controller.js';
import { ProfileController } from '../resources/profile/profile.controller.js';
import { ProfileService } from '../resources/profile/profile.service.js';
import { SyncController } from './sync/sync.controller.js';
import { SyncService } from './sync/sync.service.js';

/** Routes of the members' API. */
@Module({
  imports: [AuthModule],
  controllers: [
    CredentialController,
    ProblemsController,
    ProfileController,
    EventsController,
    ConnectionsController,
    AchievementsController,
    SyncController,
  ],
  providers: [ProfileService, EventsService, AchievementsService, SyncService],
})
export class FeaturesModule {}
