import { Module } from '@nestjs/common';
import { Sweeper } from './sweeper.service.js';

@Module({ providers: [Sweeper] })
export class SweeperModule {}
