import { Module } from '@nestjs/common';
import { Changes } from '../../changes/changes.js';
import { SyncController } from './sync.controller.js';
import { SyncService } from './sync.service.js';

@Module({ controllers: [SyncController], providers: [Changes, SyncService] })
export class SyncModule {}
