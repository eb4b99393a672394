import { Module } from '@nestjs/common';
import { ChangesModule } from '../../changes/changes.module.js';
import { SyncController } from './sync.controller.js';
import { SyncService } from './sync.service.js';

@Module({ imports: [ChangesModule], controllers: [SyncController], providers: [SyncService] })
export class SyncModule {}
