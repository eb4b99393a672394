import { Module } from '@nestjs/common';
import { ChangesCoalescer } from './changes-coalescer.js';
import { Changes } from './changes.js';

@Module({ providers: [Changes, ChangesCoalescer], exports: [Changes] })
export class ChangesModule {}
